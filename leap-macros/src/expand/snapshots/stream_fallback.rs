fn stock(sku: &str) -> impl Stream<Item = u32> {
    ::leap_runtime::__private::kept(&sku);
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
    let __made = ::leap_runtime::__private::made(move || -> _ {
        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
        let sku = sku;
        match () {
            () => watch(sku),
        }
    });
    return ::leap_runtime::__private::run_stream(
        move || __site.begin(__permits),
        __made,
        |__value| {
            use ::leap_runtime::__private::{
                ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
            };
            (&&::leap_runtime::__private::Judged(__value)).leap_outcome()
        },
        move |__blocked| {
            let __argument0 = sku;
            use ::leap_runtime::__private::{ViaFit as _, ViaMisfit as _};
            let __fallback = last_known;
            (&::leap_runtime::__private::taking::<_, (_, _)>(&__fallback)).leap_fits();
            __fallback(__argument0, __blocked)
        },
    );
}
