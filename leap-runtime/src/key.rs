//! What a hot-parameter rule tells apart: one value of a call, owned, small, and equal to itself whatever its type was.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// The longest text that needs no allocation, in bytes.
const SHORT: usize = 30;
/// The longest text that is kept whole, in bytes.
const WHOLE: usize = 1_024;

/// A value that calls are counted by: a user's number, a product's name.
///
/// Equal numbers are one key whatever their integer type; a number and its text are two. A call may also have
/// [several](Self::elements) values, up to [256](Self::MAX_ELEMENTS), or none.
///
/// 32 bytes, without an allocation for text of up to 30 bytes. Of text over 1 KiB the beginning is kept, and a
/// fingerprint of the whole that nobody outside this process can foresee, so that what clients send bounds no memory.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Key, ToKey};
///
/// assert_eq!(42_u64.to_key(), 42_i32.to_key());
/// assert_eq!(Some(42).to_key(), 42_u8.to_key());
/// assert_ne!(42.to_key(), "42".to_key());
/// assert!(None::<u32>.to_key().is_absent());
/// assert_eq!(vec!["vip", "eu"].to_key().elements(), ["vip".to_key(), "eu".to_key()]);
/// ```
#[derive(Clone)]
pub struct Key(Value);

#[derive(Clone)]
enum Value {
    Absent,
    Bool(bool),
    Char(char),
    Whole(i128),
    /// What no `i128` can hold, so that each number has one form.
    Huge(u128),
    /// What lies behind `len` is 0.
    Short {
        len: u8,
        bytes: [u8; SHORT],
    },
    Long(Box<str>),
    /// None of them absent or itself `Each`.
    Each(Box<[Key]>),
}

const _: () = assert!(size_of::<Key>() == 32);

/// A key as it is compared: the forms of one value are one here.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum View<'a> {
    Absent,
    Bool(bool),
    Char(char),
    Whole(i128),
    Huge(u128),
    Text(&'a [u8]),
    Each(&'a [Key]),
}

/// One value of a key, by its type.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Bool(bool),
    Char(char),
    Whole(i128),
    Huge(u128),
    Text(&'a str),
}

impl Key {
    /// No value: rules that count by it do not apply to the call.
    pub const ABSENT: Self = Self(Value::Absent);

    /// How many values of one call are asked for, at most: with more of them it is blocked by every hot-parameter rule that
    /// counts by the key. Repeated ones count each time, absent ones not.
    ///
    /// Each value of a collection costs a look-up, and what clients send must not make a call cost more than others can
    /// afford. To leave some out would lift their limits. A larger batch is guarded in parts.
    pub const MAX_ELEMENTS: usize = 256;

    /// One key for several values, at most [`MAX_ELEMENTS`](Self::MAX_ELEMENTS), each of which is asked for; absent ones are left out. No value at all is not
    /// [absent](Self::ABSENT): there is just nothing to ask for.
    pub fn each(keys: impl IntoIterator<Item = Self>) -> Self {
        let mut all = vec![];
        for key in keys {
            match key.0 {
                Value::Absent => {}
                Value::Each(keys) => all.extend(keys),
                value => all.push(Self(value)),
            }
        }
        Self(Value::Each(all.into()))
    }

    /// Whether there is no value.
    pub fn is_absent(&self) -> bool {
        matches!(self.0, Value::Absent)
    }

    /// The values: those of a collection, itself, or none.
    #[inline]
    pub fn elements(&self) -> &[Self] {
        match &self.0 {
            Value::Absent => &[],
            Value::Each(keys) => keys,
            _ => std::slice::from_ref(self),
        }
    }

    /// Shows the key as a fingerprint, `#1f2e3d4c5b6a7988`: the same for equal keys while this process lives, and of no
    /// use to find the value, not even by trying out.
    pub fn hashed(&self) -> Hashed {
        Hashed(secret().hash_one(self))
    }

    /// The value, where it is one and is known as a whole.
    #[cfg(feature = "serde")]
    pub(crate) fn scalar(&self) -> Option<Scalar<'_>> {
        match self.view() {
            View::Absent | View::Each(_) => None,
            View::Bool(value) => Some(Scalar::Bool(value)),
            View::Char(value) => Some(Scalar::Char(value)),
            View::Whole(number) => Some(Scalar::Whole(number)),
            View::Huge(number) => Some(Scalar::Huge(number)),
            View::Text(bytes) if bytes.len() > WHOLE => None,
            View::Text(bytes) => str::from_utf8(bytes).ok().map(Scalar::Text),
        }
    }

    const fn whole(number: i128) -> Self {
        Self(Value::Whole(number))
    }

    fn text(text: &str) -> Self {
        let len = text.len();
        if len <= SHORT {
            let mut bytes = [0; SHORT];
            bytes[..len].copy_from_slice(text.as_bytes());
            return Self(Value::Short { len: u8::try_from(len).expect("at most 30"), bytes });
        }
        if len <= WHOLE {
            return Self(Value::Long(text.into()));
        }
        let mut end = WHOLE;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let fingerprint = secret().hash_one(text);
        Self(Value::Long(format!("{}… {len} bytes #{fingerprint:016x}", &text[..end]).into()))
    }

    #[inline]
    fn view(&self) -> View<'_> {
        match &self.0 {
            Value::Absent => View::Absent,
            Value::Bool(value) => View::Bool(*value),
            Value::Char(value) => View::Char(*value),
            Value::Whole(number) => View::Whole(*number),
            Value::Huge(number) => View::Huge(*number),
            Value::Short { len, bytes } => View::Text(&bytes[..usize::from(*len)]),
            Value::Long(text) => View::Text(text.as_bytes()),
            Value::Each(keys) => View::Each(keys),
        }
    }
}

/// What fingerprints are made with.
fn secret() -> &'static RandomState {
    static SECRET: OnceLock<RandomState> = OnceLock::new();
    SECRET.get_or_init(RandomState::new)
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.view().cmp(&other.view())
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.view().hash(state);
    }
}

impl fmt::Display for Key {
    /// The value as it is, `none` for no value, `[1, 2, 1]` for several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.view() {
            View::Absent => f.pad("none"),
            View::Bool(value) => value.fmt(f),
            View::Char(value) => value.fmt(f),
            View::Whole(number) => number.fmt(f),
            View::Huge(number) => number.fmt(f),
            View::Text(bytes) => f.pad(str::from_utf8(bytes).expect("copied from a text")),
            View::Each(keys) => {
                f.write_str("[")?;
                for (i, key) in keys.iter().enumerate() {
                    write!(f, "{}{key}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

impl fmt::Debug for Key {
    /// As it would be written in code: `"42"` is a text and `42` a number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.view() {
            View::Absent => f.write_str("None"),
            View::Bool(value) => value.fmt(f),
            View::Char(value) => fmt::Debug::fmt(&value, f),
            View::Whole(number) => number.fmt(f),
            View::Huge(number) => number.fmt(f),
            View::Text(bytes) => fmt::Debug::fmt(str::from_utf8(bytes).expect("copied from a text"), f),
            View::Each(keys) => f.debug_list().entries(keys).finish(),
        }
    }
}

/// A key's fingerprint, made by [`Key::hashed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hashed(u64);

impl fmt::Display for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:016x}", self.0)
    }
}

/// A value that calls can be counted by.
///
/// Integers of every type, `bool`, `char` and text are; so are references, `Box`, `Arc`, `Rc`, `Cow` and `Option` of
/// such (`None` is no value), and slices, arrays and `Vec` of them (each element is
/// asked for, [256](Key::MAX_ELEMENTS) at most). For your own types
/// implement it, or name a field of theirs as the key.
///
/// A floating-point number is no key: `NaN` equals nothing, so that each call would be counted on its own, and `-0.0`
/// equals `0.0`.
///
/// ```compile_fail
/// use leap_runtime::ToKey;
///
/// let price = 9.5_f64.to_key();
/// ```
///
/// # Examples
///
/// ```
/// use leap_runtime::{Key, ToKey};
///
/// struct User { id: u64, name: String }
///
/// impl ToKey for User {
///     fn to_key(&self) -> Key {
///         self.id.to_key()
///     }
/// }
///
/// let user = User { id: 42, name: "Ada".to_owned() };
/// assert_eq!(user.to_key(), 42.to_key());
/// assert_eq!(user.name.to_key(), "Ada".to_key());
/// ```
#[diagnostic::on_unimplemented(
    message = "calls cannot be counted by `{Self}`",
    label = "not a whole number, `bool`, `char` or text, nor a collection of these",
    note = "name a field as the key, or turn it into text or a whole number: `key = order.user`, `key = address.to_string()`, `key = (price * 100.0) as u64`",
    note = "for a type of yours, implement `ToKey`"
)]
pub trait ToKey {
    /// The key of this value.
    fn to_key(&self) -> Key;
}

macro_rules! whole {
    ($($type:ty)*) => {$(
        impl ToKey for $type {
            #[inline]
            fn to_key(&self) -> Key {
                Key::whole(i128::from(*self))
            }
        }
    )*};
}

whole!(u8 u16 u32 u64 i8 i16 i32 i64 i128);

macro_rules! sized {
    ($($type:ty)*) => {$(
        impl ToKey for $type {
            #[inline]
            fn to_key(&self) -> Key {
                Key::whole(i128::try_from(*self).expect("at most 128 bits"))
            }
        }
    )*};
}

sized!(usize isize);

impl ToKey for u128 {
    fn to_key(&self) -> Key {
        i128::try_from(*self).map_or(Key(Value::Huge(*self)), Key::whole)
    }
}

impl ToKey for bool {
    fn to_key(&self) -> Key {
        Key(Value::Bool(*self))
    }
}

impl ToKey for char {
    fn to_key(&self) -> Key {
        Key(Value::Char(*self))
    }
}

impl ToKey for str {
    #[inline]
    fn to_key(&self) -> Key {
        Key::text(self)
    }
}

impl ToKey for String {
    #[inline]
    fn to_key(&self) -> Key {
        Key::text(self)
    }
}

impl ToKey for Key {
    fn to_key(&self) -> Key {
        self.clone()
    }
}

macro_rules! pointers {
    ($($type:ty)*) => {$(
        impl<T: ToKey + ?Sized> ToKey for $type {
            #[inline]
            fn to_key(&self) -> Key {
                T::to_key(self)
            }
        }
    )*};
}

pointers!(&T &mut T Box<T> Arc<T> Rc<T>);

impl<T: ToKey + ToOwned + ?Sized> ToKey for Cow<'_, T> {
    fn to_key(&self) -> Key {
        T::to_key(self)
    }
}

impl<T: ToKey> ToKey for Option<T> {
    #[inline]
    fn to_key(&self) -> Key {
        self.as_ref().map_or(Key::ABSENT, T::to_key)
    }
}

impl<T: ToKey> ToKey for [T] {
    fn to_key(&self) -> Key {
        Key::each(self.iter().map(T::to_key))
    }
}

impl<T: ToKey, const N: usize> ToKey for [T; N] {
    fn to_key(&self) -> Key {
        self.as_slice().to_key()
    }
}

impl<T: ToKey> ToKey for Vec<T> {
    fn to_key(&self) -> Key {
        self.as_slice().to_key()
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// D07, D08.
    #[test]
    fn equal_numbers_are_one_key_whatever_their_type() {
        let keys = [
            42_u8.to_key(),
            42_u16.to_key(),
            42_u32.to_key(),
            42_u64.to_key(),
            42_u128.to_key(),
            42_usize.to_key(),
            42_i8.to_key(),
            42_i16.to_key(),
            42_i32.to_key(),
            42_i64.to_key(),
            42_i128.to_key(),
            42_isize.to_key(),
            (&&42).to_key(),
            Some(42).to_key(),
            Box::new(42).to_key(),
            Cow::<i32>::Owned(42).to_key(),
        ];
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 1);
    }

    /// D07, D08.
    #[test]
    fn text_is_one_key_however_it_is_held_and_not_the_number_it_spells() {
        let owned = "42".to_owned();
        for key in [
            "42".to_key(),
            owned.to_key(),
            Cow::Borrowed("42").to_key(),
            Box::<str>::from("42").to_key(),
            Arc::<str>::from("42").to_key(),
            Rc::<str>::from("42").to_key(),
        ] {
            assert_eq!(key, "42".to_key());
        }
        let different =
            ["4".to_key(), "42".to_key(), 42.to_key(), '4'.to_key(), 4.to_key(), true.to_key(), 1.to_key()];
        assert_eq!(different.iter().collect::<HashSet<_>>().len(), different.len());
    }

    #[test]
    fn the_largest_numbers_have_one_form_and_their_order() {
        let numbers = [
            i128::MIN.to_key(),
            (-1).to_key(),
            0.to_key(),
            i128::MAX.to_key(),
            (i128::MAX.unsigned_abs() + 1).to_key(),
            u128::MAX.to_key(),
        ];
        assert!(numbers.is_sorted());
        assert_eq!(i128::MAX.unsigned_abs().to_key(), i128::MAX.to_key());
        assert_eq!(u128::MAX.to_key().to_string(), u128::MAX.to_string());
    }

    #[test]
    fn text_of_30_bytes_and_of_31_compares_alike() {
        let (short, long) = ("a".repeat(30), "a".repeat(31));
        assert!(matches!(short.to_key().0, Value::Short { .. }));
        assert!(matches!(long.to_key().0, Value::Long(_)));
        assert!("b".to_key() > long.to_key() && long.to_key() > short.to_key());
        assert_eq!(long.to_key().to_string(), long);
        assert_ne!("a\0".to_key(), "a".to_key());
        assert_eq!("".to_key().to_string(), "");
    }

    /// D02: what a client sends does not bound what a key takes.
    #[test]
    fn text_over_1_kib_is_told_apart_and_not_kept() {
        let mut long = "é".repeat(1_000_000);
        let key = long.to_key();
        assert_eq!(key, long.to_key());
        assert!(key.to_string().len() < 1_100);
        long.push('!');
        assert_ne!(key, long.to_key());
        assert_eq!("x".repeat(1_024).to_key().to_string(), "x".repeat(1_024));
    }

    /// D04.
    #[test]
    fn none_is_absent_and_some_is_the_value() {
        assert!(None::<&str>.to_key().is_absent());
        assert_eq!(None::<&str>.to_key().elements(), []);
        assert_eq!(Some(7).to_key(), 7.to_key());
        assert_eq!(Some(7).to_key().elements(), [7.to_key()]);
    }

    /// D10.
    #[test]
    fn a_collection_is_its_present_elements_in_order() {
        let key = vec![Some(1), None, Some(2), Some(1)].to_key();
        assert_eq!(key.elements(), [1.to_key(), 2.to_key(), 1.to_key()]);
        assert_eq!([vec![1], vec![], vec![2, 1]].to_key(), key);
        assert!(!key.is_absent());
        assert_eq!([0; 0].to_key().elements(), []);
    }

    #[test]
    fn a_key_shows_its_value_or_a_fingerprint() {
        assert_eq!("vip".to_key().to_string(), "vip");
        assert_eq!(format!("{:?} {:?}", "42".to_key(), 42.to_key()), "\"42\" 42");
        assert_eq!(["a", "b"].to_key().to_string(), "[a, b]");
        let shown = "vip".to_key().hashed().to_string();
        assert_eq!(shown, "vip".to_owned().to_key().hashed().to_string());
        assert!(shown.len() == 17 && shown.starts_with('#'));
        assert_ne!(shown, "VIP".to_key().hashed().to_string());
    }
}
