//! The names that expressions use, and those that patterns bind.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::Pat;
use syn::ext::IdentExt;

/// Where an expression uses `name`, perhaps in the text of a `format!`.
pub(crate) fn mention(tokens: TokenStream, name: &Ident) -> Option<Span> {
    let mut found = None;
    for_each_name(tokens.clone(), &mut |other, is_head| {
        if other == name && !is_head && found.is_none() {
            found = Some(other.span());
        }
    });
    found.or_else(|| in_text(tokens, &name.unraw().to_string()))
}

/// Where `name` may be meant in a text: `"{name}"`, `"{:name$}"`.
fn in_text(tokens: TokenStream, name: &str) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Group(group) => in_text(group.stream(), name),
        TokenTree::Literal(literal) => is_formatted(&literal.to_string(), name).then(|| literal.span()),
        TokenTree::Ident(_) | TokenTree::Punct(_) => None,
    })
}

/// Whether `name` stands in braces of `text`: at their start, or before a `$`.
fn is_formatted(text: &str, name: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.replace("{{", "").split('{').skip(1).filter_map(|rest| rest.split('}').next()).any(|argument| {
        let mut words = argument.split_inclusive(|c| !is_of_word(c));
        let first = words.next().map(|word| word.trim_end_matches(|c| !is_of_word(c)));
        first == Some(name) || words.any(|word| word.strip_suffix('$') == Some(name))
    })
}

/// Visits the names in an expression that stand for themselves, and tells whether they are but the head of something: of a
/// path, or of a field. What follows `::` or `.` is a name in something else.
pub(super) fn for_each_name(tokens: TokenStream, visit: &mut impl FnMut(&Ident, bool)) {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    // The signs that stand before a name, as far as they are one operator.
    let mut before = String::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Group(group) => for_each_name(group.stream(), visit),
            TokenTree::Ident(name) if !matches!(&*before, "." | "::") => {
                visit(name, tokens.peek().is_some_and(is_colon));
            }
            _ => {}
        }
        match &token {
            TokenTree::Punct(punct) if matches!(punct.as_char(), ':' | '.') => before.push(punct.as_char()),
            _ => before.clear(),
        }
    }
}

/// Whether there may be names in an expression that it binds itself.
pub(super) fn binds_names(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => binds_names(group.stream()),
        TokenTree::Ident(word) => word == "let" || word == "match" || word == "fn",
        TokenTree::Punct(punct) => punct.as_char() == '|',
        TokenTree::Literal(_) => false,
    })
}

/// The names that a pattern binds.
pub(crate) fn bound_by<'a>(pat: &'a Pat, bound: &mut Vec<&'a Ident>) {
    match pat {
        Pat::Ident(pat) => {
            bound.push(&pat.ident);
            if let Some((_, inner)) = &pat.subpat {
                bound_by(inner, bound);
            }
        }
        Pat::Paren(pat) => bound_by(&pat.pat, bound),
        Pat::Reference(pat) => bound_by(&pat.pat, bound),
        Pat::Slice(pat) => pat.elems.iter().for_each(|pat| bound_by(pat, bound)),
        Pat::Struct(pat) => pat.fields.iter().for_each(|field| bound_by(&field.pat, bound)),
        Pat::Tuple(pat) => pat.elems.iter().for_each(|pat| bound_by(pat, bound)),
        Pat::TupleStruct(pat) => pat.elems.iter().for_each(|pat| bound_by(pat, bound)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentions(tokens: &str, name: &str) -> bool {
        mention(tokens.parse().expect("tokens"), &syn::parse_str(name).expect("a name")).is_some()
    }

    #[test]
    fn a_name_is_found_where_it_stands_for_itself() {
        for tokens in [
            "a",
            "f(a)",
            "S { x: a }",
            "S { x: 1, ..a }",
            "0..a",
            "0..=a",
            "a.b",
            "S { a }",
            "(1, [a])",
            "x: a",
        ] {
            assert!(mentions(tokens, "a"), "{tokens}");
        }
        for tokens in ["b.a", "B::a", "b.c.a", "b . a()", "::a", "ab", "a::B", "S { a: 1 }"] {
            assert!(!mentions(tokens, "a"), "{tokens}");
        }
    }

    #[test]
    fn a_name_is_found_in_the_braces_of_a_text() {
        for text in ["{a}", "x {a:?} y", "{:a$}", "{b:.a$}", "{{{a}}}"] {
            assert!(mentions(&format!("format!({text:?})"), "a"), "{text}");
        }
        assert!(mentions("format!(\"{type}\")", "r#type"));
        for text in ["a", "a {b}", "{{a}}", "{b} a {c}", "{ab}", "{b:a}"] {
            assert!(!mentions(&format!("format!({text:?})"), "a"), "{text}");
        }
    }
}
