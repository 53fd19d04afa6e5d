/// Creates an order.
#[must_use]
pub fn create(order: Order, tries: u32) -> Result<Id, AppError> {
    #![allow(unused)]
    let (__site, __permits) = {
        static __RULES: [__leap::Rule; 2] = [
            __leap::flow(__leap::FlowWords {
                limit: 100f64,
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
            __leap::slow_ratio(
                200,
                1.0,
                __leap::BreakerWords {
                    min_calls: __leap::None,
                    window_ms: __leap::None,
                    window_calls: __leap::None,
                    open_ms: __leap::None,
                    open_max_ms: __leap::None,
                    probes: __leap::None,
                    recovery: __leap::None,
                    mode: __leap::Mode::Enforce,
                },
            ),
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
        (&__SITE, 1)
    };
    use ::leap_runtime::__private as __leap;
    let mut __entry = __site.enter(__permits);
    return match __entry {
        __leap::Ok(ref mut __entry) => {
            __leap::run(
                __entry,
                move || -> Result<Id, AppError> {
                    #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                    let order = order;
                    #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                    let mut tries = tries;
                    match () {
                        () => store(order, tries),
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
