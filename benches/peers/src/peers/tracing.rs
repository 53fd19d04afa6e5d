//! tracing: its attribute, with nobody listening.

use leap_benches::work::{AppError, repeat, work};

use crate::row::{Part, Row};

#[tracing::instrument]
#[inline(never)]
fn instrumented(x: u64) -> Result<u64, AppError> {
    work(x)
}

#[tracing::instrument]
#[inline(never)]
fn instrumented_too(x: u64) -> Result<u64, AppError> {
    work(x)
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("#[tracing::instrument]", Part::Watched, "a span that has no subscriber", |lane, n| {
            match lane {
                0 => repeat(n, |x| instrumented(x).is_ok()),
                _ => repeat(n, |x| instrumented_too(x).is_ok()),
            }
        })
        .lacking("nothing is kept, no limit, no breaker"),
    ]
}
