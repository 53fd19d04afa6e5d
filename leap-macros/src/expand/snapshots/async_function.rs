pub(crate) async fn create(order: Order) -> Result<Id, AppError> {
    let (__site, __permits) = {
        static __RULES: [::leap_runtime::__private::Rule; 1] = [
            ::leap_runtime::__private::isolation(
                32,
                ::leap_runtime::__private::None,
                ::leap_runtime::__private::Mode::Enforce,
            ),
        ];
        fn __here() -> &'static ::leap_runtime::__private::str {
            ::leap_runtime::__private::path_of(
                ::leap_runtime::__private::type_name_of_val(&__here),
            )
        }
        static __SITE: ::leap_runtime::__private::CallSite = ::leap_runtime::__private::CallSite::new(
            ::leap_runtime::__private::Some("orders.create"),
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
                    return ::leap_runtime::__private::never::<Result<Id, AppError>>();
                }
                if ::leap_runtime::__private::is_turned_away() {
                    let __blocked = ::leap_runtime::__private::turned_away();
                    let order = order;
                    return ::leap_runtime::__private::FromBlocked::from_blocked(
                        __blocked,
                    );
                }
                #[allow(clippy::shadow_same, clippy::shadow_reuse)]
                let order = order;
                match () {
                    () => store(order).await,
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
