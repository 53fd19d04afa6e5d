/// A shop.
impl<T> Stock for Shop<T> {
    const LIMIT: u32 = { 1 };
    fn new() -> Self {
        Self::default()
    }
    #[leap_runtime::guarded("stock.write")]
    fn write(&mut self) {}
    pub async fn read(&self) -> Result<T, Blocked> {
        let (__site, __permits) = {
            static __RULES: [::leap_runtime::__private::Rule; 1] = [
                ::leap_runtime::__private::flow(::leap_runtime::__private::FlowWords {
                    limit: 10f64,
                    per_ms: 1_000,
                    precision: ::leap_runtime::__private::None,
                    buckets: ::leap_runtime::__private::None,
                    behavior: ::leap_runtime::__private::None,
                    warm_up_ms: ::leap_runtime::__private::None,
                    cold_factor: ::leap_runtime::__private::None,
                    max_wait_ms: ::leap_runtime::__private::None,
                    burst: ::leap_runtime::__private::None,
                    associated: ::leap_runtime::__private::None,
                    mode: ::leap_runtime::__private::Mode::Enforce,
                }),
            ];
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
                        return ::leap_runtime::__private::never::<Result<T, Blocked>>();
                    }
                    if ::leap_runtime::__private::is_turned_away() {
                        let __blocked = ::leap_runtime::__private::turned_away();
                        let __argument = self;
                        return ::leap_runtime::__private::FromBlocked::from_blocked(
                            __blocked,
                        );
                    }
                    match () {
                        () => self.0,
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
