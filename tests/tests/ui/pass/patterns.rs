//! E09: every pattern that a parameter may have, sync and async; nothing that the plain functions would not warn of.
#![deny(warnings)]

use leap_runtime::{Blocked, guarded};

struct Size {
    width: u32,
    height: u32,
}

macro_rules! twins {
    ($($async:ident)?; $($suffix:ident)?) => {
        #[guarded]
        pub $($async)? fn takes_apart((a, b): (i32, i32), [x, y]: [u8; 2], Size { width, .. }: Size) -> Result<i32, Blocked> {
            Ok(a + b + i32::from(x) + i32::from(y) + width as i32)
        }

        #[guarded]
        pub $($async)? fn drops(_: String, _unused: String) -> Result<(), Blocked> {
            Ok(())
        }

        #[guarded]
        pub $($async)? fn changes(mut m: i32, mut v: Vec<u8>) -> Result<i32, Blocked> {
            m += 1;
            v.push(1);
            Ok(m + v.len() as i32)
        }

        #[guarded]
        pub $($async)? fn borrows(ref r: String, ref mut m: String, &n: &usize) -> Result<usize, Blocked> {
            m.push('!');
            Ok(r.len() + m.len() + n)
        }

        #[guarded]
        pub $($async)? fn names_all(whole @ Size { width, height }: Size, (ref mut first, _): (u8, u8)) -> Result<u32, Blocked> {
            let _ = (&whole.width, &whole.height);
            *first += 1;
            Ok(width * height + u32::from(*first))
        }

        #[guarded(fallback = sum_of)]
        pub $($async)? fn hands_on((a, b): (u32, u32), ref c: u32, _: u32, mut d: u32) -> u32 {
            d += 1;
            a + b + *c + d
        }
    };
}

impl Clone for Size {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for Size {}

fn sum_of((a, b): (u32, u32), c: u32, d: u32, e: u32, _: Blocked) -> u32 {
    a + b + c + d + e
}

mod sync {
    use super::*;
    twins!(; );
}

mod concurrent {
    use super::*;
    twins!(async; );
}

fn main() {
    let size = Size { width: 2, height: 3 };
    assert_eq!(sync::takes_apart((1, 2), [3, 4], size).unwrap(), 12);
    sync::drops(String::new(), String::new()).unwrap();
    assert_eq!(sync::changes(1, vec![]).unwrap(), 3);
    assert_eq!(sync::borrows("a".into(), "b".into(), &1).unwrap(), 4);
    assert_eq!(sync::names_all(size, (1, 2)).unwrap(), 8);
    assert_eq!(sync::hands_on((1, 2), 3, 4, 5), 12);

    drop(concurrent::takes_apart((1, 2), [3, 4], size));
    drop(concurrent::drops(String::new(), String::new()));
    drop(concurrent::changes(1, vec![]));
    drop(concurrent::borrows("a".into(), "b".into(), &1));
    drop(concurrent::names_all(size, (1, 2)));
    drop(concurrent::hands_on((1, 2), 3, 4, 5));
}
