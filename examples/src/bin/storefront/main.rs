//! A small web shop under load: guarded handlers, a guarded client with a fallback, and statistics every second.
//!
//! ```text
//! cargo run --release -p leap-examples --bin storefront
//! ```
//!
//! `shop` and `supplier` are what an application would look like; the rest makes the traffic and checks the figures.

#![allow(clippy::print_stderr, reason = "errors are for whoever started the program")]

mod check;
mod error;
mod journal;
mod load;
mod options;
mod shop;
mod supplier;
mod tally;

use std::error::Error;
use std::fmt;
use std::future::{IntoFuture, pending};
use std::io::{self, ErrorKind, Write};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use leap_runtime::registry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use check::{Account, Table};
use journal::{Journal, say};
use options::{Command, Options};
use shop::Shop;
use supplier::Supplier;
use tally::{Answer, Tally};

/// How long the server may take to end its connections.
const GRACE: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Command::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(options)) => options,
        Ok(Command::Help) => return help(),
        Err(error) => {
            eprintln!("storefront: {error} (`--help` lists the options)");
            return ExitCode::from(2);
        }
    };
    match run(options).await {
        Ok(differences) if differences.is_empty() => ExitCode::SUCCESS,
        Ok(differences) => failed(&differences.join("\nstorefront: ")),
        Err(error) => failed(&error),
    }
}

fn help() -> ExitCode {
    match io::stdout().write_all(options::HELP.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn fmt::Display) -> ExitCode {
    eprintln!("storefront: {error}");
    ExitCode::FAILURE
}

/// Runs the shop, and returns what was not as it should be.
async fn run(options: Options) -> Result<Vec<String>, Box<dyn Error>> {
    let mut signal = pin!(listen_for_signals()?);
    let listener = listen(options.port).await?;
    let address = listener.local_addr()?;
    let tally = Arc::<Tally>::default();
    let mut journal = Journal::open(registry(), Arc::clone(&tally));
    let trouble = options.load.map_or_else(Range::default, trouble);
    let shop = Shop { supplier: Arc::new(Supplier::new(trouble)), tally: Arc::clone(&tally) };
    say(format_args!("storefront: listening on http://{address} (GET /products, GET /price, POST /orders)"))?;

    let (close_shop, closed) = watch::channel(false);
    let server = axum::serve(listener, shop::router(&shop)).with_graceful_shutdown(told(closed));
    let server = tokio::spawn(server.into_future());
    let (send_away, told_to_go) = watch::channel(false);
    let customers = options.load.map(|_| tokio::spawn(load::run(address, Arc::clone(&tally), told_to_go)));

    let end = options.load.map(|load| Instant::now() + load);
    let second = Duration::from_secs(1);
    let mut every_second = interval_at(Instant::now() + second, second);
    every_second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let signal = loop {
        tokio::select! {
            _ = every_second.tick() => journal.tell()?,
            () = until(end) => break None,
            name = &mut signal => break Some(name),
        }
    };
    if let Some(name) = signal {
        say(format_args!("\nstorefront: stopping on {name}"))?;
    }

    // First the customers, so that each has its answer, then the server: now nothing is under way any more.
    send_away.send_replace(true);
    let mut differences = Vec::new();
    if let Some(customers) = customers {
        differences.extend(customers.await?.err());
    }
    close_shop.send_replace(true);
    if timeout(GRACE, server).await.is_err() {
        say("storefront: a connection is still open; it is cut")?;
    }
    journal.tell()?;

    let accounts = Account::all(&tally, &registry());
    say(format_args!("\n{tally}\n{}", Table(&accounts)))?;
    differences.extend(accounts.iter().flat_map(Account::differences));
    match tally.of(Answer::Unexpected) {
        0 => {}
        unexpected => {
            differences.push(format!("{unexpected} answers were neither served nor refused as they should"));
        }
    }
    // A run that was cut short may not have come to the trouble, or not out of it.
    let is_complete = options.load.is_some() && signal.is_none();
    if is_complete {
        differences.extend(journal.unrecovered());
    }
    if differences.is_empty() {
        let breakers = if is_complete { ", and every breaker has opened and closed again" } else { "" };
        say(format_args!("storefront: every answer is accounted for, nothing is in flight{breakers}"))?;
    }
    Ok(differences)
}

async fn listen(port: u16) -> Result<TcpListener, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            format!("port {port} is taken; name another one with `--port`, or 0 for any that is free")
        }
        _ => format!("cannot listen on 127.0.0.1:{port}: {error}"),
    })
}

/// When the supplier is in trouble: after a good start, and long enough before the end for the breakers to close.
fn trouble(load: Duration) -> Range<Duration> {
    let start = load * 3 / 10;
    start..start + (load / 5).max(Duration::from_secs(1))
}

/// Ends at the moment `end`; never, if there is none.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}

async fn told(mut flag: watch::Receiver<bool>) {
    // An error means that nobody is left to tell, which says the same.
    let _ = flag.wait_for(|flag| *flag).await;
}

/// Listens for ctrl-c and SIGTERM from now on. The future waits for the first of them, and names it.
#[cfg(unix)]
fn listen_for_signals() -> io::Result<impl Future<Output = &'static str>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut ctrl_c = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = ctrl_c.recv() => "ctrl-c",
            _ = terminate.recv() => "SIGTERM",
        }
    })
}

/// The future waits for ctrl-c.
#[cfg(not(unix))]
fn listen_for_signals() -> io::Result<impl Future<Output = &'static str>> {
    Ok(async {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "ctrl-c",
            // Then ctrl-c ends the program by itself.
            Err(_) => pending().await,
        }
    })
}
