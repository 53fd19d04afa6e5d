fn stock(sku: &str, n: u8) -> Result<u32, AppError> {
    ::leap_runtime::__private::kept(&sku);
    ::leap_runtime::__private::kept(&n);
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
    let __failed = &::leap_runtime::__private::Failed::new();
    let __value: Result<u32, AppError> = {
        let mut __entry = __site.enter(__permits);
        match __entry {
            ::leap_runtime::__private::Ok(ref mut __entry) => {
                ::leap_runtime::__private::run_noted(
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
                        use ::leap_runtime::__private::{
                            ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                        };
                        (&&::leap_runtime::__private::Judged(__value)).leap_outcome()
                    },
                )
            }
            ::leap_runtime::__private::Err(__blocked) => {
                __failed.spare();
                ::leap_runtime::__private::FromBlocked::from_blocked(__blocked)
            }
        }
    };
    return match ::leap_runtime::__private::error_in(__failed, __value) {
        ::leap_runtime::__private::Ok(__value) => __value,
        ::leap_runtime::__private::Err(__error) => {
            let __argument0 = sku;
            let __argument1 = n;
            use ::leap_runtime::__private::{ViaFit as _, ViaMisfit as _};
            let __fallback = recover;
            (&::leap_runtime::__private::taking::<_, (_, _, _)>(&__fallback))
                .leap_fits();
            #[allow(
                unreachable_code,
                clippy::diverging_sub_expression,
                reason = "a fallback may never return"
            )] return __fallback(__argument0, __argument1, __error);
        }
    };
}
