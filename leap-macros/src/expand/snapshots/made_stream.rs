fn stock(sku: &str) -> Pin<Box<dyn Stream<Item = Result<u32, AppError>> + Send>> {
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
    let __made = __leap::made(move || -> Pin<
        Box<dyn Stream<Item = Result<u32, AppError>> + Send>,
    > {
        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
        let sku = sku;
        match () {
            () => Box::pin(watch(sku)),
        }
    });
    return __leap::Box::pin(
        __leap::run_stream(
            move || __site.begin(__permits),
            __made,
            |__value| {
                use __leap::{
                    ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                    ViaUnseenStream as _,
                };
                (&&__leap::Judged(__value)).leap_outcome()
            },
            move |__blocked| { __leap::once(__leap::Blockable::from_blocked(__blocked)) },
        ),
    );
}
