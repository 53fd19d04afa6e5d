//! What a call says of itself when it enters.

use proc_macro2::{Delimiter, Ident, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Expr, FnArg, LitStr, Signature};

use super::constants::Constants;
use super::function::plain_name;
use super::names::{binds_names, bound_by, for_each_name, mention};
use super::value;
use crate::args::{self, Args, Value};
use crate::errors::Errors;

/// What a call says of itself, besides the permits that it asks for.
pub(crate) struct Request {
    pub(crate) inbound: bool,
    pub(crate) priority: bool,
    pub(crate) origin: Option<Expr>,
    pub(crate) entrance: Option<Value<String>>,
    pub(crate) keys: Vec<Key>,
}

/// A value by which calls are told apart.
pub(crate) struct Key {
    pub(crate) name: LitStr,
    pub(crate) expr: Expr,
}

impl Request {
    pub(super) fn new(args: &mut Args, constants: &mut Constants) -> Self {
        let request = Self {
            inbound: value(args.inbound.take()).unwrap_or_default(),
            priority: value(args.priority.take()).unwrap_or_default(),
            origin: value(args.origin.take()),
            entrance: constants.take(args.entrance.take()),
            keys: keys(&args.hots, constants.errors),
        };
        for (what, expr) in request.exprs() {
            no_name_of_a_pattern(expr, constants.sig, constants.errors);
            stays_inside(what, expr, constants.errors);
        }
        request
    }

    /// Whether a call has nothing to say.
    pub(crate) fn is_plain(&self) -> bool {
        let Self { inbound, priority, origin, entrance, keys } = self;
        !inbound && !priority && origin.is_none() && entrance.is_none() && keys.is_empty()
    }

    /// Whether an expression of it uses `name`, perhaps in the text of a `format!`.
    pub(crate) fn mentions(&self, name: &Ident) -> bool {
        self.exprs().any(|(_, expr)| mention(expr.to_token_stream(), name).is_some())
    }

    /// The expressions that are evaluated for each call, and what they are for.
    fn exprs(&self) -> impl Iterator<Item = (&'static str, &Expr)> {
        let origin = self.origin.iter().map(|origin| ("origin", origin));
        origin.chain(self.keys.iter().map(|key| ("key", &key.expr)))
    }
}

/// The keys by their names: several rules may go by one.
fn keys(hots: &[args::Hot], errors: &mut Errors) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for hot in hots {
        let (Some(name), Some(given)) = (name_of(hot), &hot.key) else { continue };
        match keys.iter().find(|key| key.name.value() == name.value()) {
            None => keys.push(Key { name, expr: given.value.clone() }),
            Some(key) if text_of(&key.expr) == text_of(&given.value) => {}
            Some(key) => {
                let (name, other) = (name.value(), text_of(&key.expr));
                let message =
                    format!("`{name}` is the name of `{other}` already; give this key another `name`");
                match &hot.name {
                    Some(given) => errors.at(&given.value, message),
                    None => errors.at(&given.value, message),
                }
            }
        }
    }
    keys
}

/// The name by which rules find the key of a `hot(…)`: the text of its expression, unless it is given.
pub(super) fn name_of(hot: &args::Hot) -> Option<LitStr> {
    let key = &hot.key.as_ref()?.value;
    Some(hot.name.as_ref().map_or_else(|| LitStr::new(&text_of(key), key.span()), |name| name.value.clone()))
}

fn text_of(expr: &Expr) -> String {
    let mut text = String::new();
    write_text(expr.to_token_stream(), &mut text);
    text
}

/// Writes tokens about as rustfmt does, whatever the spaces between them were: rules that are loaded find the key by this.
fn write_text(tokens: TokenStream, text: &mut String) {
    // What an operator is depends on whether a value stands before it: `a & b`, `&b`.
    let (mut after_value, mut in_operator, mut n_generics) = (false, false, 0);
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace if after_value => (" { ", " }"),
                    Delimiter::Brace => ("{ ", " }"),
                    Delimiter::None => ("", ""),
                };
                text.push_str(open);
                write_text(group.stream(), text);
                text.truncate(text.trim_end().len());
                text.push_str(close);
                after_value = true;
            }
            TokenTree::Punct(punct) => {
                let (sign, is_joint) = (punct.as_char(), punct.spacing() == Spacing::Joint);
                let (continues, is_between) = (in_operator, in_operator || after_value);
                (after_value, in_operator) = (false, false);
                match sign {
                    ',' | ';' => text.extend([sign, ' ']),
                    '<' if text.ends_with("::") => {
                        text.push(sign);
                        n_generics += 1;
                    }
                    '>' if n_generics > 0 => {
                        text.push(sign);
                        n_generics -= 1;
                        after_value = true;
                    }
                    '?' => {
                        text.push(sign);
                        after_value = true;
                    }
                    '.' | ':' | '\'' => text.push(sign),
                    '!' if !is_joint => text.push(sign),
                    _ if is_between => {
                        text.extend((!continues).then_some(' '));
                        text.push(sign);
                        text.extend((!is_joint).then_some(' '));
                        in_operator = is_joint;
                    }
                    _ => text.push(sign),
                }
            }
            word => {
                if after_value {
                    text.push(' ');
                }
                let word = word.to_string();
                // `r#` is for the compiler.
                text.push_str(word.strip_prefix("r#").filter(|rest| !rest.contains('"')).unwrap_or(&word));
                after_value = true;
            }
        }
    }
}

/// Finds names that only the pattern of a parameter binds: an expression of the attribute does not see them.
fn no_name_of_a_pattern(expr: &Expr, sig: &Signature, errors: &mut Errors) {
    if binds_names(expr.to_token_stream()) {
        // What it binds itself it may call as it likes; the compiler tells the rest.
        return;
    }
    let mut bound = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Typed(typed) if plain_name(&typed.pat).is_none() => bound_by(&typed.pat, &mut bound),
            _ => {}
        }
    }
    for_each_name(expr.to_token_stream(), &mut |name, is_head| {
        if !is_head && bound.contains(&name) {
            let message = format!(
                "`{name}` is bound by a pattern, which is matched after the call has entered; give the parameter a \
                 name, and take it apart in the body"
            );
            errors.at(name, message);
        }
    });
}

/// Finds what would have to leave the function, or to wait in it, before the call has entered.
fn stays_inside(what: &str, expr: &Expr, errors: &mut Errors) {
    let tokens = expr.to_token_stream();
    let mut has_a_body_of_its_own = binds_names(tokens.clone());
    for_each_name(tokens.clone(), &mut |name, _| has_a_body_of_its_own |= name == "async");
    if !has_a_body_of_its_own {
        find_leaving(what, tokens, errors);
    }
}

fn find_leaving(what: &str, tokens: TokenStream, errors: &mut Errors) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => find_leaving(what, group.stream(), errors),
            TokenTree::Ident(word) if word == "await" => {
                let message = format!(
                    "`{what}` is looked at before the call has entered, where nothing is awaited; await it in the caller, \
                     and give it as an argument"
                );
                errors.at(word, message);
            }
            TokenTree::Punct(sign) if sign.as_char() == '?' => {
                let message = format!(
                    "`?` cannot leave the function before the call has entered; make it an `Option`, of which `None` is no \
                     {what}"
                );
                errors.at(sign, message);
            }
            _ => {}
        }
    }
}
