async fn serve() -> ! {
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
    __leap::run_async(
            __begun,
            async move {
                if __leap::is_turned_away() {
                    let __blocked = __leap::turned_away();
                    use __leap::{ViaFit as _, ViaMisfit as _};
                    let __fallback = exit;
                    (&__leap::taking::<_, (_,)>(&__fallback)).leap_fits();
                    __fallback(__blocked)
                }
                match () {
                    () => loop {}
                }
            },
            |_| __leap::Outcome::Success,
        )
        .await
}
