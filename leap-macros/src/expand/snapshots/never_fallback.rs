async fn serve() -> ! {
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
    let __begun = __site.begin(__permits);
    ::leap_runtime::__private::run_async(
            __begun,
            async move {
                if ::leap_runtime::__private::is_turned_away() {
                    let __blocked = ::leap_runtime::__private::turned_away();
                    use ::leap_runtime::__private::{ViaFit as _, ViaMisfit as _};
                    let __fallback = exit;
                    (&::leap_runtime::__private::taking::<_, (_,)>(&__fallback))
                        .leap_fits();
                    __fallback(__blocked)
                }
                match () {
                    () => loop {}
                }
            },
            |_| ::leap_runtime::__private::Outcome::Success,
        )
        .await
}
