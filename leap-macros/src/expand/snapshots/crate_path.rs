fn function() -> Result<(), Blocked> {
    let (__site, __permits) = {
        static __RULES: [crate::facade::flow::__private::Rule; 1] = [
            crate::facade::flow::__private::flow(crate::facade::flow::__private::FlowWords {
                limit: 1f64,
                per_ms: 1_000,
                precision: crate::facade::flow::__private::None,
                buckets: crate::facade::flow::__private::None,
                behavior: crate::facade::flow::__private::None,
                warm_up_ms: crate::facade::flow::__private::None,
                cold_factor: crate::facade::flow::__private::None,
                max_wait_ms: crate::facade::flow::__private::None,
                burst: crate::facade::flow::__private::None,
                associated: crate::facade::flow::__private::None,
                mode: crate::facade::flow::__private::Mode::Enforce,
            }),
        ];
        fn __here() -> &'static crate::facade::flow::__private::str {
            crate::facade::flow::__private::path_of(
                crate::facade::flow::__private::type_name_of_val(&__here),
            )
        }
        static __SITE: crate::facade::flow::__private::CallSite = crate::facade::flow::__private::CallSite::new(
            crate::facade::flow::__private::None,
            __here,
            &__RULES,
        );
        crate::facade::flow::__private::catalogued! {
            crate ::facade::flow::__private::Place.listed(& __SITE)
        }
        (&__SITE, 1)
    };
    let mut __entry = __site.enter(__permits);
    return match __entry {
        crate::facade::flow::__private::Ok(ref mut __entry) => {
            crate::facade::flow::__private::run(
                __entry,
                move || -> Result<(), Blocked> {
                    match () {
                        () => Ok(()),
                    }
                },
                |__value| {
                    use crate::facade::flow::__private::{
                        ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                    };
                    (&&crate::facade::flow::__private::Judged(__value)).leap_outcome()
                },
            )
        }
        crate::facade::flow::__private::Err(__blocked) => {
            crate::facade::flow::__private::FromBlocked::from_blocked(__blocked)
        }
    };
}
