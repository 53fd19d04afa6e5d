impl Shop {
    async fn stock(&self, sku: &str, __arg2: (u8, u8)) -> u32 {
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
                        return ::leap_runtime::__private::never::<u32>();
                    }
                    if ::leap_runtime::__private::is_turned_away() {
                        let blocked = ::leap_runtime::__private::turned_away();
                        let __argument0 = sku;
                        #[allow(
                            clippy::shadow_same,
                            clippy::shadow_reuse,
                            unused_variables,
                            unused_mut
                        )]
                        let (mut a, b) = __arg2;
                        use ::leap_runtime::__private::{ViaFuture as _, ViaValue as _};
                        let (__answer, __kind) = ::leap_runtime::__private::Answer::<
                            _,
                            u32,
                        >::of(self.last_known(a, blocked));
                        let __way = (&__kind).leap_way();
                        return __way.settle(__answer).await;
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
                    use ::leap_runtime::__private::{
                        ViaAny as _, ViaResult as _, ViaUnseenFuture as _,
                    };
                    (&&::leap_runtime::__private::Judged(__value)).leap_outcome()
                },
            )
            .await;
    }
}
