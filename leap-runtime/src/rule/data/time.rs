//! Times as text: `200ms`, `1m 30s`, `0.5s`.

use std::time::Duration;

/// The units, each with what else it may be called and its length in ns.
const UNITS: [(&[&str], u128); 7] = [
    (&["ns"], 1),
    (&["us", "µs", "μs"], 1_000),
    (&["ms"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h"], 3_600_000_000_000),
    (&["d"], 86_400_000_000_000),
];

/// The longest text that can be a time. It bounds what a message repeats.
const LONGEST: usize = 64;

/// The time that a text says, to the nanosecond; else what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Duration, &'static str> {
    if text.len() > LONGEST {
        return Err("it is too long");
    }
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("it is empty");
    }
    let mut nanos = 0_u128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        if number.is_empty() {
            return Err("a number comes before its unit");
        }
        if unit.is_empty() {
            return Err("it has no unit: one of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`");
        }
        let Some((_, length)) = UNITS.iter().find(|(names, _)| names.contains(&unit)) else {
            return Err("its unit is none of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`");
        };
        nanos = nanos.checked_add(scaled(number, *length)?).ok_or(TOO_LARGE)?;
        rest = behind.trim_start();
    }
    let (secs, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let secs = u64::try_from(secs).map_err(|_| TOO_LARGE)?;
    Ok(Duration::new(secs, u32::try_from(nanos).expect("a remainder of 10⁹")))
}

const TOO_LARGE: &str = "it is too large";

/// So many units of `length` ns, of which a fraction must be whole.
fn scaled(number: &str, length: u128) -> Result<u128, &'static str> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err("its number is not one");
    }
    let whole: u128 = whole.parse().map_err(|_| TOO_LARGE)?;
    let places = u32::try_from(fraction.len()).map_err(|_| TOO_LARGE)?;
    let one = 10_u128.checked_pow(places).ok_or(TOO_LARGE)?;
    let fraction: u128 = fraction.parse().map_err(|_| TOO_LARGE)?;
    let part = fraction.checked_mul(length).ok_or(TOO_LARGE)?;
    if !part.is_multiple_of(one) {
        return Err("it is finer than a nanosecond");
    }
    whole.checked_mul(length).and_then(|whole| whole.checked_add(part / one)).ok_or(TOO_LARGE)
}

/// A text that says this time, whole.
pub(super) fn text(time: Duration) -> String {
    let nanos = time.as_nanos();
    let (names, length) =
        UNITS[..4].iter().rev().find(|(_, length)| nanos.is_multiple_of(*length)).unwrap_or(&UNITS[0]);
    format!("{}{}", nanos / length, names[0])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit_or_several() {
        for (text, nanos) in [
            ("200ms", 200_000_000),
            (" 1m 30s ", 90_000_000_000),
            ("1m30s", 90_000_000_000),
            ("0.5s", 500_000_000),
            ("1.000000001s", 1_000_000_001),
            ("250 us", 250_000),
            ("250µs", 250_000),
            ("7ns", 7),
            ("366d", 31_622_400_000_000_000),
            ("2h", 7_200_000_000_000),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_told() {
        for (text, wrong) in [
            ("", "it is empty"),
            ("  ", "it is empty"),
            ("200", "it has no unit: one of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`"),
            ("1y", "its unit is none of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`"),
            ("1M", "its unit is none of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`"),
            ("ms", "a number comes before its unit"),
            ("-1s", "a number comes before its unit"),
            ("1e3s", "its unit is none of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`"),
            ("1..5s", "its number is not one"),
            (".5s", "its number is not one"),
            ("5.s", "its number is not one"),
            ("0.5ns", "it is finer than a nanosecond"),
            ("18446744073709551616s", "it is too large"),
            ("18446744073709551615s 1000ms", "it is too large"),
            ("99999999999999999999999999999999999999999s", "it is too large"),
            ("0.00000000000000000000000000000000000000000s", "it is too large"),
        ] {
            assert_eq!(parse(text), Err(wrong), "{text}");
        }
        assert_eq!(parse(&"1s ".repeat(22)), Err("it is too long"));
    }

    proptest! {
        #[test]
        fn every_time_is_read_as_it_was_written(secs: u64, nanos in 0_u32..1_000_000_000, coarse in 0_u32..4) {
            let nanos = nanos - nanos % 1_000_u32.pow(coarse.min(3));
            let time = Duration::new(secs, nanos);
            prop_assert_eq!(parse(&text(time)), Ok(time));
        }

        #[test]
        fn no_text_is_worse_than_an_error(text in "\\PC{0,24}|[0-9.]{0,20} ?[a-zµ]{0,3}[0-9]{0,24}[a-z]?") {
            let _ = parse(&text);
        }
    }
}
