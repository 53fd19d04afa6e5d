fn publish(event: Event) {
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
            ::leap_runtime::__private::run(
                entry,
                move || -> () {
                    let event = event;
                    {
                        send(event);
                    }
                },
                |returned| {
                    use ::leap_runtime::__private::{ViaAny as _, ViaResult as _};
                    (&::leap_runtime::__private::Judged(returned)).leap_outcome()
                },
            )
        }
        ::leap_runtime::__private::Err(blocked) => {
            let argument0 = event;
            return log(argument0, blocked);
        }
    }
}
