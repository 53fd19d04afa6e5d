//! E20: fallbacks that do not fit, told at the path.

use leap_runtime::{Blocked, guarded};

#[guarded(fallback = missing)]
fn to_nothing(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback = without_blocked)]
fn blocked_forgotten(sku: &str) -> usize {
    sku.len()
}

fn without_blocked(_: &str) -> usize {
    0
}

#[guarded(fallback = with_more)]
fn too_much_wanted(sku: &str) -> usize {
    sku.len()
}

fn with_more(_: &str, _: u8, _: Blocked) -> usize {
    0
}

#[guarded(fallback = of_strings)]
fn wrong_argument(sku: &str) -> usize {
    sku.len()
}

fn of_strings(_: String, _: Blocked) -> usize {
    0
}

#[guarded(fallback = texts)]
fn wrong_return(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback = texts)]
async fn wrong_return_async(sku: &str) -> usize {
    sku.len()
}

fn texts(_: &str, _: Blocked) -> String {
    String::new()
}

#[guarded(fallback = later)]
fn async_for_sync(sku: &str) -> usize {
    sku.len()
}

async fn later(_: &str, _: Blocked) -> usize {
    0
}

#[guarded(fallback = private::hidden)]
fn to_a_private_one(sku: &str) -> usize {
    sku.len()
}

mod private {
    fn hidden(_: &str, _: leap_runtime::Blocked) -> usize {
        0
    }
}

struct Shop;

impl Shop {
    #[guarded(fallback = Self::without_self)]
    fn method(&self, sku: &str) -> usize {
        sku.len()
    }

    fn without_self(_: &str, _: Blocked) -> usize {
        0
    }

    #[guarded(fallback = Shop::unknown)]
    fn method_to_nothing(&self, sku: &str) -> usize {
        sku.len()
    }
}

fn main() {
    to_nothing("a");
}
