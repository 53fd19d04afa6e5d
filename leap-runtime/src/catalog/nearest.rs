//! The name that may be meant by one that nobody goes by.

use crate::rule::near::distance;
use crate::rule::pattern::parts;

/// Longer names than that are not compared letter by letter.
const LONGEST: usize = 128;

/// Names that may be meant, each beside how it is compared.
pub(super) struct Candidates(Vec<(Box<str>, Box<str>)>);

impl Candidates {
    pub(super) fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(|name| (plain(name).into(), name.into())).collect())
    }

    /// The name that is meant by `pattern`: up to a quarter of its letters are other ones; else a path that ends as it
    /// does, or the other way round.
    pub(super) fn nearest(&self, pattern: &str) -> Option<&str> {
        if pattern.len() > LONGEST {
            return None;
        }
        let parts: Vec<String> = parts(pattern).iter().map(|part| plain(part)).collect();
        self.similar(&parts).or_else(|| match &parts[..] {
            [name] => self.ending(name),
            _ => None,
        })
    }

    /// The first of those with the fewest letters written otherwise. Between the parts any text may stand.
    fn similar(&self, parts: &[String]) -> Option<&str> {
        let letters: Vec<Option<u8>> = parts
            .iter()
            .map(|part| part.bytes().map(Some).collect::<Vec<_>>())
            .collect::<Vec<_>>()
            .join(&None);
        let n_letters = letters.iter().flatten().count();
        let has_length = |len: usize, most: usize| match parts {
            [_] => len.abs_diff(n_letters) <= most,
            _ => len + most >= n_letters && len <= LONGEST,
        };
        let (mut most, mut nearest) = ((n_letters + 1) / 4, None);
        for (plain, name) in &self.0 {
            if has_length(plain.len(), most)
                && let Some(distance) = distance(&letters, plain.as_bytes(), most)
            {
                nearest = Some(&**name);
                // From here on only what is nearer.
                let Some(nearer) = distance.checked_sub(1) else { break };
                most = nearer;
            }
        }
        nearest
    }

    /// The shortest that is a path which ends in `written`, or in which `written` ends.
    fn ending(&self, written: &str) -> Option<&str> {
        let ends_in = |path: &str, end: &str| {
            path.strip_suffix(end).is_some_and(|start| start.ends_with('.')) && !end.is_empty()
        };
        let ending = self.0.iter().filter(|(plain, _)| ends_in(plain, written) || ends_in(written, plain));
        ending.min_by_key(|(plain, _)| plain.len()).map(|(_, name)| &**name)
    }
}

/// A name as it is compared: whether letters are large, and how the parts of a path are told apart, is all one.
fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace("::", ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_that_was_meant() {
        let names = ["orders.create", "orders.cancel", "stock.read", "shop::mail::send", "pay", "a*b"];
        let candidates = Candidates::of(names);
        for (pattern, meant) in [
            ("orders.craete", Some("orders.create")),
            ("Orders.Create", Some("orders.create")),
            ("orders::create", Some("orders.create")),
            ("order.cancel", Some("orders.cancel")),
            ("stok.red", Some("stock.read")),
            ("shop.mail.send", Some("shop::mail::send")),
            ("pya", Some("pay")),
            // Others that are called alike are not meant.
            ("orders.delete", None),
            ("orders", None),
            ("refund", None),
            ("x", None),
            // Paths by their ends.
            ("create", Some("orders.create")),
            ("mail::send", Some("shop::mail::send")),
            ("app::stock::read", Some("stock.read")),
            ("end", None),
            ("", None),
            // Patterns.
            ("ordres.*", Some("orders.create")),
            ("*.raed", Some("stock.read")),
            ("stack.*", Some("stock.read")),
            ("shop::mial::*", Some("shop::mail::send")),
            ("users.*", None),
            (r"a\*c", Some("a*b")),
        ] {
            assert_eq!(candidates.nearest(pattern), meant, "{pattern}");
        }
        assert_eq!(candidates.nearest(&"orders.create".repeat(100)), None);
        assert_eq!(Candidates::of([]).nearest("*"), None);
    }
}
