impl Shop {
    fn create(&self, order: Order, _shop: u32, _other: u8) -> Result<Id, AppError> {
        let (__site, __permits) = {
            static __RULES: [::leap_runtime::__private::Rule; 4] = [
                ::leap_runtime::__private::hot(::leap_runtime::__private::HotWords {
                    name: "order.user",
                    qps: ::leap_runtime::__private::Some(10f64),
                    per_ms: ::leap_runtime::__private::None,
                    burst: ::leap_runtime::__private::Some(5),
                    max_concurrency: ::leap_runtime::__private::None,
                    behavior: ::leap_runtime::__private::None,
                    max_wait_ms: ::leap_runtime::__private::None,
                    max_keys: ::leap_runtime::__private::Some(100),
                    precision: ::leap_runtime::__private::None,
                    except: const {
                        &[
                            (::leap_runtime::__private::Except::Text("vip"), 1000f64),
                            (::leap_runtime::__private::Except::Int(-1), 0.5f64),
                            (::leap_runtime::__private::Except::Bool(true), 1f64),
                            (
                                ::leap_runtime::__private::Except::Char('c'),
                                (LIMIT) as ::leap_runtime::__private::f64,
                            ),
                        ]
                    },
                    mode: ::leap_runtime::__private::Mode::Enforce,
                }),
                ::leap_runtime::__private::hot(::leap_runtime::__private::HotWords {
                    name: "shop",
                    qps: ::leap_runtime::__private::Some(1f64),
                    per_ms: ::leap_runtime::__private::Some(2000),
                    burst: ::leap_runtime::__private::None,
                    max_concurrency: ::leap_runtime::__private::None,
                    behavior: ::leap_runtime::__private::Some(
                        ::leap_runtime::__private::BehaviorWord::Throttle,
                    ),
                    max_wait_ms: ::leap_runtime::__private::Some(50),
                    max_keys: ::leap_runtime::__private::None,
                    precision: ::leap_runtime::__private::Some(
                        ::leap_runtime::__private::Precision::Sentinel,
                    ),
                    except: &[],
                    mode: ::leap_runtime::__private::Mode::Enforce,
                }),
                ::leap_runtime::__private::hot(::leap_runtime::__private::HotWords {
                    name: "shop",
                    qps: ::leap_runtime::__private::None,
                    per_ms: ::leap_runtime::__private::None,
                    burst: ::leap_runtime::__private::None,
                    max_concurrency: ::leap_runtime::__private::Some(3),
                    behavior: ::leap_runtime::__private::None,
                    max_wait_ms: ::leap_runtime::__private::None,
                    max_keys: ::leap_runtime::__private::None,
                    precision: ::leap_runtime::__private::None,
                    except: &[],
                    mode: ::leap_runtime::__private::Mode::Enforce,
                }),
                ::leap_runtime::__private::authority(
                    &[],
                    const { &["batch"] },
                    ::leap_runtime::__private::Mode::Enforce,
                ),
            ];
            fn __here() -> &'static ::leap_runtime::__private::str {
                ::leap_runtime::__private::path_of(
                    ::leap_runtime::__private::type_name_of_val(&__here),
                )
            }
            static __SITE: ::leap_runtime::__private::CallSite = ::leap_runtime::__private::CallSite::new(
                ::leap_runtime::__private::Some("orders.create"),
                __here,
                &__RULES,
            );
            ::leap_runtime::__private::catalogued! {
                ::leap_runtime::__private::Place.listed(& __SITE)
            }
            (&__SITE, 2)
        };
        let mut __entry = __site
            .enter_with(
                &::leap_runtime::__private::Request {
                    permits: __permits,
                    priority: true,
                    inbound: true,
                    origin: ::leap_runtime::__private::Option::as_deref(
                        &::leap_runtime::__private::origin(
                            __site,
                            || ::leap_runtime::__private::ToOrigin::to_origin(
                                &self.app.as_deref(),
                            ),
                        ),
                    ),
                    entrance: ::leap_runtime::__private::Some({
                        const __ENTRANCE: &::leap_runtime::__private::str = ::leap_runtime::__private::name(
                            ENTRANCE,
                        );
                        __ENTRANCE
                    }),
                    keys: &[
                        (
                            "order.user",
                            ::leap_runtime::__private::key(
                                __site,
                                || ::leap_runtime::__private::ToKey::to_key(&order.user),
                            ),
                        ),
                        (
                            "shop",
                            ::leap_runtime::__private::key(
                                __site,
                                || ::leap_runtime::__private::ToKey::to_key(&_shop),
                            ),
                        ),
                        (
                            "(order.id, 7)",
                            ::leap_runtime::__private::key(
                                __site,
                                || ::leap_runtime::__private::ToKey::to_key(
                                    &((order.id, 7)),
                                ),
                            ),
                        ),
                    ],
                },
            );
        return match __entry {
            ::leap_runtime::__private::Ok(ref mut __entry) => {
                ::leap_runtime::__private::run(
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
                        use ::leap_runtime::__private::{
                            ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                        };
                        (&&::leap_runtime::__private::Judged(__value)).leap_outcome()
                    },
                )
            }
            ::leap_runtime::__private::Err(__blocked) => {
                ::leap_runtime::__private::FromBlocked::from_blocked(__blocked)
            }
        };
    }
}
