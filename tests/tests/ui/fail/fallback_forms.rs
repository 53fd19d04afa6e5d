//! E20, E22: fallbacks that are written where they are needed, and those that answer for errors.

use leap_runtime::{Blocked, guarded};

struct AppError;

impl From<Blocked> for AppError {
    fn from(_: Blocked) -> Self {
        Self
    }
}

#[guarded(fallback = |sku| 0)]
fn too_few(sku: &str, (n, _): (usize, u8)) -> usize {
    sku.len() + n
}

#[guarded(fallback = |sku, blocked| sku)]
fn wrong_closure(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback = zero(sku, n))]
fn wrong_name(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback = text(sku))]
fn wrong_type(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback = text(sku))]
async fn wrong_type_async(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback = "zero")]
fn in_quotes(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback_on = errors, fallback = zero)]
fn unknown_word(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback_on = error)]
fn without_fallback(sku: &str) -> Result<usize, AppError> {
    Ok(sku.len())
}

#[guarded(fallback_on = any, fallback = zero(sku))]
fn no_result(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback_on = any, fallback = recover)]
fn moved(sku: String, (n, m): (u8, String)) -> Result<usize, AppError> {
    Ok(sku.len() + usize::from(n) + m.len())
}

#[guarded(fallback_on = error, fallback = Ok(sku.len() + n))]
async fn moved_async(sku: String, n: usize) -> Result<usize, AppError> {
    Ok(sku.len() + n)
}

#[guarded(fallback = |text, _| Ok(text.len()))]
fn moved_into_a_future(text: String) -> impl Future<Output = Result<usize, AppError>> {
    let n = text.len();
    async move { Ok(n) }
}

#[guarded(fallback_on = error, fallback = Ok(text.len()))]
fn moved_into_a_block(text: String) -> impl Future<Output = Result<usize, AppError>> {
    async move { Ok(text.len()) }
}

#[guarded(fallback = || 0)]
fn nothing_taken(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback_on = any, fallback = Err(AppError::from(blocked)))]
fn called_error_here() -> Result<usize, AppError> {
    Ok(1)
}

#[guarded(fallback = Err(error))]
fn called_blocked_here() -> Result<usize, AppError> {
    Ok(1)
}

#[guarded(fallback = later(sku))]
async fn not_awaited(sku: &str) -> usize {
    sku.len()
}

async fn later(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback = zero(sku))]
fn no_stream(sku: &str) -> impl futures_core::Stream<Item = usize> {
    watch(sku.len())
}

fn watch(_: usize) -> std::pin::Pin<Box<dyn futures_core::Stream<Item = usize>>> {
    unimplemented!()
}

struct Shop;

impl Shop {
    #[guarded(fallback_on = any, fallback = self.stored())]
    fn borrowed(&mut self) -> Result<usize, AppError> {
        Ok(1)
    }

    fn stored(&mut self) -> Result<usize, AppError> {
        Ok(2)
    }
}

fn recover(_: String, _: (u8, String), _: AppError) -> Result<usize, AppError> {
    Ok(0)
}

fn zero(_: &str) -> usize {
    0
}

fn text(_: &str) -> String {
    String::new()
}

fn main() {}
