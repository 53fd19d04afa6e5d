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
            static __RULES: [__leap::Rule; 1] = [
                __leap::flow(__leap::FlowWords {
                    limit: 10f64,
                    per_ms: 1_000,
                    precision: __leap::None,
                    buckets: __leap::None,
                    behavior: __leap::None,
                    warm_up_ms: __leap::None,
                    cold_factor: __leap::None,
                    max_wait_ms: __leap::None,
                    burst: __leap::None,
                    associated: __leap::None,
                    mode: __leap::Mode::Enforce,
                }),
            ];
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
                        return __leap::never::<Result<T, Blocked>>();
                    }
                    if __leap::is_turned_away() {
                        let __blocked = __leap::turned_away();
                        let __argument = self;
                        return __leap::Blockable::from_blocked(__blocked);
                    }
                    match () {
                        () => self.0,
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
