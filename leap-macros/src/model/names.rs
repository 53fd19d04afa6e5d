//! The names that expressions use, and those that patterns bind.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::Pat;

/// Where an expression uses `name`, perhaps in the text of a `format!`.
pub(crate) fn mention(tokens: TokenStream, name: &Ident) -> Option<Span> {
    let mut found = None;
    for_each_name(tokens.clone(), &mut |other, _| {
        if other == name && found.is_none() {
            found = Some(other.span());
        }
    });
    found.or_else(|| in_text(tokens, name))
}

/// Where `name` may be meant in a text: `"{name}"`.
fn in_text(tokens: TokenStream, name: &Ident) -> Option<Span> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Group(group) => in_text(group.stream(), name),
        TokenTree::Literal(literal) => {
            let text = literal.to_string();
            let is_meant = text.contains('{') && text.split(|c| !is_of_word(c)).any(|word| name == word);
            is_meant.then(|| literal.span())
        }
        TokenTree::Ident(_) | TokenTree::Punct(_) => None,
    })
}

/// Visits the names in an expression that stand for themselves, and tells whether a path begins with them: what follows
/// `::` or `.` is a name in something else.
pub(super) fn for_each_name(tokens: TokenStream, visit: &mut impl FnMut(&Ident, bool)) {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    let mut is_path_head = true;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Group(group) => for_each_name(group.stream(), visit),
            TokenTree::Ident(name) if is_path_head => visit(name, tokens.peek().is_some_and(is_colon)),
            _ => {}
        }
        is_path_head = !matches!(&token, TokenTree::Punct(punct) if matches!(punct.as_char(), ':' | '.'));
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
