//! Every guarded function, before its first call.

mod nearest;
mod unmatched;

use std::fmt;
use std::panic::Location;

use crate::callsite::CallSite;
use crate::registry::usable;
use crate::rule::Rule;

pub use unmatched::UnmatchedRule;

/// A function that `#[guarded]` guards: see [`catalog`].
#[derive(Clone, Copy)]
pub struct GuardedFunction {
    site: &'static CallSite,
    location: &'static Location<'static>,
}

/// Every guarded function of the program, called or not, in the order of their resources.
///
/// A function is there once, also if it is generic, a method or the default body of a trait; a resource that several
/// functions have is there for each of them.
///
/// Which [rules from outside](crate::Source) are for none of them,
/// [`unmatched_rules`](crate::Registry::unmatched_rules) tells.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Blocked, catalog, guarded};
///
/// #[guarded("orders.create", qps = 100)]
/// fn create() -> Result<(), Blocked> {
///     Ok(())
/// }
///
/// let function = catalog().into_iter().find(|one| one.resource() == "orders.create").unwrap();
/// assert!(function.function().ends_with("::create"));
/// assert_eq!(function.rules()[0].to_string(), "flow: 100 per 1s, exact");
/// assert_eq!(function.location().column(), 4);
/// // Nobody has called it.
/// assert!(leap_runtime::registry().stats("orders.create").is_none());
/// ```
///
/// # How a function gets there, and which does not
///
/// Each guarded function leaves a static, and a constructor that puts it on a list before `main` begins (by the crate
/// [`inventory`](https://docs.rs/inventory), which needs no `unsafe` in the crate that is guarded). Nothing is
/// allocated for it, a call costs nothing more, and the program grows by about 0.6 KiB a function. The feature is the
/// program's to turn on: it holds for all crates that it is built from.
///
/// - *A crate of which nothing is named is not linked*: that it stands in `Cargo.toml` does not suffice. The program,
///   or a crate of which it names something, must name something of it, be it a type or a constant, or say
///   `use plugin as _;`.
/// - *Of a crate that is linked all functions are listed*: those that are private and called by nobody, generic ones
///   that have no instance, those in modules of which nothing is used. Neither the optimizer nor link time optimization
///   nor the linker's removal of dead code takes one away, and `-C link-dead-code` changes nothing (as seen on Linux,
///   by rustc 1.95 with `lld` and GNU `ld`).
/// - *A static library* (`staticlib`) that another compiler links may lose functions: its linker takes from the archive
///   only what something refers to. `--whole-archive`, or `-force_load` on macOS, keeps them.
/// - *A plugin* (`cdylib`, loaded while the program runs) lists its functions when it is loaded, in a catalogue of its
///   own: it has a runtime of its own, and a global registry of its own.
/// - *WebAssembly*: a module that is a library must have had its constructors called by its host, as `inventory`
///   describes.
/// - *What is not compiled is not there*: a function that a `cfg` takes away, or of a macro that nobody invokes.
pub fn catalog() -> Vec<GuardedFunction> {
    let mut functions: Vec<_> = inventory::iter::<Listed>().map(|listed| listed.0).collect();
    functions.sort_by_cached_key(|function| {
        let place = function.location;
        (function.resource(), function.function(), place.file(), place.line(), place.column())
    });
    functions
}

impl GuardedFunction {
    /// The resource that its calls enter: the name that the attribute gives, else the function's path.
    pub fn resource(&self) -> &'static str {
        usable(self.site.resource())
    }

    /// The path of the function: `shop::Cart::add`. In the `impl` of a trait it is
    /// `<shop::Cart as shop::Store>::put`; that of a default body is `shop::Store::get`, whoever implements the trait.
    pub fn function(&self) -> &'static str {
        self.site.function()
    }

    /// Where the name of the function stands; where it comes out of a macro, the call of that.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// The rules that the attribute gives the resource. Which hold in a registry, [rules from
    /// outside](crate::Source) play a part in: [`ResourceStats::rules`](crate::ResourceStats::rules) tells that.
    pub fn rules(&self) -> &'static [Rule] {
        self.site.rules
    }
}

impl fmt::Display for GuardedFunction {
    /// `orders.create: shop::orders::create at src/orders.rs:12:8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} at {}", self.resource(), self.function(), self.location)
    }
}

impl fmt::Debug for GuardedFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedFunction")
            .field("resource", &self.resource())
            .field("function", &self.function())
            .field("location", &format_args!("{}", self.location))
            .field("rules", &self.rules())
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for GuardedFunction {
    /// The rules as data.
    ///
    /// # Errors
    ///
    /// As a [`Rule`].
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let mut function = serializer.serialize_struct("GuardedFunction", 6)?;
        function.serialize_field("resource", self.resource())?;
        function.serialize_field("function", self.function())?;
        function.serialize_field("file", self.location.file())?;
        function.serialize_field("line", &self.location.line())?;
        function.serialize_field("column", &self.location.column())?;
        function.serialize_field("rules", self.rules())?;
        function.end()
    }
}

/// What an expansion leaves beside its call site.
#[derive(Debug)]
pub struct Listed(GuardedFunction);

inventory::collect!(Listed);
pub use inventory::submit;

/// Where an expansion stands.
#[derive(Debug)]
pub struct Place;

impl Place {
    /// The place is that of this method's name: the expansion writes it where the name of the function stands.
    #[track_caller]
    pub const fn listed(self, site: &'static CallSite) -> Listed {
        Listed(GuardedFunction { site, location: Location::caller() })
    }
}
