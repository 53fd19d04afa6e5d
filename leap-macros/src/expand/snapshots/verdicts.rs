fn check(order: &Order) -> Answer {
    let (__site, __permits) = {
        static __RULES: [__leap::Rule; 0] = [];
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
            __leap::run_judged(
                __entry,
                move || -> Answer {
                    #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                    let order = order;
                    match () {
                        () => order.check(),
                    }
                },
                |__value| {
                    use __leap::{
                        ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                        ViaUnseenStream as _,
                    };
                    let __returned = __value;
                    if let __leap::Some(__error) = __leap::error_of(__returned) {
                        match __error {
                            AppError::Invalid(_) | AppError::Gone => {
                                return __leap::Outcome::Ignored;
                            }
                            _ => {}
                        }
                    }
                    if __leap::holds(__value, |answer| answer.is_ok()) {
                        return __leap::Outcome::Success;
                    }
                    if __leap::holds(__value, Answer::is_broken) {
                        return __leap::Outcome::Exception;
                    }
                    (&&__leap::Judged(__value)).leap_outcome()
                },
            )
        }
        __leap::Err(__blocked) => __leap::Blockable::from_blocked(__blocked),
    };
}
