fn check(order: &Order) -> Answer {
    let (__site, __permits) = {
        static __RULES: [::leap_runtime::__private::Rule; 0] = [];
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
            ::leap_runtime::__private::run_judged(
                __entry,
                move || -> Answer {
                    #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                    let order = order;
                    match () {
                        () => order.check(),
                    }
                },
                |__value| {
                    use ::leap_runtime::__private::{
                        ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                    };
                    let __returned = __value;
                    if let ::leap_runtime::__private::Some(__error) = ::leap_runtime::__private::error_of(
                        __returned,
                    ) {
                        match __error {
                            AppError::Invalid(_) | AppError::Gone => {
                                return ::leap_runtime::__private::Outcome::Ignored;
                            }
                            _ => {}
                        }
                    }
                    if ::leap_runtime::__private::holds(
                        __value,
                        |answer| answer.is_ok(),
                    ) {
                        return ::leap_runtime::__private::Outcome::Success;
                    }
                    if ::leap_runtime::__private::holds(__value, Answer::is_broken) {
                        return ::leap_runtime::__private::Outcome::Exception;
                    }
                    (&&::leap_runtime::__private::Judged(__value)).leap_outcome()
                },
            )
        }
        ::leap_runtime::__private::Err(__blocked) => {
            ::leap_runtime::__private::FromBlocked::from_blocked(__blocked)
        }
    };
}
