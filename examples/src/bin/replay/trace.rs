//! The traffic to replay: read from a CSV file, or made up from a seed.

use std::fmt;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// One call: when it comes, and how long it runs if it is let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Milliseconds since the midnight before the first call, cut to whole ones.
    pub(crate) at_ms: u64,
    /// One millisecond per generated token.
    pub(crate) rt_ms: u64,
}

/// A row that could not be read, and is left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    /// Counted from 1, the line of column names included.
    pub(crate) line: usize,
    reason: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; skipped", self.line, self.reason)
    }
}

/// Reads a trace in the form of the Azure LLM traces: a line of column names, then one call per line.
///
/// The columns `TIMESTAMP` (`2023-11-16 18:17:03.9799600`) and `GeneratedTokens` are used. The calls come back
/// in the order of their times, and beside them the rows that could not be read.
///
/// # Errors
///
/// A text whose first line does not name the two columns is not a trace.
pub(crate) fn read(csv: &str) -> Result<(Vec<Call>, Vec<BadRow>), String> {
    let mut lines = csv.trim_start_matches('\u{feff}').lines();
    let names: Vec<_> = lines.next().unwrap_or_default().split(',').map(str::trim).collect();
    let column = |name| {
        names
            .iter()
            .position(|&found| found == name)
            .ok_or_else(|| format!("is not a trace: its first line names no column `{name}`"))
    };
    let (at, tokens) = (column("TIMESTAMP")?, column("GeneratedTokens")?);

    let mut rows = Vec::new();
    let mut bad_rows = Vec::new();
    for (line, text) in (2..).zip(lines).filter(|(_, text)| !text.trim().is_empty()) {
        let fields: Vec<_> = text.split(',').map(str::trim).collect();
        let row = if fields.len() == names.len() {
            row(fields[at], fields[tokens])
        } else {
            Err(format!("{} fields where {} were expected", fields.len(), names.len()))
        };
        match row {
            Ok(row) => rows.push(row),
            Err(reason) => bad_rows.push(BadRow { line, reason }),
        }
    }

    rows.sort_by_key(|&(moment, _)| moment);
    let first_day = rows.first().map_or(0, |&((day, _), _)| day);
    let calls =
        rows.into_iter().map(|((day, ms), rt_ms)| Call { at_ms: (day - first_day) * DAY_MS + ms, rt_ms });
    Ok((calls.collect(), bad_rows))
}

/// A day's number and the milliseconds since its midnight.
type Moment = (u64, u64);

fn row(at: &str, tokens: &str) -> Result<(Moment, u64), String> {
    let moment =
        moment(at).ok_or_else(|| format!("`{at}` is not a time like `2023-11-16 18:17:03.9799600`"))?;
    let tokens = number(tokens).ok_or_else(|| format!("`{tokens}` is not a number of tokens"))?;
    Ok((moment, tokens))
}

fn moment(text: &str) -> Option<Moment> {
    let (date, time) = text.strip_suffix("+00:00").unwrap_or(text).split_once(' ')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    number(fraction)?;
    let ms = number(&format!("{fraction:0<3}")[..3])?;
    Some((day_number(year, month, day)?, ((hour * 60 + minute) * 60 + second) * 1_000 + ms))
}

/// Three numbers with a separator between them.
fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let numbers: Option<Vec<_>> = text.split(separator).map(number).collect();
    numbers?.try_into().ok()
}

/// Digits only: the standard library would also take a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Days since the first of January of the year 1, in the calendar of today.
fn day_number(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let months_before = usize::try_from(month.checked_sub(1)?).ok()?;
    if year > 9_999 || !(1..=*lengths.get(months_before)?).contains(&day) {
        return None;
    }
    let years = year.checked_sub(1)?;
    let leap_days = years / 4 - years / 100 + years / 400;
    Some(years * 365 + leap_days + lengths[..months_before].iter().sum::<u64>() + day - 1)
}

/// Makes up `rows` calls from nine in the morning: calm, with a rush every minute.
///
/// The same seed makes the same calls, on every machine.
pub(crate) fn synthetic(rows: usize, seed: u64) -> Vec<Call> {
    const CALM_GAP_MS: u64 = 500;
    const RUSH_GAP_MS: u64 = 20;
    let mut random = SplitMix64(seed);
    let mut at_ms = 9 * 60 * 60 * 1_000;
    let next = || {
        let is_rush = at_ms % 60_000 < 10_000;
        let mean_gap_ms = if is_rush { RUSH_GAP_MS } else { CALM_GAP_MS };
        at_ms += random.below(2 * mean_gap_ms + 1);
        // Many short answers and a few long ones: up to 2, 4, 8, … 1 024 ms, each as often as the next.
        let longest_ms = 2 << random.below(10);
        Call { at_ms, rt_ms: 1 + random.below(longest_ms) }
    };
    std::iter::repeat_with(next).take(rows).collect()
}

/// Steele, Lea and Flood's generator: one addition and a mix of the bits.
struct SplitMix64(u64);

impl SplitMix64 {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

    #[test]
    fn a_time_is_cut_to_whole_milliseconds_since_midnight() {
        let (calls, bad_rows) = read(&format!(
            "{NAMES}2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04,3180,8\n2023-11-16 18:17:04.5,1,0\n"
        ))
        .unwrap();

        let at_ms = ((18 * 60 + 17) * 60 + 3) * 1_000;
        assert_eq!(
            calls,
            [
                Call { at_ms: at_ms + 979, rt_ms: 10 },
                Call { at_ms: at_ms + 1_000, rt_ms: 8 },
                Call { at_ms: at_ms + 1_500, rt_ms: 0 },
            ]
        );
        assert_eq!(bad_rows, []);
    }

    #[test]
    fn calls_after_midnight_come_after_those_before_and_the_order_of_the_file_does_not_matter() {
        let (calls, _) = read(&format!(
            "{NAMES}2024-03-01 00:00:00.001000+00:00,1,1\n2024-02-28 23:59:59.999,1,2\n2024-02-29 00:00:00.000,1,3\n"
        ))
        .unwrap();

        assert_eq!(
            calls,
            [
                Call { at_ms: DAY_MS - 1, rt_ms: 2 },
                Call { at_ms: DAY_MS, rt_ms: 3 },
                Call { at_ms: 2 * DAY_MS + 1, rt_ms: 1 },
            ]
        );
    }

    #[test]
    fn a_bad_row_is_named_by_its_line_and_the_others_are_kept() {
        let rows = [
            "2023-11-16 18:17:03.9799600,4808,10",
            "yesterday,4808,10",
            "2023-02-29 18:17:03,4808,10",
            "2023-11-16 24:00:00,4808,10",
            "2023-11-16 18:17:03.9x,4808,10",
            "2023-11-16 18:17:03,4808,-1",
            "",
            "2023-11-16 18:17:03,4808",
            "2023-11-16 18:17:05,4808,7",
        ];
        let (calls, bad_rows) = read(&format!("{NAMES}{}", rows.join("\n"))).unwrap();

        assert_eq!(calls.len(), 2);
        assert_eq!(
            bad_rows.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "line 3: `yesterday` is not a time like `2023-11-16 18:17:03.9799600`; skipped",
                "line 4: `2023-02-29 18:17:03` is not a time like `2023-11-16 18:17:03.9799600`; skipped",
                "line 5: `2023-11-16 24:00:00` is not a time like `2023-11-16 18:17:03.9799600`; skipped",
                "line 6: `2023-11-16 18:17:03.9x` is not a time like `2023-11-16 18:17:03.9799600`; skipped",
                "line 7: `-1` is not a number of tokens; skipped",
                "line 9: 2 fields where 3 were expected; skipped",
            ]
        );
    }

    #[test]
    fn a_text_without_the_columns_is_not_a_trace() {
        assert_eq!(read("").unwrap_err(), "is not a trace: its first line names no column `TIMESTAMP`");
        assert_eq!(
            read("TIMESTAMP,tokens\n").unwrap_err(),
            "is not a trace: its first line names no column `GeneratedTokens`"
        );
    }

    #[test]
    fn a_seed_makes_the_same_calls_each_time_in_the_order_of_their_times() {
        let calls = synthetic(1_000, 7);

        assert_eq!(calls, synthetic(1_000, 7));
        assert_ne!(calls, synthetic(1_000, 8));
        assert!(calls.is_sorted_by_key(|call| call.at_ms));
        assert_eq!(calls.len(), 1_000);
    }
}
