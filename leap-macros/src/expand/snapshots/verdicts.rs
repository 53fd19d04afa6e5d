fn check(order: &Order) -> Answer {
    let (site, permits) = {
        static __RULES: [::leap_runtime::__private::Rule; 0] = [];
        fn __here() -> &'static str {
            ::leap_runtime::__private::path_of(
                ::leap_runtime::__private::type_name_of_val(&__here),
            )
        }
        static __SITE: ::leap_runtime::__private::CallSite = ::leap_runtime::__private::CallSite::new(
            ::leap_runtime::__private::None,
            __here,
            &__RULES,
        );
        (&__SITE, 1)
    };
    let mut entry = site.enter(permits);
    match entry {
        ::leap_runtime::__private::Ok(ref mut entry) => {
            ::leap_runtime::__private::run_judged(
                entry,
                move || -> Answer {
                    let order = order;
                    {
                        order.check()
                    }
                },
                |returned| {
                    use ::leap_runtime::__private::{ViaAny as _, ViaResult as _};
                    let __returned = returned;
                    if let ::leap_runtime::__private::Some(error) = ::leap_runtime::__private::error_of(
                        __returned,
                    ) {
                        match error {
                            AppError::Invalid(_) | AppError::Gone => {
                                return ::leap_runtime::__private::Outcome::Ignored;
                            }
                            _ => {}
                        }
                    }
                    if ::leap_runtime::__private::holds(
                        returned,
                        |answer| answer.is_ok(),
                    ) {
                        return ::leap_runtime::__private::Outcome::Success;
                    }
                    if ::leap_runtime::__private::holds(returned, Answer::is_broken) {
                        return ::leap_runtime::__private::Outcome::Exception;
                    }
                    (&::leap_runtime::__private::Judged(returned)).leap_outcome()
                },
            )
        }
        ::leap_runtime::__private::Err(__blocked) => {
            ::leap_runtime::__private::FromBlocked::from_blocked(__blocked)
        }
    }
}
