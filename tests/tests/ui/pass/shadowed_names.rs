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

trait Greedy {
    fn outcome(&self) {}
    fn enter(&self) {}
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
    ::std::assert_eq!(counts(1, 2), 3);
}
