use leap_runtime::{Blocked, guarded};

#[guarded(resource = "work", qps = 100, slow_rt_ms = 200, slow_ratio = 0.5)]
fn work(number: u64) -> Result<u64, Blocked> {
    Ok(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7))
}

fn main() {
    let number = std::env::args().count() as u64;
    println!("{}", work(number).expect("the first of 100"));
}
