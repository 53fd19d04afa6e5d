//! The attribute of leap. Use it through `leap_runtime`, which re-exports [`guarded`](macro@guarded) and is what its
//! expansion calls.
#![forbid(unsafe_code)]

mod args;
mod errors;
mod expand;
mod fallback;
mod model;

use proc_macro2::TokenStream;

/// Guards a function: every call enters a named resource, is let through or blocked by rules, and is counted, again
/// when it ends, however it ends.
///
/// ```text
/// #[guarded(resource = "orders.create", qps = 100, slow_rt_ms = 200)]
/// async fn create(order: Order) -> Result<Id, AppError> { /* … */ }      // AppError: From<Blocked>
///
/// #[guarded(resource = "stock.read", max_concurrency = 32, slow_rt_ms = 50, fallback = last_known)]
/// fn stock(sku: &str) -> u32 { /* … */ }
/// fn last_known(sku: &str, blocked: Blocked) -> u32 { /* … */ }
///
/// #[guarded(inbound, qps = 50, behavior = throttle, hot(key = order.user, qps = 2))]
/// async fn pay(order: &Order) -> Result<Receipt, AppError> { /* … */ }
/// ```
///
/// It goes on functions and methods with a body, of every kind but `const fn`: with any receiver, in traits and their
/// `impl`s, generic, async, `unsafe`, `extern`, those of `async_trait`, those that [return a future or a
/// stream](#functions-that-return-a-future-or-a-stream); and on [`impl` blocks](#impl-blocks). **The signature stays as it
/// is.** What a blocked call returns is said in one of two ways:
///
/// - The return type implements `FromBlocked`, as `Result<T, E>` does where `E: From<Blocked>`.
/// - A [`fallback`](#fallbacks) answers.
///
/// Otherwise the function does not compile, and the error says so at its return type.
///
/// # Arguments
///
/// All are optional. A number is a literal, which is checked at once, or a const expression, which is checked when the
/// function is compiled: a rule that makes no sense cannot be written. As constants, names are `&str`, times and what ends in
/// `_ms` `u64`, limits and ratios any number, all other numbers `u32`. Const expressions see neither generic parameters
/// nor `Self`, as all callers share one guard. What does not go together is an error where it is written.
///
/// ## The call
///
/// | argument | value | unit, default | what it is |
/// | --- | --- | --- | --- |
/// | `resource`, or a bare literal in first place | name, a literal or a constant, at most 1 024 bytes | the function's path with its type: `shop::Cart::add`, `shop::Shelf<_>::add`, `<shop::Cart as shop::Store>::add`; `shop::Store::add` of a default body | the resource that calls enter |
/// | `permits` | whole number from 1 | 1 | the permits that one call asks for; they are what limits count |
/// | `priority` | the word alone, or `= true`, `= false` | no | a call that a limit would refuse may wait for a place in the next window |
/// | `inbound` | the word alone, or `= true`, `= false` | outbound | the call comes from outside of this process: rules for the system as a whole look at it |
/// | `origin` | expression: a text or an `Option` of one | of the context | who calls; see [Keys and origins](#keys-and-origins) |
/// | `entrance` | name | of the context | by which way calls come in |
/// | `fallback` | path of a function, closure or expression | | [answers](#fallbacks) blocked calls |
/// | `fallback_on` | `block`, `error`, `any` | `block` | whether it answers those that were blocked, those that failed, or both |
/// | `ignore(pattern)` | pattern for the `E` of an `Err` | | such calls end as *ignored* |
/// | `ok_if` | predicate: path or closure over `&Ret` | | such calls end as a *success* |
/// | `err_if` | predicate | | such calls end as an *exception* |
/// | `mode` | `enforce`, `off`, `shadow` | `enforce` | for all rules of this attribute: `off` keeps and shows them, and blocks nothing; `shadow` asks them as well, and shows what they would have done |
/// | `skip` | the word alone, on a method in a guarded `impl` block | | leaves the method out |
/// | `crate` | path | `::leap_runtime` | the runtime, if it has another name or comes through another crate |
///
/// ## Limits per interval
///
/// Limits on permits per interval: `qps` and each `rate` become a `FlowRule`. All but the first two stand inside a `rate(…)`, or outside,
/// where they are `qps`'s:
///
/// | argument | value | unit, default | what it is |
/// | --- | --- | --- | --- |
/// | `qps` | 0, which blocks all, or any number from 1 | permits per second | at most so many permits in any second |
/// | `rate(limit = , per_ms = )` | limit as of `qps`; whole number from 1 | permits; ms | at most `limit` permits in any `per_ms`; may be given several times |
/// | `behavior` | `reject`, `warm_up`, `throttle`, `warm_up_throttle` | `reject` | what becomes of calls above the limit: they are blocked; they are blocked, and a cold resource starts with less; they wait their turn; both |
/// | `warm_up_ms` | whole number from 1; with a warm-up | 10 000 ms | how long the limit climbs |
/// | `cold_factor` | number above 1; with a warm-up | 3 | a cold resource starts at `limit / cold_factor` |
/// | `max_wait_ms` | whole number; with a throttle | 500 ms | calls whose turn is further away are blocked |
/// | `burst` | whole number; with `behavior = throttle` | 0 permits | so many go at once before calls are spaced |
/// | `precision` | `exact`, `strict`, `sentinel`; a throttle takes the last only | `exact` up to 1 024 permits per interval, else `strict` | how the interval is counted |
/// | `buckets` | whole number that divides the interval; not with `behavior = throttle` | 100 | the parts that `strict` and `sentinel` count in |
/// | `associated` | name of a resource; with `behavior = reject` | | calls here are blocked while *that* resource uses up the limit |
///
/// With a throttle a limit may be any number from 0: `qps = 0.5, behavior = throttle` lets one call start in two seconds.
///
/// ## Calls in flight
///
/// A limit on calls in flight, an `IsolationRule`:
///
/// | argument | value | unit, default | what it is |
/// | --- | --- | --- | --- |
/// | `max_concurrency` | whole number; 0 blocks all | permits | at most so many in flight |
/// | `queue_ms` | whole number | 0 ms: no queue | calls above it queue for so long, first come, first served |
///
/// ## Breakers
///
/// Circuit breakers, a `BreakerRule` for each of the first three that is given. An *exception* is an `Err`, a panic, and what
/// `err_if` says: a function that returns no `Result` needs that for a breaker on errors.
///
/// | argument | value | unit, default | what it is |
/// | --- | --- | --- | --- |
/// | `slow_rt_ms` | whole number | ms | opens when more than `slow_ratio` of the calls take longer than this |
/// | `error_ratio` | 0 to 1 | | opens when more than this share of the calls end with an exception |
/// | `error_count` | whole number | calls | opens when more than so many calls end with an exception |
/// | `slow_ratio` | 0 to 1 | 1.0: all calls were slow | the share of slow calls that is borne; most services want less, e.g. 0.5 |
/// | `min_calls` | whole number from 1 | 5 | calls that a window needs before it means anything |
/// | `window_ms` | whole number from 1 | 1 000 ms | the windows that calls are judged in, one after another as in Sentinel: calls on both sides of a boundary are not judged together |
/// | `window_calls` | whole number from `min_calls`; instead of `window_ms` | | the last so many calls are judged, whenever they were |
/// | `open_ms` | whole number from 1 | 5 000 ms | how long calls are blocked before some are let through again |
/// | `open_max_ms` | whole number from `open_ms` | `open_ms` | the open time grows up to this, as long as the breaker does not close |
/// | `recovery` | `probes`, `ramp` | `probes` | what is let through then: a few probes, or a rising share of the calls |
/// | `probes` | 1 to 1 023 | 1 | probes that must succeed to close the breaker |
///
/// ## Hot parameters
///
/// Limits for each value of a key, in any number of `hot(…)`, each a `HotRule`:
///
/// | argument | value | unit, default | what it is |
/// | --- | --- | --- | --- |
/// | `key` | expression; always given | | by what calls are told apart (a literal is the same for all); see [Keys and origins](#keys-and-origins) |
/// | `name` | literal | the text of the expression: `req.user.id` | the name by which rules that are loaded find the key |
/// | `qps` | as outside | permits per `per_ms` | at most so many for each value |
/// | `per_ms` | whole number from 1 | 1 000 ms | the interval of `qps` |
/// | `burst` | whole number | 0 permits | so many more at once, saved up while there were fewer calls |
/// | `behavior` | `reject`, `throttle` | `reject` | what becomes of calls above the limit |
/// | `max_wait_ms` | whole number; with a throttle | 500 ms | calls whose turn is further away are blocked |
/// | `max_concurrency` | whole number | permits | at most so many in flight for each value |
/// | `max_keys` | whole number from 1 | 4 000 | values that are remembered; at the cap only idle ones leave |
/// | `precision` | `sentinel` | | counts as Sentinel does |
/// | `except("vip" => 1_000, 42 => 1)` | texts, whole numbers, `true`, `false`, characters; numbers | | other limits for single values: rates where there is a `qps`, else permits in flight |
///
/// A `hot(key = …)` without a limit has none of its own: it gives the key to rules that are loaded.
///
/// ## Authority
///
/// Who may call, by [origin](#keys-and-origins), an `AuthorityRule`:
///
/// | argument | value | what it is |
/// | --- | --- | --- |
/// | `allow("web", "app")` | names | of the calls that have an origin only these may call; **calls without one pass** |
/// | `deny("batch")` | names; instead of `allow` | these may not; calls without an origin pass |
///
/// As in Sentinel, neither list stops a call whose origin is `None` or `""`. Where that matters, give such calls a name that
/// is not on the list (`origin = caller.unwrap_or("nobody")`), refuse them in your own code, or add a check to the registry.
///
/// Functions that are guarded under one resource share its limits and its statistics, and their attributes' rules add up.
/// A rule that is loaded while the service runs replaces *all* rules of its kind that attributes gave the resource. The
/// kinds are flow, isolation, hot, authority, and each breaker for itself: `slow_rt_ms`, `error_ratio`, `error_count`. So a
/// loaded hot rule also puts aside those of other keys. It finds its key by `name`; if no call gives that, it limits nothing,
/// and the calls are counted as `missing` in `stats.hot(…)`.
///
/// What each kind of rule does over time, when to choose it and by which formula it decides is told in
/// `leap_runtime::guide`.
///
/// # Keys and origins
///
/// ```text
/// #[guarded(
///     inbound,
///     origin = request.header("app"),
///     deny("batch"),
///     hot(key = request.user.id, qps = 10, except(42 => 1_000)),
///     hot(key = self.tenant, name = "tenant", max_concurrency = 5)
/// )]
/// async fn handle(&self, request: Request) -> Result<Response, AppError> { /* … */ }
/// ```
///
/// The expressions of `key` and `origin` are no constants: they see the parameters, `self` and generic parameters. They
/// are evaluated once for each call, before it enters, and their value is looked at by reference, so a parameter stays
/// where it is. In an async function that is when the future is first polled, in a function that returns a future or a
/// stream when it is called. A panic in one is contained and counted;
/// the call has no such key or origin then. A parameter that is taken by a pattern, as in `Path(id): Path<u64>`, has no
/// name that they could see: give it one, and take it apart in the body.
///
/// A key is a whole number of any type, a `bool`, a `char`, a text (`&str`, `String`, `Cow<str>`, …), a reference to or
/// an `Option` of these (`None` is no key: the limit does not see the call), or several of them in a slice, array or
/// `Vec`, each of which is asked. Equal numbers are equal keys, whatever their types. Fractions are no keys: turn them
/// into a text or a whole number. An origin is a text or an `Option` of one; without `origin` it is the one of the
/// context that the call is made in.
///
/// # Waiting
///
/// Calls wait where they were told to: under `throttle`, in the queue of `queue_ms`, and with `priority`. A function that
/// is not async parks its thread meanwhile. An async function's future awaits, and holds no thread of its executor. It may
/// be dropped at any time: a cancelled wait leaves the queue, and gives its turn back unless somebody queued behind it. No
/// call waits longer than its rule says; those that would have to are blocked at once.
///
/// # How a call ends
///
/// In this order: an `Err` that `ignore` matches is ignored; what `ok_if` accepts is a success; what `err_if` accepts is
/// an exception; any other `Err` is an exception, under whatever alias of `Result` it is returned; everything else is a
/// success. A panic of the body is an exception and goes on unchanged. A future that is dropped half-way is *cancelled*.
///
/// An error that is passed up through several guarded functions counts on each of them. So does a `Blocked` of an inner
/// one: for the outer one it is an exception like any other `Err`, unless `ignore(AppError::Blocked(_))` says otherwise.
///
/// # Fallbacks
///
/// A fallback answers in place of the body. On a block the body has not run, so its arguments are there, by value, and need no
/// `Clone`.
///
/// ```text
/// fallback = last_known                             // a function: is given `self`, every argument, and then the `Blocked`
/// fallback = Self::last_known                       // the same, of a method
/// fallback = |sku, blocked| guess(sku)              // a closure: the same
/// fallback = guess(sku)                             // an expression: evaluated as written, the arguments in scope,
/// fallback = Err(AppError::Busy(blocked))           //     and the `Blocked` as `blocked`
/// fallback = self.last_known(sku).await             //     in an async function it may await
/// fallback = DEFAULT                                // a value; if its name does not look like one: { default_value }
/// ```
///
/// A function or closure that is given to an async function may be async or not: if it gives a future, that is awaited.
/// One that never returns will do; in an async function it is called by an expression, `fallback = exit(1)`.
///
/// `fallback_on = error` has it answer calls that failed instead, and `fallback_on = any` both. It is then given the `E` of
/// the `Err`, in an expression as `error`; with `any` a block is first made one by `From<Blocked>`. What `ignore` or
/// `ok_if` took out, and an `Ok` that `err_if` made a failure, is returned as it is. The call is over and counted when the
/// fallback runs, and a panic goes on as ever. The body has used the arguments by then, so those that the fallback is given, or
/// names, must be `Copy`, as references are.
///
/// ```text
/// #[guarded("stock.read", error_ratio = 0.5, fallback_on = any, fallback = from_cache(sku).await)]
/// async fn stock(sku: &str, order: Order) -> Result<u32, AppError> { /* … */ }
/// ```
///
/// # Functions that return a future or a stream
///
/// A function that is not async but says that it returns a future (`impl Future`, `Pin<Box<dyn Future>>`, `BoxFuture`,
/// `LocalBoxFuture`) is guarded while the future runs: the call enters when that is first polled, and ends when it is ready
/// or dropped. What stands in the body before the future runs when the function is called, blocked or not, as it would without
/// the attribute. So the body has had the arguments when the `fallback` is asked, and those that this wants must be `Copy`. A
/// body that is nothing but an async block, in `Box::pin` or not, is as that of an `async fn`: so are the methods of
/// `async_trait`, whichever attribute stands first. The fallback gives what the future yields, or, as a function or closure, a
/// future of that.
///
/// A stream (`impl Stream`, `Pin<Box<dyn Stream>>`, `BoxStream`, with the feature `stream`) is one call from its first poll to
/// its end. It ends as the worst of its items was judged, also if it is dropped after that; one that is dropped before
/// its end, with nothing worse, was cancelled. A blocked one yields one item, made by `FromBlocked`, or is replaced by the stream
/// that the `fallback` gives.
///
/// Of a type that only turns out to be a future (`JoinHandle`, an alias) no more than the making is guarded. A warning at the
/// return type says so; `#[allow(deprecated)]` on the function says that it is meant.
///
/// # `impl` blocks
///
/// ```text
/// #[guarded(max_concurrency = 32, slow_rt_ms = 200)]
/// impl Store for Postgres {
///     async fn read(&self, key: &str) -> Result<Row, StoreError> { /* … */ }    // <Postgres as Store>::read
///
///     #[guarded("store.write", qps = 100)]                                      // this alone
///     async fn write(&self, row: Row) -> Result<(), StoreError> { /* … */ }
///
///     #[guarded(skip)]                                                          // not guarded
///     fn name(&self) -> &str { /* … */ }
/// }
/// ```
///
/// Every method is guarded as if the attribute stood on it: a resource of its own, with limits of its own, called by its
/// type and its name. So there is no `resource` for a block, and what names a parameter (`hot`, a `fallback`) has to suit each
/// of its methods. Methods that a macro writes into the block are not seen. An attribute of a method's own takes the place of the block's, all of it; it is known by its name,
/// `guarded`, and does not depend on a `cfg`.
///
/// # What it writes
///
/// ```text
/// #[guarded(resource = "orders.create", qps = 100)]
/// fn create(order: Order) -> Result<Id, AppError> { … }
///
/// // becomes
/// fn create(order: Order) -> Result<Id, AppError> {
///     let (site, permits) = {
///         static RULES: [Rule; 1] = [flow(FlowWords { limit: 100.0, per_ms: 1_000, … })];
///         fn here() -> &'static str { /* this function's path */ }
///         static SITE: CallSite = CallSite::new(Some("orders.create"), here, &RULES);
///         (&SITE, 1)
///     };
///     let mut entry = site.enter(permits);
///     match entry {
///         Ok(ref mut entry) => run(entry, move || -> Result<Id, AppError> { let order = order; { … } }, /* how it ended */),
///         Err(blocked) => FromBlocked::from_blocked(blocked),
///     }
/// }
/// ```
///
/// A call that says more of itself than its permits (`inbound`, `priority`, `origin`, `entrance`, `hot`) enters with
/// `site.enter_with(&Request { … })`.
///
/// All that an async function does is in the future that it returns: it enters when that is first polled, and waits there.
///
/// ```text
///     let begun = site.begin(permits);
///     run_async(begun, async move {
///         if is_turned_away() {
///             return FromBlocked::from_blocked(turned_away()); // or the fallback, with the arguments
///         }
///         let order = order;
///         { … }
///     }, /* how it ended */).await
/// ```
///
/// # Mistakes, and what the compiler says
///
/// Nothing is left to be found at run time. Where a name is misspelt, the nearest that is accepted is proposed.
///
/// ```text
/// #[guarded(qsp = 1)]
/// error: unknown argument `qsp`; did you mean `qps`?
///
/// #[guarded(error_rate = 0.5)]
/// error: unknown argument `error_rate`; did you mean `error_ratio`?
///
/// #[guarded(qps = -1)]
/// error: `qps` must not be negative, e.g. `qps = 100`
///
/// #[guarded(qps = Self::RATE)]
/// error: `qps` cannot depend on `Self`: all callers of the function share one guard, whatever its generic parameters
///
/// #[guarded]
/// fn number() -> u32
/// error[E0277]: `u32` cannot say that a call was blocked
/// = note: return a `Result<_, E>` with an error type of yours, and add `impl From<leap_runtime::Blocked> for E`
/// = note: or name a function to call instead: `#[guarded(.., fallback = path)]`
///
/// #[guarded(fallback = f)]                         // fn f(sku: &str) -> usize
/// error[E0277]: this fallback does not take what it would be given
/// = note: where it takes less, write the call as it is meant: `fallback = f(sku)`
///
/// #[guarded(fallback = |sku| 0)]
/// error: a fallback gets every argument and then why it is asked: `|sku, _, blocked| …`; to name only what is needed, write an expression
///
/// #[guarded(fallback_on = any, fallback = recover)]
/// fn moved(sku: String, n: u8)
/// error[E0277]: the body uses up this argument, so the `fallback` cannot have it afterwards
/// = note: take it by reference, or name in the `fallback` only what it needs: `fallback = f(id)`
///
/// #[guarded]
/// const fn constant()
/// error: a `const fn` cannot be guarded: a guard reads the clock when it is called; in a guarded `impl` block, leave it out with `#[guarded(skip)]`
///
/// #[guarded]
/// struct Shop;
/// error: `#[guarded]` goes on a function or method with a body, or on an `impl` block, not on a struct
///
/// #[guarded]
/// fn boxed() -> Box<dyn Future<Output = u8> + Unpin>
/// error: a boxed future or stream can be guarded where it is pinned: `Pin<Box<dyn …>>`, made by `Box::pin`
/// ```
///
/// # What it does not do
///
/// `scope`, `on_empty`, `on_fail` and `span` are kept for later and answer "not supported yet".
///
/// A closure that is returned as a bare `impl Fn(&str)` has to say the types of its parameters: the body does not know the
/// bound.
///
/// The body becomes a closure, so `#[track_caller]` no longer tells *it* its caller's place. A closure cannot be guarded:
/// attributes on expressions are not stable; put the function that it calls under guard, or enter by
/// `Registry::enter`.
#[proc_macro_attribute]
pub fn guarded(args: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    guard(args.into(), item.into()).into()
}

fn guard(args: TokenStream, item: TokenStream) -> TokenStream {
    if model::is_block(&item) { guard_block(&args, item) } else { guard_function(args, item) }
}

fn guard_function(args: TokenStream, item: TokenStream) -> TokenStream {
    let guarded =
        args::parse(args).and_then(|args| model::Guarded::new(args, model::Function::new(item.clone())?));
    match guarded {
        Ok(guarded) => expand::expand(&guarded),
        Err(error) => fallback::expand(item, &error),
    }
}

/// Guards each method of a block as if the attribute stood on it.
fn guard_block(args: &TokenStream, item: TokenStream) -> TokenStream {
    let block: model::Block = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(error) => return fallback::expand(item, &error),
    };
    match args::parse(args.clone()).and_then(|args| block.check(&args)) {
        Ok(()) => block.with_methods(|method| guard_function(args.clone(), method)),
        Err(error) => fallback::expand(block.with_methods(|method| method), &error),
    }
}
