//! Reading JSON whose shape is expected: whatever is missing or of another kind is an error that names it.

use serde_json::Value;

/// What was wrong, in words.
pub type Result<T> = std::result::Result<T, String>;

/// The field `name` of an object, if it is there.
pub fn optional<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name)
}

/// The field `name` of an object.
///
/// # Errors
///
/// If there is none.
pub fn field<'a>(object: &'a Value, name: &str) -> Result<&'a Value> {
    object.get(name).ok_or_else(|| format!("there is no `{name}`"))
}

/// A list.
///
/// # Errors
///
/// If it is anything else.
pub fn list(value: &Value) -> Result<&[Value]> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("{value} is not a list"))
}

/// A text.
///
/// # Errors
///
/// If it is anything else.
pub fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| format!("{value} is not a text"))
}

/// A whole number of 0 or more, also where it is written `5.0`.
///
/// # Errors
///
/// If it is anything else.
pub fn whole(value: &Value) -> Result<u64> {
    value
        .as_u64()
        .or_else(|| {
            value
                .as_f64()
                .filter(|number| number.fract() == 0.0)
                .and_then(|number| number.to_string().parse().ok())
        })
        .ok_or_else(|| format!("{value} is not a whole number"))
}

/// As [`whole`], in 32 bits.
///
/// # Errors
///
/// If it is anything else.
pub fn small(value: &Value) -> Result<u32> {
    whole(value)?.try_into().map_err(|_| format!("{value} is too large"))
}

/// A number.
///
/// # Errors
///
/// If it is anything else.
pub fn number(value: &Value) -> Result<f64> {
    value.as_f64().ok_or_else(|| format!("{value} is not a number"))
}
