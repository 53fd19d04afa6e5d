//! x
mod args;
mod errors;
mod expand;
mod fallback;
mod model;

use proc_macro2::TokenStream;

/// x
#[proc_macro_attribute]
pub fn guarded(args: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    guard(args.into(), item.into()).into()
}

fn guard(args: TokenStream, item: TokenStream) -> TokenStream {
    let guarded = args::parse(args).and_then(|args| model::Guarded::new(args, item.clone()));
    match guarded {
        Ok(guarded) => expand::expand(&guarded),
        Err(error) => fallback::expand(item, &error),
    }
}
