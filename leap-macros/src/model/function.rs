//! The function that the attribute stands on.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, GenericArgument, Pat, PathArguments, Result, ReturnType, Signature, Token, Type,
    TypeParamBound, Visibility, token,
};

/// A function whose body nobody has read.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    /// Those at the top of the body, `#![…]` and `//!`.
    pub(crate) inner_attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) defaultness: Option<Token![default]>,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
}

impl Function {
    /// Reads an item without a look into its body: syn would take in every token of it, which takes longer than all the rest.
    pub(crate) fn new(item: TokenStream) -> Result<Self> {
        // What is no function is told where it goes wrong.
        Self::with_body_apart(item.clone()).map_or_else(|| syn::parse2(item), Ok)
    }

    fn with_body_apart(item: TokenStream) -> Option<Self> {
        let mut trees = trees(item);
        let body = braces(trees.pop()?)?;
        let read = |input: ParseStream| Ok((Self::parse_head(input)?, input.is_empty()));
        match read.parse2(trees.into_iter().collect()) {
            Ok((head, true)) => Self::with_body(head, body).ok(),
            _ => None,
        }
    }

    /// All that stands before the body.
    fn parse_head(input: ParseStream) -> Result<Head> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let defaultness = input.parse()?;
        refuse_other_items(input)?;
        Ok(Head { attrs, vis, defaultness, sig: input.parse()? })
    }

    fn with_body(Head { attrs, vis, defaultness, sig }: Head, mut body: Group) -> Result<Self> {
        let mut inner_attrs = Vec::new();
        // `#![…]` and `//!` at the top of a body speak of the function.
        let mut tokens = body.stream().into_iter();
        let mut next_is =
            |sign| matches!(tokens.next(), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
        if next_is('#') && next_is('!') {
            let split =
                |input: ParseStream| Ok((input.call(Attribute::parse_inner)?, input.parse::<TokenStream>()?));
            let (inner, rest) = split.parse2(body.stream())?;
            let span = body.span();
            body = Group::new(body.delimiter(), rest);
            body.set_span(span);
            inner_attrs = inner;
        }
        Ok(Self { attrs, inner_attrs, vis, defaultness, sig, body })
    }
}

struct Head {
    attrs: Vec<Attribute>,
    vis: Visibility,
    defaultness: Option<Token![default]>,
    sig: Signature,
}

impl Parse for Function {
    fn parse(input: ParseStream) -> Result<Self> {
        let head = Self::parse_head(input)?;
        if input.peek(Token![;]) {
            let message = "a function without a body cannot be guarded; put `#[guarded]` on the methods that \
                           implement it";
            return Err(Error::new_spanned(&head.sig.ident, message));
        }
        if !input.peek(token::Brace) {
            return Err(input.error("expected the body of the function"));
        }
        Self::with_body(head, braces(input.parse()?).expect("a brace was seen"))
    }
}

/// The tokens of an item, which a macro may have brought in an invisible group.
pub(super) fn trees(item: TokenStream) -> Vec<TokenTree> {
    let mut trees: Vec<TokenTree> = item.into_iter().collect();
    while let [TokenTree::Group(group)] = &trees[..]
        && group.delimiter() == Delimiter::None
    {
        trees = group.stream().into_iter().collect();
    }
    trees
}

/// The braces that a token is, also where a `$body:block` has brought them in an invisible group.
fn braces(mut token: TokenTree) -> Option<Group> {
    loop {
        let TokenTree::Group(group) = token else { return None };
        match group.delimiter() {
            Delimiter::Brace => return Some(group),
            Delimiter::None => token = group.stream().into_iter().next()?,
            Delimiter::Parenthesis | Delimiter::Bracket => return None,
        }
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, inner_attrs, vis, defaultness, sig, body } = self;
        let rest = body.stream();
        let mut whole = Group::new(body.delimiter(), quote! { #(#inner_attrs)* #rest });
        whole.set_span(body.span());
        tokens.extend(quote! { #(#attrs)* #vis #defaultness #sig #whole });
    }
}

/// Says what the attribute goes on, if it is put on anything but a function.
fn refuse_other_items(input: ParseStream) -> Result<()> {
    let found = if input.peek(Token![struct]) {
        "a struct"
    } else if input.peek(Token![enum]) {
        "an enum"
    } else if input.peek(Token![trait]) || input.peek2(Token![trait]) {
        "a trait"
    } else if input.peek(Token![mod]) {
        "a module"
    } else if input.peek(Token![use]) {
        "an import"
    } else if input.peek(Token![extern]) && (input.peek2(token::Brace) || input.peek3(token::Brace)) {
        "an `extern` block"
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
    Err(input.error(format!(
        "`#[guarded]` goes on a function or method with a body, or on an `impl` block, not on {found}"
    )))
}

/// What a call runs.
#[expect(clippy::large_enum_variant, reason = "there is one, as long as its function is looked at")]
pub(crate) enum Runs {
    /// The body, at once.
    Body,
    /// The body of an `async fn`.
    Async,
    /// A future or a stream that the body makes.
    Made(Made),
}

/// A future or a stream that a function makes and returns: `impl Future`, `Pin<Box<dyn Future>>`, `BoxFuture`.
pub(crate) struct Made {
    pub(crate) is_stream: bool,
    pub(crate) is_boxed: bool,
    /// What it yields, if its type says so, and not only an alias.
    pub(crate) output: Option<Type>,
    pub(crate) ty: Type,
    /// The async block that is all of the body.
    pub(crate) block: Option<AsyncBlock>,
}

/// A body that is nothing but an async block, perhaps in `Box::pin(…)`.
pub(crate) struct AsyncBlock {
    /// What stands before the parentheses.
    pub(crate) pin: Option<(TokenStream, Group)>,
    /// Where `async` stands.
    pub(crate) start: Span,
    pub(crate) body: Group,
}

impl Runs {
    /// Whether the body is nothing but an async block.
    pub(crate) fn is_async_block(&self) -> bool {
        matches!(self, Self::Made(Made { block: Some(_), .. }))
    }

    pub(super) fn of(function: &Function) -> Result<Self> {
        if function.sig.asyncness.is_some() {
            return Ok(Self::Async);
        }
        let ReturnType::Type(_, ty) = &function.sig.output else { return Ok(Self::Body) };
        let Some(MadeBy { is_boxed, is_stream, output }) = made_by(ty)? else { return Ok(Self::Body) };
        let block = if is_stream { None } else { AsyncBlock::of(&function.body) };
        Ok(Self::Made(Made { is_stream, is_boxed, output, ty: (**ty).clone(), block }))
    }
}

/// What a type says of what it is the type of.
struct MadeBy {
    is_boxed: bool,
    is_stream: bool,
    output: Option<Type>,
}

/// Whether a type says that it is a future or a stream. What an alias hides is not seen.
fn made_by(ty: &Type) -> Result<Option<MadeBy>> {
    match ty {
        Type::Paren(ty) => made_by(&ty.elem),
        Type::Group(ty) => made_by(&ty.elem),
        // Ours is `Unpin` in a box only.
        Type::ImplTrait(ty) => {
            Ok(of_bounds(&ty.bounds).map(|of| MadeBy { is_boxed: is_unpin(&ty.bounds), ..of }))
        }
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return Ok(None) };
            if last.ident == "BoxFuture" || last.ident == "LocalBoxFuture" {
                return Ok(Some(MadeBy { is_boxed: true, is_stream: false, output: None }));
            }
            if last.ident == "BoxStream" || last.ident == "LocalBoxStream" {
                return Ok(Some(MadeBy { is_boxed: true, is_stream: true, output: None }));
            }
            let argument = last_type(&last.arguments);
            if last.ident == "Pin"
                && let Some(Type::Path(inner)) = argument
                && let Some(inner) = inner.path.segments.last()
                && inner.ident == "Box"
            {
                let of = last_type(&inner.arguments).and_then(|ty| of_bounds(bounds(ty)?));
                return Ok(of.map(|of| MadeBy { is_boxed: true, ..of }));
            }
            if last.ident == "Box" && argument.is_some_and(|ty| bounds(ty).and_then(of_bounds).is_some()) {
                let message = "a boxed future or stream can be guarded where it is pinned: `Pin<Box<dyn …>>`, made by \
                               `Box::pin`";
                return Err(Error::new_spanned(ty, message));
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn is_unpin(bounds: &Punctuated<TypeParamBound, Token![+]>) -> bool {
    bounds.iter().any(|bound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last().is_some_and(|last| last.ident == "Unpin"),
        _ => false,
    })
}

fn last_type(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(list) = arguments else { return None };
    list.args.iter().rev().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

fn bounds(ty: &Type) -> Option<&Punctuated<TypeParamBound, Token![+]>> {
    match ty {
        Type::ImplTrait(ty) => Some(&ty.bounds),
        Type::TraitObject(ty) => Some(&ty.bounds),
        Type::Paren(ty) => bounds(&ty.elem),
        Type::Group(ty) => bounds(&ty.elem),
        _ => None,
    }
}

/// Whether bounds speak of a future or a stream, and what that yields.
fn of_bounds(bounds: &Punctuated<TypeParamBound, Token![+]>) -> Option<MadeBy> {
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let last = bound.path.segments.last()?;
        let is_stream = last.ident == "Stream";
        if !is_stream && last.ident != "Future" {
            return None;
        }
        let output = match &last.arguments {
            PathArguments::AngleBracketed(given) => given.args.iter().find_map(|argument| match argument {
                GenericArgument::AssocType(assoc) => Some(assoc.ty.clone()),
                _ => None,
            }),
            _ => None,
        };
        Some(MadeBy { is_boxed: false, is_stream, output })
    })
}

impl AsyncBlock {
    fn of(body: &Group) -> Option<Self> {
        let mut tokens = body.stream().into_iter().peekable();
        let is_async =
            |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Ident(word)) if word == "async");
        if is_async(tokens.peek()) {
            let (start, body) = async_block(tokens)?;
            return Some(Self { pin: None, start, body });
        }
        let mut path = TokenStream::new();
        let mut last = None;
        loop {
            match tokens.next()? {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                    let is_pin = last.is_some_and(|last: Ident| last == "pin");
                    let is_all = tokens.next().is_none();
                    let (start, body) = async_block(group.stream().into_iter())?;
                    return (is_pin && is_all).then_some(Self { pin: Some((path, group)), start, body });
                }
                TokenTree::Ident(word) => {
                    last = Some(word.clone());
                    path.extend([TokenTree::Ident(word)]);
                }
                TokenTree::Punct(colon) if colon.as_char() == ':' => path.extend([TokenTree::Punct(colon)]),
                _ => return None,
            }
        }
    }
}

/// Where `async { … }` or `async move { … }` starts, and its braces, if that is all there is.
fn async_block(tokens: impl Iterator<Item = TokenTree>) -> Option<(Span, Group)> {
    let mut tokens = tokens;
    let is = |token: &TokenTree, wanted: &str| matches!(token, TokenTree::Ident(word) if word == wanted);
    let start = tokens.next().filter(|token| is(token, "async"))?.span();
    let mut next = tokens.next()?;
    if is(&next, "move") {
        next = tokens.next()?;
    }
    let TokenTree::Group(body) = next else { return None };
    let is_end = match tokens.next() {
        None => true,
        Some(TokenTree::Punct(comma)) => comma.as_char() == ',' && tokens.next().is_none(),
        Some(_) => false,
    };
    (is_end && body.delimiter() == Delimiter::Brace).then_some((start, body))
}

/// The name that a parameter is taken by, if it is not a pattern.
pub(crate) fn plain_name(pat: &Pat) -> Option<&Ident> {
    match pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => Some(&pat.ident),
        _ => None,
    }
}
