fn stock(sku: &str) -> BoxFuture<'static, Result<u32, AppError>> {
    let (__site, __permits) = {
        static __RULES: [::leap_runtime::__private::Rule; 1] = [
            ::leap_runtime::__private::hot(::leap_runtime::__private::HotWords {
                name: "sku",
                qps: ::leap_runtime::__private::Some(1f64),
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
    let __origin = ::leap_runtime::__private::origin(
        __site,
        || ::leap_runtime::__private::ToOrigin::to_origin(&sku),
    );
    let __keys = [
        (
            "sku",
            ::leap_runtime::__private::key(
                __site,
                || ::leap_runtime::__private::ToKey::to_key(&sku),
            ),
        ),
    ];
    let __made = ::leap_runtime::__private::made(move || -> BoxFuture<
        'static,
        Result<u32, AppError>,
    > {
        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
        let sku = sku;
        let _ = &sku;
        match () {
            () => {
                let id = id_of(sku);
                Box::pin(async move { look_up(id).await })
            }
        }
    });
    return ::leap_runtime::__private::Box::pin(async move {
        let __begun = __site
            .begin_with(
                &::leap_runtime::__private::Request {
                    permits: __permits,
                    priority: false,
                    inbound: false,
                    origin: ::leap_runtime::__private::Option::as_deref(&__origin),
                    entrance: ::leap_runtime::__private::None,
                    keys: &__keys,
                },
            );
        return ::leap_runtime::__private::run_async(
                __begun,
                async move {
                    if false {
                        return ::leap_runtime::__private::never::<
                            Result<u32, AppError>,
                        >();
                    }
                    if ::leap_runtime::__private::is_turned_away() {
                        let __blocked = ::leap_runtime::__private::turned_away();
                        return ::leap_runtime::__private::FromBlocked::from_blocked(
                            __blocked,
                        );
                    }
                    __made.await
                },
                |__value| {
                    use ::leap_runtime::__private::{
                        ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                    };
                    (&&::leap_runtime::__private::Judged(__value)).leap_outcome()
                },
            )
            .await;
    });
}
