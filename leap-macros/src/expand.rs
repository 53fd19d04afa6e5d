//! The tokens of a guarded function. Nothing can go wrong here.

mod rules;

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, ExprPath, FnArg, GenericArgument, Pat, PatType, Path, PathArguments, ReceiverKind,
    ReturnType, Signature, Type, TypeParamBound, parse_quote_spanned,
};

use crate::args::Value;
use crate::model::{Guarded, Key, Request, Verdict, plain_name};

/// The span of what is ours: its names and the user's do not see each other. Items of the user's are seen all the same, so
/// our names start with `__`.
fn ours() -> Span {
    Span::mixed_site()
}

pub(crate) fn expand(guarded: &Guarded) -> TokenStream {
    let function = &guarded.function;
    let leap = Leap(guarded.runtime.as_ref());
    let (sig, params) = name_params(&function.sig, &guarded.request);
    let returned = Returned::of(&function.sig, leap);
    let site = site(guarded, leap);
    let judge = judge(&guarded.verdict, &returned, leap);
    let turned_away = match &guarded.fallback {
        Some(path) => call_fallback(path, &function.sig, &params, &returned, leap),
        None => from_blocked(&function.sig, &params, &returned, leap),
    };
    let rebind = rebind(&function.sig, &params);
    let (ty, body) = (&returned.ty, body(&function.body));
    let TurnedAway { blocked, answer } = &turned_away;
    let call = match sig.asyncness {
        // An async function enters when it is first polled. Nothing is awaited before its arguments are in the
        // block: they would be kept twice. So it is the block that answers for a call that was turned away, which may
        // be known only after a wait.
        Some(_) => {
            // Tells the block its type, without which `Box<dyn Trait>` would not coerce. It never runs.
            let returns = (!returned.is_never).then(|| {
                let span = ours().located_at(returned.span);
                let leap = leap.at(span);
                quote_spanned! {span=>
                    if false {
                        return #leap::never::<#ty>();
                    }
                }
            });
            let begin = begin(guarded, &params, leap);
            quote_spanned! {ours()=>
                #begin
                #leap::run_async(
                    __begun,
                    async move {
                        #returns
                        if #leap::is_turned_away() {
                            let #blocked = #leap::turned_away();
                            #answer
                        }
                        #rebind
                        #body
                    },
                    #judge
                ).await
            }
        }
        // By reference: an entry is large to move about. It is dropped, and the call ends, right after the match.
        None => {
            // A judge that is all ours need not be contained.
            let run = if guarded.verdict.is_asked() { "run_judged" } else { "run" };
            let run = Ident::new(run, ours());
            let enter = request(guarded, ["enter", "enter_with"], leap);
            quote_spanned! {ours()=>
                let mut __entry = #enter;
                match __entry {
                    #leap::Ok(ref mut __entry) => #leap::#run(__entry, move || -> #ty { #rebind #body }, #judge),
                    #leap::Err(#blocked) => { #answer }
                }
            }
        }
    };
    let block = quote_spanned! {ours()=>
        let (__site, __permits) = #site;
        #call
    };
    // Dead code is reported only where the braces have the span of the body.
    let block = braced(block, function.body.span());
    let (attrs, vis, defaultness) = (&function.attrs, &function.vis, &function.defaultness);
    quote! { #(#attrs)* #vis #defaultness #sig #block }
}

fn braced(tokens: TokenStream, span: Span) -> Group {
    let mut group = Group::new(Delimiter::Brace, tokens);
    group.set_span(span);
    group
}

/// The body, in braces of the user's edition, which decides when the temporaries of its last expression are dropped.
/// The semicolon keeps the compiler from calling the braces around a body of one expression unnecessary.
fn body(body: &Group) -> Group {
    let mut tokens = quote_spanned! {ours()=> ;};
    tokens.extend(body.stream());
    braced(tokens, body.span())
}

/// Where an expansion finds what it calls: `::leap_runtime::__private`.
#[derive(Clone, Copy)]
struct Leap<'a>(Option<&'a Path>);

impl Leap<'_> {
    /// The same path, blamed on the tokens at `span`.
    fn at(self, span: Span) -> TokenStream {
        let Some(path) = self.0 else {
            return quote_spanned! {span=> ::leap_runtime::__private};
        };
        let moved = path.to_token_stream().into_iter().map(|mut token| {
            token.set_span(token.span().located_at(span));
            token
        });
        let path: TokenStream = moved.collect();
        quote_spanned! {span=> #path::__private}
    }
}

impl ToTokens for Leap<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self.0 {
            Some(path) => tokens.extend(quote_spanned! {ours()=> #path::__private}),
            None => tokens.extend(self.at(ours())),
        }
    }
}

/// The call site and the permits that a call asks for. The names of items are not hygienic, so they stand in
/// a block of their own, which the body does not see.
fn site(guarded: &Guarded, leap: Leap<'_>) -> TokenStream {
    let rules = guarded.rules.iter().map(|rule| rules::build(rule, guarded, leap));
    let n_rules = Literal::usize_unsuffixed(rules.len());
    let resource = option(guarded.resource.as_ref().map(|name| self::name(name, leap)), leap);
    // As an item, a bad value is an error of `cargo check` too.
    let (permits, constant) = match &guarded.permits {
        None => (quote_spanned! {ours()=> 1}, None),
        Some(permits @ Value { known: Some(_), .. }) => (whole(permits), None),
        Some(Value { known: None, expr }) => {
            let leap = leap.at(expr.span());
            let permits = quote_spanned! {expr.span()=> #leap::permits(#expr)};
            (
                quote_spanned! {ours()=> __PERMITS},
                Some(quote_spanned! {ours()=> const __PERMITS: u32 = #permits;}),
            )
        }
    };
    quote_spanned! {ours()=>
        {
            static __RULES: [#leap::Rule; #n_rules] = [#(#rules),*];
            fn __here() -> &'static str {
                #leap::path_of(#leap::type_name_of_val(&__here))
            }
            static __SITE: #leap::CallSite = #leap::CallSite::new(#resource, __here, &__RULES);
            #constant
            (&__SITE, #permits)
        }
    }
}

/// What a call asks for: `enter(__permits)`, or `enter_with(&Request { … })` if it has more to say.
fn request(guarded: &Guarded, [plain, with]: [&str; 2], leap: Leap<'_>) -> TokenStream {
    let request = &guarded.request;
    if request.is_plain() {
        let plain = Ident::new(plain, ours());
        return quote_spanned! {ours()=> __site.#plain(__permits)};
    }
    let with = Ident::new(with, ours());
    let (priority, inbound) = (request.priority, request.inbound);
    let origin = match &request.origin {
        None => option(None, leap),
        Some(expr) => {
            let origin = looked_at(expr, ["ToOrigin", "to_origin"], leap);
            // By its path: what else is called `as_deref` is the user's.
            quote_spanned! {ours()=> #leap::Option::as_deref(&#leap::origin(__site, #origin))}
        }
    };
    let entrance = request.entrance.as_ref().map(|entrance| {
        let name = name(entrance, leap);
        match entrance.unknown() {
            None => name,
            Some(_) => quote_spanned! {ours()=> { const __ENTRANCE: &str = #name; __ENTRANCE }},
        }
    });
    let entrance = option(entrance, leap);
    let keys = request.keys.iter().map(|Key { name, expr }| {
        let key = looked_at(expr, ["ToKey", "to_key"], leap);
        quote_spanned! {ours()=> (#name, #leap::key(__site, #key))}
    });
    quote_spanned! {ours()=>
        __site.#with(&#leap::Request {
            permits: __permits,
            priority: #priority,
            inbound: #inbound,
            origin: #origin,
            entrance: #entrance,
            keys: &[#(#keys),*],
        })
    }
}

/// Begins the call of an async function, in a statement of its own: what the request is made of is not kept while the
/// block is awaited.
fn begin(guarded: &Guarded, params: &[Param<'_>], leap: Leap<'_>) -> TokenStream {
    let begin = request(guarded, ["begin", "begin_with"], leap);
    let lent: Vec<&Ident> =
        params.iter().filter(|param| param.is_mentioned).map(|param| &param.name).collect();
    if lent.is_empty() {
        return quote_spanned! {ours()=> let __begun = #begin;};
    }
    // What a future has borrowed it keeps, even when it has moved it away: so keys are looked at in a function.
    quote_spanned! {ours()=>
        let (__begun, (#(#lent,)*)) = #leap::lend((#(#lent,)*), |(#(#lent,)*)| (#begin, (#(#lent,)*)));
    }
}

/// A closure that asks a trait of the runtime about the value of an expression, which it borrows. What does not fit is
/// blamed on the expression.
fn looked_at(expr: &Expr, [of, method]: [&str; 2], leap: Leap<'_>) -> TokenStream {
    let span = expr.span();
    let (leap, of, method) = (leap.at(span), Ident::new(of, span), Ident::new(method, span));
    let borrowed = match expr {
        // Without parentheses all of it is underlined, not its first token.
        Expr::Path(_)
        | Expr::Field(_)
        | Expr::Index(_)
        | Expr::Call(_)
        | Expr::MethodCall(_)
        | Expr::Macro(_) => {
            quote_spanned! {span=> &#expr}
        }
        _ => quote_spanned! {span=> &(#expr)},
    };
    let asked = quote_spanned! {span=> #leap::#of::#method(#borrowed)};
    quote_spanned! {ours()=> || #asked}
}

fn option(value: Option<TokenStream>, leap: Leap<'_>) -> TokenStream {
    match value {
        Some(value) => quote_spanned! {ours()=> #leap::Some(#value)},
        None => quote_spanned! {ours()=> #leap::None},
    }
}

/// A name: as the literal that it was, or as the expression that it is, checked where that stands.
fn name(name: &Value<String>, leap: Leap<'_>) -> TokenStream {
    let expr = &name.expr;
    match &name.known {
        Some(name) => literal(Literal::string(name), expr.span()),
        None => {
            let leap = leap.at(expr.span());
            quote_spanned! {expr.span()=> #leap::name(#expr)}
        }
    }
}

/// A whole number: as the literal that it was, less its suffix, or as the expression that it is.
fn whole<N: Copy + Into<u64>>(value: &Value<N>) -> TokenStream {
    match value.known {
        Some(number) => literal(Literal::u64_unsuffixed(number.into()), value.expr.span()),
        None => value.expr.to_token_stream(),
    }
}

/// A number of any type as a float.
fn float(value: &Value<f64>) -> TokenStream {
    match (value.known, &value.expr) {
        (Some(number), expr) => literal(Literal::f64_suffixed(number), expr.span()),
        (None, expr) => quote_spanned! {ours().located_at(expr.span())=> (#expr) as f64},
    }
}

fn literal(mut literal: Literal, span: Span) -> TokenStream {
    literal.set_span(span);
    TokenTree::from(literal).into()
}

/// How the value that the body returned is judged: `ignore`, then `ok_if`, then `err_if`, then whether it is an `Err`.
/// That is found by type, so an alias of `Result` is no secret.
fn judge(verdict: &Verdict, returned: &Returned, leap: Leap<'_>) -> TokenStream {
    if returned.is_never {
        return quote_spanned! {ours()=> |_| #leap::Outcome::Success};
    }
    let ignored = verdict.ignore.as_ref().map(|pattern| {
        let span = pattern.span();
        let (leap_at, returned) = (leap.at(span), Ident::new("__returned", span));
        let error = quote_spanned! {span=> #leap_at::error_of(#returned)};
        quote_spanned! {ours()=>
            let #returned = __value;
            if let #leap::Some(__error) = #error {
                match __error {
                    #pattern => return #leap::Outcome::Ignored,
                    _ => {}
                }
            }
        }
    });
    let told = [(&verdict.ok_if, "Success"), (&verdict.err_if, "Exception")];
    let told = told.into_iter().filter_map(|(predicate, outcome)| {
        let (predicate, outcome) = (predicate.as_ref()?, Ident::new(outcome, ours()));
        Some(quote_spanned! {ours()=>
            if #leap::holds(__value, #predicate) {
                return #leap::Outcome::#outcome;
            }
        })
    });
    quote_spanned! {ours()=>
        |__value| {
            use #leap::{ViaAny as _, ViaResult as _};
            #ignored
            #(#told)*
            (&#leap::Judged(__value)).leap_outcome()
        }
    }
}

/// What a function returns.
struct Returned {
    /// The type as it may be written inside the function.
    ty: Type,
    /// Where to say that the type will not do.
    span: Span,
    is_never: bool,
}

impl Returned {
    fn of(sig: &Signature, leap: Leap<'_>) -> Self {
        match &sig.output {
            ReturnType::Default => {
                Self { ty: parse_quote_spanned! {ours()=> ()}, span: sig.ident.span(), is_never: false }
            }
            ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_)) => {
                // As a type argument `!` is not stable; its alias is.
                let (span, leap) = (ty.span(), leap.at(ty.span()));
                Self { ty: parse_quote_spanned! {span=> #leap::Never}, span, is_never: true }
            }
            ReturnType::Type(_, ty) => {
                Self { ty: without_opaque_types(ty), span: ty.span(), is_never: false }
            }
        }
    }
}

/// `ty` as it may be written in a body: with `_` for each `impl Trait`.
fn without_opaque_types(ty: &Type) -> Type {
    let mut ty = ty.clone();
    with_plain_groups(&mut ty);
    edit_type(&mut ty, &mut |ty| {
        if let Type::ImplTrait(opaque) = ty {
            *ty = parse_quote_spanned! {opaque.impl_token.span=> _};
        }
    });
    ty
}

/// Puts `dyn A + B` that came as a fragment of `macro_rules!` in parentheses: behind `&`, the invisible group that it
/// came in is not enough once it has been through a macro like this one.
fn with_plain_groups(ty: &mut Type) {
    edit_type(ty, &mut |ty| {
        if let Type::Group(group) = ty
            && matches!(*group.elem, Type::TraitObject(_) | Type::ImplTrait(_))
        {
            let elem = &group.elem;
            *ty = parse_quote_spanned! {ours()=> (#elem)};
        }
    });
}

/// Edits a type and the types that it is made of.
fn edit_type(ty: &mut Type, edit: &mut impl FnMut(&mut Type)) {
    edit(ty);
    match ty {
        Type::Array(ty) => edit_type(&mut ty.elem, edit),
        Type::Group(ty) => edit_type(&mut ty.elem, edit),
        Type::Paren(ty) => edit_type(&mut ty.elem, edit),
        Type::Ptr(ty) => edit_type(&mut ty.elem, edit),
        Type::Reference(ty) => edit_type(&mut ty.elem, edit),
        Type::Slice(ty) => edit_type(&mut ty.elem, edit),
        Type::Tuple(ty) => ty.elems.iter_mut().for_each(|ty| edit_type(ty, edit)),
        Type::Path(ty) => edit_path(&mut ty.path, edit),
        Type::TraitObject(ty) => ty.bounds.iter_mut().for_each(|bound| {
            if let TypeParamBound::Trait(bound) = bound {
                edit_path(&mut bound.path, edit);
            }
        }),
        _ => {}
    }
}

fn edit_path(path: &mut Path, edit: &mut impl FnMut(&mut Type)) {
    for segment in &mut path.segments {
        if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
            for argument in &mut arguments.args {
                match argument {
                    GenericArgument::Type(ty) => edit_type(ty, edit),
                    GenericArgument::AssocType(assoc) => edit_type(&mut assoc.ty, edit),
                    _ => {}
                }
            }
        }
    }
}

/// A parameter: the name that it has in the signature, and the pattern that the body takes it by.
struct Param<'a> {
    attrs: &'a [Attribute],
    name: Ident,
    pat: &'a Pat,
    /// Whether an expression of the attribute uses it.
    is_mentioned: bool,
}

/// The signature with a name for each parameter, and the patterns that stood there.
fn name_params<'a>(sig: &'a Signature, request: &Request) -> (Signature, Vec<Param<'a>>) {
    let typed = sig.inputs.iter().enumerate().filter_map(|(index, input)| match input {
        FnArg::Receiver(_) => None,
        FnArg::Typed(PatType { attrs, pat, .. }) => Some((index, attrs, &**pat)),
    });
    let mut named = sig.clone();
    if let ReturnType::Type(_, ty) = &mut named.output {
        with_plain_groups(ty);
    }
    let mut params = Vec::new();
    for (index, attrs, pat) in typed {
        let is_mentioned = plain_name(pat).is_some_and(|name| request.mentions(name));
        let name = match plain_name(pat) {
            // A plain name stays: documentation shows it, and keys are found by it.
            Some(name) => {
                let mut name = name.clone();
                if name.to_string().starts_with('_') && !is_mentioned {
                    // Else the user would seem to use what is named as unused.
                    name.set_span(ours().located_at(name.span()));
                }
                name
            }
            None => Ident::new(&format!("__arg{index}"), ours()),
        };
        if let Some(FnArg::Typed(typed)) = named.inputs.get_mut(index) {
            *typed.pat = parse_quote_spanned! {name.span()=> #name};
            with_plain_groups(&mut typed.ty);
        }
        params.push(Param { attrs, name, pat, is_mentioned });
    }
    (named, params)
}

/// Binds all arguments again where the body is, one after the other: so they are dropped when and in the order in
/// which those of the plain function are.
fn rebind(sig: &Signature, params: &[Param<'_>]) -> TokenStream {
    let receiver = sig.receiver().filter(|receiver| !matches!(receiver.kind, ReceiverKind::Reference(..)));
    let receiver = receiver.map(|receiver| {
        // All of `self` goes where the body goes, even if the body names one field.
        let this = &receiver.self_token;
        quote_spanned! {ours()=> let _ = &#this;}
    });
    let params = params.iter().map(|Param { attrs, name, pat, is_mentioned }| match pat {
        Pat::Ident(plain) if plain.ident == *name => {
            // A name that says that it is not used is used here, by us.
            let is_unused = name.to_string().starts_with('_');
            let lints = is_unused.then(|| {
                quote_spanned! {ours()=>
                    #[allow(
                        clippy::no_effect_underscore_binding,
                        clippy::used_underscore_binding,
                        reason = "the name is the user's, the use is the attribute's"
                    )]
                }
            });
            // One that only the attribute uses is used all the same.
            let used =
                (*is_mentioned && !is_unused).then(|| quote_spanned! {ours()=> #(#attrs)* let _ = &#name;});
            quote_spanned! {ours()=> #lints #(#attrs)* let #pat = #name; #used}
        }
        Pat::Wild(_) => quote_spanned! {ours()=> #(#attrs)* let #name = #name;},
        _ => {
            let mutability = has_ref_mut(pat.to_token_stream()).then(|| quote_spanned! {ours()=> mut});
            quote_spanned! {ours()=>
                #(#attrs)* let #mutability #name = #name;
                #(#attrs)* let #pat = #name;
            }
        }
    });
    quote! { #receiver #(#params)* }
}

/// Whether a pattern borrows what it takes apart mutably.
fn has_ref_mut(pattern: TokenStream) -> bool {
    let mut after_ref = false;
    pattern.into_iter().any(|token| {
        let found = match &token {
            TokenTree::Group(group) => has_ref_mut(group.stream()),
            TokenTree::Ident(name) => after_ref && name == "mut",
            _ => false,
        };
        after_ref = matches!(&token, TokenTree::Ident(name) if name == "ref");
        found
    })
}

/// What becomes of a call that was turned away.
struct TurnedAway {
    /// The name that the answer knows the `Blocked` by.
    blocked: Ident,
    answer: TokenStream,
}

/// The return type itself says that the call was blocked.
fn from_blocked(sig: &Signature, params: &[Param<'_>], returned: &Returned, leap: Leap<'_>) -> TurnedAway {
    // Blamed on the return type; for the compiler to do so, the variable must be the user's, in name and span.
    let (leap_at, blocked) = (leap.at(returned.span), Ident::new("__blocked", returned.span));
    let value = quote_spanned! {returned.span=> #leap_at::FromBlocked::from_blocked(#blocked)};
    let answer = match sig.asyncness {
        Some(_) => {
            // Dropped as a function drops its arguments; a block drops what it has captured the other way round.
            let (bind, _) = take_arguments(sig, params, ours());
            quote_spanned! {ours()=> #bind return #value;}
        }
        None => value,
    };
    TurnedAway { blocked, answer }
}

/// Takes all arguments as the caller passed them, and the names that they are taken under.
fn take_arguments(sig: &Signature, params: &[Param<'_>], span: Span) -> (TokenStream, Vec<Ident>) {
    let receiver =
        sig.receiver().map(|receiver| (&receiver.attrs[..], Ident::new("self", receiver.self_token.span)));
    let passed = receiver.into_iter().chain(params.iter().map(|param| (param.attrs, param.name.clone())));
    let mut names = Vec::new();
    let bind = passed.enumerate().map(|(index, (attrs, passed))| {
        let name = Ident::new(&format!("__argument{index}"), span);
        let bind = quote_spanned! {ours()=> #(#attrs)* let #name = #passed;};
        names.push(name);
        bind
    });
    let bind = bind.collect();
    (bind, names)
}

/// The fallback answers, given all arguments as the caller passed them.
fn call_fallback(
    path: &ExprPath,
    sig: &Signature,
    params: &[Param<'_>],
    returned: &Returned,
    leap: Leap<'_>,
) -> TurnedAway {
    // What does not fit is blamed on the path. The arguments are ours, lest the compiler propose to edit them.
    let span = ours().located_at(path.span());
    let (bind, arguments) = take_arguments(sig, params, span);
    let call = quote_spanned! {span=> #path(#(#arguments,)* __blocked)};
    // The fallback of an async function may be async or not; its type tells.
    let answer = if returned.is_never {
        call
    } else if sig.asyncness.is_some() {
        let ty = &returned.ty;
        quote_spanned! {span=>
            use #leap::{ViaFuture as _, ViaValue as _};
            let (__answer, __kind) = #leap::Answer::<_, #ty>::of(#call);
            let __way = (&__kind).leap_way();
            return __way.settle(__answer).await;
        }
    } else {
        quote_spanned! {span=> return #call; }
    };
    let answer = quote_spanned! {ours()=>
        #bind
        #answer
    };
    TurnedAway { blocked: Ident::new("__blocked", ours()), answer }
}

#[cfg(test)]
mod tests;
