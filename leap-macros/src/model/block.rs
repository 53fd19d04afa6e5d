//! An `impl` block, whose methods are guarded each for itself.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Error, ImplItem, LitStr, Meta, MetaList, Result, Token, Visibility};

use super::function::{Function, trees};
use super::names::mention;
use crate::args::Args;
use crate::errors::Errors;

pub(crate) struct Block {
    /// All that stands before the braces.
    head: TokenStream,
    braces: Span,
    members: Vec<Member>,
}

enum Member {
    /// A method that is guarded.
    Method(TokenStream),
    /// What is no method, is left out, or has an attribute of its own.
    Other(TokenStream),
}

/// Whether an item is an `impl` block: by its first word, or that after `unsafe`.
pub(crate) fn is_block(item: &TokenStream) -> bool {
    let words = trees(item.clone()).into_iter().filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word),
        _ => None,
    });
    let mut words = words.skip_while(|word| word == "unsafe");
    words.next().is_some_and(|first| first == "impl")
}

impl Block {
    /// Looks at the arguments of all methods as those of a block.
    pub(crate) fn check(&self, args: &Args) -> Result<()> {
        let mut errors = Errors::default();
        if let Some(resource) = &args.resource {
            let message = "each method of the block is a resource of its own, with its own limits; give a `resource` to \
                           single methods, by an attribute of their own";
            errors.at(&resource.key, message);
        }
        if let Some(skip) = &args.skip {
            errors.at(&skip.key, "`skip` stands on the methods of a guarded block that are left out");
        }
        if !self.members.iter().any(|member| matches!(member, Member::Method(_))) {
            errors.at(&self.head, "there is no method to guard in this block");
        }
        errors.or(())
    }

    /// The block, with what becomes of its methods.
    pub(crate) fn with_methods(self, become_of: impl Fn(TokenStream) -> TokenStream) -> TokenStream {
        let members = self.members.into_iter().map(|member| match member {
            Member::Method(method) => become_of(method),
            Member::Other(tokens) => tokens,
        });
        let mut braces = Group::new(Delimiter::Brace, members.collect());
        braces.set_span(self.braces);
        let mut tokens = self.head;
        tokens.extend([TokenTree::Group(braces)]);
        tokens
    }
}

impl Parse for Block {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut head = TokenStream::new();
        let braces = loop {
            match input.parse::<TokenTree>()? {
                // The last: `impl Trait<{ N }> for Type { … }`.
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && input.is_empty() => {
                    break group;
                }
                token => head.extend([token]),
            }
        };
        let read = |input: ParseStream| {
            let inner = input.call(Attribute::parse_inner)?;
            let mut members = vec![Member::Other(quote! { #(#inner)* })];
            while !input.is_empty() {
                members.push(input.parse()?);
            }
            Ok(members)
        };
        Ok(Self { head, braces: braces.span(), members: read.parse2(braces.stream())? })
    }
}

impl Parse for Member {
    fn parse(input: ParseStream) -> Result<Self> {
        if !is_function(&input.fork()) {
            return Ok(Self::Other(input.parse::<ImplItem>()?.into_token_stream()));
        }
        let mut function: Function = input.parse()?;
        for attr in &function.attrs {
            if let Meta::List(list) = &attr.meta
                && list.path.is_ident("cfg_attr")
                && mention(list.tokens.clone(), &Ident::new("guarded", Span::call_site())).is_some()
            {
                let message = "whether a method of a guarded block is guarded may not depend on a `cfg`; write the method \
                               twice, each with its own `#[cfg(…)]`";
                return Err(Error::new_spanned(list, message));
            }
        }
        let own = function
            .attrs
            .iter()
            .position(|attr| attr.path().segments.last().is_some_and(|last| last.ident == "guarded"));
        Ok(match own {
            None => Self::Method(function.into_token_stream()),
            Some(own) => {
                if matches!(&function.attrs[own].meta, Meta::List(list) if says_skip(list)) {
                    function.attrs.remove(own);
                }
                Self::Other(function.into_token_stream())
            }
        })
    }
}

/// Whether an attribute leaves its method out.
fn says_skip(list: &MetaList) -> bool {
    list.tokens.to_string().trim_end_matches([',', ' ']) == "skip"
}

/// Whether the next item is a function: whatever its qualifiers are, `fn` comes after them.
fn is_function(input: ParseStream) -> bool {
    let read = |input: ParseStream| -> Result<bool> {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        input.parse::<Option<Token![default]>>()?;
        input.parse::<Option<Token![const]>>()?;
        input.parse::<Option<Token![async]>>()?;
        input.parse::<Option<Token![unsafe]>>()?;
        if input.parse::<Option<Token![extern]>>()?.is_some() {
            input.parse::<Option<LitStr>>()?;
        }
        Ok(input.peek(Token![fn]))
    };
    read(input).unwrap_or(false)
}
