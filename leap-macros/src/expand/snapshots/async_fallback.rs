async fn stock(sku: &str) -> u32 {
    let (site, permits) = {
        static __RULES: [::leap_runtime::__private::Rule; 0] = [];
        fn __here() -> &'static str {
            ::leap_runtime::__private::path_of(
                ::leap_runtime::__private::type_name_of_val(&__here),
            )
        }
        static __SITE: ::leap_runtime::__private::CallSite = ::leap_runtime::__private::CallSite::new(
            ::leap_runtime::__private::None,
            __here,
            &__RULES,
        );
        (&__SITE, 1)
    };
    let entry = site.enter(permits);
    match entry {
        ::leap_runtime::__private::Ok(entry) => {
            ::leap_runtime::__private::run_async(
                    entry,
                    async move {
                        if false {
                            return ::leap_runtime::__private::never::<u32>();
                        }
                        let sku = sku;
                        {
                            look_up(sku).await
                        }
                    },
                    |returned| {
                        use ::leap_runtime::__private::{ViaAny as _, ViaResult as _};
                        (&::leap_runtime::__private::Judged(returned)).leap_outcome()
                    },
                )
                .await
        }
        ::leap_runtime::__private::Err(blocked) => {
            let argument0 = sku;
            use ::leap_runtime::__private::{ViaFuture as _, ViaValue as _};
            let answer = last_known::<u8>(argument0, blocked);
            let way = (&::leap_runtime::__private::Answer::<_, u32>::new(&answer))
                .leap_way();
            return way.settle(answer).await;
        }
    }
}
