fn all() -> Result<(), Blocked> {
    let (__site, __permits) = {
        static __RULES: [::leap_runtime::__private::Rule; 8] = [
            ::leap_runtime::__private::flow(::leap_runtime::__private::FlowWords {
                limit: (LIMIT) as ::leap_runtime::__private::f64,
                per_ms: 1_000,
                precision: ::leap_runtime::__private::Some(
                    ::leap_runtime::__private::Precision::Strict,
                ),
                buckets: ::leap_runtime::__private::Some(10),
                behavior: ::leap_runtime::__private::None,
                warm_up_ms: ::leap_runtime::__private::None,
                cold_factor: ::leap_runtime::__private::None,
                max_wait_ms: ::leap_runtime::__private::None,
                burst: ::leap_runtime::__private::None,
                associated: ::leap_runtime::__private::None,
                mode: ::leap_runtime::__private::Mode::Off,
            }),
            ::leap_runtime::__private::flow(::leap_runtime::__private::FlowWords {
                limit: 1000f64,
                per_ms: HOUR,
                precision: ::leap_runtime::__private::None,
                buckets: ::leap_runtime::__private::None,
                behavior: ::leap_runtime::__private::None,
                warm_up_ms: ::leap_runtime::__private::None,
                cold_factor: ::leap_runtime::__private::None,
                max_wait_ms: ::leap_runtime::__private::None,
                burst: ::leap_runtime::__private::None,
                associated: ::leap_runtime::__private::None,
                mode: ::leap_runtime::__private::Mode::Off,
            }),
            ::leap_runtime::__private::flow(::leap_runtime::__private::FlowWords {
                limit: 5.5f64,
                per_ms: 500,
                precision: ::leap_runtime::__private::Some(
                    ::leap_runtime::__private::Precision::Sentinel,
                ),
                buckets: ::leap_runtime::__private::Some(2),
                behavior: ::leap_runtime::__private::None,
                warm_up_ms: ::leap_runtime::__private::None,
                cold_factor: ::leap_runtime::__private::None,
                max_wait_ms: ::leap_runtime::__private::None,
                burst: ::leap_runtime::__private::None,
                associated: ::leap_runtime::__private::None,
                mode: ::leap_runtime::__private::Mode::Off,
            }),
            ::leap_runtime::__private::isolation(
                32,
                ::leap_runtime::__private::Some(100),
                ::leap_runtime::__private::Mode::Off,
            ),
            ::leap_runtime::__private::slow_ratio(
                200,
                0.5f64,
                ::leap_runtime::__private::BreakerWords {
                    min_calls: ::leap_runtime::__private::Some(20),
                    window_ms: ::leap_runtime::__private::Some(10000),
                    window_calls: ::leap_runtime::__private::None,
                    open_ms: ::leap_runtime::__private::Some(2000),
                    open_max_ms: ::leap_runtime::__private::None,
                    probes: ::leap_runtime::__private::Some(3),
                    recovery: ::leap_runtime::__private::None,
                    mode: ::leap_runtime::__private::Mode::Off,
                },
            ),
            ::leap_runtime::__private::error_ratio(
                1f64,
                ::leap_runtime::__private::BreakerWords {
                    min_calls: ::leap_runtime::__private::Some(20),
                    window_ms: ::leap_runtime::__private::Some(10000),
                    window_calls: ::leap_runtime::__private::None,
                    open_ms: ::leap_runtime::__private::Some(2000),
                    open_max_ms: ::leap_runtime::__private::None,
                    probes: ::leap_runtime::__private::Some(3),
                    recovery: ::leap_runtime::__private::None,
                    mode: ::leap_runtime::__private::Mode::Off,
                },
            ),
            ::leap_runtime::__private::error_count(
                10,
                ::leap_runtime::__private::BreakerWords {
                    min_calls: ::leap_runtime::__private::Some(20),
                    window_ms: ::leap_runtime::__private::Some(10000),
                    window_calls: ::leap_runtime::__private::None,
                    open_ms: ::leap_runtime::__private::Some(2000),
                    open_max_ms: ::leap_runtime::__private::None,
                    probes: ::leap_runtime::__private::Some(3),
                    recovery: ::leap_runtime::__private::None,
                    mode: ::leap_runtime::__private::Mode::Off,
                },
            ),
            ::leap_runtime::__private::authority(
                const { &["web", ::leap_runtime::__private::name(BATCH)] },
                &[],
                ::leap_runtime::__private::Mode::Off,
            ),
        ];
        fn __here() -> &'static ::leap_runtime::__private::str {
            ::leap_runtime::__private::path_of(
                ::leap_runtime::__private::type_name_of_val(&__here),
            )
        }
        static __SITE: ::leap_runtime::__private::CallSite = ::leap_runtime::__private::CallSite::new(
            ::leap_runtime::__private::Some(::leap_runtime::__private::name(NAME)),
            __here,
            &__RULES,
        );
        ::leap_runtime::__private::catalogued! {
            ::leap_runtime::__private::Place.listed(& __SITE)
        }
        const __PERMITS: ::leap_runtime::__private::u32 = ::leap_runtime::__private::permits(
            2 * PERMITS,
        );
        (&__SITE, __PERMITS)
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
