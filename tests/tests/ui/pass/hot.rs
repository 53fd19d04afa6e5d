//! Hot parameters: keys of every kind, by every kind of expression, which leave the parameters where they are.
#![deny(warnings)]

use std::borrow::Cow;
use std::sync::Arc;

use leap_runtime::{Blocked, guarded};

struct User {
    id: u64,
    name: String,
}

struct Request {
    user: User,
    tags: Vec<String>,
    app: Option<String>,
}

#[guarded(hot(key = sku, qps = 10), hot(key = amount, qps = 5, per_ms = 60_000, burst = 2))]
fn parameters(sku: String, amount: u32) -> Result<String, Blocked> {
    Ok(sku + &amount.to_string())
}

#[guarded(
    hot(key = request.user.id, name = "user", qps = 10, max_keys = 1_000, except(42 => 1_000, -1 => 0)),
    hot(key = request.user.name, qps = 10, except("vip" => 1_000, "" => LIMIT)),
    hot(key = request.tags, max_concurrency = 3),
    hot(key = request.app, qps = 0.5, behavior = throttle, max_wait_ms = WAIT),
    hot(key = request.user.id, name = "user", max_concurrency = 2),
    hot(key = request.user.name.chars().next(), qps = 3, behavior = reject, precision = sentinel, except('c' => 2)),
    hot(key = request.user.id > 10, qps = 3, except(true => 5))
)]
fn parts(request: Request) -> Result<User, Blocked> {
    Ok(request.user)
}

const LIMIT: u32 = 7;
const WAIT: u64 = 100;

#[guarded(hot(key = sku))]
async fn key_alone(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = request.user.id, qps = 10), hot(key = names[0].as_str(), qps = 3), fallback = nobody)]
async fn in_a_future(request: Request, names: Vec<String>, mut count: u8) -> Option<User> {
    count += 1;
    std::future::ready((names, count)).await;
    Some(request.user)
}

async fn nobody(_: Request, _: Vec<String>, _: u8, _: Blocked) -> Option<User> {
    None
}

#[guarded(hot(key = _unused, qps = 10), hot(key = mutable, qps = 10))]
fn names_of_every_kind(_unused: u8, mut mutable: Arc<str>, (a, _): (u8, u8)) -> Result<u8, Blocked> {
    mutable = mutable.to_uppercase().into();
    Ok(a + mutable.len() as u8)
}

#[guarded(hot(key = format!("{_shop}/{id:>width$}"), qps = 10), hot(key = format!("{{_other}}"), qps = 10))]
async fn names_in_a_text(_shop: u8, id: u32, width: usize, _other: u8) -> Result<(), Blocked> {
    Ok(())
}

#[guarded(hot(key = id.as_ref(), qps = 10), hot(key = N, qps = 10), hot(key = T::NAME, qps = 1))]
fn generic<T: Named, const N: usize>(id: impl AsRef<str>, _: T) -> Result<[u8; N], Blocked> {
    let _ = id;
    Ok([0; N])
}

trait Named {
    const NAME: &str;
}

impl Named for u8 {
    const NAME: &str = "u8";
}


#[guarded(hot(key = &**text, qps = 10), hot(key = match number { Some(n) => *n, None => 0 }, name = "number", qps = 10))]
fn references(text: &&str, number: &Option<i128>) -> Result<usize, Blocked> {
    Ok(text.len() + number.map_or(0, |n| n as usize))
}

#[guarded(hot(key = cow, qps = 10), hot(key = many, qps = 10), hot(key = pair, qps = 10), hot(key = boxed, qps = 10))]
fn containers<'a>(cow: Cow<'a, str>, many: &[u64], pair: [bool; 2], boxed: Box<str>) -> Result<Cow<'a, str>, Blocked> {
    let _ = (many, pair, boxed);
    Ok(cow)
}

struct Shop {
    name: String,
    orders: u32,
}

impl Shop {
    #[guarded(hot(key = self.name, qps = 10), hot(key = sku, qps = 10))]
    fn sell(&mut self, sku: &str) -> Result<u32, Blocked> {
        self.orders += sku.len() as u32;
        Ok(self.orders)
    }

    #[guarded(hot(key = self.name(), qps = 10))]
    async fn close(self) -> Result<String, Blocked> {
        Ok(self.name)
    }

    #[guarded(hot(key = Self::PLACE, qps = 10))]
    async fn shared(self: Arc<Self>) -> Result<usize, Blocked> {
        Ok(self.name.len())
    }

    const PLACE: &str = "here";

    fn name(&self) -> &str {
        &self.name
    }
}

macro_rules! by_fragments {
    ($name:ident, $parameter:ident, $key:expr, $value:literal => $limit:expr) => {
        #[guarded(hot(key = $key, qps = $limit, except($value => $limit)))]
        fn $name($parameter: &str) -> Result<usize, Blocked> {
            Ok($parameter.len())
        }
    };
}

by_fragments!(fragments, text, text.len(), 5 => 1 + 2);

fn assert_send<T: Send>(value: T) -> T {
    value
}

fn request() -> Request {
    Request { user: User { id: 1, name: "a".into() }, tags: Vec::new(), app: None }
}

fn main() {
    assert_eq!(parameters("a".into(), 1).unwrap(), "a1");
    assert_eq!(parts(request()).unwrap().id, 1);
    drop(assert_send(key_alone("a")));
    drop(assert_send(in_a_future(request(), Vec::new(), 1)));
    assert_eq!(names_of_every_kind(1, "ab".into(), (1, 2)).unwrap(), 3);
    drop(assert_send(names_in_a_text(1, 2, 3, 4)));
    assert_eq!(generic::<u8, 2>("a", 1).unwrap(), [0; 2]);
    assert_eq!(references(&"a", &None).unwrap(), 1);
    assert_eq!(containers("a".into(), &[1], [true; 2], "b".into()).unwrap(), "a");
    let mut shop = Shop { name: "corner".into(), orders: 0 };
    assert_eq!(shop.sell("ab").unwrap(), 2);
    drop(assert_send(shop.close()));
    drop(assert_send(Arc::new(Shop { name: String::new(), orders: 0 }).shared()));
    assert_eq!(fragments("a").unwrap(), 1);
}
