fn stock(sku: &str) -> BoxFuture<'static, Result<u32, AppError>> {
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
    let __origin = __leap::origin(__site, || __leap::ToOrigin::to_origin(&sku));
    let __keys = [("sku", __leap::key(__site, || __leap::Keyed::to_key(&sku)))];
    let __made = __leap::made(move || -> BoxFuture<'static, Result<u32, AppError>> {
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
    return __leap::Box::pin(
        __leap::run_made(
            move || {
                __site
                    .begin_with(
                        &__leap::Request {
                            permits: __permits,
                            priority: false,
                            inbound: false,
                            origin: __leap::Option::as_deref(&__origin),
                            entrance: __leap::None,
                            keys: &__keys,
                        },
                    )
            },
            __made,
            |__value| {
                use __leap::{
                    ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                    ViaUnseenStream as _,
                };
                (&&__leap::Judged(__value)).leap_outcome()
            },
            move |__blocked| async move {
                if false {
                    return __leap::never::<
                        <BoxFuture<
                            'static,
                            Result<u32, AppError>,
                        > as __leap::Awaited>::Output,
                    >();
                }
                return __leap::Blockable::from_blocked(__blocked);
            },
        ),
    );
}
