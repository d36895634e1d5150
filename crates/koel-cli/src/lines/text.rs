//! Reads text in UTF-8 or UTF-16 as UTF-8, without a byte order mark.
//!
//! The first bytes decide. A mark is dropped. UTF-16 is converted: with either mark, and without
//! one where every sign says so, with a warning. UTF-32 is refused. Any other bytes pass unchanged:
//! a line need not be UTF-8.
//!
//! A verb would find no key of what is read wrongly, and answer "none". So an input that begins
//! with NUL bytes is refused: keys that end with NUL, an archive, a database. With `--text`, lines
//! may have NUL bytes, as those of a log that was cut while it was written. Lines that end with CR
//! alone, and lines where keys should end with NUL, are read as one key, with a warning.
//!
//! Cost: none for UTF-8. UTF-16 is converted in pieces of 64 KiB.

use std::io::{Cursor, Read, Result};
use std::path::Path;

use crate::failure::Refused;
use crate::lines::read_some;
use crate::streams::Warnings;

/// So many bytes are examined, fewer if a line ends among them.
const EXAMINED: usize = 512;
/// Bytes of UTF-16 that are converted at a time.
const PIECE: usize = 64 * 1024;

/// What an input is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Lines without NUL bytes, for a verb that has `--text`, and for one that has not.
    Lines,
    Records,
    /// Lines that may have NUL bytes: `--text`.
    Text,
    /// Keys that end with NUL, and are exact bytes: `-0`.
    Exact,
}

/// The text of `raw`, or its exact bytes. `path` is its name in warnings.
pub(crate) fn reader(
    raw: impl Read + 'static,
    content: Content,
    path: &Path,
    warnings: &Warnings,
) -> Result<Box<dyn Read>> {
    match content {
        Content::Exact => exact(raw, path, warnings),
        _ => as_utf8(raw, content, path, warnings),
    }
}

/// The first bytes of a text, and what they say.
const MARKS: [(&[u8], Mark); 5] = [
    (&[0xef, 0xbb, 0xbf], Mark::Utf8),
    (&[0xff, 0xfe, 0, 0], Mark::Utf32),
    (&[0, 0, 0xfe, 0xff], Mark::Utf32),
    (&[0xff, 0xfe], Mark::Utf16(Order::Little)),
    (&[0xfe, 0xff], Mark::Utf16(Order::Big)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Utf8,
    Utf16(Order),
    Utf32,
}

/// The order of the two bytes of a unit of UTF-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

/// The text of `raw`.
fn as_utf8(
    mut raw: impl Read + 'static,
    content: Content,
    path: &Path,
    warnings: &Warnings,
) -> Result<Box<dyn Read>> {
    let mut first = first_bytes(&mut raw, shows_encoding)?;
    let mark = MARKS.iter().find(|(mark, _)| first.starts_with(mark));
    first.drain(..mark.map_or(0, |(mark, _)| mark.len()));
    let order = match mark {
        Some((_, Mark::Utf32)) => {
            return Err(Refused::error("it is UTF-32; convert it with `iconv -t UTF-8`"));
        }
        Some((_, Mark::Utf16(order))) => Some(*order),
        Some((_, Mark::Utf8)) => None,
        None if content == Content::Text => None,
        None => {
            let order = order_without_mark(&first);
            if order.is_some() {
                let sentence = "read as UTF-16, without a byte order mark; use -0 for exact bytes";
                warnings.about(path, sentence);
            }
            order
        }
    };
    if order.is_none() {
        look_for_other_ends(&first, content, path, warnings)?;
    }
    let whole = Cursor::new(first).chain(raw);
    Ok(match order {
        None => Box::new(whole),
        Some(order) => Box::new(Utf16::new(whole, order)),
    })
}

/// Keys that end with NUL, and are exact bytes.
fn exact(mut raw: impl Read + 'static, path: &Path, warnings: &Warnings) -> Result<Box<dyn Read>> {
    let first = first_bytes(&mut raw, |read| read.contains(&0))?;
    if first.contains(&b'\n') && !first.contains(&0) {
        let sentence =
            "its first lines have no NUL and are one key; leave out -0 if keys are lines";
        warnings.about(path, sentence);
    }
    Ok(Box::new(Cursor::new(first).chain(raw)))
}

/// Refuses bytes that are no lines, and warns of lines that end otherwise.
fn look_for_other_ends(
    first: &[u8],
    content: Content,
    path: &Path,
    warnings: &Warnings,
) -> Result<()> {
    if first.contains(&0) && content != Content::Text {
        let text =
            if content == Content::Lines { ", or --text if lines may have them" } else { "" };
        return Err(Refused::error(format!(
            "it has NUL bytes, so it is no list of lines; use -0 if NUL ends each key{text}"
        )));
    }
    let has_inner_cr = first.iter().rev().skip(1).any(|&byte| byte == b'\r');
    if has_inner_cr && !first.contains(&b'\n') {
        let sentence = "a CR ends no line; convert its line ends with `tr '\\r' '\\n'`";
        warnings.about(path, sentence);
    }
    Ok(())
}

/// Whether the bytes show their encoding.
///
/// A line of plain text is enough, so that one typed at a terminal is answered without waiting for
/// the next. A text in UTF-16 with a line end has a NUL byte.
fn shows_encoding(read: &[u8]) -> bool {
    let may_be_marked = MARKS.iter().any(|(mark, _)| mark.starts_with(read));
    read.contains(&b'\n') && !read.contains(&0) && !may_be_marked
}

/// Reads until the bytes are enough, or all that are examined.
fn first_bytes(raw: &mut impl Read, are_enough: fn(&[u8]) -> bool) -> Result<Vec<u8>> {
    let mut first = vec![0; EXAMINED];
    let mut filled = 0;
    loop {
        if filled == EXAMINED || are_enough(&first[..filled]) {
            break;
        }
        match read_some(raw, &mut first[filled..])? {
            0 => break,
            got => filled += got,
        }
    }
    first.truncate(filled);
    Ok(first)
}

/// The order in which these bytes are plainly UTF-16, if there is only one.
fn order_without_mark(bytes: &[u8]) -> Option<Order> {
    let is_utf_8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    let (pairs, _) = bytes.as_chunks::<2>();
    let [little, big] = [Order::Little, Order::Big].map(|order| order.makes_text(pairs, !is_utf_8));
    (little != big).then_some(if little { Order::Little } else { Order::Big })
}

impl Order {
    fn unit(self, bytes: [u8; 2]) -> u16 {
        let unit = u16::from_le_bytes(bytes);
        if self == Self::Little { unit } else { unit.swap_bytes() }
    }

    /// Whether these are lines, or one word in a Latin script, and no control characters.
    ///
    /// In other scripts most units have no NUL byte. Then the bytes must not be UTF-8 as well.
    fn makes_text(self, pairs: &[[u8; 2]], may_be_any_script: bool) -> bool {
        let units = || pairs.iter().map(|&pair| self.unit(pair));
        let latin = units().filter(|&unit| unit < 0x100).count();
        let has_line = units().any(|unit| unit == u16::from(b'\n'));
        let is_word = pairs.len() > 1 && latin == pairs.len();
        let whole = units().take(self.whole_characters(pairs));
        (has_line || is_word)
            && (2 * latin > pairs.len() || may_be_any_script)
            && char::decode_utf16(whole)
                .all(|c| c.is_ok_and(|c| !c.is_control() || c.is_ascii_whitespace()))
    }

    /// The units without the last one if it is the first of two that make a character.
    fn whole_characters(self, pairs: &[[u8; 2]]) -> usize {
        let is_first_half = |&pair: &[u8; 2]| (0xd800..0xdc00).contains(&self.unit(pair));
        pairs.len() - usize::from(pairs.last().is_some_and(is_first_half))
    }
}

/// Converts UTF-16 to UTF-8.
struct Utf16<R> {
    reader: R,
    order: Order,
    /// Bytes that are read and not converted: less than a character.
    rest: Vec<u8>,
    text: Cursor<String>,
    /// Bytes converted so far.
    passed: u64,
}

impl<R: Read> Utf16<R> {
    fn new(reader: R, order: Order) -> Self {
        Self { reader, order, rest: Vec::new(), text: Cursor::default(), passed: 0 }
    }

    /// Reads and converts a piece. Returns false at the end of the input.
    fn convert(&mut self) -> Result<bool> {
        let mut bytes = std::mem::take(&mut self.rest);
        let kept = bytes.len();
        bytes.resize(kept + PIECE, 0);
        let got = read_some(&mut self.reader, &mut bytes[kept..])?;
        bytes.truncate(kept + got);
        let (pairs, _) = bytes.as_chunks::<2>();
        let whole = self.order.whole_characters(pairs);
        let mut text = String::with_capacity(3 * whole);
        for c in char::decode_utf16(pairs[..whole].iter().map(|&pair| self.order.unit(pair))) {
            text.push(c.map_err(|_| self.unsound())?);
        }
        self.passed += 2 * whole as u64;
        self.rest = bytes.split_off(2 * whole);
        if got == 0 && !self.rest.is_empty() {
            return Err(self.unsound());
        }
        self.text = Cursor::new(text);
        Ok(got > 0)
    }

    fn unsound(&self) -> std::io::Error {
        Refused::error(format!(
            "it is not valid UTF-16 after byte {}; get a new copy, or use -0 for exact bytes",
            self.passed
        ))
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let got = self.text.read(buffer)?;
            if got > 0 || buffer.is_empty() || !self.convert()? {
                return Ok(got);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::Drip;

    fn read(bytes: &[u8], step: usize) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let drip = Drip::new(bytes, step);
        reader(drip, Content::Lines, Path::new("x"), &Warnings::default())?
            .read_to_end(&mut out)?;
        Ok(out)
    }

    /// The bytes of a text in UTF-16.
    fn utf_16(text: &str, order: Order) -> Vec<u8> {
        let bytes = |unit: u16| if order == Order::Little { unit } else { unit.swap_bytes() };
        text.encode_utf16().flat_map(|unit| bytes(unit).to_le_bytes()).collect()
    }

    #[test]
    fn utf_16_is_converted_with_a_mark_and_without_one_whatever_the_size_of_reads() {
        let long = "\u{c4}rger, \u{6f22}\u{5b57}, \u{1f980}\r\n".repeat(10_000);
        for text in [
            "ads.example\n",
            "ab",
            "\u{6f22}\u{5b57}\u{306e}\u{4e00}\u{89a7}\r\n\u{4e8c}\u{884c}\u{76ee}\r\n",
            "a\n\u{1f980}\n",
            &long,
        ] {
            for order in [Order::Little, Order::Big] {
                let plain = utf_16(text, order);
                let marked = [utf_16("\u{feff}", order), plain.clone()].concat();
                for step in [1, 2, 3, 1023, PIECE, usize::MAX] {
                    assert!(read(&plain, step).unwrap() == text.as_bytes(), "{order:?} {step}");
                    assert!(read(&marked, step).unwrap() == text.as_bytes(), "{order:?} {step}");
                }
            }
        }
        assert_eq!(read(&[0xff, 0xfe], 1).unwrap(), b"");
    }

    #[test]
    fn other_bytes_pass_unchanged_but_for_the_mark_of_utf_8() {
        let texts: [&[u8]; 6] =
            [b"", b"a", b"caf\xe9\n", b"\xef\xbb", b"\xff", "\u{6f22}\u{5b57}\n".as_bytes()];
        for text in texts {
            for step in [1, 2, 3, usize::MAX] {
                assert_eq!(read(text, step).unwrap(), text);
                let marked = [b"\xef\xbb\xbf", text].concat();
                assert_eq!(read(&marked, step).unwrap(), text);
            }
        }
    }

    /// They once were one long key, which is in no filter.
    #[test]
    fn bytes_that_are_no_lines_are_refused() {
        let texts: [&[u8]; 6] =
            [b"\0", b"a\0", b"\0\0\0\0", b"ab\0cd\0\n", b"a\nb\0", b"find\0-print0\0"];
        for text in texts {
            let marked = [b"\xef\xbb\xbf", text].concat();
            for bytes in [text, &marked[..]] {
                let error = read(bytes, usize::MAX).unwrap_err();
                assert!(error.to_string().contains("use -0"), "{bytes:?}: {error}");
            }
        }
    }

    #[test]
    fn half_a_character_of_utf_16_is_an_error_and_utf_32_is_refused() {
        for bytes in [
            &b"\xff\xfea\0b"[..],
            b"\xff\xfea\0\0\xd8",
            b"\xff\xfea\0\0\xdcb\0",
            b"\xff\xfe\0\xd8b\0",
            b"\xff\xfe\0\0a\0\0\0",
            b"\0\0\xfe\xff\0\0\0a",
        ] {
            for step in [1, 2, usize::MAX] {
                assert!(read(bytes, step).unwrap_err().to_string().contains("UTF-"), "{bytes:?}");
            }
        }
    }
}
