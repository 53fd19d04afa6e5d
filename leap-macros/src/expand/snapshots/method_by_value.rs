impl Shop {
    default fn close(mut self) -> Result<Self, Blocked> {
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
                    move || -> Result<Self, Blocked> {
                        let _ = &self;
                        match () {
                            () => {
                                self.name.clear();
                                Ok(self)
                            }
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
}
