//! A registry for one case, on a clock that is set by hand and with a timer that never wakes anybody.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use leap_runtime::{
    Blocked, Clock, EnterWith, Entry, ManualClock, Outcome, Registry, RuleSet, Sleep, Timestamp,
};
use leap_tests::json::{Result, whole};
use serde_json::Value;

/// Every case has a registry of its own, so this is always a resource that nobody has called.
pub(crate) const RESOURCE: &str = "guarded";
/// Virtual time begins at a multiple of 60 s.
const START: Timestamp = Timestamp::from_millis(60_000);

/// What a call was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Pass { after: Duration },
    Block,
}

impl Answer {
    /// Without a wait.
    pub(crate) const PASS: Self = Self::Pass { after: Duration::ZERO };

    /// `pass` or `block`.
    pub(crate) fn recorded(text: &str) -> Result<Self> {
        match text {
            "pass" => Ok(Self::PASS),
            "block" => Ok(Self::Block),
            other => Err(format!("an answer `{other}` is unknown")),
        }
    }

    /// What a call is told that ends well as soon as it has passed.
    pub(crate) fn to(call: EnterWith<'_>) -> Self {
        match call.enter() {
            Ok(entry) => {
                entry.end(Outcome::Success);
                Self::PASS
            }
            Err(_) => Self::Block,
        }
    }
}

impl Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::PASS => f.write_str("pass"),
            Self::Pass { after } => write!(f, "pass after {after:?}"),
            Self::Block => f.write_str("block"),
        }
    }
}

/// A clock that leaves those who wait to the timer.
#[derive(Clone, Debug)]
struct Silent(ManualClock);

impl Clock for Silent {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn wall(&self) -> SystemTime {
        self.0.wall()
    }

    fn park_until(&self, until: Timestamp) {
        self.0.park_until(until);
    }

    fn wake_at(&self, _: Timestamp, _: &Waker) -> bool {
        false
    }
}

/// A timer that notes for how long it is asked to sleep, and sleeps for ever. Clones share their note.
#[derive(Clone, Debug, Default)]
struct Note(Arc<Mutex<Option<Duration>>>);

impl Note {
    fn take(&self) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Sleep for Note {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(time);
        Box::pin(pending())
    }
}

/// How a call came in.
type Entered = std::result::Result<Entry, Blocked>;

/// A registry of its own, with the rules of a case.
pub(crate) struct Bench {
    clock: ManualClock,
    pub(crate) registry: Registry,
    note: Note,
    running: HashMap<u64, Entry>,
    /// Calls that were told to wait. They are never polled again, and keep their turns.
    waiting: Vec<Pin<Box<dyn Future<Output = Entered>>>>,
}

impl Bench {
    pub(crate) fn new(rules: RuleSet) -> Result<Self> {
        let (clock, note) = (ManualClock::at(START), Note::default());
        let builder = Registry::builder().clock(Silent(clock.clone())).sleep(note.clone());
        let registry = builder.second_buckets(2).build();
        registry.load(rules).map_err(|error| error.to_string())?;
        Ok(Self { clock, registry, note, running: HashMap::new(), waiting: vec![] })
    }

    pub(crate) fn go_to(&self, t: &Value) -> Result<()> {
        self.clock.set(START.saturating_add(Duration::from_millis(whole(t)?)));
        Ok(())
    }

    pub(crate) fn advance(&self, delta: &Value) -> Result<()> {
        self.clock.advance(Duration::from_millis(whole(delta)?));
        Ok(())
    }

    /// What a call was told; if it passed, it stays in flight under this number.
    pub(crate) fn keep(&mut self, id: u64, entered: Entered) -> Answer {
        match entered {
            Ok(entry) => {
                self.running.insert(id, entry);
                Answer::PASS
            }
            Err(_) => Answer::Block,
        }
    }

    /// Where leap blocked a call that passed, that was the difference; its end is none.
    pub(crate) fn end(&mut self, id: u64, outcome: Outcome) {
        if let Some(entry) = self.running.remove(&id) {
            entry.end(outcome);
        }
    }

    /// `enter`, `exit` and `fail`; what was answered, where something was.
    pub(crate) fn act(&mut self, what: &str, id: u64) -> Result<Option<Answer>> {
        match what {
            "enter" => {
                let entered = self.registry.enter(RESOURCE);
                return Ok(Some(self.keep(id, entered)));
            }
            "exit" => self.end(id, Outcome::Success),
            "fail" => self.end(id, Outcome::Exception),
            other => return Err(format!("an event `{other}` is unknown")),
        }
        Ok(None)
    }

    /// What a call is told that may have to wait: it ends well at once, or waits for ever.
    pub(crate) fn await_turn(&mut self, permits: u32, key: Option<String>) -> Result<Answer> {
        let registry = self.registry.clone();
        let mut call = Box::pin(async move {
            let call = registry.enter_with(RESOURCE).permits(permits);
            match key {
                Some(key) => call.key("key", key),
                None => call,
            }
            .enter_async()
            .await
        });
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(entry)) => {
                entry.end(Outcome::Success);
                Ok(Answer::PASS)
            }
            Poll::Ready(Err(_)) => Ok(Answer::Block),
            Poll::Pending => {
                self.waiting.push(call);
                let after = self.note.take().ok_or("a call waits, and for no time")?;
                Ok(Answer::Pass { after })
            }
        }
    }
}
