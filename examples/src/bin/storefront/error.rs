//! Why a request is not served, and what HTTP says to that.

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use leap_runtime::{Blocked, Cause};

#[derive(Debug)]
pub(crate) enum ShopError {
    /// A rule said no, here or on the way to the supplier.
    Blocked(Blocked),
    /// The supplier was asked, and failed.
    SupplierFailed,
}

/// All that `#[guarded]` asks of an error type.
impl From<Blocked> for ShopError {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}

impl IntoResponse for ShopError {
    fn into_response(self) -> Response {
        let blocked = match self {
            Self::Blocked(blocked) => blocked,
            Self::SupplierFailed => {
                return (StatusCode::BAD_GATEWAY, "the supplier failed\n").into_response();
            }
        };
        let status = match blocked.cause() {
            Cause::Breaker => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::TOO_MANY_REQUESTS,
        };
        // The header takes whole seconds. Where nothing is known, as with calls in flight, one is a fair guess.
        let seconds = blocked.retry_after().map_or(1, |time| time.as_millis().div_ceil(1_000).max(1));
        (status, [(RETRY_AFTER, seconds.to_string())], format!("{blocked}\n")).into_response()
    }
}
