fn stock(sku: &str, pair: (u8, u8)) -> usize {
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
    let mut __entry = __site.enter(__permits);
    return match __entry {
        __leap::Ok(ref mut __entry) => {
            __leap::run(
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
                    use __leap::{
                        ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                        ViaUnseenStream as _,
                    };
                    (&&__leap::Judged(__value)).leap_outcome()
                },
            )
        }
        __leap::Err(__blocked) => {
            let __argument0 = sku;
            let __argument1 = pair;
            #[allow(
                unreachable_code,
                clippy::diverging_sub_expression,
                reason = "a fallback may never return"
            )]
            return __leap::answer::<
                _,
                usize,
            >(
                |(sku, (a, b), blocked): (_, (u8, u8), _)| sku.len(),
                (__argument0, __argument1, __blocked),
            );
        }
    };
}
