fn stock(sku: &str, pair: (u8, u8)) -> usize {
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
    let mut __entry = __site.enter(__permits);
    return match __entry {
        ::leap_runtime::__private::Ok(ref mut __entry) => {
            ::leap_runtime::__private::run(
                __entry,
                move || -> usize {
                    #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                    let sku = sku;
                    #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                    let pair = pair;
                    match () {
                        () => look_up(sku, pair),
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
            let __argument0 = sku;
            let __argument1 = pair;
            #[allow(
                unreachable_code,
                clippy::diverging_sub_expression,
                reason = "a fallback may never return"
            )]
            return ::leap_runtime::__private::answer::<
                _,
                usize,
            >(
                |(sku, (a, b), blocked): (_, (u8, u8), _)| sku.len(),
                (__argument0, __argument1, __blocked),
            );
        }
    };
}
