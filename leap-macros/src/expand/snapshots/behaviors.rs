fn all() -> Result<(), Blocked> {
    let (__site, __permits) = {
        static __RULES: [__leap::Rule; 4] = [
            __leap::flow(__leap::FlowWords {
                limit: 0.5f64,
                per_ms: 1_000,
                precision: __leap::None,
                buckets: __leap::None,
                behavior: __leap::Some(__leap::BehaviorWord::Throttle),
                warm_up_ms: __leap::None,
                cold_factor: __leap::None,
                max_wait_ms: __leap::Some(2 * SECOND),
                burst: __leap::Some(3),
                associated: __leap::None,
                mode: __leap::Mode::Enforce,
            }),
            __leap::flow(__leap::FlowWords {
                limit: 100f64,
                per_ms: 1000,
                precision: __leap::None,
                buckets: __leap::None,
                behavior: __leap::Some(__leap::BehaviorWord::WarmUpThrottle),
                warm_up_ms: __leap::Some(20000),
                cold_factor: __leap::Some(2.5f64),
                max_wait_ms: __leap::Some(0),
                burst: __leap::None,
                associated: __leap::None,
                mode: __leap::Mode::Enforce,
            }),
            __leap::flow(__leap::FlowWords {
                limit: 10f64,
                per_ms: 500,
                precision: __leap::None,
                buckets: __leap::None,
                behavior: __leap::Some(__leap::BehaviorWord::Reject),
                warm_up_ms: __leap::None,
                cold_factor: __leap::None,
                max_wait_ms: __leap::None,
                burst: __leap::None,
                associated: __leap::Some("orders.write"),
                mode: __leap::Mode::Enforce,
            }),
            __leap::error_count(
                10,
                __leap::BreakerWords {
                    min_calls: __leap::None,
                    window_ms: __leap::None,
                    window_calls: __leap::Some(100),
                    open_ms: __leap::None,
                    open_max_ms: __leap::Some(MINUTE),
                    probes: __leap::None,
                    recovery: __leap::Some(__leap::Recovery::Ramp),
                    mode: __leap::Mode::Enforce,
                },
            ),
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
    let mut __entry = __site.enter(__permits);
    return match __entry {
        __leap::Ok(ref mut __entry) => {
            __leap::run(
                __entry,
                move || -> Result<(), Blocked> {
                    match () {
                        () => Ok(()),
                    }
                },
                |__value| {
                    use __leap::{
                        ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                        ViaUnseenStream as _,
                    };
                    (&&__leap::Judged(__value)).leap_outcome_or_error()
                },
            )
        }
        __leap::Err(__blocked) => __leap::Blockable::from_blocked(__blocked),
    };
}
