fn function() -> Result<(), Blocked> {
    let (__site, __permits) = {
        static __RULES: [__leap::Rule; 1] = [
            __leap::flow(__leap::FlowWords {
                limit: 1f64,
                per_ms: 1_000,
                precision: __leap::None,
                buckets: __leap::None,
                behavior: __leap::None,
                warm_up_ms: __leap::None,
                cold_factor: __leap::None,
                max_wait_ms: __leap::None,
                burst: __leap::None,
                associated: __leap::None,
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
    use crate::facade::flow::__private as __leap;
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
                    (&&__leap::Judged(__value)).leap_outcome()
                },
            )
        }
        __leap::Err(__blocked) => __leap::Blockable::from_blocked(__blocked),
    };
}
