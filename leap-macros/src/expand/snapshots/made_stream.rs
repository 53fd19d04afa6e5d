fn stock(sku: &str) -> Pin<Box<dyn Stream<Item = Result<u32, AppError>> + Send>> {
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
    let __made = ::leap_runtime::__private::made(move || -> Pin<
        Box<dyn Stream<Item = Result<u32, AppError>> + Send>,
    > {
        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
        let sku = sku;
        match () {
            () => Box::pin(watch(sku)),
        }
    });
    return ::leap_runtime::__private::Box::pin(
        ::leap_runtime::__private::run_stream(
            move || __site.begin(__permits),
            __made,
            |__value| {
                use ::leap_runtime::__private::{
                    ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                };
                (&&::leap_runtime::__private::Judged(__value)).leap_outcome()
            },
            move |__blocked| {
                ::leap_runtime::__private::once(
                    ::leap_runtime::__private::FromBlocked::from_blocked(__blocked),
                )
            },
        ),
    );
}
