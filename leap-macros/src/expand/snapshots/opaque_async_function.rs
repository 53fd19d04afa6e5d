async fn name() -> Result<Box<dyn Iterator<Item = impl ToString>>, AppError> {
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
    return __leap::run_async(
            __begun,
            async move {
                if false {
                    return __leap::never::<
                        Result<Box<dyn Iterator<Item = _>>, AppError>,
                    >();
                }
                if __leap::is_turned_away() {
                    let __blocked = __leap::turned_away();
                    return __leap::Blockable::from_blocked(__blocked);
                }
                match () {
                    () => all().await,
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
}
