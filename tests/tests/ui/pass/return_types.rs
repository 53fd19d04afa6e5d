//! E03, E04, E14, E15: whatever a function returns, its body is inferred as that of the plain function is.
#![deny(warnings)]

use std::io;
use std::rc::Rc;

use leap_runtime::{Blocked, FromBlocked, guarded};

#[derive(Debug)]
enum AppError {
    Blocked,
    Number,
}

impl From<Blocked> for AppError {
    fn from(_: Blocked) -> Self {
        Self::Blocked
    }
}

impl From<std::num::ParseIntError> for AppError {
    fn from(_: std::num::ParseIntError) -> Self {
        Self::Number
    }
}

type Answer<T> = Result<T, AppError>;

#[guarded]
fn opaque() -> Answer<impl ToString> {
    Ok(1)
}

#[guarded]
async fn opaque_async() -> Result<impl ToString, AppError> {
    Ok("a")
}

#[guarded]
fn opaque_inside<'a>(names: &'a [String]) -> Answer<(impl Iterator<Item = impl Fn() -> usize> + use<'a>, u8)> {
    Ok((names.iter().map(|name| || name.len()), 1))
}

#[guarded]
fn boxed_iterator(n: u8) -> Answer<Box<dyn Iterator<Item = u8>>> {
    if n == 0 {
        return Ok(Box::new(std::iter::empty()));
    }
    Ok(Box::new(0..n))
}

#[guarded]
fn boxed() -> Answer<Box<dyn Fn() -> u8>> {
    Ok(Box::new(|| 1))
}

#[guarded]
async fn boxed_async(early: bool) -> Result<Box<dyn Fn() -> u8>, AppError> {
    if early {
        return Ok(Box::new(|| 2));
    }
    Ok(Box::new(|| 1))
}

#[guarded]
async fn local() -> Result<Rc<u8>, AppError> {
    Ok(Rc::new(1))
}

#[guarded]
fn parsed(text: &str) -> Answer<u16> {
    Ok(text.parse()?)
}

#[guarded]
async fn parsed_async(text: &str) -> Answer<u16> {
    Ok(text.parse()?)
}

#[guarded]
fn collected(texts: &[&str]) -> Result<Vec<u16>, AppError> {
    texts.iter().map(|text| parsed(text)).collect()
}

#[guarded]
async fn default<T: Default>() -> Answer<T> {
    Ok(Default::default())
}

#[guarded]
fn dynamic_error() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Ok(())
}

#[guarded]
fn diverges() -> Answer<u8> {
    unimplemented!()
}

#[guarded]
fn loops(n: u8) -> Answer<u8> {
    let mut i = 0;
    loop {
        i += 1;
        if i == n {
            return Ok(i);
        }
    }
}

#[guarded]
async fn loops_async(n: u8) -> Answer<u8> {
    let mut i = 0;
    loop {
        i += 1;
        if i == n {
            return Ok(i);
        }
    }
}

#[guarded]
async fn loops_for_ever() -> Answer<u8> {
    loop {
        std::future::ready(()).await;
    }
}

#[guarded(fallback = stop)]
fn never(_code: i32) -> ! {
    panic!("never")
}

fn stop(_code: i32, blocked: Blocked) -> ! {
    panic!("{blocked}")
}

#[guarded(fallback = stop)]
async fn never_async(_code: i32) -> ! {
    std::future::pending::<()>().await;
    loop {}
}

#[guarded(fallback = nothing)]
fn unit(_: u8) {
    if true {
        return;
    }
    print!("");
}

fn nothing(_: u8, _: Blocked) {}

#[guarded(fallback = nothing)]
async fn unit_async(_: u8) {
    if true {
        return;
    }
    print!("");
}

#[guarded(fallback = none)]
fn option(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    text.find(first)
}

fn none(_: &str, _: Blocked) -> Option<usize> {
    None
}

enum Reply {
    Fine,
    Busy,
}

impl FromBlocked for Reply {
    fn from_blocked(_: Blocked) -> Self {
        Self::Busy
    }
}

#[guarded]
fn reply() -> Reply {
    Reply::Fine
}

#[guarded(fallback = of_io)]
fn io_result() -> io::Result<u8> {
    Ok(1)
}

fn of_io(_: Blocked) -> io::Result<u8> {
    Err(io::ErrorKind::WouldBlock.into())
}

fn main() {
    assert_eq!(opaque().unwrap().to_string(), "1");
    drop(opaque_async());
    assert_eq!(opaque_inside(&["a".into()]).unwrap().0.map(|f| f()).sum::<usize>(), 1);
    assert_eq!(boxed_iterator(2).unwrap().sum::<u8>(), 1);
    assert_eq!(boxed().unwrap()(), 1);
    drop((boxed_async(true), local()));
    assert_eq!(parsed("5").unwrap(), 5);
    assert!(matches!(parsed(""), Err(AppError::Number)));
    drop((parsed_async(""), default::<u8>()));
    assert_eq!(collected(&["1", "2"]).unwrap(), [1, 2]);
    dynamic_error().unwrap();
    let _ = diverges as fn() -> Answer<u8>;
    assert_eq!(loops(2).unwrap(), 2);
    drop((loops_async(1), loops_for_ever(), never_async(1)));
    let _ = never as fn(i32) -> !;
    unit(1);
    drop(unit_async(1));
    assert_eq!(option("aba"), Some(0));
    assert!(matches!(reply(), Reply::Fine));
    assert_eq!(io_result().unwrap(), 1);
}
