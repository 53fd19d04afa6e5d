//! The tokens of a guarded function. Nothing can go wrong here.

mod answer;
mod judge;
mod params;
mod request;
mod rules;
mod site;
mod types;
mod values;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Path, ReturnType, Signature};

use self::answer::{Answer, Place};
use self::params::Param;
use self::types::{Returned, without_opaque_types};
use crate::args::FallbackOn;
use crate::model::{AsyncBlock, Fallback, Guarded, Made, Runs};

/// The span of what is ours: its names and the user's do not see each other. Items of the user's are seen all the same, so
/// our names start with `__`.
fn ours() -> Span {
    Span::mixed_site()
}

pub(crate) fn expand(guarded: &Guarded) -> TokenStream {
    let expansion = Expansion::new(guarded);
    let block = match &guarded.runs {
        Runs::Body => expansion.of_body(),
        Runs::Async => expansion.of_async_fn(),
        Runs::Made(Made { block: Some(block), .. }) => expansion.of_async_block(block),
        Runs::Made(made) if made.is_stream => expansion.of_stream(made),
        Runs::Made(made) => expansion.of_future(made),
    };
    let function = &guarded.function;
    let inner_attrs = &function.inner_attrs;
    // Dead code is reported only where the braces have the span of the body.
    let block = braced(quote! { #(#inner_attrs)* #block }, function.body.span());
    let (attrs, vis, defaultness, sig) =
        (&function.attrs, &function.vis, &function.defaultness, expansion.sig());
    quote! { #(#attrs)* #vis #defaultness #sig #block }
}

/// A guarded function on its way to tokens.
struct Expansion<'a> {
    guarded: &'a Guarded,
    /// The signature with a name for each parameter; none if the parameters are taken where they stand.
    named: Option<Signature>,
    params: Vec<Param<'a>>,
    returned: Returned,
}

impl<'a> Expansion<'a> {
    fn new(guarded: &'a Guarded) -> Self {
        let returned = match &guarded.runs {
            Runs::Body | Runs::Async => Returned::of(&guarded.function.sig),
            Runs::Made(made) => Returned::of_made(made),
        };
        // An async block that is the whole body takes from the parameters what it uses, as in the plain function. Only a
        // fallback that is given all of them needs a name for each.
        let is_block = guarded.runs.is_async_block();
        let is_untouched = is_block && !guarded.fallback.as_ref().is_some_and(Fallback::takes_all);
        let (named, params) = params::name_params(guarded, is_block);
        Self { guarded, named: (!is_untouched).then_some(named), params, returned }
    }

    fn sig(&self) -> &Signature {
        self.named.as_ref().unwrap_or(&self.guarded.function.sig)
    }

    fn rebind(&self) -> TokenStream {
        match &self.named {
            Some(_) => {
                params::rebind(&self.guarded.function.sig, &self.params, self.guarded.runs.is_async_block())
            }
            None => TokenStream::new(),
        }
    }

    /// The fallback, if it answers for calls that failed.
    fn after(&self) -> Option<&'a Fallback> {
        self.guarded.fallback.as_ref().filter(|fallback| fallback.is_after_the_body())
    }

    /// Whether the body had the arguments when a call is answered.
    fn is_answered_after_the_body(&self) -> bool {
        self.after().is_some() || self.is_made()
    }

    /// Whether the body has run when a call enters.
    fn is_made(&self) -> bool {
        matches!(&self.guarded.runs, Runs::Made(Made { block: None, .. }))
    }

    /// The call site. After it comes the import, of which the whole block knows: a block that began with an item would be none
    /// that lints look at.
    fn site(&self) -> TokenStream {
        let (site, import) = (site::site(self.guarded), import(self.guarded.runtime.as_ref()));
        quote_spanned! {ours()=> let (__site, __permits) = #site; #import}
    }

    /// What answers a call that was turned away.
    fn turned_away(&self, place: Place) -> Answer {
        match &self.guarded.fallback {
            Some(fallback) if !fallback.is_after_the_body() => answer::of_fallback(fallback, place, self),
            fallback => {
                let (given, value) = answer::from_blocked(&self.returned);
                let is_spared = fallback.as_ref().is_some_and(|fallback| fallback.on == FallbackOn::Error);
                let note = is_spared.then(|| quote_spanned! {ours()=> __failed.spare();});
                let tokens = match place {
                    Place::Block => {
                        let bind = (self.named.is_some() && !self.is_made()).then(|| answer::take_all(self));
                        quote_spanned! {ours()=> #note #bind return #value;}
                    }
                    Place::Function | Place::Closure => quote_spanned! {ours()=> #note #value},
                };
                Answer { given, tokens }
            }
        }
    }

    /// Who wants every `return` to be written finds ours; after what never returns it would be unreachable.
    fn returns(&self, value: &TokenStream) -> TokenStream {
        if self.returned.is_never {
            value.clone()
        } else {
            quote_spanned! {ours()=> return #value;}
        }
    }

    /// The body in a closure. That stands at the body's span, so that lints of bodies take it for one.
    fn closure(&self, ty: &impl ToTokens) -> TokenStream {
        let function = &self.guarded.function;
        let (rebind, body, at_body) = (self.rebind(), body(&function.body), function.body.span());
        let block = braced(quote_spanned! {ours()=> #rebind #body }, at_body);
        // Of a function that a macro has written it is the macro's.
        let span = function.sig.fn_token.span.located_at(at_body);
        quote_spanned! {span=> move || -> #ty #block}
    }

    /// Runs the body where it stands.
    fn of_body(&self) -> TokenStream {
        let (guarded, ty) = (self.guarded, &self.returned.ty);
        let judge = judge::judge(guarded, &self.returned);
        let Answer { given, tokens: answer } = self.turned_away(Place::Function);
        let (site, enter) = (self.site(), request::enter(guarded));
        let body = self.closure(ty);
        // A judge that is all ours need not be contained.
        let run = match (self.after(), guarded.verdict.is_asked()) {
            (Some(_), _) => quote_spanned! {ours()=> __leap::run_noted(__entry, __failed, #body, #judge)},
            (None, true) => quote_spanned! {ours()=> __leap::run_judged(__entry, #body, #judge)},
            (None, false) => quote_spanned! {ours()=> __leap::run(__entry, #body, #judge)},
        };
        // By reference: an entry is large to move about. It is dropped, and the call ends, right after the match.
        let call = quote_spanned! {ours()=>
            match __entry {
                __leap::Ok(ref mut __entry) => #run,
                __leap::Err(#given) => { #answer }
            }
        };
        match self.after() {
            None => {
                let call = self.returns(&call);
                quote_spanned! {ours()=> #site let mut __entry = #enter; #call}
            }
            Some(fallback) => {
                let (kept, answer) =
                    (answer::kept(fallback, self), self.answer_failed(fallback, Place::Function));
                quote_spanned! {ours()=>
                    #kept
                    #site
                    let __failed = &__leap::Failed::new();
                    let __value: #ty = { let mut __entry = #enter; #call };
                    #answer
                }
            }
        }
    }

    /// An async function enters when it is first polled.
    fn of_async_fn(&self) -> TokenStream {
        let (rebind, body) = (self.rebind(), body(&self.guarded.function.body));
        let (site, begin) = (self.site(), request::begin(self.guarded, &self.params));
        let kept = self.after().map(|fallback| answer::kept(fallback, self));
        let run = self.awaited(&quote_spanned! {ours()=> #rebind #body}, self.guarded.function.body.span());
        quote_spanned! {ours()=> #kept #site #begin #run }
    }

    /// A body that is nothing but an async block is as that of an async function.
    fn of_async_block(&self, block: &AsyncBlock) -> TokenStream {
        let (rebind, body) = (self.rebind(), body(&block.body));
        // What a block has captured it keeps in any case, so that its keys may borrow it.
        let (site, begin) = (self.site(), request::begin(self.guarded, &[]));
        let run = self.awaited(&quote_spanned! {ours()=> #rebind #body}, block.body.span());
        let kept = self.after().map(|fallback| answer::kept(fallback, self));
        let hint = self.after().map(|_| self.hint());
        // Where the user's block is: so lints of what a body ends with speak of it.
        let run = braced(quote_spanned! {ours()=> #hint #kept #site #begin #run }, block.body.span());
        let run = quote_spanned! {block.start=> async move #run};
        match &block.pin {
            None => run,
            Some((path, group)) => {
                let mut pinned = Group::new(Delimiter::Parenthesis, run);
                pinned.set_span(group.span());
                quote! { #path #pinned }
            }
        }
    }

    /// Any other body that makes a future is run when the function is called, as in the plain function; the call enters
    /// when the future is first polled.
    fn of_future(&self, made: &Made) -> TokenStream {
        let (site, body) = (self.site(), self.make());
        let (bind, begin) = request::begin_later(self.guarded);
        // The fallback gets its arguments when the body has had them.
        let kept = self.guarded.fallback.as_ref().map(|fallback| answer::kept(fallback, self));
        let judge = judge::judge(self.guarded, &self.returned);
        let Answer { given, tokens: answer } = self.turned_away(Place::Block);
        let hint = self.hint();
        let begin = quote_spanned! {ours()=> move || #begin};
        let answer = quote_spanned! {ours()=> move |#given| async move { #hint #answer }};
        let future = match self.after() {
            None => quote_spanned! {ours()=> __leap::run_made(#begin, __made, #judge, #answer)},
            Some(fallback) => {
                let after = self.answer_failed(fallback, Place::Block);
                quote_spanned! {ours()=>
                    async move {
                        #hint
                        let __failed = &__leap::Failed::new();
                        let __value = __leap::run_made_noted(#begin, __failed, __made, #judge, #answer).await;
                        #after
                    }
                }
            }
        };
        let future = pinned(future, made);
        quote_spanned! {ours()=> #kept #site #bind #body return #future; }
    }

    /// The call of a stream enters when it is first polled, and ends when the stream does.
    fn of_stream(&self, made: &Made) -> TokenStream {
        let (site, body) = (self.site(), self.make());
        let (bind, begin) = request::begin_later(self.guarded);
        let judge = judge::judge(self.guarded, &self.returned);
        let kept = self.guarded.fallback.as_ref().map(|fallback| answer::kept(fallback, self));
        let Answer { given, tokens: answer } = self.turned_away(Place::Closure);
        let answer = match &self.guarded.fallback {
            Some(_) => answer,
            None => quote_spanned! {ours()=> __leap::once(#answer)},
        };
        let stream = quote_spanned! {ours()=>
            __leap::run_stream(move || #begin, __made, #judge, move |#given| { #answer })
        };
        let stream = pinned(stream, made);
        quote_spanned! {ours()=> #kept #site #bind #body return #stream; }
    }

    /// Has the body make its future or stream.
    fn make(&self) -> TokenStream {
        let ty = match &self.guarded.function.sig.output {
            ReturnType::Type(_, ty) => without_opaque_types(ty).into_token_stream(),
            ReturnType::Default => TokenStream::new(),
        };
        let body = self.closure(&ty);
        quote_spanned! {ours()=> let __made = __leap::made(#body); }
    }

    /// Runs `body` in an async block that first of all answers a call that was turned away, which may be known only after a
    /// wait. Nothing is awaited before the arguments are in the block: they would be kept twice.
    fn awaited(&self, body: &TokenStream, at_body: Span) -> TokenStream {
        let hint = self.hint();
        let judge = judge::judge(self.guarded, &self.returned);
        let Answer { given, tokens: answer } = self.turned_away(Place::Block);
        let block = quote_spanned! {ours()=>
            #hint
            if __leap::is_turned_away() {
                let #given = __leap::turned_away();
                #answer
            }
            #body
        };
        let (future, block) = (quote_spanned! {at_body=> async move}, braced(block, at_body));
        let block = quote! { #future #block };
        match self.after() {
            None => {
                // A judge that is all ours need not be contained.
                let run = if self.guarded.verdict.is_asked() { "run_async_judged" } else { "run_async" };
                let run = Ident::new(run, ours());
                self.returns(&quote_spanned! {ours()=> __leap::#run(__begun, #block, #judge).await})
            }
            Some(fallback) => {
                let answer = self.answer_failed(fallback, Place::Block);
                quote_spanned! {ours()=>
                    let __failed = &__leap::Failed::new();
                    let __value = __leap::run_async_noted(__begun, __failed, #block, #judge).await;
                    #answer
                }
            }
        }
    }

    /// Tells an async block its type, without which `Box<dyn Trait>` would not coerce. It never runs.
    fn hint(&self) -> Option<TokenStream> {
        (!self.returned.is_never).then(|| {
            let (ty, span) = (&self.returned.ty, ours().located_at(self.returned.span));
            quote_spanned! {span=>
                if false {
                    return __leap::never::<#ty>();
                }
            }
        })
    }

    /// What becomes of the `__value` of a call: the fallback answers if it failed.
    fn answer_failed(&self, fallback: &Fallback, place: Place) -> TokenStream {
        let Answer { given, tokens: answer } = answer::of_fallback(fallback, place, self);
        let span = fallback.on_key.as_ref().map_or_else(ours, |key| ours().located_at(key.span()));
        let failed = quote_spanned! {span=> __leap::error_in(__failed, __value)};
        self.returns(&quote_spanned! {ours()=>
            match #failed {
                __leap::Ok(__value) => __value,
                __leap::Err(#given) => { #answer }
            }
        })
    }
}

/// In a pinned box, where the function returns one.
fn pinned(tokens: TokenStream, made: &Made) -> TokenStream {
    if made.is_boxed {
        quote_spanned! {ours()=> __leap::Box::pin(#tokens)}
    } else {
        tokens
    }
}

fn braced(tokens: TokenStream, span: Span) -> Group {
    let mut group = Group::new(Delimiter::Brace, tokens);
    group.set_span(span);
    group
}

/// The body, as it was written. The arm of a `match` drops the temporaries of its last expression before any argument, as
/// a function does; a block does so since edition 2024 only.
fn body(body: &Group) -> TokenStream {
    quote_spanned! {body.span()=> match () { () => #body }}
}

/// Brings the name under which an expansion finds what it calls: `::leap_runtime::__private`, unless the user says otherwise.
/// One name, so that a runtime which is not there is told once.
fn import(runtime: Option<&Path>) -> TokenStream {
    match runtime {
        Some(path) => quote_spanned! {ours()=> use #path::__private as __leap;},
        None => quote_spanned! {ours()=> use ::leap_runtime::__private as __leap;},
    }
}

#[cfg(test)]
mod tests;
