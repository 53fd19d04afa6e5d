//! How near a text is to what may have been meant.

/// Insertions, deletions, replacements and swaps of neighbours that turn `text` into `meant`, if they are at most `most`.
/// A letter of `text` that is none stands for any text, also for nothing.
pub(crate) fn distance(text: &[Option<u8>], meant: &[u8], most: usize) -> Option<usize> {
    let width = meant.len() + 1;
    let mut rows: Vec<Vec<usize>> = vec![(0..width).collect()];
    for (i, letter) in text.iter().enumerate() {
        let above = &rows[i];
        let mut row = Vec::with_capacity(width);
        row.push(above[0] + usize::from(letter.is_some()));
        for j in 1..width {
            row.push(match letter {
                None => above[j].min(row[j - 1]),
                Some(letter) => {
                    let replaced = above[j - 1] + usize::from(*letter != meant[j - 1]);
                    let best = replaced.min(above[j] + 1).min(row[j - 1] + 1);
                    let is_swap =
                        i > 0 && j > 1 && *letter == meant[j - 2] && text[i - 1] == Some(meant[j - 1]);
                    if is_swap { best.min(rows[i - 1][j - 2] + 1) } else { best }
                }
            });
        }
        // All that follows is made of this row and the one above.
        if row.iter().chain(above).all(|distance| *distance > most) {
            return None;
        }
        rows.push(row);
    }
    let last = rows.last().and_then(|row| row.last()).copied();
    last.filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stars stand for any text.
    fn between(text: &str, meant: &str) -> usize {
        let letters: Vec<_> = text.bytes().map(|letter| (letter != b'*').then_some(letter)).collect();
        let distance = distance(&letters, meant.as_bytes(), 100).unwrap();
        for most in 0..6 {
            let bounded = super::distance(&letters, meant.as_bytes(), most);
            assert_eq!(bounded, (distance <= most).then_some(distance), "{text} {meant} {most}");
        }
        distance
    }

    #[test]
    fn a_distance_counts_letters_that_are_missing_too_many_others_and_swapped() {
        for (text, meant, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("create", "create", 0),
            ("craete", "create", 1),
            ("creat", "create", 1),
            ("crreate", "create", 1),
            ("kreate", "create", 1),
            ("cretaa", "create", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((between(text, meant), between(meant, text)), (expected, expected), "{text} {meant}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text_at_no_distance() {
        for (text, meant, expected) in [
            ("*", "", 0),
            ("*", "orders.create", 0),
            ("orders.*", "orders.create", 0),
            ("ordres.*", "orders.create", 1),
            ("*.craete", "orders.create", 1),
            ("a*c*e", "abde", 1),
            ("orders.*", "orders", 1),
            ("x*", "", 1),
        ] {
            assert_eq!(between(text, meant), expected, "{text} {meant}");
        }
    }
}
