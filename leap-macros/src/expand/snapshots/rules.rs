fn all() -> Result<(), Blocked> {
    let (__site, __permits) = {
        static __RULES: [::leap_runtime::__private::Rule; 7] = [
            ::leap_runtime::__private::flow(
                (LIMIT) as f64,
                1_000,
                ::leap_runtime::__private::Some(
                    ::leap_runtime::__private::Precision::Strict,
                ),
                ::leap_runtime::__private::Some(10),
                ::leap_runtime::__private::Mode::Off,
            ),
            ::leap_runtime::__private::flow(
                1000f64,
                HOUR,
                ::leap_runtime::__private::None,
                ::leap_runtime::__private::None,
                ::leap_runtime::__private::Mode::Off,
            ),
            ::leap_runtime::__private::flow(
                5.5f64,
                500,
                ::leap_runtime::__private::Some(
                    ::leap_runtime::__private::Precision::Sentinel,
                ),
                ::leap_runtime::__private::Some(2),
                ::leap_runtime::__private::Mode::Off,
            ),
            ::leap_runtime::__private::isolation(
                32,
                ::leap_runtime::__private::Mode::Off,
            ),
            ::leap_runtime::__private::slow_ratio(
                200,
                0.5f64,
                ::leap_runtime::__private::BreakerWords {
                    min_calls: ::leap_runtime::__private::Some(20),
                    window_ms: ::leap_runtime::__private::Some(10000),
                    open_ms: ::leap_runtime::__private::Some(2000),
                    probes: ::leap_runtime::__private::Some(3),
                    mode: ::leap_runtime::__private::Mode::Off,
                },
            ),
            ::leap_runtime::__private::error_ratio(
                1f64,
                ::leap_runtime::__private::BreakerWords {
                    min_calls: ::leap_runtime::__private::Some(20),
                    window_ms: ::leap_runtime::__private::Some(10000),
                    open_ms: ::leap_runtime::__private::Some(2000),
                    probes: ::leap_runtime::__private::Some(3),
                    mode: ::leap_runtime::__private::Mode::Off,
                },
            ),
            ::leap_runtime::__private::error_count(
                10,
                ::leap_runtime::__private::BreakerWords {
                    min_calls: ::leap_runtime::__private::Some(20),
                    window_ms: ::leap_runtime::__private::Some(10000),
                    open_ms: ::leap_runtime::__private::Some(2000),
                    probes: ::leap_runtime::__private::Some(3),
                    mode: ::leap_runtime::__private::Mode::Off,
                },
            ),
        ];
        fn __here() -> &'static str {
            ::leap_runtime::__private::path_of(
                ::leap_runtime::__private::type_name_of_val(&__here),
            )
        }
        static __SITE: ::leap_runtime::__private::CallSite = ::leap_runtime::__private::CallSite::new(
            ::leap_runtime::__private::Some(::leap_runtime::__private::name(NAME)),
            __here,
            &__RULES,
        );
        const __PERMITS: u32 = ::leap_runtime::__private::permits(2 * PERMITS);
        (&__SITE, __PERMITS)
    };
    let mut __entry = __site.enter(__permits);
    match __entry {
        ::leap_runtime::__private::Ok(ref mut __entry) => {
            ::leap_runtime::__private::run(
                __entry,
                move || -> Result<(), Blocked> {
                    {
                        Ok(())
                    }
                },
                |__value| {
                    use ::leap_runtime::__private::{ViaAny as _, ViaResult as _};
                    (&::leap_runtime::__private::Judged(__value)).leap_outcome()
                },
            )
        }
        ::leap_runtime::__private::Err(__blocked) => {
            ::leap_runtime::__private::FromBlocked::from_blocked(__blocked)
        }
    }
}
