impl Shop {
    fn stock(&mut self, sku: &str, __arg2: u8) -> u32 {
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
                __leap::run(
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
                        use __leap::{
                            ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                            ViaUnseenStream as _,
                        };
                        (&&__leap::Judged(__value)).leap_outcome()
                    },
                )
            }
            __leap::Err(__blocked) => {
                let __argument0 = self;
                let __argument1 = sku;
                #[allow(clippy::used_underscore_binding)]
                let __argument2 = __arg2;
                use __leap::{ViaFit as _, ViaMisfit as _};
                let __fallback = Self::last_known;
                (&__leap::taking::<_, (_, _, _, _)>(&__fallback)).leap_fits();
                #[allow(
                    unreachable_code,
                    clippy::diverging_sub_expression,
                    reason = "a fallback may never return"
                )] return __fallback(__argument0, __argument1, __argument2, __blocked);
            }
        };
    }
}
