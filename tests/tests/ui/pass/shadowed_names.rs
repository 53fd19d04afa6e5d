//! E07: names of the user's own that an expansion might trip over.
#![no_implicit_prelude]
#![deny(warnings)]
#![allow(dead_code)]

use ::leap_runtime::{Blocked, guarded};

struct Result;
struct Option;
struct Box;
struct Future;
struct Pin;
struct Send;
struct Drop;
struct String;
struct CallSite;
struct Outcome;
struct Rule;
#[allow(non_camel_case_types)]
struct leap_runtime;
fn run() {}
fn never() {}
fn path_of() {}
#[allow(non_snake_case)]
fn Ok() {}
#[allow(non_snake_case)]
fn Err() {}
#[allow(non_snake_case)]
fn Some() {}
#[allow(non_upper_case_globals)]
const None: u8 = 1;
const SITE: ::std::primitive::f64 = 10.0;
const RULES: ::std::primitive::u32 = 10;

struct Request;
struct Key;
#[allow(non_upper_case_globals)]
const __ENTRANCE: u8 = 1;
trait ToKey {}
trait ToOrigin {}

trait Greedy {
    fn outcome(&self) {}
    fn enter(&self) {}
    fn enter_with(&self) {}
    fn begin(&self) {}
    fn begin_with(&self) {}
    fn to_key(&self) {}
    fn to_origin(&self) {}
    fn as_deref(self)
    where
        Self: ::std::marker::Sized,
    {
    }
}

impl<T> Greedy for T {}

#[guarded(qps = SITE, max_concurrency = RULES)]
fn sums(entry: u8, result: u8, blocked: u8, returned: u8) -> ::std::result::Result<u8, Blocked> {
    let error = entry + result;
    let body = blocked + returned;
    ::std::result::Result::Ok(error + body)
}

#[guarded(error_ratio = 0.5, ok_if = |returned| returned.is_ok())]
async fn sums_async(entry: u8, result: u8, blocked: u8, returned: u8) -> ::std::result::Result<u8, Blocked> {
    let error = entry + result;
    let body = blocked + returned;
    ::std::result::Result::Ok(error + body)
}

#[guarded(origin = key, entrance = WEB, inbound, hot(key = key, qps = SITE), hot(key = origin, qps = SITE), allow("a"))]
fn keyed(key: &::std::primitive::str, origin: u8, request: u8) -> ::std::result::Result<u8, Blocked> {
    let _ = key;
    ::std::result::Result::Ok(origin + request)
}

#[guarded(origin = key, entrance = WEB, inbound, hot(key = key, qps = SITE), hot(key = begun, qps = SITE))]
async fn keyed_async(key: &::std::primitive::str, begun: u8, request: u8) -> ::std::result::Result<u8, Blocked> {
    let _ = key;
    ::std::result::Result::Ok(begun + request)
}

const WEB: &::std::primitive::str = "web";

#[guarded(fallback = less)]
fn counts(entry: u8, way: u8) -> u8 {
    entry + way
}

fn less(entry: u8, way: u8, _: Blocked) -> u8 {
    entry - way
}

fn main() {
    ::std::assert_eq!(sums(1, 2, 3, 4).unwrap(), 10);
    ::std::mem::drop(sums_async(1, 2, 3, 4));
    ::std::assert_eq!(keyed("a", 1, 2).unwrap(), 3);
    ::std::mem::drop(keyed_async("a", 1, 2));
    ::std::assert_eq!(counts(1, 2), 3);
}
