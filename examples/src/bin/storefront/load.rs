//! Customers: real HTTP on kept connections, at a pace of their own.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, interval_at, timeout};

use crate::shop::COUNTED_BY_CLIENT;
use crate::tally::{Answer, Route, Tally};

/// Who asks for what: how many customers, and how often each of them.
///
/// Each has one connection and waits for its answer, so that is also the most that can be under way.
const CUSTOMERS: [(Route, u32, Duration); 3] = [
    (Route::Products, 4, Duration::from_millis(80)),
    (Route::Price, 4, Duration::from_millis(100)),
    (Route::Orders, 8, Duration::from_millis(200)),
];
/// One more orders, and goes away before it has an answer.
const RESTLESS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_millis(4));
/// No answer takes so long, unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends requests until `stop` says so, and counts the answers.
///
/// # Errors
///
/// What went wrong, if a customer got no answer at all.
pub(crate) async fn run(
    address: SocketAddr,
    tally: Arc<Tally>,
    stop: watch::Receiver<bool>,
) -> Result<(), String> {
    let mut customers = JoinSet::new();
    for (route, n_customers, period) in CUSTOMERS {
        for nth in 0..n_customers {
            // One after the other, not all at once.
            let pace = interval_at(Instant::now() + period * nth / n_customers, period);
            customers.spawn(customer(address, route, pace, Arc::clone(&tally), stop.clone()));
        }
    }
    customers.spawn(restless(address, stop));
    let mut result = Ok(());
    while let Some(ended) = customers.join_next().await {
        result = result.and(ended.unwrap_or_else(|error| Err(format!("a customer fell over: {error}"))));
    }
    result
}

async fn customer(
    address: SocketAddr,
    route: Route,
    mut pace: Interval,
    tally: Arc<Tally>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), String> {
    let no_answer =
        |error: &dyn fmt::Display| format!("no answer to {} {}: {error}", route.method(), route.path());
    let mut connection = Connection::open(address).await.map_err(|error| no_answer(&error))?;
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
            _ = pace.tick() => {}
        }
        let answer =
            timeout(PATIENCE, connection.ask(route, true)).await.map_err(|error| no_answer(&error))?;
        tally.count(route, answer.map_err(|error| no_answer(&error))?);
    }
}

async fn restless(address: SocketAddr, mut stop: watch::Receiver<bool>) -> Result<(), String> {
    let (period, patience) = RESTLESS;
    let mut pace = interval(period);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
            _ = pace.tick() => {}
        }
        let mut connection = Connection::open(address).await.map_err(|error| error.to_string())?;
        // Whether it had an answer or not: the server knows.
        let _ = timeout(patience, connection.ask(Route::Orders, false)).await;
    }
}

/// A connection to the shop, closed when it is dropped.
struct Connection {
    sender: SendRequest<Body>,
    driver: AbortHandle,
}

type Error = Box<dyn std::error::Error + Send + Sync>;

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(connection).abort_handle();
        Ok(Self { sender, driver })
    }

    async fn ask(&mut self, route: Route, is_counted: bool) -> Result<Answer, Error> {
        let mut request =
            Request::builder().method(route.method()).uri(route.path()).header(HOST, "storefront");
        if is_counted {
            request = request.header(COUNTED_BY_CLIENT, "true");
        }
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request.body(Body::empty())?).await?.into_parts();
        to_bytes(Body::new(body), 64 * 1024).await?;
        Ok(Answer::of(head.status, &head.headers))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
