async fn find(id: &str) -> Option<Item> {
    let (__site, __permits) = {
        static __RULES: [::leap_runtime::__private::Rule; 1] = [
            ::leap_runtime::__private::hot(::leap_runtime::__private::HotWords {
                name: "id",
                qps: ::leap_runtime::__private::Some(10f64),
                per_ms: ::leap_runtime::__private::None,
                burst: ::leap_runtime::__private::None,
                max_concurrency: ::leap_runtime::__private::None,
                behavior: ::leap_runtime::__private::None,
                max_wait_ms: ::leap_runtime::__private::None,
                max_keys: ::leap_runtime::__private::None,
                precision: ::leap_runtime::__private::None,
                except: &[],
                mode: ::leap_runtime::__private::Mode::Enforce,
            }),
        ];
        fn __here() -> &'static ::leap_runtime::__private::str {
            ::leap_runtime::__private::path_of(
                ::leap_runtime::__private::type_name_of_val(&__here),
            )
        }
        static __SITE: ::leap_runtime::__private::CallSite = ::leap_runtime::__private::CallSite::new(
            ::leap_runtime::__private::None,
            __here,
            &__RULES,
        );
        ::leap_runtime::__private::catalogued! {
            ::leap_runtime::__private::Place.listed(& __SITE)
        }
        (&__SITE, 1)
    };
    #[allow(clippy::shadow_reuse)]
    let (__begun, (id,)) = ::leap_runtime::__private::lend(
        (id,),
        |(id,)| (
            __site
                .begin_with(
                    &::leap_runtime::__private::Request {
                        permits: __permits,
                        priority: false,
                        inbound: true,
                        origin: ::leap_runtime::__private::None,
                        entrance: ::leap_runtime::__private::Some("web"),
                        keys: &[
                            (
                                "id",
                                ::leap_runtime::__private::key(
                                    __site,
                                    || ::leap_runtime::__private::ToKey::to_key(&id),
                                ),
                            ),
                        ],
                    },
                ),
            (id,),
        ),
    );
    return ::leap_runtime::__private::run_async(
            __begun,
            async move {
                if false {
                    return ::leap_runtime::__private::never::<Option<Item>>();
                }
                if ::leap_runtime::__private::is_turned_away() {
                    let __blocked = ::leap_runtime::__private::turned_away();
                    let __argument0 = id;
                    use ::leap_runtime::__private::{ViaFit as _, ViaMisfit as _};
                    let __fallback = none;
                    (&::leap_runtime::__private::taking::<_, (_, _)>(&__fallback))
                        .leap_fits();
                    use ::leap_runtime::__private::{ViaFuture as _, ViaValue as _};
                    let (__answer, __kind) = ::leap_runtime::__private::Answer::<
                        _,
                        Option<Item>,
                    >::of(__fallback(__argument0, __blocked));
                    let __way = (&__kind).leap_way();
                    return __way.settle(__answer).await;
                }
                #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                let id = id;
                let _ = &id;
                match () {
                    () => look_up(id).await,
                }
            },
            |__value| {
                use ::leap_runtime::__private::{
                    ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                };
                (&&::leap_runtime::__private::Judged(__value)).leap_outcome()
            },
        )
        .await;
}
