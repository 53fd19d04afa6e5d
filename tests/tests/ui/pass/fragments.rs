//! Functions that a `macro_rules!` writes from fragments of its caller.
#![deny(warnings)]

use leap_runtime::{Blocked, guarded};

trait Animal {
    fn name(&self) -> &str;
}

macro_rules! functions {
    ($name:ident, $arg:ident, $ty:ty, $limit:literal, $max:expr, $path:path, $body:block) => {
        #[guarded(qps = $limit, max_concurrency = $max, fallback = $path)]
        fn $name<'a>($arg: &'a $ty) -> &'a $ty $body
    };
}

functions!(itself, animal, dyn Animal + Send, 10, 1 + 2, fallbacks::itself, { animal });

mod fallbacks {
    pub(crate) fn itself<'a>(animal: &'a (dyn super::Animal + Send), _: super::Blocked) -> &'a (dyn super::Animal + Send) {
        animal
    }
}

macro_rules! methods {
    ($self:ident, $name:literal, $pattern:pat, $predicate:expr) => {
        #[guarded($name, ignore($pattern), ok_if = $predicate, fallback = Self::blocked)]
        async fn method($self) -> Result<u8, u8> {
            let this = $self;
            Ok(this.0)
        }
    };
}

struct Cat(u8);

impl Animal for Cat {
    fn name(&self) -> &str {
        "cat"
    }
}

impl Cat {
    methods!(self, "fragments.cat", 1 | 2, |answer| answer.is_ok());

    async fn blocked(self, _: Blocked) -> Result<u8, u8> {
        Err(self.0)
    }
}

fn main() {
    assert_eq!(itself(&Cat(1)).name(), "cat");
    drop(Cat(1).method());
}
