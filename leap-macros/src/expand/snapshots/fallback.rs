impl Shop {
    fn stock(&mut self, sku: &str, __arg2: u8) -> u32 {
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
                    move || -> u32 {
                        let sku = sku;
                        let __arg2 = __arg2;
                        {
                            self.look_up(sku)
                        }
                    },
                    |returned| {
                        use ::leap_runtime::__private::{ViaAny as _, ViaResult as _};
                        (&::leap_runtime::__private::Judged(returned)).leap_outcome()
                    },
                )
            }
            ::leap_runtime::__private::Err(blocked) => {
                let argument0 = self;
                let argument1 = sku;
                let argument2 = __arg2;
                return Self::last_known(argument0, argument1, argument2, blocked);
            }
        }
    }
}
