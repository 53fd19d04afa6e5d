impl Shop {
    async fn stock(&self, sku: &str, __arg2: (u8, u8)) -> u32 {
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
                        return __leap::never::<u32>();
                    }
                    if __leap::is_turned_away() {
                        let blocked = __leap::turned_away();
                        let _ = &blocked;
                        let __argument0 = sku;
                        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                        let (mut a, b) = __arg2;
                        let _ = &mut a;
                        let _ = &b;
                        #[allow(
                            unreachable_code,
                            clippy::diverging_sub_expression,
                            reason = "a fallback may never return"
                        )] return self.last_known(a, blocked);
                    }
                    #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                    let sku = sku;
                    let __arg2 = __arg2;
                    let (mut a, b) = __arg2;
                    match () {
                        () => self.look_up(sku, a, b).await,
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
}
