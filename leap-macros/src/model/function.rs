//! The function that the attribute stands on.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    AttrStyle, Attribute, Error, GenericArgument, Pat, Path, PathArguments, Result, ReturnType, Signature,
    Token, Type, TypeParamBound, Visibility, token,
};

/// A function whose body nobody has read.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) defaultness: Option<Token![default]>,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
}

impl Parse for Function {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let defaultness = input.parse()?;
        refuse_other_items(input)?;
        let sig: Signature = input.parse()?;
        if input.peek(Token![;]) {
            let message = "a method without a body cannot be guarded; put `#[guarded]` on the methods that \
                           implement it";
            return Err(Error::new_spanned(&sig.ident, message));
        }
        if !input.peek(token::Brace) {
            return Err(input.error("expected the body of the function"));
        }
        let mut body = whole_group(input.parse()?);

        // `#![…]` and `//!` at the top of a body speak of the function.
        let split =
            |input: ParseStream| Ok((input.call(Attribute::parse_inner)?, input.parse::<TokenStream>()?));
        let (inner, rest) = split.parse2(body.stream())?;
        if !inner.is_empty() {
            let span = body.span();
            body = Group::new(body.delimiter(), rest);
            body.set_span(span);
            attrs.extend(inner.into_iter().map(|attr| Attribute { style: AttrStyle::Outer, ..attr }));
        }
        Ok(Self { attrs, vis, defaultness, sig, body })
    }
}

/// The braces themselves, where a `$body:block` has brought them in an invisible group.
fn whole_group(mut token: TokenTree) -> Group {
    loop {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                token = group.stream().into_iter().next().expect("a brace was seen inside");
            }
            TokenTree::Group(group) => return group,
            _ => unreachable!("a brace was seen"),
        }
    }
}

/// Says what the attribute goes on, if it is put on anything but a function.
fn refuse_other_items(input: ParseStream) -> Result<()> {
    let found = if input.peek(Token![struct]) {
        "a struct"
    } else if input.peek(Token![enum]) {
        "an enum"
    } else if input.peek(Token![impl]) || input.peek(Token![unsafe]) && input.peek2(Token![impl]) {
        "an `impl` block"
    } else if input.peek(Token![trait]) || input.peek2(Token![trait]) {
        "a trait"
    } else if input.peek(Token![mod]) {
        "a module"
    } else if input.peek(Token![|])
        || input.peek(Token![move])
        || input.peek2(Token![|])
        || input.peek2(Token![move])
    {
        "a closure"
    } else if input.peek(Token![let]) {
        "a `let`"
    } else if input.peek(Token![static]) || input.peek(Token![const]) && input.peek3(Token![:]) {
        "a constant"
    } else if input.peek(Token![type]) {
        "a type"
    } else {
        return Ok(());
    };
    Err(input.error(format!("`#[guarded]` goes on a function or method with a body, not on {found}")))
}

/// The return type, if it says that what runs is a future or stream that the function only makes: `impl Future`,
/// `Pin<Box<dyn Future>>`, `BoxFuture`. What a type alias hides is not seen.
pub(super) fn returned_future(sig: &Signature) -> Option<&Type> {
    match &sig.output {
        ReturnType::Type(_, ty) if sig.asyncness.is_none() && is_future(ty) => Some(ty),
        _ => None,
    }
}

fn is_future(ty: &Type) -> bool {
    let any_bound = |bounds: &Punctuated<TypeParamBound, Token![+]>| {
        bounds.iter().any(|bound| match bound {
            TypeParamBound::Trait(bound) => names(&bound.path, &["Future", "IntoFuture", "Stream"]),
            _ => false,
        })
    };
    match ty {
        Type::ImplTrait(ty) => any_bound(&ty.bounds),
        Type::TraitObject(ty) => any_bound(&ty.bounds),
        Type::Paren(ty) => is_future(&ty.elem),
        Type::Path(ty)
            if names(&ty.path, &["BoxFuture", "LocalBoxFuture", "BoxStream", "LocalBoxStream"]) =>
        {
            true
        }
        Type::Path(ty) if names(&ty.path, &["Pin", "Box"]) => {
            match ty.path.segments.last().map(|last| &last.arguments) {
                Some(PathArguments::AngleBracketed(list)) => list
                    .args
                    .iter()
                    .any(|arg| matches!(arg, GenericArgument::Type(inner) if is_future(inner))),
                _ => false,
            }
        }
        _ => false,
    }
}

fn names(path: &Path, known: &[&str]) -> bool {
    path.segments.last().is_some_and(|last| known.iter().any(|name| last.ident == name))
}

/// The name that a parameter is taken by, if it is not a pattern.
pub(crate) fn plain_name(pat: &Pat) -> Option<&Ident> {
    match pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => Some(&pat.ident),
        _ => None,
    }
}
