//! What the arguments of the attribute arm, and how guarded functions go by it. Each test has a registry of its own.
#![expect(
    clippy::large_types_passed_by_value,
    clippy::panic,
    clippy::unnecessary_wraps,
    clippy::unwrap_used,
    reason = "functions of every shape, which stand here for their shape"
)]

use std::borrow::Cow;
use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use leap_runtime::{
    AuthorityRule, Behavior, Blocked, BreakerRule, Cause, Context, FlowRule, HotRule, InRegistry,
    IsolationRule, Key, ManualClock, Observer, Precision, Recovery, Registry, Rule, RuleSet, SystemRule,
    ToKey, TokioClock, guarded,
};
use tokio::time::{Instant, sleep};

type Answer<T> = Result<T, Blocked>;

fn registry() -> (Registry, ManualClock) {
    let clock = ManualClock::new();
    (Registry::builder().clock(clock.clone()).build(), clock)
}

/// A registry on tokio's time; to be made inside a runtime.
fn on_tokios_clock() -> Registry {
    Registry::builder().clock(TokioClock::new()).build()
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Polls a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

fn poll<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()))
}

/// How many of `n` calls were let through.
fn passes<T>(registry: &Registry, n: usize, call: impl Fn() -> Answer<T>) -> usize {
    registry.scope(|| (0..n).filter(|_| call().is_ok()).count())
}

/// The rules of a resource that was called.
fn rules(registry: &Registry, resource: &str) -> Vec<Rule> {
    registry
        .stats(resource)
        .unwrap_or_else(|| panic!("nobody called `{resource}`"))
        .rules()
        .map(|(_, rule)| rule.clone())
        .collect()
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

mod words {
    use super::*;

    const FACTOR: f64 = 2.5;
    const SECOND: u64 = 1_000;
    const WRITES: &str = "words.writes";

    #[guarded("words.flow", qps = 100, behavior = warm_up, warm_up_ms = 5 * SECOND, cold_factor = FACTOR, buckets = 10)]
    pub(super) fn warm_up() -> Answer<()> {
        Ok(())
    }

    #[guarded("words.pace", qps = 0.5, behavior = throttle, max_wait_ms = 250, burst = 3)]
    pub(super) fn throttle() -> Answer<()> {
        Ok(())
    }

    #[guarded("words.sentinel", qps = 50, behavior = throttle, precision = sentinel)]
    pub(super) fn as_sentinel() -> Answer<()> {
        Ok(())
    }

    #[guarded(
        "words.rates",
        rate(limit = 60, per_ms = 60 * SECOND, behavior = warm_up_throttle, max_wait_ms = SECOND),
        rate(limit = 10, per_ms = SECOND, associated = "words.reads"),
        rate(limit = 20, per_ms = SECOND, behavior = reject, associated = WRITES)
    )]
    pub(super) fn rates() -> Answer<()> {
        Ok(())
    }

    #[guarded("words.queue", max_concurrency = 8, queue_ms = SECOND / 2)]
    pub(super) fn queue() -> Answer<()> {
        Ok(())
    }

    #[guarded(
        "words.breakers",
        slow_rt_ms = 200,
        slow_ratio = 0.5,
        error_count = 3,
        window_calls = 20,
        min_calls = 10,
        open_ms = SECOND,
        open_max_ms = 60 * SECOND,
        recovery = ramp
    )]
    pub(super) fn breakers() -> Answer<()> {
        Ok(())
    }

    #[guarded("words.hot",
        hot(key = user, qps = 10, per_ms = 60 * SECOND, burst = 2, except("vip" => 1_000, 42 => 1, true => 0, 'c' => FACTOR)),
        hot(key = user, max_concurrency = 3, max_keys = 100),
        hot(key = user.len() + 1, qps = 0.5, behavior = throttle, max_wait_ms = SECOND),
        hot(key = user, name = "who", qps = 5, precision = sentinel),
        hot(key = user.is_empty())
    )]
    pub(super) fn hot(user: &str) -> Answer<usize> {
        Ok(user.len())
    }

    #[guarded("words.allow", allow("web", concat!("a", "pp")))]
    pub(super) fn allow() -> Answer<()> {
        Ok(())
    }

    #[guarded("words.deny", deny("batch"), mode = off)]
    pub(super) fn deny() -> Answer<()> {
        Ok(())
    }
}

#[test]
fn the_words_of_an_attribute_are_the_rules_of_data() {
    let (registry, _) = registry();
    registry.scope(|| {
        words::warm_up().unwrap();
        words::throttle().unwrap();
        words::as_sentinel().unwrap();
        words::rates().unwrap();
        words::queue().unwrap();
        words::breakers().unwrap();
        words::hot("ann").unwrap();
        words::allow().unwrap();
        words::deny().unwrap();
    });
    let flow = |limit, behavior| FlowRule::new(limit, behavior).unwrap();
    let throttle = |max_wait| Behavior::Throttle { max_wait };
    let warm_up = Behavior::WarmUp { period: ms(5_000), cold_factor: 2.5 };
    assert_eq!(rules(&registry, "words.flow"), [flow(100.0, warm_up).with_buckets(10).unwrap().into()]);
    assert_eq!(rules(&registry, "words.pace"), [flow(0.5, throttle(ms(250))).with_burst(3).unwrap().into()]);
    assert_eq!(
        rules(&registry, "words.sentinel"),
        [flow(50.0, throttle(ms(500))).with_precision(Precision::Sentinel).unwrap().into()]
    );
    let both = Behavior::WarmUpThrottle { period: ms(10_000), cold_factor: 3.0, max_wait: ms(1_000) };
    assert_eq!(
        rules(&registry, "words.rates"),
        [
            flow(60.0, both).per(ms(60_000)).unwrap().into(),
            flow(10.0, Behavior::Reject).associated("words.reads").unwrap().into(),
            Rule::from(flow(20.0, Behavior::Reject).associated("words.writes").unwrap()),
        ]
    );
    assert_eq!(rules(&registry, "words.queue"), [IsolationRule::new(8).with_queue(ms(500)).unwrap().into()]);
    let breaker = |rule: BreakerRule| -> Rule {
        let rule =
            rule.with_min_calls(10).unwrap().with_window_calls(20).unwrap().open_for(ms(1_000)).unwrap();
        rule.with_max_open(ms(60_000))
            .unwrap()
            .with_recovery(Recovery::Ramp { over: ms(1_000) })
            .unwrap()
            .into()
    };
    assert_eq!(
        rules(&registry, "words.breakers"),
        [breaker(BreakerRule::slow_ratio(ms(200), 0.5).unwrap()), breaker(BreakerRule::error_count(3))]
    );
    let first = HotRule::qps("user", 10.0).unwrap().per(ms(60_000)).unwrap().with_burst(2).unwrap();
    let first = first.except("vip", 1_000.0).unwrap().except(42, 1.0).unwrap().except(true, 0.0).unwrap();
    assert_eq!(
        rules(&registry, "words.hot"),
        [
            first.except('c', 2.5).unwrap().into(),
            HotRule::concurrency("user", 3).unwrap().with_max_keys(100).unwrap().into(),
            HotRule::throttle("user.len() + 1", 0.5, ms(1_000)).unwrap().into(),
            Rule::from(HotRule::qps("who", 5.0).unwrap().with_precision(Precision::Sentinel).unwrap()),
        ]
    );
    assert_eq!(rules(&registry, "words.allow"), [AuthorityRule::allow(["web", "app"]).unwrap().into()]);
    let deny = AuthorityRule::deny(["batch"]).unwrap().with_mode(leap_runtime::Mode::Off);
    assert_eq!(rules(&registry, "words.deny"), [deny.into()]);
}

#[guarded("tried", qps = 1, max_concurrency = 5, mode = shadow)]
fn tried() -> Answer<u8> {
    Ok(1)
}

#[guarded("limited", qps = 2)]
fn limited() -> Answer<u8> {
    Ok(1)
}

#[test]
fn a_rule_in_shadow_tells_what_it_would_have_done_to_a_function() {
    let (registry, _) = registry();
    let shadow = leap_runtime::Mode::Shadow;
    let candidate = FlowRule::new(3.0, Behavior::Reject).unwrap().with_mode(shadow);
    registry.load(RuleSet::new().flow("limited", candidate)).unwrap();
    let passed: Vec<_> =
        (0..4).map(|_| (registry.scope(tried).is_ok(), registry.scope(limited).is_ok())).collect();
    assert_eq!(passed, [(true, true), (true, true), (true, false), (true, false)]);
    let told = |resource: &str| -> Vec<_> {
        let stats = registry.stats(resource).unwrap();
        let told = stats.shadows().iter().map(|shadow| {
            (shadow.rule().kind().name(), shadow.asked(), shadow.would_block(), shadow.would_pass_blocked())
        });
        told.collect()
    };
    assert_eq!(told("tried"), [("flow", 4, 3, 0), ("isolation", 4, 0, 0)]);
    assert_eq!(told("limited"), [("flow", 4, 1, 1)]);
}

#[guarded("paced", qps = 10, behavior = throttle)]
fn paced() -> Answer<u8> {
    Ok(1)
}

#[test]
fn a_function_under_a_throttle_parks_its_thread_until_its_turn() {
    let (registry, clock) = registry();
    registry.scope(paced).unwrap();
    std::thread::scope(|scope| {
        let parked = scope.spawn(|| registry.scope(paced));
        while registry.stats("paced").unwrap().waiting() == 0 {
            std::thread::yield_now();
        }
        clock.advance(ms(99));
        assert_eq!(registry.stats("paced").unwrap().waiting(), 1);
        clock.advance(ms(1));
        assert_eq!(parked.join().unwrap().unwrap(), 1);
    });
}

#[guarded("paced async", rate(limit = 10, per_ms = 1_000, behavior = throttle, max_wait_ms = 900))]
async fn paced_async(started: Instant) -> Answer<Duration> {
    Ok(started.elapsed())
}

/// B19.
#[tokio::test(start_paused = true)]
async fn a_future_under_a_throttle_awaits_its_turn_and_holds_no_thread() {
    let registry = on_tokios_clock();
    let started = Instant::now();
    let heartbeat = tokio::spawn(async move {
        for n in 1..=90 {
            sleep(ms(10)).await;
            assert_eq!(started.elapsed(), ms(10 * n));
        }
    });
    let calls: Vec<_> = (0..11).map(|_| tokio::spawn(paced_async(started).in_registry(&registry))).collect();
    tokio::task::yield_now().await;
    // Whoever is behind it keeps its own turn.
    calls[4].abort();
    let mut times = vec![];
    for (n, call) in calls.into_iter().enumerate() {
        match call.await {
            Ok(Ok(time)) => times.push(u64::try_from(time.as_millis()).unwrap()),
            Ok(Err(blocked)) => assert_eq!((n, blocked.cause()), (10, Cause::Flow)),
            Err(cancelled) => assert!(n == 4 && cancelled.is_cancelled()),
        }
    }
    assert_eq!(times, [0, 100, 200, 300, 500, 600, 700, 800, 900]);
    heartbeat.await.unwrap();
    let stats = registry.stats("paced async").unwrap();
    assert_eq!((stats.totals().success(), stats.totals().cancelled(), stats.totals().blocked()), (9, 1, 1));
    assert_eq!(stats.totals().rt_avg(), Some(Duration::ZERO));
}

#[guarded("warmed up", qps = 30, behavior = warm_up, warm_up_ms = 10_000)]
fn warmed_up() -> Answer<()> {
    Ok(())
}

#[test]
fn a_cold_function_starts_with_its_share_of_the_limit() {
    let (registry, _) = registry();
    assert_eq!(passes(&registry, 100, warmed_up), 10);
}

#[guarded("watches", qps = 2, associated = "watched")]
fn watches() -> Answer<()> {
    Ok(())
}

#[guarded("watched")]
fn watched() -> Answer<()> {
    Ok(())
}

#[test]
fn a_function_is_blocked_while_an_associated_one_uses_up_the_limit() {
    let (registry, clock) = registry();
    assert_eq!(
        [passes(&registry, 5, watches), passes(&registry, 5, watched), passes(&registry, 5, watches)],
        [5, 5, 0]
    );
    clock.advance(ms(1_010));
    assert_eq!(passes(&registry, 5, watches), 5);
}

struct Argument(&'static str);

#[guarded("queues", max_concurrency = 1, queue_ms = 50, fallback = answer_late)]
async fn queues(argument: Argument, takes: Duration) -> &'static str {
    sleep(takes).await;
    argument.0
}

async fn answer_late(argument: Argument, _: Duration, blocked: Blocked) -> &'static str {
    assert_eq!(blocked.cause(), Cause::Isolation);
    tokio::task::yield_now().await;
    let Argument(name) = argument;
    if name == "late" { "too late" } else { name }
}

#[tokio::test(start_paused = true)]
async fn a_future_queues_for_its_permit_and_its_fallback_gets_the_arguments_when_it_waited_in_vain() {
    let registry = on_tokios_clock();
    let call = |name, takes| tokio::spawn(queues(Argument(name), ms(takes)).in_registry(&registry));
    let calls = [call("first", 30), call("second", 40), call("late", 10)];
    let mut answers = vec![];
    for call in calls {
        answers.push(call.await.unwrap());
    }
    assert_eq!(answers, ["first", "second", "too late"]);
    let stats = registry.stats("queues").unwrap();
    assert_eq!(
        (stats.totals().success(), stats.totals().blocked_by(Cause::Isolation), stats.in_flight()),
        (2, 1, 0)
    );
}

#[guarded("inbound", inbound)]
fn inbound() -> Answer<()> {
    Ok(())
}

#[guarded("inbound async", inbound = true)]
async fn inbound_async() -> Answer<()> {
    Ok(())
}

#[guarded("outbound")]
fn outbound() -> Answer<()> {
    Ok(())
}

#[guarded("outbound too", inbound = false)]
fn outbound_too() -> Answer<()> {
    Ok(())
}

/// H03.
#[test]
fn a_function_is_outbound_unless_it_says_otherwise() {
    let (registry, _) = registry();
    registry.load(RuleSet::new().system(SystemRule::qps(2.0).unwrap())).unwrap();
    assert_eq!([passes(&registry, 3, outbound), passes(&registry, 3, outbound_too)], [3, 3]);
    assert_eq!(passes(&registry, 1, inbound), 1);
    assert_eq!(passes(&registry, 3, || ready(inbound_async())), 1);
    assert_eq!(registry.scope(inbound).unwrap_err().cause(), Cause::System);
    assert_eq!([passes(&registry, 3, outbound), passes(&registry, 3, outbound_too)], [3, 3]);
}

#[guarded("urgent", priority, qps = 1)]
async fn urgent(started: Instant) -> Answer<Duration> {
    Ok(started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_call_of_priority_waits_for_a_place_in_the_next_window() {
    let registry = on_tokios_clock();
    let started = Instant::now();
    let call = || tokio::spawn(urgent(started).in_registry(&registry));
    let (first, second, third) = (call(), call(), call());
    assert_eq!(first.await.unwrap().unwrap(), Duration::ZERO);
    assert_eq!(second.await.unwrap().unwrap(), ms(1_000));
    assert_eq!(third.await.unwrap().unwrap_err().cause(), Cause::Flow);
}

struct Request {
    app: Option<String>,
    user: User,
    tags: Vec<&'static str>,
}

struct User {
    id: u64,
    name: String,
}

fn request(app: &str, id: u64) -> Request {
    let app = (!app.is_empty()).then(|| app.to_owned());
    Request { app, user: User { id, name: format!("user {id}") }, tags: vec![] }
}

#[guarded("origins", origin = request.app, allow("web", "app"))]
fn only_web(request: Request) -> Answer<Option<String>> {
    Ok(request.app)
}

#[guarded("origins async", origin = request.app.as_deref(), entrance = "front", deny("batch"))]
async fn not_batch(request: Request) -> Answer<Option<String>> {
    Ok(request.app)
}

#[guarded("origins of two", origin = format!("{app}-{n}"), deny("app-2"))]
fn made_up(app: &str, n: u32) -> Answer<u32> {
    Ok(n)
}

#[test]
fn an_origin_is_looked_at_and_decides_who_may_call() {
    let (registry, _) = registry();
    registry.scope(|| {
        assert_eq!(only_web(request("web", 1)).unwrap().as_deref(), Some("web"));
        let blocked = only_web(request("batch", 1)).unwrap_err();
        assert_eq!(
            (blocked.cause(), blocked.to_string().as_str()),
            (Cause::Authority, "`origins` is blocked: its origin may not call")
        );
        assert!(only_web(request("", 1)).is_ok(), "nobody in particular may");
        assert_eq!(ready(not_batch(request("web", 1))).unwrap().as_deref(), Some("web"));
        assert!(ready(not_batch(request("batch", 1))).is_err());
        assert!(made_up("app", 1).is_ok() && made_up("app", 2).is_err());
        // The context's, unless the call says who it is.
        Context::new("jobs").with_origin("batch").scope(|| {
            assert!(only_web(request("", 1)).is_err());
            assert!(only_web(request("app", 1)).is_ok());
            assert!(ready(not_batch(request("", 1))).is_err());
        });
    });
    let names = |resource: &str| {
        let stats = registry.stats(resource).unwrap();
        let of = |shares: &[leap_runtime::ShareStats]| {
            shares
                .iter()
                .map(|share| format!("{} {}", share.name(), share.totals().passed()))
                .collect::<Vec<_>>()
        };
        (of(stats.origins()), of(stats.entrances()))
    };
    assert_eq!(
        names("origins"),
        (vec!["app 1".into(), "batch 0".into(), "web 1".into()], vec!["jobs 1".into()])
    );
    assert_eq!(names("origins async"), (vec!["batch 0".into(), "web 1".into()], vec!["front 1".into()]));
    let tree = registry.tree();
    let front = tree.entrance("front").unwrap();
    assert_eq!((front.passed(), front.child("origins async").unwrap().blocked()), (1, 2));
}

#[guarded("entered", entrance = ENTRANCE, fallback = nothing)]
fn entered(inner: fn() -> usize) -> usize {
    inner()
}

const ENTRANCE: &str = "gate";

fn nothing(_: fn() -> usize, _: Blocked) -> usize {
    0
}

#[test]
fn what_a_body_calls_has_come_in_by_its_entrance() {
    let (registry, _) = registry();
    let entrance = || Context::current().map_or(0, |context| context.entrance().len());
    assert_eq!(registry.scope(|| entered(entrance)), 4);
    assert_eq!(entrance(), 0);
}

mod keys {
    use super::*;

    #[guarded("keys.value", hot(key = user, qps = 2))]
    pub(super) fn by_value(user: String) -> Answer<String> {
        Ok(user)
    }

    #[guarded("keys.reference", hot(key = user, qps = 2))]
    pub(super) fn by_reference(user: &User) -> Answer<&str> {
        Ok(&user.name)
    }

    impl ToKey for User {
        fn to_key(&self) -> Key {
            self.id.to_key()
        }
    }

    #[guarded("keys.async", hot(key = request.user.id, qps = 2))]
    pub(super) async fn in_a_future(request: Request) -> Answer<User> {
        tokio::task::yield_now().await;
        Ok(request.user)
    }

    #[guarded("keys.generic", hot(key = id, qps = 2), hot(key = N, qps = 3))]
    pub(super) fn generic<T: ToKey, const N: usize>(id: T, rest: [u8; N]) -> Answer<(T, [u8; N])> {
        Ok((id, rest))
    }

    #[guarded("keys.opaque", hot(key = id.as_ref(), qps = 2))]
    pub(super) async fn opaque(id: impl AsRef<str> + Send) -> Answer<usize> {
        Ok(id.as_ref().len())
    }

    #[guarded("keys.many", hot(key = tags, qps = 1))]
    pub(super) fn many(tags: Vec<&'static str>) -> Answer<Vec<&'static str>> {
        Ok(tags)
    }

    #[guarded("keys.maybe", hot(key = user, qps = 1))]
    pub(super) fn maybe(user: Option<&Option<String>>) -> Answer<bool> {
        Ok(user.is_some())
    }

    #[guarded("keys.cow", hot(key = text, qps = 1), hot(key = numbers, name = "n", qps = 1))]
    pub(super) fn cow<'a>(text: Cow<'a, str>, numbers: [i128; 2]) -> Answer<(Cow<'a, str>, [i128; 2])> {
        Ok((text, numbers))
    }

    #[guarded("keys.text", hot(key = format!("{tenant}/{}", user.id), qps = 1))]
    pub(super) async fn made_up(tenant: String, user: User) -> Answer<(String, User)> {
        Ok((tenant, user))
    }

    #[guarded("keys.binding", hot(key = if let Some(id) = id { id + 1 } else { 0 }, name = "id", qps = 1))]
    pub(super) fn bound(id: Option<u64>) -> Answer<Option<u64>> {
        Ok(id)
    }
}

mod odd {
    use super::*;

    #[guarded("odd.names", hot(key = r#type, qps = 1), hot(key = __site, name = "site", qps = 1))]
    pub(super) async fn names(r#type: u8, __site: String, permits: &mut u8) -> Answer<String> {
        *permits += r#type;
        Ok(__site)
    }

    #[guarded("odd.cell", hot(key = cell.get(), qps = 1))]
    pub(super) async fn cell(cell: std::cell::Cell<u32>) -> Answer<u32> {
        tokio::task::yield_now().await;
        Ok(cell.get())
    }

    pub(super) struct Counter(pub(super) std::cell::Cell<u32>);

    impl Counter {
        #[guarded("odd.counter", hot(key = self.0.get(), qps = 1), origin = self.0.get().to_string())]
        pub(super) async fn count(self) -> Answer<u32> {
            tokio::task::yield_now().await;
            Ok(self.0.get())
        }
    }

    #[guarded("odd.dyn", hot(key = named(), qps = 1), hot(key = iterator.next(), qps = 1))]
    pub(super) async fn dynamic(
        named: &(dyn Fn() -> String + Sync),
        iterator: &mut (dyn Iterator<Item = char> + Send),
    ) -> Answer<Option<char>> {
        let _ = named;
        Ok(iterator.next())
    }

    #[guarded("odd.place", hot(key = std::thread::current().name().map(str::to_owned), qps = 1))]
    pub(super) fn place() -> Answer<()> {
        Ok(())
    }

    impl ToKey for Wrapped {
        fn to_key(&self) -> Key {
            self.0.as_ref().map_or(Key::ABSENT, ToKey::to_key)
        }
    }

    struct Wrapped(Option<String>);

    impl From<Answer<String>> for Wrapped {
        fn from(answer: Answer<String>) -> Self {
            Self(answer.ok())
        }
    }

    #[guarded("odd.guarded key", hot(key = Wrapped::from(keys::by_value(user.clone())), name = "user", qps = 9))]
    pub(super) fn guarded_key(user: String) -> Answer<usize> {
        Ok(user.len())
    }
}

/// The key is looked at on the way in, also by code that is guarded itself.
#[test]
fn keys_of_odd_kinds_are_evaluated_like_any() {
    let (registry, _) = registry();
    registry.scope(|| {
        let mut permits = 1;
        assert_eq!(ready(odd::names(2, "a".into(), &mut permits)).unwrap(), "a");
        assert!(ready(odd::names(2, "b".into(), &mut permits)).is_err());
        assert_eq!(permits, 3);
        let mut letters = "abc".chars();
        assert_eq!(ready(odd::dynamic(&|| "t".to_owned(), &mut letters)).unwrap(), Some('b'));
        let here = || registry.scope(|| odd::place().is_ok());
        assert!(here() && !here());
        std::thread::scope(|scope| {
            let elsewhere = std::thread::Builder::new().name("elsewhere".into()).spawn_scoped(scope, here);
            assert!(elsewhere.unwrap().join().unwrap());
        });
        assert_eq!([odd::guarded_key("k".into()).unwrap(), odd::guarded_key("k".into()).unwrap()], [1, 1]);
        assert!(odd::guarded_key("k".into()).is_ok(), "the inner call was blocked, so there is no key");
    });
    let stats = registry.stats("odd.guarded key").unwrap();
    assert_eq!((stats.totals().success(), stats.hot(9)[0].missing(), stats.in_flight()), (3, 1, 0));
    assert_eq!(registry.stats("keys.value").unwrap().totals().blocked(), 1);
    drop(assert_send(odd::cell(std::cell::Cell::new(1))));
    drop(assert_send(odd::Counter(std::cell::Cell::new(1)).count()));
}

fn user(id: u64) -> User {
    User { id, name: "ann".into() }
}

#[test]
fn calls_are_told_apart_by_keys_and_the_arguments_are_still_the_bodys() {
    let (registry, _) = registry();
    let two_of_three =
        |call: &dyn Fn() -> bool| registry.scope(|| [call(), call(), call()]) == [true, true, false];
    assert!(two_of_three(&|| keys::by_value("ann".into()).is_ok_and(|user| user == "ann")));
    assert!(two_of_three(&|| keys::by_value("bob".into()).is_ok()));
    assert!(two_of_three(&|| keys::by_reference(&user(1)).is_ok_and(|name| name == "ann")));
    let spin = |future: &dyn Fn() -> Pin<Box<dyn Future<Output = Answer<User>>>>| {
        let mut future = future();
        loop {
            if let Poll::Ready(answer) = future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
                return answer;
            }
        }
    };
    assert!(two_of_three(
        &|| spin(&|| Box::pin(keys::in_a_future(request("", 7)))).is_ok_and(|user| user.id == 7)
    ));
    assert!(two_of_three(&|| keys::generic("a", [0; 1]).is_ok()));
    assert!(two_of_three(&|| keys::generic(1_u8, [0; 2]).is_ok()));
    registry.scope(|| {
        assert!(keys::generic(2_u64, [0; 2]).is_ok());
        assert_eq!(keys::generic(3_u64, [0; 2]).unwrap_err().rule().position(), 1);
    });
    assert!(two_of_three(&|| ready(keys::opaque("ann".to_owned())).is_ok()));
    registry.scope(|| {
        assert_eq!(keys::many(vec!["a", "b"]).unwrap(), ["a", "b"]);
        assert!(keys::many(vec!["b", "c"]).is_err() && keys::many(vec!["c", "c"]).is_err());
        assert!(keys::many(vec!["c"]).is_ok() && keys::many(vec![]).is_ok() && keys::many(vec![]).is_ok());
        assert!((0..3).all(|_| !keys::maybe(None).unwrap() && keys::maybe(Some(&None)).unwrap()));
        let ann = Some("ann".to_owned());
        assert!(keys::maybe(Some(&ann)).is_ok() && keys::maybe(Some(&ann)).is_err());
        assert!(keys::cow("é".into(), [i128::MIN, i128::MAX]).is_ok());
        assert!(keys::cow("e".into(), [i128::MAX, 0]).is_err());
        assert!(keys::cow(Cow::Owned("e".into()), [1, 2]).is_ok() && keys::cow("é".into(), [3, 4]).is_err());
        assert_eq!(ready(keys::made_up("t".into(), user(1))).unwrap().0, "t");
        assert!(
            ready(keys::made_up("t".into(), user(2))).is_ok()
                && ready(keys::made_up("t".into(), user(1))).is_err()
        );
        assert!(keys::bound(Some(4)).is_ok() && keys::bound(None).is_ok() && keys::bound(Some(4)).is_err());
    });
}

#[derive(Default)]
struct Shop {
    tenant: String,
    sold: u32,
}

impl Shop {
    #[guarded("shop.look", hot(key = self.tenant, qps = 1))]
    fn look(&self) -> Answer<&str> {
        Ok(&self.tenant)
    }

    #[guarded("shop.sell", hot(key = self.tenant(), qps = 1), hot(key = n, qps = 2))]
    fn sell(&mut self, n: u32) -> Answer<&mut u32> {
        self.sold += n;
        Ok(&mut self.sold)
    }

    #[guarded("shop.count", hot(key = self.tenant, qps = 1))]
    async fn count(&self) -> Answer<u32> {
        Ok(self.sold)
    }

    #[guarded("shop.restock", hot(key = self.tenant, qps = 1), origin = self.tenant)]
    async fn restock(&mut self, n: u32) -> Answer<u32> {
        self.sold -= n;
        Ok(self.sold)
    }

    #[guarded("shop.close", hot(key = self.tenant, qps = 1))]
    async fn close(self) -> Answer<String> {
        Ok(self.tenant)
    }

    #[guarded("shop.share", hot(key = self.tenant, qps = 1))]
    fn share(self: Arc<Self>) -> Answer<Arc<Self>> {
        Ok(self)
    }

    #[guarded("shop.pinned", hot(key = self.tenant, qps = 1))]
    async fn pinned(self: Pin<&mut Self>) -> Answer<usize> {
        Ok(self.tenant.len())
    }

    fn tenant(&self) -> &str {
        &self.tenant
    }
}

trait Named {
    fn name(&self) -> String;

    #[guarded("named.greet", hot(key = self.name(), qps = 1))]
    fn greet(&self) -> Answer<String> {
        Ok(self.name())
    }

    fn wave(&self) -> impl Future<Output = Answer<usize>>;
}

impl Named for Shop {
    fn name(&self) -> String {
        self.tenant.clone()
    }

    #[guarded("named.wave", hot(key = self.name(), qps = 1))]
    async fn wave(&self) -> Answer<usize> {
        Ok(self.tenant.len())
    }
}

#[test]
fn methods_are_told_apart_by_what_they_are_called_on() {
    let (registry, _) = registry();
    let shop = |tenant: &str| Shop { tenant: tenant.into(), sold: 9 };
    registry.scope(|| {
        for tenant in ["a", "b"] {
            let mut shop = shop(tenant);
            assert!(shop.look().is_ok() && shop.look().is_err());
            assert_eq!(shop.sell(1).map(|sold| *sold).unwrap(), 10);
            assert_eq!(shop.sell(1).unwrap_err().rule().position(), 0);
            assert_eq!(ready(shop.count()).unwrap(), 10);
            assert!(ready(shop.count()).is_err());
            assert_eq!(ready(shop.restock(2)).unwrap(), 8);
            assert!(ready(shop.restock(2)).is_err());
            assert!(
                ready(Pin::new(&mut shop).pinned()).is_ok() && ready(Pin::new(&mut shop).pinned()).is_err()
            );
            assert!(shop.greet().is_ok() && shop.greet().is_err());
            assert!(ready(shop.wave()).is_ok() && ready(shop.wave()).is_err());
            assert!(Arc::new(Shop { tenant: tenant.into(), sold: 0 }).share().is_ok());
            assert!(Arc::new(Shop { tenant: tenant.into(), sold: 0 }).share().is_err());
            assert_eq!(ready(shop.close()).unwrap(), tenant);
        }
        assert!(ready(shop("a").close()).is_err());
    });
}

static EVALUATED: AtomicU32 = AtomicU32::new(0);

/// Tells in which order it was called.
fn evaluated(key: &Argument) -> u32 {
    assert_eq!(key.0, "argument");
    EVALUATED.fetch_add(1, Ordering::Relaxed)
}

#[guarded(
    "evaluated",
    origin = evaluated(&argument).to_string(),
    hot(key = evaluated(&argument), name = "one", qps = 1),
    hot(key = evaluated(&argument), name = "one", max_concurrency = 1),
    hot(key = evaluated(&argument), name = "two")
)]
fn counts_evaluations(argument: Argument) -> Answer<(u32, Argument)> {
    Ok((evaluated(&argument), argument))
}

#[guarded("evaluated async", hot(key = evaluated(&argument), name = "one", qps = 1))]
async fn counts_evaluations_async(argument: Argument) -> Answer<(u32, Argument)> {
    tokio::task::yield_now().await;
    Ok((evaluated(&argument), argument))
}

/// D09.
#[test]
fn a_key_is_evaluated_once_before_the_body() {
    let (registry, _) = registry();
    registry.scope(|| {
        assert_eq!(counts_evaluations(Argument("argument")).unwrap().0, 3);
        EVALUATED.store(0, Ordering::Relaxed);
        // When the future is polled first, and not when it is made.
        let mut call = Box::pin(counts_evaluations_async(Argument("argument")));
        assert_eq!(EVALUATED.load(Ordering::Relaxed), 0);
        assert!(poll(&mut call).is_pending());
        assert_eq!(EVALUATED.load(Ordering::Relaxed), 1);
        assert!(matches!(poll(&mut call), Poll::Ready(Ok((1, _)))));
    });
    assert_eq!(registry.stats("evaluated").unwrap().origins()[0].name(), "0");
}

/// Notes what it is told of panics.
#[derive(Clone, Default)]
struct Panics(Arc<std::sync::Mutex<Vec<String>>>);

impl Observer for Panics {
    fn on_panic(&self, panic: &leap_runtime::ContainedPanic<'_>) {
        let line = format!("{} of {:?}: {}", panic.place(), panic.resource(), panic.message());
        self.0.lock().unwrap().push(line);
    }
}

#[guarded("panics", origin = names[5], allow("web"), hot(key = names[7], qps = 0), hot(key = names.len(), max_concurrency = 1))]
fn panics(names: &[&str]) -> Answer<usize> {
    Ok(names.len())
}

#[guarded("panics async", origin = names[5], hot(key = names[7], qps = 0), hot(key = names.len(), max_concurrency = 1))]
async fn panics_async(names: Vec<&str>) -> Answer<usize> {
    tokio::task::yield_now().await;
    Ok(names.len())
}

/// D09, F09.
#[test]
fn a_panic_in_an_expression_is_contained_and_counted_and_skips_its_rule_only() {
    let (registry, _) = registry();
    let seen = Panics::default();
    registry.observe(seen.clone());
    for n in 1..=3 {
        assert_eq!(registry.scope(|| panics(&["a"])).unwrap(), 1);
        assert_eq!(registry.contained_panics(), 2 * n);
    }
    assert_eq!(
        seen.0.lock().unwrap()[..2],
        [
            "origin of Some(\"panics\"): index out of bounds: the len is 1 but the index is 5",
            "parameter of Some(\"panics\"): index out of bounds: the len is 1 but the index is 7",
        ]
    );
    registry.scope(|| {
        let (mut first, mut second) = (Box::pin(panics_async(vec!["a"])), Box::pin(panics_async(vec!["a"])));
        assert!(poll(&mut first).is_pending());
        assert!(matches!(poll(&mut second), Poll::Ready(Err(_))), "the other rule holds");
        assert!(matches!(poll(&mut first), Poll::Ready(Ok(1))));
    });
    assert_eq!(registry.contained_panics(), 10);
    for name in ["panics", "panics async"] {
        let stats = registry.stats(name).unwrap();
        assert_eq!((stats.in_flight(), stats.origins().len(), stats.hot(0)[0].n_values()), (0, 0, 0));
    }
    assert_eq!(registry.stats("panics").unwrap().hot(0)[0].missing(), 3);
    // Nothing of it is left on this thread.
    assert_eq!(passes(&registry, 1, || keys::by_value("ann".into())), 1);
}

#[guarded("loaded keys", hot(key = request.user.id), hot(key = request.tags, name = "tags"))]
fn gives_keys(request: &Request) -> Answer<u64> {
    Ok(request.user.id)
}

#[test]
fn a_key_without_a_limit_is_there_for_rules_that_are_loaded() {
    let (registry, _) = registry();
    let call = |id| registry.scope(|| gives_keys(&request("", id))).is_ok();
    assert!((0..9).all(|_| call(1)));
    assert_eq!(rules(&registry, "loaded keys"), []);
    let rule = HotRule::qps("request.user.id", 2.0).unwrap();
    registry.load(RuleSet::new().hot("loaded keys", rule)).unwrap();
    assert_eq!([call(1), call(1), call(1), call(2)], [true, true, false, true]);
    registry.load(RuleSet::new().hot("loaded keys", HotRule::qps(0, 1.0).unwrap())).unwrap();
    assert_eq!([call(3), call(3)], [true, false]);
}

#[guarded("hot async", hot(key = user, qps = 10, behavior = throttle, max_wait_ms = 150), fallback = later)]
async fn paced_by_user(user: String, started: Instant) -> (String, Duration) {
    (user, started.elapsed())
}

fn later(user: String, _: Instant, _: Blocked) -> (String, Duration) {
    (user + " later", Duration::MAX)
}

#[tokio::test(start_paused = true)]
async fn a_future_awaits_the_turn_of_its_key_alone() {
    let registry = on_tokios_clock();
    let started = Instant::now();
    let call = |user: &str| tokio::spawn(paced_by_user(user.into(), started).in_registry(&registry));
    let calls = [call("ann"), call("ann"), call("bob"), call("ann"), call("bob")];
    let mut answers = vec![];
    for call in calls {
        answers.push(call.await.unwrap());
    }
    let answer = |user: &str, time| (user.to_owned(), time);
    assert_eq!(
        answers,
        [
            answer("ann", ms(0)),
            answer("ann", ms(100)),
            answer("bob", ms(0)),
            answer("ann later", Duration::MAX),
            answer("bob", ms(100)),
        ]
    );
}

/// Notes when it is dropped.
struct Traced<'a>(&'static str, &'a RefCell<Vec<&'static str>>);

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

fn plain_refusal(
    _a: Traced<'_>,
    _: Traced<'_>,
    (_b, _): (Traced<'_>, Traced<'_>),
    _c: Traced<'_>,
) -> Answer<()> {
    Ok(())
}

#[guarded("refuses", qps = 0, hot(key = a.0, qps = 1), origin = c.0)]
fn refuses(a: Traced<'_>, _: Traced<'_>, (_b, _): (Traced<'_>, Traced<'_>), c: Traced<'_>) -> Answer<()> {
    Ok(())
}

#[guarded("refuses async", qps = 0, hot(key = a.0, qps = 1), origin = c.0)]
async fn refuses_async(
    a: Traced<'_>,
    _: Traced<'_>,
    (_b, _): (Traced<'_>, Traced<'_>),
    c: Traced<'_>,
) -> Answer<()> {
    Ok(())
}

#[guarded("refuses late", qps = 1, behavior = throttle, hot(key = a.0, qps = 9))]
async fn refuses_late(
    a: Traced<'_>,
    _: Traced<'_>,
    (_b, _): (Traced<'_>, Traced<'_>),
    _c: Traced<'_>,
) -> Answer<()> {
    Ok(())
}

#[test]
fn the_arguments_of_a_call_that_is_turned_away_are_dropped_as_a_function_drops_its_arguments() {
    let (registry, _) = registry();
    let log = &RefCell::default();
    let traced = |name| Traced(name, log);
    let tuple = || (traced("b"), traced("b's other half"));
    plain_refusal(traced("a"), traced("_"), tuple(), traced("c")).unwrap();
    let plain = log.take();
    assert_eq!(plain.len(), 5);
    registry.scope(|| {
        assert!(refuses(traced("a"), traced("_"), tuple(), traced("c")).is_err());
        let dropped = log.take();
        // Nobody has taken the tuple apart.
        assert_eq!(dropped, ["c", "b", "b's other half", "_", "a"]);
        assert!(ready(refuses_async(traced("a"), traced("_"), tuple(), traced("c"))).is_err());
        assert_eq!(log.take(), dropped);
        // A future that is dropped while it waits.
        ready(refuses_late(traced("a"), traced("_"), tuple(), traced("c"))).unwrap();
        assert_eq!(log.take(), plain);
        let mut waits = Box::pin(refuses_late(traced("a"), traced("_"), tuple(), traced("c")));
        assert!(matches!(poll(&mut waits), Poll::Ready(Err(_))), "over half a second");
        assert_eq!(log.take(), dropped);
    });
}

mod sizes {
    use super::*;

    pub(super) const LARGE: usize = 8 * 1024;
    type Large = [u8; LARGE];

    pub(super) async fn plain(argument: Large) -> Answer<u8> {
        tokio::task::yield_now().await;
        Ok(argument[0])
    }

    #[guarded(qps = 1, behavior = throttle, hot(key = argument[0], qps = 1))]
    pub(super) async fn keyed(argument: Large) -> Answer<u8> {
        tokio::task::yield_now().await;
        Ok(argument[0])
    }

    #[guarded(inbound, priority, origin = argument.len().to_string(), hot(key = argument, max_concurrency = 1), hot(key = argument[1]), fallback = later)]
    pub(super) async fn with_everything(argument: Large) -> Answer<u8> {
        tokio::task::yield_now().await;
        Ok(argument[0])
    }

    async fn later(argument: Large, _: Blocked) -> Answer<u8> {
        Ok(argument[1])
    }

    #[guarded(hot(key = format!("{argument:?}").len(), name = "text"))]
    pub(super) async fn in_a_text(argument: Large) -> Answer<u8> {
        tokio::task::yield_now().await;
        Ok(argument[0])
    }

    pub(super) struct Held(pub(super) Large);

    impl Held {
        pub(super) async fn plain(self) -> Answer<u8> {
            tokio::task::yield_now().await;
            Ok(self.0[0])
        }

        #[guarded(hot(key = self.0[0], qps = 1))]
        pub(super) async fn keyed(self) -> Answer<u8> {
            tokio::task::yield_now().await;
            Ok(self.0[0])
        }
    }
}

// E24
#[test]
fn a_future_with_keys_is_at_most_one_copy_of_the_arguments_and_256_bytes_larger() {
    let argument = [0; sizes::LARGE];
    let most = size_of_val(&sizes::plain(argument)) + sizes::LARGE + 256;
    for (name, size) in [
        ("keyed", size_of_val(&assert_send(sizes::keyed(argument)))),
        ("with everything", size_of_val(&assert_send(sizes::with_everything(argument)))),
        ("in a text", size_of_val(&assert_send(sizes::in_a_text(argument)))),
    ] {
        assert!(size <= most, "{name}: {size} of at most {most}");
    }
    let most = size_of_val(&sizes::Held(argument).plain()) + sizes::LARGE + 256;
    let size = size_of_val(&assert_send(sizes::Held(argument).keyed()));
    assert!(size <= most, "a method: {size} of at most {most}");
}

#[test]
fn futures_of_every_kind_of_rule_are_send() {
    drop(assert_send(paced_async(Instant::now())));
    drop(assert_send(not_batch(request("web", 1))));
    drop(assert_send(queues(Argument("a"), ms(1))));
    drop(assert_send(keys::in_a_future(request("", 1))));
    drop(assert_send(keys::opaque("a")));
    drop(assert_send(keys::made_up(String::new(), user(1))));
    drop(assert_send(counts_evaluations_async(Argument("argument"))));
    drop(assert_send(panics_async(vec![])));
    drop(assert_send(Shop::default().close()));
}
