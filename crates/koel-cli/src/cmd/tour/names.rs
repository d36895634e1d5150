//! The data of the tour: the real list, compressed inside this program, and absent names.
//!
//! An absent name is four syllables that spell a 24-bit number, and a top-level domain. No two are
//! equal, and every run gets the same names. Multiplying by an odd constant scatters their order.

use std::collections::HashSet;
use std::io;

/// data/README.md describes its origin.
const LIST: &[u8] = include_bytes!("../../../data/disposable-email-domains.txt.zst");

const CONSONANTS: &[u8; 16] = b"bcdfghjklmnprstv";
const VOWELS: &[u8; 4] = b"aeio";
const ENDINGS: [&str; 8] = [".com", ".net", ".org", ".info", ".de", ".io", ".co.uk", ".example"];
const STEMS: u32 = 1 << 24;

/// The names on the list.
pub(crate) fn listed() -> io::Result<Vec<String>> {
    let bytes = zstd::decode_all(LIST)?;
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Distinct names that are not on the list.
pub(crate) fn absent<'a>(listed: &'a HashSet<String>) -> impl Iterator<Item = String> + 'a {
    (0..STEMS).map(spell).filter(|name| !listed.contains(name))
}

fn spell(number: u32) -> String {
    let mut scattered = number.wrapping_mul(0x009e_3779) % STEMS;
    let mut name = String::with_capacity(16);
    for _ in 0..4 {
        let syllable = scattered as usize % 64;
        name.push(char::from(CONSONANTS[syllable / 4]));
        name.push(char::from(VOWELS[syllable % 4]));
        scattered /= 64;
    }
    name.push_str(ENDINGS[number as usize % ENDINGS.len()]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelled_names_are_distinct() {
        let names: HashSet<String> = (0..1_000_000).map(spell).collect();
        assert_eq!(names.len(), 1_000_000);
    }

    #[test]
    fn the_list_has_the_figures_of_its_readme() {
        let list = listed().unwrap();
        assert_eq!(list.len(), 121_570);
        assert!(list.is_sorted());
        assert_eq!(list.iter().map(|name| name.len() + 1).sum::<usize>(), 1_852_244);
    }
}
