//! Twelve functions, each of which calls the next, without the attribute and with it. Also a program of its own, which is
//! built without optimizations.
//!
//! ```text
//! chain --chain KIND TWIN DEPTH BYTES
//! ```

use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;

use leap_runtime::{Blocked, guarded};

type Large = [u8; 8 * 1024];
type Answer = Result<u64, Blocked>;

/// A module of chains, each of which starts at `f1`; `$attribute` stands on each of their functions.
macro_rules! chains {
    ($module:ident $([$attribute:meta])?) => {
        mod $module {
            use super::*;

            /// All of them take and hand on a number and a reference.
            pub(super) mod sync {
                use super::*;

                chains! { @sync $([$attribute])? f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 }

                $(#[$attribute])?
                pub(in super::super) fn f12(number: u64, text: &str) -> Answer {
                    Ok(black_box(number) + text.len() as u64)
                }
            }

            pub(super) mod small {
                use super::*;

                chains! { @small $([$attribute])? f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 }

                $(#[$attribute])?
                pub(in super::super) async fn f12(number: u64, text: &str) -> Answer {
                    Once(false).await;
                    Ok(black_box(number) + text.len() as u64)
                }
            }

            /// The last of them is given 8 KiB, and holds it while it waits.
            pub(super) mod last_large {
                use super::*;

                chains! { @small $([$attribute])? f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 }

                $(#[$attribute])?
                async fn large(argument: Large) -> Answer {
                    Once(false).await;
                    Ok(black_box(&argument)[7].into())
                }

                // Guarded once, as the others are.
                pub(in super::super) async fn f12(number: u64, text: &str) -> Answer {
                    Ok(large([7; _]).await? + number + text.len() as u64)
                }
            }

            /// Each of them is given 8 KiB, hands on a copy, and holds its own meanwhile.
            pub(super) mod all_large {
                use super::*;

                chains! { @large $([$attribute])? f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 }

                $(#[$attribute])?
                pub(in super::super) async fn f12(argument: Large) -> Answer {
                    Once(false).await;
                    Ok(black_box(&argument)[7].into())
                }
            }
        }
    };
    (@sync $([$attribute:meta])? $name:ident $next:ident $($more:ident)*) => {
        $(#[$attribute])?
        pub(in super::super) fn $name(number: u64, text: &str) -> Answer {
            let answer = $next(number + 1, text)?;
            Ok(black_box(answer) + number)
        }
        chains! { @sync $([$attribute])? $next $($more)* }
    };
    (@small $([$attribute:meta])? $name:ident $next:ident $($more:ident)*) => {
        $(#[$attribute])?
        pub(in super::super) async fn $name(number: u64, text: &str) -> Answer {
            let answer = $next(number + 1, text).await?;
            Ok(black_box(answer) + number)
        }
        chains! { @small $([$attribute])? $next $($more)* }
    };
    (@large $([$attribute:meta])? $name:ident $next:ident $($more:ident)*) => {
        $(#[$attribute])?
        pub(in super::super) async fn $name(argument: Large) -> Answer {
            let answer = $next(argument).await?;
            Ok(black_box(answer) + u64::from(black_box(&argument)[7]))
        }
        chains! { @large $([$attribute])? $next $($more)* }
    };
    (@$kind:ident $([$attribute:meta])? $last:ident) => {};
}

chains! { plain }
chains! { watched [guarded] }

pub(crate) const KINDS: [&str; 4] = ["sync", "small", "last large", "all large"];

/// The words of a chain of none.
pub(crate) const NONE: [&str; 3] = ["none", "plain", "0"];

/// What runs a chain of 1 or of 12; each in a function of its own, so that one does not pay for the others.
fn call(kind: &str, twin: &str, depth: &str) -> Option<fn() -> Answer> {
    Some(match (kind, twin, depth) {
        ("none", _, _) => || Ok(0),
        ("sync", "plain", "1") => || plain::sync::f12(1, "text"),
        ("sync", "plain", "12") => || plain::sync::f1(1, "text"),
        ("sync", "guarded", "1") => || watched::sync::f12(1, "text"),
        ("sync", "guarded", "12") => || watched::sync::f1(1, "text"),
        ("small", "plain", "1") => || ready(|| plain::small::f12(1, "text")),
        ("small", "plain", "12") => || ready(|| plain::small::f1(1, "text")),
        ("small", "guarded", "1") => || ready(|| watched::small::f12(1, "text")),
        ("small", "guarded", "12") => || ready(|| watched::small::f1(1, "text")),
        ("last large", "plain", "1") => || ready(|| plain::last_large::f12(1, "text")),
        ("last large", "plain", "12") => || ready(|| plain::last_large::f1(1, "text")),
        ("last large", "guarded", "1") => || ready(|| watched::last_large::f12(1, "text")),
        ("last large", "guarded", "12") => || ready(|| watched::last_large::f1(1, "text")),
        ("all large", "plain", "1") => || ready(|| plain::all_large::f12([7; _])),
        ("all large", "plain", "12") => || ready(|| plain::all_large::f1([7; _])),
        ("all large", "guarded", "1") => || ready(|| watched::all_large::f12([7; _])),
        ("all large", "guarded", "12") => || ready(|| watched::all_large::f1([7; _])),
        _ => return None,
    })
}

pub(crate) fn main() {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [kind, twin, depth, bytes] = words[..] else { return };
    let call = call(kind, twin, depth).expect("a kind, a twin and a depth that there are");
    let bytes = bytes.parse().expect("a number of bytes");
    let thread = thread::Builder::new().stack_size(bytes).spawn(move || on_top(call));
    let passed = thread.expect("a thread can be started").join().expect("nothing panics");
    assert!(passed, "nothing is blocked");
}

/// Makes the call with a part of the stack used up: threads get one that the system thinks they need, whatever they ask
/// for, and what that has room for needs as little as nothing.
#[inline(never)]
#[expect(clippy::large_stack_arrays, reason = "that is what it is for")]
fn on_top(call: fn() -> Answer) -> bool {
    let used = black_box([0_u8; 128 * 1024]);
    let passed = call().is_ok();
    black_box(&used);
    passed
}

fn ready<F: Future>(make: impl FnOnce() -> F) -> F::Output {
    let mut future = pin!(make());
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// Is pending once.
struct Once(bool);

impl Future for Once {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}
