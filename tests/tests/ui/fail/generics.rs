//! One static serves all instantiations, so constants cannot depend on them.

use leap_runtime::{Blocked, guarded};

#[guarded(qps = N, max_concurrency = size_of::<T>() as u32, permits = { consts::N + (N as u32) })]
fn of_a_function<T, const N: usize>(_: T) -> Result<u8, Blocked> {
    Ok(1)
}

mod consts {
    pub(crate) const N: u32 = 1;
}

struct Shop<T>(T);

impl<T> Shop<T> {
    const LIMIT: u32 = 5;

    #[guarded(max_concurrency = Self::LIMIT)]
    fn of_the_type(&self) -> Result<u8, Blocked> {
        Ok(1)
    }

    #[guarded(qps = size_of::<T>())]
    fn of_the_impl(&self) -> Result<u8, Blocked> {
        Ok(1)
    }
}

fn main() {
    of_a_function::<u8, 1>(1).unwrap();
    Shop(1).of_the_type().unwrap();
}
