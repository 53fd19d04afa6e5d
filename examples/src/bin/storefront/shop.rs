//! The service: its guarded handlers, and what stands around all of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use leap_runtime::guarded;

use crate::error::ShopError;
use crate::supplier::Supplier;
use crate::tally::{Answer, Route, Tally};

/// Requests with this header count their answers themselves, where they arrive.
pub(crate) const COUNTED_BY_CLIENT: &str = "x-counted-by-client";

/// What the handlers share.
#[derive(Clone, Debug)]
pub(crate) struct Shop {
    pub(crate) supplier: Arc<Supplier>,
    pub(crate) tally: Arc<Tally>,
}

pub(crate) fn router(shop: &Shop) -> Router {
    let watch = |route| from_fn_with_state((shop.clone(), route), watch);
    Router::new()
        .route(Route::Products.path(), get(products).route_layer(watch(Route::Products)))
        .route(Route::Price.path(), get(price).route_layer(watch(Route::Price)))
        .route(Route::Orders.path(), post(order).route_layer(watch(Route::Orders)))
        .with_state(shop.clone())
}

/// Lists what there is. Over the limit: 429.
#[guarded(resource = "products.list", qps = 30)]
async fn products() -> Result<&'static str, ShopError> {
    Ok("one teapot\n")
}

/// Tells the price, be it the last one known.
async fn price(State(shop): State<Shop>) -> Result<Response, ShopError> {
    let price = shop.supplier.quote().await?;
    let text = format!("{}.{:02}\n", price.cents / 100, price.cents % 100);
    Ok(if price.is_live {
        text.into_response()
    } else {
        ([(Answer::LAST_KNOWN, "true")], text).into_response()
    })
}

/// Takes an order. More than four at a time: 429; nobody to charge it: 503. An order that was refused because the
/// breaker of [`Supplier::charge`] is open says nothing about orders, so it is ignored here.
#[guarded(resource = "orders.create", max_concurrency = 4, ignore(ShopError::Blocked(_)))]
async fn order(State(shop): State<Shop>) -> Result<&'static str, ShopError> {
    shop.supplier.charge().await?;
    Ok("a teapot is on its way\n")
}

/// Counts how a request ends.
async fn watch(State((shop, route)): State<(Shop, Route)>, request: Request, next: Next) -> Response {
    let is_counted_by_client = request.headers().contains_key(COUNTED_BY_CLIENT);
    let visit = Visit { tally: &shop.tally, route, is_answered: false };
    let response = next.run(request).await;
    let answer = (!is_counted_by_client).then(|| Answer::of(response.status(), response.headers()));
    visit.end(answer);
    response
}

/// A request that is being answered. The server drops it when its client goes away.
struct Visit<'a> {
    tally: &'a Tally,
    route: Route,
    is_answered: bool,
}

impl Visit<'_> {
    fn end(mut self, answer: Option<Answer>) {
        self.is_answered = true;
        if let Some(answer) = answer {
            self.tally.count(self.route, answer);
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.tally.count(self.route, Answer::Gone);
        }
    }
}
