//! What the example programs share: reading a number from the command line, and drawing one.

use std::fmt;
use std::str::FromStr;

/// Reads the number that belongs to `option`.
///
/// # Errors
///
/// Names the option and what was wrong with its value.
pub fn number<T: FromStr<Err: fmt::Display>>(
    parser: &mut lexopt::Parser,
    option: &str,
) -> Result<T, lexopt::Error> {
    let text = parser.value()?.into_string()?;
    text.parse().map_err(|error| format!("`{option} {text}` will not do: {error}").into())
}

/// As many marks as `n` holds times `per_mark`, for a column that shows a figure at a glance.
pub fn bar(n: u32, per_mark: u32) -> String {
    "#".repeat(n.div_ceil(per_mark) as usize)
}
