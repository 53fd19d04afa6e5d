impl Shop {
    fn create(&self, order: Order, _shop: u32, _other: u8) -> Result<Id, AppError> {
        let (__site, __permits) = {
            static __RULES: [__leap::Rule; 4] = [
                __leap::hot(__leap::HotWords {
                    name: "order.user",
                    qps: __leap::Some(10f64),
                    per_ms: __leap::None,
                    burst: __leap::Some(5),
                    max_concurrency: __leap::None,
                    behavior: __leap::None,
                    max_wait_ms: __leap::None,
                    max_keys: __leap::Some(100),
                    precision: __leap::None,
                    except: const {
                        &[
                            (__leap::Except::Text("vip"), 1000f64),
                            (__leap::Except::Int(-1), 0.5f64),
                            (__leap::Except::Bool(true), 1f64),
                            (__leap::Except::Char('c'), (LIMIT) as __leap::f64),
                        ]
                    },
                    mode: __leap::Mode::Enforce,
                }),
                __leap::hot(__leap::HotWords {
                    name: "shop",
                    qps: __leap::Some(1f64),
                    per_ms: __leap::Some(2000),
                    burst: __leap::None,
                    max_concurrency: __leap::None,
                    behavior: __leap::Some(__leap::BehaviorWord::Throttle),
                    max_wait_ms: __leap::Some(50),
                    max_keys: __leap::None,
                    precision: __leap::Some(__leap::Precision::Sentinel),
                    except: &[],
                    mode: __leap::Mode::Enforce,
                }),
                __leap::hot(__leap::HotWords {
                    name: "shop",
                    qps: __leap::None,
                    per_ms: __leap::None,
                    burst: __leap::None,
                    max_concurrency: __leap::Some(3),
                    behavior: __leap::None,
                    max_wait_ms: __leap::None,
                    max_keys: __leap::None,
                    precision: __leap::None,
                    except: &[],
                    mode: __leap::Mode::Enforce,
                }),
                __leap::authority(&[], const { &["batch"] }, __leap::Mode::Enforce),
            ];
            fn __here() -> &'static __leap::str {
                __leap::path_of(__leap::type_name_of_val(&__here))
            }
            static __SITE: __leap::CallSite = __leap::CallSite::new(
                __leap::Some("orders.create"),
                __here,
                &__RULES,
            );
            __leap::catalogued! {
                __leap::Place.listed(& __SITE)
            }
            (&__SITE, 2)
        };
        use ::leap_runtime::__private as __leap;
        let mut __entry = __site
            .enter_with(
                &__leap::Request {
                    permits: __permits,
                    priority: true,
                    inbound: true,
                    origin: __leap::Option::as_deref(
                        &__leap::origin(
                            __site,
                            || __leap::ToOrigin::to_origin(&self.app.as_deref()),
                        ),
                    ),
                    entrance: __leap::Some({
                        const __ENTRANCE: &__leap::str = __leap::name(ENTRANCE);
                        __ENTRANCE
                    }),
                    keys: &[
                        (
                            "order.user",
                            __leap::key(__site, || __leap::Keyed::to_key(&order.user)),
                        ),
                        ("shop", __leap::key(__site, || __leap::Keyed::to_key(&_shop))),
                        (
                            "(order.id, 7)",
                            __leap::key(
                                __site,
                                || __leap::Keyed::to_key(&((order.id, 7))),
                            ),
                        ),
                    ],
                },
            );
        return match __entry {
            __leap::Ok(ref mut __entry) => {
                __leap::run(
                    __entry,
                    move || -> Result<Id, AppError> {
                        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                        let order = order;
                        let _ = &order;
                        #[allow(
                            clippy::no_effect_underscore_binding,
                            clippy::used_underscore_binding,
                            clippy::shadow_same
                        )]
                        let _shop = _shop;
                        #[allow(clippy::no_effect_underscore_binding)]
                        let _other = _other;
                        match () {
                            () => self.store(order),
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
            }
            __leap::Err(__blocked) => __leap::Blockable::from_blocked(__blocked),
        };
    }
}
