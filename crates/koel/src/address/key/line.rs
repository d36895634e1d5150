//! From a line of text to the bytes of a key.
//!
//! A program that builds a filter from a list and one that asks it later must make the same bytes
//! of a line. So the rule is stored with the filter: bytes 136 to 143 of the header. docs/FORMAT.md
//! ("Line options") specifies it for other languages, with vectors.
//!
//! The steps are: drop a carriage return, trim, lower the case. None of them looks at the language
//! of the text or normalises it: an accented letter as one character and as two stay different.
//! Cost: one look at each byte. Allocates only for a key that changes its letters.

use alloc::borrow::Cow;
use alloc::string::String;

/// How a line of text becomes the bytes of a key. A filter stores these options, so that the lines
/// that are asked later become keys in the same way.
///
/// The filter itself does not apply them: pass the result of [`key`](Self::key) to it.
///
/// ```
/// use koel::{CuckooFilter, LineOptions};
///
/// let options = LineOptions::default().ignore_case(true).trim(true);
/// let mut filter = CuckooFilter::builder(1000, 0.001).line_options(options).build()?;
/// filter.insert(&options.key("  \u{c9}lan \r".as_bytes()))?;
///
/// let options = filter.line_options();
/// assert!(filter.contains(&options.key("\u{e9}LAN".as_bytes())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LineOptions {
    bits: u8,
}

const IGNORE_CASE: u8 = 1;
const TRIM: u8 = 2;
const KEEP_CR: u8 = 4;

impl LineOptions {
    /// Bytes of the options in the header of a filter.
    pub(crate) const BYTES: usize = 8;

    /// Whether upper and lower case are the same. The default is `false`.
    #[must_use]
    pub const fn ignore_case(self, yes: bool) -> Self {
        self.with(IGNORE_CASE, yes)
    }

    /// Whether white space around the line is dropped. The default is `false`.
    #[must_use]
    pub const fn trim(self, yes: bool) -> Self {
        self.with(TRIM, yes)
    }

    /// Whether a carriage return at the end of the line belongs to the key. The default is `false`:
    /// the line end is LF or CR LF.
    #[must_use]
    pub const fn keep_cr(self, yes: bool) -> Self {
        self.with(KEEP_CR, yes)
    }

    /// Whether upper and lower case are the same.
    #[must_use]
    pub const fn ignores_case(self) -> bool {
        self.bits & IGNORE_CASE != 0
    }

    /// Whether white space around the line is dropped.
    #[must_use]
    pub const fn trims(self) -> bool {
        self.bits & TRIM != 0
    }

    /// Whether a carriage return at the end of the line belongs to the key.
    #[must_use]
    pub const fn keeps_cr(self) -> bool {
        self.bits & KEEP_CR != 0
    }

    const fn with(self, bit: u8, yes: bool) -> Self {
        Self { bits: if yes { self.bits | bit } else { self.bits & !bit } }
    }

    /// The bytes of the key of a line, which is given without its line feed.
    #[must_use]
    pub fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        let line = if self.keeps_cr() { line } else { line.strip_suffix(b"\r").unwrap_or(line) };
        let line = if self.trims() { trimmed(line) } else { line };
        if self.ignores_case() { lowered(line) } else { Cow::Borrowed(line) }
    }

    /// The options as they are stored: the bits, then zeros.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.bits;
        bytes
    }

    /// The stored options; the first byte that no version has written if there is one.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, u8> {
        let (bits, rest) = bytes.split_first().unwrap_or((&0, &[]));
        let unknown = (*bits > (IGNORE_CASE | TRIM | KEEP_CR)).then_some(bits);
        match unknown.or_else(|| rest.iter().find(|&&byte| byte != 0)) {
            Some(&byte) => Err(byte),
            None => Ok(Self { bits: *bits }),
        }
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
