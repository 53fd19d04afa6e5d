impl Shop {
    async fn count(self: Arc<Self>, sku: &str) -> Result<u32, Blocked> {
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
        return ::leap_runtime::__private::run_async(
                __begun,
                async move {
                    if false {
                        return ::leap_runtime::__private::never::<
                            Result<u32, Blocked>,
                        >();
                    }
                    if ::leap_runtime::__private::is_turned_away() {
                        let __blocked = ::leap_runtime::__private::turned_away();
                        let __argument = self;
                        let sku = sku;
                        return ::leap_runtime::__private::FromBlocked::from_blocked(
                            __blocked,
                        );
                    }
                    let _ = &self;
                    #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                    let sku = sku;
                    match () {
                        () => Ok(self.stock[sku]),
                    }
                },
                |__value| {
                    use ::leap_runtime::__private::{
                        ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                    };
                    (&&::leap_runtime::__private::Judged(__value)).leap_outcome()
                },
            )
            .await;
    }
}
