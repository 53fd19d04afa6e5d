async fn stock(sku: String, n: u8) -> Result<u32, AppError> {
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
    let __begun = __site.begin(__permits);
    let __failed = &__leap::Failed::new();
    let __value = __leap::run_async_noted(
            __begun,
            __failed,
            async move {
                if false {
                    return __leap::never::<Result<u32, AppError>>();
                }
                if __leap::is_turned_away() {
                    let __blocked = __leap::turned_away();
                    let sku = sku;
                    let n = n;
                    return __leap::Blockable::from_blocked(__blocked);
                }
                #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                let sku = sku;
                #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                let n = n;
                let _ = &n;
                match () {
                    () => look_up(sku, n).await,
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
        .await;
    return match __leap::error_in(__failed, __value) {
        __leap::Ok(__value) => __value,
        __leap::Err(error) => {
            let _ = &error;
            #[allow(clippy::shadow_same, clippy::shadow_reuse)]
            let n = n;
            let _ = &n;
            #[allow(
                unreachable_code,
                clippy::diverging_sub_expression,
                reason = "a fallback may never return"
            )] return recover(n, error);
        }
    };
}
