fn stock(mut sku: String) -> impl Future<Output = u32> {
    async move {
        let (__site, __permits) = {
            static __RULES: [__leap::Rule; 1] = [
                __leap::hot(__leap::HotWords {
                    name: "sku",
                    qps: __leap::Some(1f64),
                    per_ms: __leap::None,
                    burst: __leap::None,
                    max_concurrency: __leap::None,
                    behavior: __leap::None,
                    max_wait_ms: __leap::None,
                    max_keys: __leap::None,
                    precision: __leap::None,
                    except: &[],
                    mode: __leap::Mode::Enforce,
                }),
            ];
            fn __here() -> &'static __leap::str {
                __leap::path_of(__leap::type_name_of_val(&__here))
            }
            static __SITE: __leap::CallSite = __leap::CallSite::new(
                __leap::None,
                __here,
                &__RULES,
            );
            __leap::catalogued! {
                __leap::Place.listed(& __SITE)
            }
            (&__SITE, 1)
        };
        use ::leap_runtime::__private as __leap;
        let __begun = __site
            .begin_with(
                &__leap::Request {
                    permits: __permits,
                    priority: false,
                    inbound: false,
                    origin: __leap::None,
                    entrance: __leap::None,
                    keys: &[("sku", __leap::key(__site, || __leap::Keyed::to_key(&sku)))],
                },
            );
        return __leap::run_async(
                __begun,
                async move {
                    if false {
                        return __leap::never::<u32>();
                    }
                    if __leap::is_turned_away() {
                        let __blocked = __leap::turned_away();
                        let __argument0 = sku;
                        use __leap::{ViaFit as _, ViaMisfit as _};
                        let __fallback = last_known;
                        (&__leap::taking::<_, (_, _)>(&__fallback)).leap_fits();
                        use __leap::{ViaFuture as _, ViaValue as _};
                        let (__answer, __kind) = __leap::Answer::<
                            _,
                            u32,
                        >::of(__fallback(__argument0, __blocked));
                        let __way = (&__kind).leap_way();
                        let (__value, __future) = __way.split(__answer);
                        if __way.is_value() {
                            return __leap::one(__value);
                        }
                        __leap::no_value(__value);
                        return __leap::one(__future).await;
                    }
                    match () {
                        () => look_up(sku).await,
                    }
                },
                |__value| {
                    use __leap::{
                        ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                        ViaUnseenStream as _,
                    };
                    (&&__leap::Judged(__value)).leap_outcome()
                },
            )
            .await;
    }
}
