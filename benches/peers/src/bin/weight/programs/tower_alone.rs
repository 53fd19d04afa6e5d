use std::convert::Infallible;

use tower::{ServiceBuilder, ServiceExt};

fn work(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7)
}

fn main() {
    let service = ServiceBuilder::new()
        .service(tower::service_fn(|number| async move { Ok::<u64, Infallible>(work(number)) }));
    let number = std::env::args().count() as u64;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread and a timer");
    println!("{}", runtime.block_on(service.oneshot(number)).expect("infallible"));
}
