//! How near a text is to what may have been meant.

/// Insertions, deletions, replacements and swaps of neighbours that turn `text` into `meant`, if they are at most
/// `most`. A letter of `text` that is none stands for any text, also for nothing.
pub(crate) fn distance(text: &[Option<u8>], meant: &[u8], most: usize) -> Option<usize> {
    // How far the letters so far are from the beginnings of `meant`: now, a letter ago, and two letters ago.
    let mut row: Vec<usize> = (0..=meant.len()).collect();
    let [mut above, mut before] = [row.clone(), row.clone()];
    for (i, letter) in text.iter().enumerate() {
        (before, above, row) = (above, row, before);
        row[0] = above[0] + usize::from(letter.is_some());
        let Some(letter) = letter else {
            for j in 1..row.len() {
                row[j] = above[j].min(row[j - 1]);
            }
            continue;
        };
        let mut nearest = row[0];
        for j in 1..row.len() {
            let replaced = above[j - 1] + usize::from(*letter != meant[j - 1]);
            let mut best = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 0 && j > 1 && *letter == meant[j - 2] && text[i - 1] == Some(meant[j - 1]) {
                best = best.min(before[j - 2] + 1);
            }
            row[j] = best;
            nearest = nearest.min(best);
        }
        // All that follows is made of this row and, by a swap, the one above.
        if nearest > most && above.iter().all(|distance| *distance >= most) {
            return None;
        }
    }
    row.last().copied().filter(|distance| *distance <= most)
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
