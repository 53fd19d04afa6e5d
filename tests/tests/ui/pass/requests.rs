//! What a call says of itself: its direction, its priority, its origin, its entrance; and who may call.
#![deny(warnings)]

use leap_runtime::{Blocked, guarded};

const FRONT: &str = "front";

#[guarded(inbound)]
fn inbound() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(inbound = true, priority, qps = 10)]
async fn urgent() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(inbound = false, priority = false)]
fn outbound() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(origin = app, entrance = "web", allow("app-a", "app-b"))]
fn by_parameter(app: &str) -> Result<usize, Blocked> {
    Ok(app.len())
}

struct Request {
    headers: Vec<(String, String)>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    #[guarded(entrance = FRONT, origin = self.header("app"), deny("batch", concat!("app", "-c")))]
    async fn handle(self) -> Result<usize, Blocked> {
        Ok(self.headers.len())
    }

    #[guarded(origin = self.header("app").map(str::to_owned))]
    fn owned_origin(&mut self) -> Result<usize, Blocked> {
        self.headers.clear();
        Ok(self.headers.len())
    }
}

#[guarded(origin = format!("app-{n}"), fallback = zero)]
async fn made_up(n: u32) -> u32 {
    n
}

fn zero(_: u32, _: Blocked) -> u32 {
    0
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

fn main() {
    inbound().unwrap();
    drop(assert_send(urgent()));
    outbound().unwrap();
    by_parameter("app-a").unwrap();
    let mut request = Request { headers: Vec::new() };
    request.owned_origin().unwrap();
    drop(assert_send(request.handle()));
    drop(assert_send(made_up(1)));
}
