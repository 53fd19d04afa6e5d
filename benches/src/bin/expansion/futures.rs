//! The size of guarded futures beside those of the same functions without the attribute.

use std::future::Future;
use std::hint::black_box;
use std::marker::PhantomData;
use std::rc::Rc;

use leap_runtime::{Blocked, guarded};

/// By how much a guarded future may be larger than the plain one and its arguments.
pub(crate) const SLACK: usize = 256;

/// Bytes of a future.
#[derive(Debug)]
pub(crate) struct Size {
    pub(crate) what: &'static str,
    pub(crate) arguments: usize,
    pub(crate) plain: usize,
    pub(crate) guarded: usize,
    /// Whether each of them may be sent to another thread.
    pub(crate) is_send: [bool; 2],
}

impl Size {
    pub(crate) fn is_within_budget(&self) -> bool {
        self.guarded <= self.plain + self.arguments + SLACK && self.is_send[0] == self.is_send[1]
    }

    /// What there is beside the plain future and its arguments.
    pub(crate) fn more(&self) -> isize {
        self.guarded.cast_signed() - (self.plain + self.arguments).cast_signed()
    }
}

/// What is sent is asserted to be so when this is compiled.
fn sent<F: Future + Send>(future: F) -> F {
    future
}

fn local<F: Future>(future: F) -> F {
    future
}

/// Whether a type is `Send`: the method is found on `Probe` itself if it is, and one reference further if not.
struct Probe<'a, T>(PhantomData<&'a T>);

impl<'a, T> Probe<'a, T> {
    fn of(_: &'a T) -> Self {
        Self(PhantomData)
    }
}

trait ViaSend {
    fn is_send(&self) -> bool;
}

impl<T: Send> ViaSend for Probe<'_, T> {
    fn is_send(&self) -> bool {
        true
    }
}

trait ViaAny {
    fn is_send(&self) -> bool;
}

impl<T> ViaAny for &Probe<'_, T> {
    fn is_send(&self) -> bool {
        false
    }
}

type Large = [u8; 8 * 1024];
type Answer<T> = Result<T, Blocked>;

/// The functions twice, without their attributes and with them.
macro_rules! shapes {
    ($(
        $what:literal $sent:ident
        #[$attribute:meta]
        async fn $name:ident($($argument:ident: $ty:ty = $value:expr),*) -> $output:ty $body:block
    )*) => {
        mod plain {
            use super::*;

            $(pub(super) async fn $name($($argument: $ty),*) -> $output $body)*
        }

        mod watched {
            use super::*;

            $(
                #[$attribute]
                pub(super) async fn $name($($argument: $ty),*) -> $output $body
            )*
        }

        pub(crate) fn all() -> Vec<Size> {
            vec![$({
                let (plain, guarded) = ($sent(plain::$name($($value),*)), $sent(watched::$name($($value),*)));
                Size {
                    what: $what,
                    arguments: [$(size_of::<$ty>()),*].iter().sum(),
                    plain: size_of_val(&plain),
                    guarded: size_of_val(&guarded),
                    is_send: [(&Probe::of(&plain)).is_send(), (&Probe::of(&guarded)).is_send()],
                }
            }),*]
        }
    };
}

shapes! {
    "no arguments" sent
    #[guarded]
    async fn none() -> Answer<u8> {
        pending().await;
        Ok(7)
    }

    "u64 and &str" sent
    #[guarded]
    async fn small(number: u64 = 7, text: &str = "text") -> Answer<u64> {
        pending().await;
        Ok(number + text.len() as u64)
    }

    "three strings" sent
    #[guarded(qps = 100, slow_rt_ms = 200)]
    async fn strings(
        one: String = String::new(),
        other: String = String::new(),
        third: String = String::new()
    ) -> Answer<usize> {
        pending().await;
        Ok(one.len() + other.len() + third.len())
    }

    "8 KiB, held over an await" sent
    #[guarded]
    async fn held(argument: Large = [7; _]) -> Answer<u8> {
        pending().await;
        Ok(argument[7])
    }

    "8 KiB, used before the await" sent
    #[guarded]
    async fn used_before(argument: Large = [7; _]) -> Answer<u8> {
        let sum = argument.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        pending().await;
        Ok(sum)
    }

    "8 KiB in the body, held over an await" sent
    #[guarded]
    async fn local_array(byte: u8 = 7) -> Answer<u8> {
        let array = black_box([byte; 8 * 1024]);
        pending().await;
        Ok(array[7])
    }

    "8 KiB, a throttle and a hot key" sent
    #[guarded(qps = 100, behavior = throttle, hot(key = argument[0], qps = 10))]
    async fn keyed(argument: Large = [7; _]) -> Answer<u8> {
        pending().await;
        Ok(argument[7])
    }

    "8 KiB and an async fallback" sent
    #[guarded(max_concurrency = 10, queue_ms = 100, fallback = later)]
    async fn falling_back(argument: Large = [7; _]) -> u8 {
        pending().await;
        argument[7]
    }

    "8 KiB returned" sent
    #[guarded]
    async fn returned(byte: u8 = 7) -> Answer<Large> {
        pending().await;
        Ok([byte; 8 * 1024])
    }

    "Rc, so not Send" local
    #[guarded]
    async fn counted(value: Rc<u64> = Rc::new(7)) -> Answer<u64> {
        pending().await;
        Ok(*value)
    }
}

/// A fallback that waits has a future of its own, which is held in that of the function.
#[expect(clippy::large_types_passed_by_value, reason = "a fallback is given what the function is")]
async fn later(argument: Large, _: Blocked) -> u8 {
    argument[0]
}

/// Something to wait for. Nothing here is ever polled.
fn pending() -> std::future::Pending<()> {
    std::future::pending()
}
