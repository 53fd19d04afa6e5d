fn work(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7)
}

fn main() {
    let number = std::env::args().count() as u64;
    println!("{}", work(number));
}
