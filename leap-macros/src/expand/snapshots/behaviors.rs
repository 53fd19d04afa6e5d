fn all() -> Result<(), Blocked> {
    let (__site, __permits) = {
        static __RULES: [::leap_runtime::__private::Rule; 4] = [
            ::leap_runtime::__private::flow(::leap_runtime::__private::FlowWords {
                limit: 0.5f64,
                per_ms: 1_000,
                precision: ::leap_runtime::__private::None,
                buckets: ::leap_runtime::__private::None,
                behavior: ::leap_runtime::__private::Some(
                    ::leap_runtime::__private::BehaviorWord::Throttle,
                ),
                warm_up_ms: ::leap_runtime::__private::None,
                cold_factor: ::leap_runtime::__private::None,
                max_wait_ms: ::leap_runtime::__private::Some(2 * SECOND),
                burst: ::leap_runtime::__private::Some(3),
                associated: ::leap_runtime::__private::None,
                mode: ::leap_runtime::__private::Mode::Enforce,
            }),
            ::leap_runtime::__private::flow(::leap_runtime::__private::FlowWords {
                limit: 100f64,
                per_ms: 1000,
                precision: ::leap_runtime::__private::None,
                buckets: ::leap_runtime::__private::None,
                behavior: ::leap_runtime::__private::Some(
                    ::leap_runtime::__private::BehaviorWord::WarmUpThrottle,
                ),
                warm_up_ms: ::leap_runtime::__private::Some(20000),
                cold_factor: ::leap_runtime::__private::Some(2.5f64),
                max_wait_ms: ::leap_runtime::__private::Some(0),
                burst: ::leap_runtime::__private::None,
                associated: ::leap_runtime::__private::None,
                mode: ::leap_runtime::__private::Mode::Enforce,
            }),
            ::leap_runtime::__private::flow(::leap_runtime::__private::FlowWords {
                limit: 10f64,
                per_ms: 500,
                precision: ::leap_runtime::__private::None,
                buckets: ::leap_runtime::__private::None,
                behavior: ::leap_runtime::__private::Some(
                    ::leap_runtime::__private::BehaviorWord::Reject,
                ),
                warm_up_ms: ::leap_runtime::__private::None,
                cold_factor: ::leap_runtime::__private::None,
                max_wait_ms: ::leap_runtime::__private::None,
                burst: ::leap_runtime::__private::None,
                associated: ::leap_runtime::__private::Some("orders.write"),
                mode: ::leap_runtime::__private::Mode::Enforce,
            }),
            ::leap_runtime::__private::error_count(
                10,
                ::leap_runtime::__private::BreakerWords {
                    min_calls: ::leap_runtime::__private::None,
                    window_ms: ::leap_runtime::__private::None,
                    window_calls: ::leap_runtime::__private::Some(100),
                    open_ms: ::leap_runtime::__private::None,
                    open_max_ms: ::leap_runtime::__private::Some(MINUTE),
                    probes: ::leap_runtime::__private::None,
                    recovery: ::leap_runtime::__private::Some(
                        ::leap_runtime::__private::Recovery::Ramp,
                    ),
                    mode: ::leap_runtime::__private::Mode::Enforce,
                },
            ),
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
    let mut __entry = __site.enter(__permits);
    return match __entry {
        ::leap_runtime::__private::Ok(ref mut __entry) => {
            ::leap_runtime::__private::run(
                __entry,
                move || -> Result<(), Blocked> {
                    match () {
                        () => Ok(()),
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
