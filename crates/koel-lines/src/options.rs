//! From the text of a line to the bytes of a key: trims, lowers the case.
//!
//! None of that looks at the language of the text or normalises it: an accented letter as one
//! character and as two stay different. docs/FORMAT.md ("Lines") specifies the steps for other
//! languages, with vectors. Cost: one look at each byte. Allocates only for a key that changes its
//! letters.

use alloc::borrow::Cow;
use alloc::string::String;

/// How the text of a line becomes the bytes of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineOptions {
    /// Whether upper and lower case are the same.
    pub ignores_case: bool,
    /// Whether white space around the text is dropped.
    pub trims: bool,
    /// Whether a carriage return at the end of the line belongs to the key.
    pub keeps_cr: bool,
}

impl LineOptions {
    /// The bits that docs/FORMAT.md gives them.
    pub fn bits(self) -> u8 {
        u8::from(self.ignores_case) | u8::from(self.trims) << 1 | u8::from(self.keeps_cr) << 2
    }

    /// The options with these bits; `None` if no version has written them.
    pub fn from_bits(bits: u8) -> Option<Self> {
        let has = |bit| bits & bit != 0;
        let options = Self { ignores_case: has(1), trims: has(2), keeps_cr: has(4) };
        (options.bits() == bits).then_some(options)
    }

    /// Those that are on, as they are given to the command.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.ignores_case, "--ignore-case"),
            (self.trims, "--trim"),
            (self.keeps_cr, "--keep-cr"),
        ];
        all.into_iter().filter_map(|(is_on, name)| is_on.then_some(name))
    }

    /// Whether a text is its own key.
    pub(crate) fn keep_text(self) -> bool {
        !self.trims && !self.ignores_case
    }

    /// The bytes of the key of a text, whose line end was dropped.
    pub fn key(self, text: &[u8]) -> Cow<'_, [u8]> {
        let text = if self.trims { trimmed(text) } else { text };
        if self.ignores_case { lowered(text) } else { Cow::Borrowed(text) }
    }
}

/// The line without white space around it.
fn trimmed(mut line: &[u8]) -> &[u8] {
    while let Some(n) = (1..=3).find(|&n| line.get(..n).is_some_and(is_space)) {
        line = &line[n..];
    }
    let end_before = |line: &[u8]| {
        (1..=3).filter_map(|n| line.len().checked_sub(n)).find(|&end| is_space(&line[end..]))
    };
    while let Some(end) = end_before(line) {
        line = &line[..end];
    }
    line
}

/// Whether these are the UTF-8 bytes of one character with Unicode's property `White_Space`.
fn is_space(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [b'\t'..=b'\r' | b' ']
            | [0xc2, 0x85 | 0xa0]
            | [0xe1, 0x9a, 0x80]
            | [0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf]
            | [0xe2, 0x81, 0x9f]
            | [0xe3, 0x80, 0x80]
    )
}

/// The line in lower case: character by character if it is UTF-8, otherwise only A to Z.
///
/// The final sigma becomes an ordinary one, as it does in the upper case of a word.
fn lowered(line: &[u8]) -> Cow<'_, [u8]> {
    if line.is_ascii() {
        let has_capitals = line.iter().any(u8::is_ascii_uppercase);
        return if has_capitals { line.to_ascii_lowercase().into() } else { line.into() };
    }
    let Ok(text) = core::str::from_utf8(line) else { return line.to_ascii_lowercase().into() };
    let lower = text.chars().flat_map(char::to_lowercase);
    let key: String = lower.map(|c| if c == '\u{3c2}' { '\u{3c3}' } else { c }).collect();
    Cow::Owned(key.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_what_unicode_says_and_nothing_else() {
        for c in '\0'..=char::MAX {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            assert_eq!(is_space(bytes), c.is_whitespace(), "{c:?}");
        }
    }
}
