//! The text of the crates that are built: modules of ten functions, one of each kind, as users write them.

use std::fmt::Write as _;

/// A crate without the attribute, or with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twin {
    Plain,
    Guarded,
}

impl Twin {
    pub(crate) const BOTH: [Self; 2] = [Self::Plain, Self::Guarded];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Guarded => "guarded",
        }
    }
}

/// A kind of function. In its text `MODULE` is the number of its module, and `NUMBER` one that no other body has.
pub(crate) struct Kind {
    pub(crate) what: &'static str,
    attribute: &'static str,
    function: &'static str,
    /// What a method's function needs around it.
    owner: Option<&'static str>,
    /// Calls it with the numbers `n` and makes one of what it returns.
    call: &'static str,
}

pub(crate) const KINDS: &[Kind] = &[
    Kind {
        what: "fn, by value and by reference, no rule",
        attribute: "#[guarded]",
        function: r#"
pub fn create(order: Order, tags: &[String]) -> Result<Receipt, ShopError> {
    if order.lines.is_empty() {
        return Err(ShopError::Empty { order: order.id });
    }
    let mut total = 0;
    for line in &order.lines {
        total += line.cents * u64::from(line.count);
        if tags.iter().any(|tag| tag == &line.article) {
            total -= line.cents / NUMBER;
        }
    }
    Ok(Receipt { id: order.id + NUMBER, total, note: format!("{} lines for {}", order.lines.len(), order.customer) })
}"#,
        owner: None,
        call: "create(order(n), &[order(n).customer]).map_or(0, |receipt| receipt.total)",
    },
    Kind {
        what: "fn, qps and slow_rt_ms",
        attribute: r#"#[guarded(resource = "moduleMODULE.price", qps = 100_000, slow_rt_ms = 200)]"#,
        function: r"
pub fn price(article: &str, count: u32) -> Result<u64, ShopError> {
    let cents = article.bytes().fold(NUMBER_u64, |sum, byte| sum * 31 % 10_007 + u64::from(byte));
    let discount = match count {
        0 => return Err(ShopError::Empty { order: NUMBER }),
        1..=9 => 0,
        10..=99 => cents / 20,
        _ => cents / 10,
    };
    Ok((cents - discount) * u64::from(count))
}",
        owner: None,
        call: r#"price("teapot", n as u32 + 1).unwrap_or(0)"#,
    },
    Kind {
        what: "method by &self, no rule",
        attribute: "#[guarded]",
        function: r"
pub fn find(&self, customer: &str) -> Result<Option<&Order>, ShopError> {
    if customer.len() > NUMBER {
        return Err(ShopError::Unknown(customer.to_owned()));
    }
    let mut best = None;
    for order in self.orders.iter().filter(|order| order.customer == customer) {
        if best.is_none_or(|best: &Order| best.id < order.id) {
            best = Some(order);
        }
    }
    Ok(best)
}",
        owner: Some("impl Store"),
        call: r#"store(n).find("anna").map_or(0, |order| order.map_or(1, |order| order.id))"#,
    },
    Kind {
        what: "method by &mut self, max_concurrency",
        attribute: "#[guarded(max_concurrency = 64)]",
        function: r"
pub fn add(&mut self, mut order: Order) -> Result<usize, ShopError> {
    order.lines.retain(|line| line.count > 0);
    if order.lines.is_empty() {
        return Err(ShopError::Empty { order: order.id });
    }
    self.total += order.lines.iter().map(|line| line.cents * u64::from(line.count)).sum::<u64>() + NUMBER;
    self.orders.push(order);
    Ok(self.orders.len())
}",
        owner: Some("impl Store"),
        call: "store(n).add(order(n)).map_or(0, |n| n as u64)",
    },
    Kind {
        what: "fn, qps and a fallback, no Result",
        attribute: "#[guarded(qps = 100_000, fallback = guess)]",
        function: r"
pub fn recommend(customer: &str, orders: &[Order], most: usize) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for line in orders.iter().filter(|order| order.customer == customer).flat_map(|order| &order.lines) {
        *counts.entry(line.article.as_str()).or_insert(NUMBER_u32) += line.count;
    }
    let mut articles: Vec<_> = counts.into_iter().collect();
    articles.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    articles.into_iter().take(most).map(|(article, _)| article.to_owned()).collect()
}",
        owner: None,
        call: r#"recommend("anna", &[order(n)], 3).len() as u64"#,
    },
    Kind {
        what: "fn of impl Trait, error_ratio",
        attribute: r#"#[guarded(resource = "moduleMODULE.search", error_ratio = 0.5)]"#,
        function: r"
pub fn search(orders: Vec<Order>, word: impl AsRef<str>) -> Result<impl Iterator<Item = u64>, ShopError> {
    let word = word.as_ref().to_lowercase();
    if word.len() > NUMBER {
        return Err(ShopError::Unknown(word));
    }
    Ok(orders.into_iter().filter(move |order| order.customer.contains(&word)).map(|order| order.id))
}",
        owner: None,
        call: r#"search(vec![order(n)], "Anna").map_or(0, |ids| ids.sum())"#,
    },
    Kind {
        what: "async fn, no rule",
        attribute: "#[guarded]",
        function: r#"
pub async fn ship(id: u64, address: String) -> Result<Receipt, ShopError> {
    let order = load(id).await?;
    if address.is_empty() {
        return Err(ShopError::Unknown(order.customer));
    }
    let weight: u32 = order.lines.iter().map(|line| line.count).sum();
    let price = 490 + u64::from(weight) * NUMBER;
    save(order.id, price).await?;
    Ok(Receipt { id: order.id, total: price, note: format!("to {address}") })
}"#,
        owner: None,
        call: r#"ready(ship(n, "a street".to_owned())).map_or(0, |receipt| receipt.total)"#,
    },
    Kind {
        what: "async method, qps and slow_rt_ms",
        attribute: r#"#[guarded(resource = "moduleMODULE.pay", qps = 100_000, slow_rt_ms = 200)]"#,
        function: r"
pub async fn pay(&self, id: u64, cents: u64) -> Result<u64, ShopError> {
    let order = load(id).await?;
    let due: u64 = order.lines.iter().map(|line| line.cents * u64::from(line.count)).sum();
    let open = due.saturating_sub(cents);
    if open > NUMBER {
        return Err(ShopError::Short { order: id, open });
    }
    save(id, open).await?;
    Ok(open + self.total)
}",
        owner: Some("impl Store"),
        call: "ready(store(n).pay(n, 1_000_000)).unwrap_or(0)",
    },
    Kind {
        what: "async fn, max_concurrency and a fallback",
        attribute: "#[guarded(max_concurrency = 64, fallback = unknown)]",
        function: r#"
pub async fn track(id: u64, customer: &str) -> String {
    match load(id).await {
        Ok(order) if order.customer == customer => {
            let n: u32 = order.lines.iter().map(|line| line.count).sum();
            format!("{n} pieces and NUMBER cards")
        }
        Ok(order) => format!("{} is of {}", order.id, order.customer),
        Err(error) => format!("{error:?}"),
    }
}"#,
        owner: None,
        call: r#"ready(track(n, "anna")).len() as u64"#,
    },
    Kind {
        what: "async fn, hot and an origin",
        attribute: "#[guarded(origin = customer, hot(key = order.id, qps = 50_000))]",
        function: r"
pub async fn cancel(order: Order, customer: &str) -> Result<u64, ShopError> {
    if order.customer != customer {
        return Err(ShopError::Unknown(customer.to_owned()));
    }
    let back: u64 = order.lines.iter().filter(|line| line.count < NUMBER).map(|line| line.cents).sum();
    save(order.id, back).await?;
    Ok(back)
}",
        owner: None,
        call: r#"ready(cancel(order(n), "anna")).unwrap_or(0)"#,
    },
];

/// What the functions are about, and what they call. Nothing in it is guarded.
const SHOP: &str = r#"
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use leap_runtime::Blocked;

#[derive(Clone, Debug)]
pub struct Order {
    pub id: u64,
    pub customer: String,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug)]
pub struct Line {
    pub article: String,
    pub count: u32,
    pub cents: u64,
}

#[derive(Debug)]
pub struct Receipt {
    pub id: u64,
    pub total: u64,
    pub note: String,
}

#[derive(Debug)]
pub enum ShopError {
    Empty { order: u64 },
    Short { order: u64, open: u64 },
    Unknown(String),
    Blocked(Blocked),
}

impl From<Blocked> for ShopError {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}

pub async fn load(id: u64) -> Result<Order, ShopError> {
    Once(false).await;
    if id == u64::MAX { Err(ShopError::Empty { order: id }) } else { Ok(order(id)) }
}

pub async fn save(id: u64, cents: u64) -> Result<(), ShopError> {
    Once(false).await;
    if cents == u64::MAX { Err(ShopError::Short { order: id, open: cents }) } else { Ok(()) }
}

struct Once(bool);

impl Future for Once {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

pub fn ready<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

pub fn order(id: u64) -> Order {
    let line = Line { article: "teapot".to_owned(), count: 3, cents: 1_990 };
    Order { id, customer: "anna".to_owned(), lines: vec![line.clone(), line] }
}
"#;

/// What the fallbacks of a module are.
const FALLBACKS: &str = r"
fn guess(_: &str, _: &[Order], _: usize, _: Blocked) -> Vec<String> {
    Vec::new()
}

fn unknown(_: u64, _: &str, _: Blocked) -> String {
    String::new()
}
";

/// The library: the shop, and modules of functions.
pub(crate) fn library(modules: usize) -> String {
    let mut text = format!("#![allow(dead_code)]\n{SHOP}");
    for module in 0..modules {
        let _ = writeln!(text, "pub mod module{module};");
    }
    text
}

/// A module of the library, in its `edition`: each makes another one of one body.
pub(crate) fn module(twin: Twin, module: usize, edition: usize) -> String {
    let attribute = if twin == Twin::Guarded { "use leap_runtime::guarded;\n" } else { "" };
    let mut text = format!(
        "use std::collections::BTreeMap;\n\nuse leap_runtime::Blocked;\n{attribute}\nuse crate::*;\n\n\
         pub struct Store {{\n    pub orders: Vec<Order>,\n    pub total: u64,\n}}\n{FALLBACKS}"
    );
    for (index, kind) in KINDS.iter().enumerate() {
        // Above all that the bodies compare with, so that they do the same whichever it is.
        let mut number = 1_000 + module * KINDS.len() + index;
        if index == 0 {
            number += edition * 100_000;
        }
        let attribute = if twin == Twin::Guarded { kind.attribute } else { "" };
        let function = format!("{attribute}{}", kind.function);
        let function = function.replace("MODULE", &module.to_string()).replace("NUMBER", &number.to_string());
        match kind.owner {
            None => {
                let _ = writeln!(text, "\n{}", function.trim_start());
            }
            Some(owner) => {
                let indented = function.trim_start().replace('\n', "\n    ");
                let _ = writeln!(text, "\n{owner} {{\n    {indented}\n}}");
            }
        }
    }
    text
}

/// The program: calls all functions of the library through a table, and one guarded function of each kind besides.
pub(crate) fn program(twin: Twin, modules: usize) -> String {
    let mut text = format!(
        "use std::hint::black_box;\n\n#[path = \"anchor.rs\"]\nmod anchor;\n\npub use {}::*;\n",
        twin.name()
    );
    let mut tables = Vec::new();
    let modules = (0..modules).map(|module| format!("module{module}"));
    for module in modules.chain(["anchor".to_owned()]) {
        text.push_str(&calls(&module));
        tables.push(format!("calls_of_{module}::CALLS"));
    }
    let _ = writeln!(text, "\nstatic TABLES: &[&[fn(u64) -> u64]] = &[{}];", tables.join(", "));
    text.push_str(
        "\nfn main() {\n    let calls = black_box(TABLES).iter().flat_map(|table| *table);\n    \
         println!(\"{}\", calls.map(|call| call(black_box(7))).fold(0_u64, u64::wrapping_add));\n}\n",
    );
    text
}

fn calls(module: &str) -> String {
    let mut text = format!(
        "\nmod calls_of_{module} {{\n    use crate::*;\n    use crate::{module}::*;\n\n    \
         fn store(n: u64) -> Store {{\n        Store {{ orders: vec![order(n)], total: n }}\n    }}\n\n    \
         pub static CALLS: &[fn(u64) -> u64] = &[\n"
    );
    for kind in KINDS {
        let _ = writeln!(text, "        |n| {},", kind.call);
    }
    text.push_str("    ];\n}\n");
    text
}
