//! Types, as they may be written inside a function.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{
    GenericArgument, Path, PathArguments, ReturnType, Signature, Type, TypeParamBound, parse_quote_spanned,
};

use super::ours;
use crate::model::Made;

/// What a call gives in the end.
pub(super) struct Returned {
    /// The type as it may be written inside the function.
    pub(super) ty: Type,
    /// Where to say that the type will not do.
    pub(super) span: Span,
    pub(super) is_never: bool,
    /// Whether part of it cannot be written.
    pub(super) is_opaque: bool,
}

impl Returned {
    /// What the signature says.
    pub(super) fn of(sig: &Signature) -> Self {
        match &sig.output {
            ReturnType::Default => Self {
                ty: parse_quote_spanned! {ours()=> ()},
                span: sig.ident.span(),
                is_never: false,
                is_opaque: false,
            },
            ReturnType::Type(_, ty) => Self::by(ty),
        }
    }

    /// What a future or a stream yields.
    pub(super) fn of_made(made: &Made) -> Self {
        let span = made.ty.span();
        match &made.output {
            Some(output) => Self::by(output),
            // What a stream yields is found by the compiler.
            None if made.is_stream || matches!(made.ty, Type::ImplTrait(_)) => {
                Self { ty: parse_quote_spanned! {span=> _}, span, is_never: false, is_opaque: false }
            }
            None => {
                let ty = without_opaque_types(&made.ty);
                let ty = parse_quote_spanned! {span=> <#ty as __leap::Awaited>::Output};
                Self { ty, span, is_never: false, is_opaque: false }
            }
        }
    }

    fn by(ty: &Type) -> Self {
        let span = ty.span();
        if matches!(ty, Type::Never(_)) {
            // As a type argument `!` is not stable; its alias is.
            let ty = parse_quote_spanned! {span=> __leap::Never};
            return Self { ty, span, is_never: true, is_opaque: false };
        }
        let written = without_opaque_types(ty);
        Self { ty: written, span, is_never: false, is_opaque: has_opaque_types(ty) }
    }
}

/// `ty` as it may be written in a body: with `_` for each `impl Trait`.
pub(super) fn without_opaque_types(ty: &Type) -> Type {
    let mut ty = ty.clone();
    with_plain_groups(&mut ty);
    edit_type(&mut ty, &mut |ty| {
        if let Type::ImplTrait(opaque) = ty {
            *ty = parse_quote_spanned! {opaque.impl_token.span=> _};
        }
    });
    ty
}

fn has_opaque_types(ty: &Type) -> bool {
    let mut is_opaque = false;
    edit_type(&mut ty.clone(), &mut |ty| is_opaque |= matches!(ty, Type::ImplTrait(_)));
    is_opaque
}

/// Puts `dyn A + B` that came as a fragment of `macro_rules!` in parentheses: behind `&`, the invisible group that it
/// came in is not enough once it has been through a macro like this one.
pub(super) fn with_plain_groups(ty: &mut Type) {
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
