fn stock(sku: &str, n: u8) -> Result<u32, AppError> {
    __leap::kept(&sku);
    __leap::kept(&n);
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
    let __failed = &__leap::Failed::new();
    let __value: Result<u32, AppError> = {
        let mut __entry = __site.enter(__permits);
        match __entry {
            __leap::Ok(ref mut __entry) => {
                __leap::run_noted(
                    __entry,
                    __failed,
                    move || -> Result<u32, AppError> {
                        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                        let sku = sku;
                        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                        let n = n;
                        match () {
                            () => look_up(sku, n),
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
                __failed.spare();
                __leap::Blockable::from_blocked(__blocked)
            }
        }
    };
    return match __leap::error_in(__failed, __value) {
        __leap::Ok(__value) => __value,
        __leap::Err(__error) => {
            let __argument0 = sku;
            let __argument1 = n;
            use __leap::{ViaFit as _, ViaMisfit as _};
            let __fallback = recover;
            (&__leap::taking::<_, (_, _, _)>(&__fallback)).leap_fits();
            #[allow(
                unreachable_code,
                clippy::diverging_sub_expression,
                reason = "a fallback may never return"
            )] return __fallback(__argument0, __argument1, __error);
        }
    };
}
