fn all() -> Result<(), Blocked> {
    let (__site, __permits) = {
        static __RULES: [__leap::Rule; 8] = [
            __leap::flow(__leap::FlowWords {
                limit: (LIMIT) as __leap::f64,
                per_ms: 1_000,
                precision: __leap::Some(__leap::Precision::Strict),
                buckets: __leap::Some(10),
                behavior: __leap::None,
                warm_up_ms: __leap::None,
                cold_factor: __leap::None,
                max_wait_ms: __leap::None,
                burst: __leap::None,
                associated: __leap::None,
                mode: __leap::Mode::Off,
            }),
            __leap::flow(__leap::FlowWords {
                limit: 1000f64,
                per_ms: HOUR,
                precision: __leap::None,
                buckets: __leap::None,
                behavior: __leap::None,
                warm_up_ms: __leap::None,
                cold_factor: __leap::None,
                max_wait_ms: __leap::None,
                burst: __leap::None,
                associated: __leap::None,
                mode: __leap::Mode::Off,
            }),
            __leap::flow(__leap::FlowWords {
                limit: 5.5f64,
                per_ms: 500,
                precision: __leap::Some(__leap::Precision::Sentinel),
                buckets: __leap::Some(2),
                behavior: __leap::None,
                warm_up_ms: __leap::None,
                cold_factor: __leap::None,
                max_wait_ms: __leap::None,
                burst: __leap::None,
                associated: __leap::None,
                mode: __leap::Mode::Off,
            }),
            __leap::isolation(32, __leap::Some(100), __leap::Mode::Off),
            __leap::slow_ratio(
                200,
                0.5f64,
                __leap::BreakerWords {
                    min_calls: __leap::Some(20),
                    window_ms: __leap::Some(10000),
                    window_calls: __leap::None,
                    open_ms: __leap::Some(2000),
                    open_max_ms: __leap::None,
                    probes: __leap::Some(3),
                    recovery: __leap::None,
                    mode: __leap::Mode::Off,
                },
            ),
            __leap::error_ratio(
                1f64,
                __leap::BreakerWords {
                    min_calls: __leap::Some(20),
                    window_ms: __leap::Some(10000),
                    window_calls: __leap::None,
                    open_ms: __leap::Some(2000),
                    open_max_ms: __leap::None,
                    probes: __leap::Some(3),
                    recovery: __leap::None,
                    mode: __leap::Mode::Off,
                },
            ),
            __leap::error_count(
                10,
                __leap::BreakerWords {
                    min_calls: __leap::Some(20),
                    window_ms: __leap::Some(10000),
                    window_calls: __leap::None,
                    open_ms: __leap::Some(2000),
                    open_max_ms: __leap::None,
                    probes: __leap::Some(3),
                    recovery: __leap::None,
                    mode: __leap::Mode::Off,
                },
            ),
            __leap::authority(
                const { &["web", __leap::name(BATCH)] },
                &[],
                __leap::Mode::Off,
            ),
        ];
        fn __here() -> &'static __leap::str {
            __leap::path_of(__leap::type_name_of_val(&__here))
        }
        static __SITE: __leap::CallSite = __leap::CallSite::new(
            __leap::Some(__leap::name(NAME)),
            __here,
            &__RULES,
        );
        __leap::catalogued! {
            __leap::Place.listed(& __SITE)
        }
        const __PERMITS: __leap::u32 = __leap::permits(2 * PERMITS);
        (&__SITE, __PERMITS)
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
