//! The rules, a page each: what a rule does, when to choose it, how it decides and where that comes from.
//!
//! # Which rule, when
//!
//! | what is to be kept | rule | a call too many |
//! | --- | --- | --- |
//! | so many calls per second, minute, day | [flow] | is blocked |
//! | the same, for what is cold after a start or a pause | [warm-up](warm_up) | is blocked |
//! | an even pace, for what suffers from bursts | [throttle] | waits for its turn |
//! | so many calls at once, where each holds a connection or a thread | [isolation] | is blocked, or queues |
//! | nobody calls what fails or hangs | [breaker] | is blocked until probes have succeeded |
//! | no single user, tenant or product takes everything | [hot parameters](hot_parameter) | is blocked, or waits |
//! | one caller has a limit of its own, or all others have | [origin] | as of a flow rule |
//! | one way in has a limit of its own | [entrance] | as of a flow rule |
//! | one resource makes room for another | [associated] | is blocked |
//! | some may not call at all | [authority] | is blocked |
//! | the machine and the process as a whole | [system] | is blocked, if it is inbound |
//! | something that only the application knows | [custom] | as the check says |
//!
//! A call that is more important than others may wait where they are blocked: see [priority].
//!
//! How rules are changed while calls run, tried in shadow and taken back: [changing rules](changing_rules).
//!
//! Rules add up: a resource may have any number of them, of any kind, and a call passes if all of them let it. A good start
//! for a dependency is an isolation and a breaker; for a front door a flow rule, a hot parameter and the system's CPU.
//!
//! # In which order a call is asked
//!
//! 1. [Authority](authority): who may not call learns nothing else.
//! 2. [System](system), if the call is inbound.
//! 3. [Custom checks](custom), in the order in which they were added.
//! 4. [Breakers](breaker); a call that is to be a probe takes a slot.
//! 5. [Isolation](isolation), which takes the permits in flight.
//! 6. [Hot parameters](hot_parameter), then the flow rules that look elsewhere: [associated] resources,
//!    [entrances](entrance) and [origins](origin).
//! 7. The resource's own flow: [throttles](throttle), then windows ([flow], [warm-up](warm_up)).
//!
//! The first that says no is named in the [`Blocked`](crate::Blocked). What an earlier one had taken (a probe slot, permits in
//! flight, a turn) is given back then. What was counted in a window is never given back, so all that counts in windows is
//! asked once before any of it is counted, and the resource's own windows come last, in one step for all of them: when
//! nobody else calls at that moment, a call that is blocked has used up nothing.
//!
//! # What waits and what blocks
//!
//! Nothing waits unless it was told to. A check never sleeps itself; it says until when the call is to wait.
//!
//! | what | waits for | at most | while it waits it counts as |
//! | --- | --- | --- | --- |
//! | `behavior = throttle`, `warm_up_throttle`, also in `hot(…)` | its turn | `max_wait_ms` (500) | passed, `waiting` |
//! | `max_concurrency` with `queue_ms` | permits that come back | `queue_ms` | neither passed nor blocked, `queued` |
//! | `priority` | a place in the next window | about one interval | neither passed nor blocked |
//! | [`Verdict::Wait`](crate::Verdict) of a custom check | that time | that time | passed, `waiting` |
//!
//! A call that would have to wait longer is blocked at once. While it queues or has a place, nothing has been decided: when its
//! time has come it is asked by all rules anew. The response time begins when the body does, and waits are not in it.
//!
//! A sync function parks its thread. An async one awaits and holds no thread: its task is woken by the
//! [clock](crate::Clock::wake_at), if that does not follow real time, else by the registry's [`Sleep`](crate::Sleep), which is
//! tokio's timer where the feature `tokio` is on. Where there is neither, an async call that would have to wait is blocked,
//! and says so.
//!
//! # What a cancelled call gives back
//!
//! An async call may be dropped at any moment. It ends as [cancelled](crate::Outcome::Cancelled), which is no verdict to a
//! breaker, and no response time.
//!
//! | dropped while it | given back | stays counted |
//! | --- | --- | --- |
//! | runs | permits in flight, of the resource, of a hot value and of the system; a probe's slot | what it took of windows |
//! | waits for its turn | the same; the turn too, unless somebody queued behind it | what it took of windows |
//! | queues for permits | its place in the queue; permits granted meanwhile go to the next | nothing |
//! | waits for a place | the place | nothing |
//!
//! A panic gives back the same, and is an [exception](crate::Outcome::Exception).
//!
//! # The words
//!
//! - A *permit* is what limits count. A call takes one, or as many as it says.
//! - A *turn* is the moment at which a throttle lets a call start.
//! - A *place* is a claim of a call with priority on room that the window will have.
//! - A *charge* is permits counted after the fact, when a call turned out to cost more: they are not asked for.
//! - A *probe* is a call that a half-open breaker lets through on trial. A [`SystemProbe`](crate::SystemProbe) is something
//!   else: it tells the figures of the machine.
//! - The *kind* of a rule is flow, isolation, hot, authority, or one of slow ratio, error ratio and error count, which are a
//!   kind each. A loaded rule replaces all rules of its kind that attributes gave the resource.
//!
//! # Rules as data
//!
//! What the attribute says of a rule, data says in the same words: see the list of all [fields] with their units, defaults
//! and bounds.
//!
//! # If you come from Sentinel
//!
//! Times are milliseconds in the attribute and `Duration`s in the types. Where leap counts more exactly than
//! Sentinel, precision `sentinel` counts as Sentinel does.
//!
//! | Sentinel | the attribute | the types |
//! | --- | --- | --- |
//! | `FlowRule.count`, `grade` QPS | `qps`, `rate(limit = , per_ms = )` | [`FlowRule::new`](crate::FlowRule::new) |
//! | `grade` thread; `IsolationRule.count` | `max_concurrency` | [`IsolationRule::new`](crate::IsolationRule::new) |
//! | `limitApp` `default` | as it is | a rule without a [`Relation`](crate::Relation) |
//! | `limitApp` an origin, `other` | | [`for_origin`](crate::FlowRule::for_origin), [`for_other_origins`](crate::FlowRule::for_other_origins) |
//! | `strategy` relate, `refResource` | `associated` | [`associated`](crate::FlowRule::associated) |
//! | `strategy` chain, `refResource` | | [`for_entrance`](crate::FlowRule::for_entrance) |
//! | `controlBehavior` 0, 1, 2, 3 | `behavior = reject`, `warm_up`, `throttle`, `warm_up_throttle` | [`Behavior`](crate::Behavior) |
//! | `warmUpPeriodSec`, cold factor | `warm_up_ms`, `cold_factor` | [`Behavior::WarmUp`](crate::Behavior::WarmUp) |
//! | `maxQueueingTimeMs` | `max_wait_ms` | [`Behavior::Throttle`](crate::Behavior::Throttle) |
//! | `DegradeRule.grade` 0, `count`, `slowRatioThreshold` | `slow_rt_ms` (the `count`), `slow_ratio` | [`BreakerRule::slow_ratio`](crate::BreakerRule::slow_ratio) |
//! | `grade` 1, 2, `count` | `error_ratio`, `error_count` | [`error_ratio`](crate::BreakerRule::error_ratio), [`error_count`](crate::BreakerRule::error_count) |
//! | `minRequestAmount` | `min_calls` | [`with_min_calls`](crate::BreakerRule::with_min_calls) |
//! | `statIntervalMs` | `window_ms` | [`with_window`](crate::BreakerRule::with_window) |
//! | `timeWindow` (s) | `open_ms` | [`open_for`](crate::BreakerRule::open_for) |
//! | `ParamFlowRule.paramIdx` | `hot(key = expression)` | [`HotRule`](crate::HotRule) of a [`KeySelector`](crate::KeySelector): a name or a position |
//! | `count`, `durationInSec`, `burstCount` | `hot(qps = , per_ms = , burst = )` | [`qps`](crate::HotRule::qps), [`per`](crate::HotRule::per), [`with_burst`](crate::HotRule::with_burst) |
//! | `paramFlowItemList` | `hot(except("vip" => 1_000))` | [`except`](crate::HotRule::except) |
//! | `grade` thread of a parameter | `hot(max_concurrency = )` | [`HotRule::concurrency`](crate::HotRule::concurrency) |
//! | `SystemRule` `qps`, `maxThread`, `avgRt` | | [`SystemRule::qps`](crate::SystemRule::qps), [`concurrency`](crate::SystemRule::concurrency), [`avg_rt`](crate::SystemRule::avg_rt) |
//! | `highestSystemLoad`, `highestCpuUsage` | | [`load`](crate::SystemRule::load), [`cpu`](crate::SystemRule::cpu) |
//! | `AuthorityRule`, `strategy` white, black | `allow(…)`, `deny(…)` | [`AuthorityRule`](crate::AuthorityRule) |
//! | `EntryType.IN` | `inbound` | [`EnterWith::inbound`](crate::EnterWith::inbound) |
//! | `SphU.entry`, `asyncEntry` | `#[guarded]` | [`enter`](crate::Registry::enter), [`enter_async`](crate::Registry::enter_async), [`enter_with`](crate::Registry::enter_with) |
//! | `batchCount` | `permits` | [`permits`](crate::EnterWith::permits) |
//! | `entryWithPriority` | `priority` | [`priority`](crate::EnterWith::priority) |
//! | `entry.exit()` | the end of the function | [`Entry::end`](crate::Entry::end), [`run`](crate::Entry::run); an entry that is only dropped was *cancelled* |
//! | `Tracer.trace` | an `Err`, `err_if` | [`Entry::end`](crate::Entry::end), [`current().fail()`](crate::Current::fail) |
//! | `ContextUtil.enter(name, origin)` | `entrance`, `origin` | [`Context`](crate::Context), [`in_context`](crate::InContext::in_context) |
//! | `BlockException` | | [`Blocked`](crate::Blocked), its [`Cause`](crate::Cause) |
//! | `@SentinelResource` `value` | `resource`, or the bare literal | |
//! | `blockHandler` | `fallback` | [`FromBlocked`](crate::FromBlocked) |
//! | `fallback`, `defaultFallback` (of exceptions) | `fallback` with `fallback_on = error` or `any` | |
//! | `exceptionsToIgnore` | `ignore(pattern)` | |
//! | `XxxRuleManager.loadRules` | | [`Registry::load`](crate::Registry::load): one set for all kinds |
//! | data sources, `register2Property` | | [`Source`](crate::Source): several, the later ones stronger |
//! | a rule whose resource is a regular expression | | a pattern: `orders.*` |
//! | `MAX_SLOT_CHAIN_SIZE` | | [`Builder::max_resources`](crate::Builder::max_resources) |
//! | `Constants.ON` | | [`turn_off`](crate::Registry::turn_off), [`turn_on`](crate::Registry::turn_on) |
//! | `ProcessorSlot` | | [`Check`](crate::Check) |
//! | `MetricExtension`, breakers' observers | | [`Observer`](crate::Observer) |
//!
//! What has no counterpart yet: clusters (token server and client), the dashboard and its transport, what fetches rules
//! (from files, Nacos, Apollo, …), metric logs, adapters for gateways and frameworks.

#[doc = include_str!("changing_rules.md")]
pub mod changing_rules {}
#[doc = include_str!("flow.md")]
pub mod flow {}
#[doc = include_str!("warm_up.md")]
pub mod warm_up {}
#[doc = include_str!("throttle.md")]
pub mod throttle {}
#[doc = include_str!("priority.md")]
pub mod priority {}
#[doc = include_str!("isolation.md")]
pub mod isolation {}
#[doc = include_str!("breaker.md")]
pub mod breaker {}
#[doc = include_str!("hot_parameter.md")]
pub mod hot_parameter {}
#[doc = include_str!("origin.md")]
pub mod origin {}
#[doc = include_str!("entrance.md")]
pub mod entrance {}
#[doc = include_str!("associated.md")]
pub mod associated {}
#[doc = include_str!("authority.md")]
pub mod authority {}
#[doc = include_str!("system.md")]
pub mod system {}
#[doc = include_str!("custom.md")]
pub mod custom {}
#[doc = include_str!("fields.md")]
pub mod fields {}
