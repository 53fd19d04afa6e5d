async fn stock(sku: String, n: u8) -> Result<u32, AppError> {
    ::leap_runtime::__private::kept(&n);
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
    let __failed = &::leap_runtime::__private::Failed::new();
    let __value = ::leap_runtime::__private::run_async_noted(
            __begun,
            __failed,
            async move {
                if false {
                    return ::leap_runtime::__private::never::<Result<u32, AppError>>();
                }
                if ::leap_runtime::__private::is_turned_away() {
                    let __blocked = ::leap_runtime::__private::turned_away();
                    let sku = sku;
                    let n = n;
                    return ::leap_runtime::__private::FromBlocked::from_blocked(
                        __blocked,
                    );
                }
                #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                let sku = sku;
                #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                let n = n;
                let _ = &n;
                match () {
                    () => look_up(sku, n).await,
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
    return match ::leap_runtime::__private::error_in(__failed, __value) {
        ::leap_runtime::__private::Ok(__value) => __value,
        ::leap_runtime::__private::Err(error) => {
            #[allow(
                clippy::shadow_same,
                clippy::shadow_reuse,
                unused_variables,
                unused_mut
            )]
            let n = n;
            use ::leap_runtime::__private::{ViaFuture as _, ViaValue as _};
            let (__answer, __kind) = ::leap_runtime::__private::Answer::<
                _,
                Result<u32, AppError>,
            >::of(recover(n, error));
            let __way = (&__kind).leap_way();
            return __way.settle(__answer).await;
        }
    };
}
