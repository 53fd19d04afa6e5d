//! E20, E21: fallbacks by every kind of path, for functions and methods, sync and async.
#![deny(warnings)]

use leap_runtime::{Blocked, guarded};

mod elsewhere {
    pub(crate) fn text(_: &str, _: leap_runtime::Blocked) -> String {
        String::new()
    }
}

#[guarded(fallback = elsewhere::text)]
fn in_another_module(sku: &str) -> String {
    sku.into()
}

#[guarded(fallback = generic)]
fn by_a_generic_one(sku: &str, n: u32) -> u32 {
    sku.len() as u32 + n
}

#[guarded(fallback = generic::<&str>)]
async fn by_a_generic_one_async(sku: &str, n: u32) -> u32 {
    sku.len() as u32 + n
}

fn generic<T: AsRef<str>>(sku: T, n: u32, _: Blocked) -> u32 {
    sku.as_ref().len() as u32 + n
}

#[guarded(fallback = no_copy_needed)]
fn by_value(sku: String) -> String {
    sku
}

fn no_copy_needed(sku: String, _: Blocked) -> String {
    sku
}

#[guarded(fallback = later)]
async fn by_an_async_one(sku: &str) -> Result<String, Blocked> {
    Ok(sku.into())
}

async fn later(sku: &str, _: Blocked) -> Result<String, Blocked> {
    Ok(sku.into())
}

#[guarded(fallback = boxed)]
async fn by_a_boxed_one(sku: String) -> String {
    sku
}

fn boxed(sku: String, _: Blocked) -> std::pin::Pin<Box<dyn Future<Output = String> + Send>> {
    Box::pin(async move { sku })
}

#[guarded(fallback = coerced)]
fn by_a_wider_one(sku: &String) -> usize {
    sku.len()
}

fn coerced(sku: &str, _: Blocked) -> usize {
    sku.len()
}

struct A(u8);
struct B(String);

impl A {
    #[guarded(fallback = Self::fb)]
    fn get(&self, key: u8) -> u8 {
        self.0 + key
    }

    fn fb(&self, key: u8, _: Blocked) -> u8 {
        self.0 - key
    }

    #[guarded(fallback = Self::fb_async)]
    async fn get_async(&mut self, key: u8) -> u8 {
        self.0 += key;
        self.0
    }

    async fn fb_async(&mut self, key: u8, _: Blocked) -> u8 {
        self.0 -= key;
        self.0
    }
}

impl B {
    #[guarded(fallback = Self::fb)]
    fn get(self, key: &str) -> String {
        self.0 + key
    }

    fn fb(self, _: &str, _: Blocked) -> String {
        self.0
    }
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

fn main() {
    assert_eq!(in_another_module("a"), "a");
    assert_eq!(by_a_generic_one("a", 1), 2);
    drop(assert_send(by_a_generic_one_async("a", 1)));
    assert_eq!(by_value("a".into()), "a");
    drop(assert_send(by_an_async_one("a")));
    drop(assert_send(by_a_boxed_one("a".into())));
    assert_eq!(by_a_wider_one(&"a".into()), 1);
    assert_eq!(A(1).get(1), 2);
    drop(assert_send(A(1).get_async(1)));
    assert_eq!(B("b".into()).get("c"), "bc");
}
