impl Shop {
    fn stock(&mut self, sku: &str, __arg2: u8) -> u32 {
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
                ::leap_runtime::__private::run(
                    __entry,
                    move || -> u32 {
                        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                        let sku = sku;
                        let __arg2 = __arg2;
                        match () {
                            () => self.look_up(sku),
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
                let __argument0 = self;
                let __argument1 = sku;
                let __argument2 = __arg2;
                use ::leap_runtime::__private::{ViaFit as _, ViaMisfit as _};
                let __fallback = Self::last_known;
                (&::leap_runtime::__private::taking::<_, (_, _, _, _)>(&__fallback))
                    .leap_fits();
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    reason = "a fallback may never return"
                )] return __fallback(__argument0, __argument1, __argument2, __blocked);
            }
        };
    }
}
