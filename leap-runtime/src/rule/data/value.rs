//! Plain values, as any self-describing format has them.

use std::fmt;

use serde::de::{self, Deserializer, IgnoredAny};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

/// How deep lists and maps are looked into. The deepest that means anything is an exception of a hot rule, at 5.
const DEPTH: usize = 8;
/// By this name `serde_json` hands a number over when it is told to keep all of its digits.
const ALL_DIGITS: &str = "$serde_json::private::Number";

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Whole(i128),
    /// What no `i128` can hold.
    Huge(u128),
    Number(f64),
    Text(String),
    Bytes,
    List(Vec<Value>),
    Map(Fields),
    /// Something inside more lists and maps than mean anything.
    TooDeep,
}

/// A map as it was written: in order, and with what was written twice.
pub(super) type Fields = Vec<(String, Value)>;

impl Value {
    /// Reads a value and makes something of it. What goes wrong then is an error of the format's, which may know where.
    pub(super) fn read<'de, D: Deserializer<'de>, T>(
        deserializer: D,
        then: impl FnOnce(Self) -> Result<T, String>,
    ) -> Result<T, D::Error> {
        deserializer.deserialize_any(Visitor { depth: DEPTH, then })
    }

    /// What it is, in messages.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(true) => "`true`",
            Self::Bool(false) => "`false`",
            Self::Whole(_) | Self::Huge(_) | Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::Bytes => "bytes",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::TooDeep => "lists or maps in one another",
        }
    }

    fn of_digits(digits: &str) -> Self {
        let whole = digits.parse().map(Self::Whole).or_else(|_| digits.parse().map(Self::Huge));
        whole.or_else(|_| digits.parse().map(Self::Number)).unwrap_or(Self::Number(f64::NAN))
    }

    /// The value as the name of a field.
    fn into_name(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Bool(value) => value.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Huge(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            other => other.what().to_owned(),
        }
    }
}

/// What becomes of a value inside another, and of one that names a field. Pointers, because a closure in here would be of
/// another type in each visitor, and so would be the visitors, without end.
type Then<T> = fn(Value) -> Result<T, String>;

const KEEP: Then<Value> = Ok;
const NAME: Then<String> = |value| Ok(value.into_name());

/// Reads one value, `depth` levels of it.
struct Visitor<F> {
    depth: usize,
    then: F,
}

impl<'de, T, F: FnOnce(Value) -> Result<T, String>> de::DeserializeSeed<'de> for Visitor<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<T, F: FnOnce(Value) -> Result<T, String>> Visitor<F> {
    fn end<E: de::Error>(self, value: Value) -> Result<T, E> {
        (self.then)(value).map_err(E::custom)
    }

    /// A reader of what is inside; none where that is too deep.
    fn inner(&self) -> Option<Visitor<Then<Value>>> {
        Some(Visitor { depth: self.depth.checked_sub(1)?, then: KEEP })
    }
}

impl<'de, T, F: FnOnce(Value) -> Result<T, String>> de::Visitor<'de> for Visitor<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        self.end(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.end(Value::Whole(number.into()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.end(Value::Whole(number.into()))
    }

    fn visit_i128<E: de::Error>(self, number: i128) -> Result<T, E> {
        self.end(Value::Whole(number))
    }

    fn visit_u128<E: de::Error>(self, number: u128) -> Result<T, E> {
        self.end(i128::try_from(number).map_or(Value::Huge(number), Value::Whole))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        self.end(Value::Number(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        self.end(Value::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<T, E> {
        self.end(Value::Text(text))
    }

    fn visit_bytes<E: de::Error>(self, _: &[u8]) -> Result<T, E> {
        self.end(Value::Bytes)
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        self.end(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<T, E> {
        self.end(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut access: A) -> Result<T, A::Error> {
        let mut list = vec![];
        while let Some(inner) = self.inner() {
            match access.next_element_seed(inner)? {
                Some(value) => list.push(value),
                None => return self.end(Value::List(list)),
            }
        }
        while access.next_element::<IgnoredAny>()?.is_some() {}
        self.end(Value::TooDeep)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut access: A) -> Result<T, A::Error> {
        let mut fields = Fields::new();
        while let Some(inner) = self.inner() {
            let name = Visitor { depth: 0, then: NAME };
            let Some(name) = access.next_key_seed(name)? else {
                return match fields.as_slice() {
                    [(name, Value::Text(digits))] if name == ALL_DIGITS => {
                        let number = Value::of_digits(digits);
                        self.end(number)
                    }
                    _ => self.end(Value::Map(fields)),
                };
            };
            fields.push((name, access.next_value_seed(inner)?));
        }
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.end(Value::TooDeep)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            // Most formats know 64 bits.
            Self::Whole(number) => match i64::try_from(*number) {
                Ok(number) => serializer.serialize_i64(number),
                Err(_) => serializer.serialize_i128(*number),
            },
            Self::Huge(number) => serializer.serialize_u128(*number),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => {
                let mut sequence = serializer.serialize_seq(Some(list.len()))?;
                for value in list {
                    sequence.serialize_element(value)?;
                }
                sequence.end()
            }
            Self::Map(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
            Self::Bytes | Self::TooDeep => Err(S::Error::custom("what was not read cannot be written")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::MapDeserializer;

    use super::*;

    fn read(json: &str) -> Value {
        Value::read(&mut serde_json::Deserializer::from_str(json), Ok).unwrap()
    }

    #[test]
    fn values_are_what_they_were_in_order_and_with_what_was_given_twice() {
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(
            read(r#"{"b": [1, -2.5, "x", null, true], "a": 18446744073709551615, "b": {}}"#),
            Value::Map(vec![
                (
                    "b".to_owned(),
                    Value::List(vec![
                        Value::Whole(1),
                        Value::Number(-2.5),
                        text("x"),
                        Value::Null,
                        Value::Bool(true)
                    ])
                ),
                ("a".to_owned(), Value::Whole(18_446_744_073_709_551_615)),
                ("b".to_owned(), Value::Map(vec![])),
            ])
        );
    }

    #[test]
    fn what_is_too_deep_is_passed_over() {
        let nested = |depth: usize| format!("{}7{}", "[".repeat(depth), "]".repeat(depth));
        let mut value = read(&nested(DEPTH));
        for _ in 0..DEPTH {
            let Value::List(mut list) = value else { panic!("{value:?}") };
            value = list.remove(0);
        }
        assert_eq!(value, Value::Whole(7));
        let mut value = read(&nested(DEPTH + 50));
        for _ in 0..DEPTH {
            let Value::List(mut list) = value else { panic!("{value:?}") };
            value = list.remove(0);
        }
        assert_eq!(value, Value::TooDeep);
    }

    /// A format whose names of fields can be anything, as those of YAML can.
    enum Tree {
        Leaf(&'static str),
        Map(Vec<(Tree, Tree)>),
    }

    impl<'de> Deserializer<'de> for Tree {
        type Error = de::value::Error;

        fn deserialize_any<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            match self {
                Self::Leaf(text) => visitor.visit_str(text),
                Self::Map(fields) => visitor.visit_map(MapDeserializer::new(fields.into_iter())),
            }
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }

    impl IntoDeserializer<'_> for Tree {
        type Deserializer = Self;

        fn into_deserializer(self) -> Self {
            self
        }
    }

    #[test]
    fn a_field_whose_name_is_no_text_has_one_all_the_same() {
        let tree = Tree::Map(vec![
            (Tree::Leaf("a"), Tree::Map(vec![])),
            (Tree::Map(vec![(Tree::Leaf("b"), Tree::Leaf("c"))]), Tree::Leaf("d")),
        ]);
        assert_eq!(
            Value::read(tree, Ok),
            Ok(Value::Map(vec![
                ("a".to_owned(), Value::Map(vec![])),
                ("lists or maps in one another".to_owned(), Value::Text("d".to_owned())),
            ]))
        );
    }

    #[test]
    fn a_number_of_which_all_digits_were_kept_is_a_number() {
        let kept = |digits: &str| read(&format!(r#"{{"{ALL_DIGITS}": "{digits}"}}"#));
        assert_eq!(kept("12"), Value::Whole(12));
        assert_eq!(kept("-1.5e3"), Value::Number(-1_500.0));
        assert_eq!(kept("1e400"), Value::Number(f64::INFINITY));
        assert_eq!(kept(&u128::MAX.to_string()), Value::Huge(u128::MAX));
        assert!(matches!(kept("x"), Value::Number(number) if number.is_nan()));
    }
}
