//! Names of files and keys as text: what the command prints, it also accepts.
//!
//! A name is any bytes. Printable UTF-8 is printed as it is. The rest is escaped as in C:
//!
//! | bytes | text |
//! |---|---|
//! | backslash, newline, carriage return, tab | `\\`, `\n`, `\r`, `\t` |
//! | every other byte that is not printable UTF-8 | `\x` and two hexadecimal digits, as in `\x1b` |
//!
//! Control characters, bidirectional marks, invisible characters and spaces other than U+0020 are
//! not printable. So a name can neither end a line, nor control a terminal, nor look like another
//! one. Names of different bytes have different texts, and `unescape(escape(name)) == name`.
#![forbid(unsafe_code)]

use crate::failure::Failure;

/// Returns the text of a name.
pub(crate) fn escape(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                _ if is_printable(c) => text.push(c),
                _ => push_hexadecimal(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        push_hexadecimal(&mut text, chunk.invalid());
    }
    text
}

/// Returns the name that a text stands for.
///
/// Bytes outside escapes stand for themselves, printable or not: a shell can pass any.
///
/// # Errors
/// A backslash that starts no escape.
pub(crate) fn unescape(text: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match (byte, after) {
            (b'\\', [b'\\', after @ ..]) => (b'\\', after),
            (b'\\', [b'n', after @ ..]) => (b'\n', after),
            (b'\\', [b'r', after @ ..]) => (b'\r', after),
            (b'\\', [b't', after @ ..]) => (b'\t', after),
            (b'\\', [b'x', high, low, after @ ..]) => {
                (hexadecimal(*high, *low).ok_or_else(|| wrong(text))?, after)
            }
            (b'\\', _) => return Err(wrong(text)),
            (byte, after) => (byte, after),
        };
        name.push(byte);
        rest = after;
    }
    Ok(name)
}

fn wrong(text: &[u8]) -> Failure {
    Failure::Usage(format!(
        "in the name {}, a backslash starts none of the escapes \\\\, \\n, \\r, \\t and \\xHH; write \
         \\\\ for a backslash",
        String::from_utf8_lossy(text)
    ))
}

fn push_hexadecimal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\x{byte:02x}"));
    }
}

fn hexadecimal(high: u8, low: u8) -> Option<u8> {
    let digit = |byte| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Whether a terminal shows the character, in its place, and unlike the space.
fn is_printable(c: char) -> bool {
    if matches!(c, '"' | '\'') {
        return true;
    }
    // After another one, so that accents and vowel signs of their own count as printable.
    String::from_iter(['a', c]).escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(name: &[u8]) -> String {
        let text = escape(name);
        assert_eq!(unescape(text.as_bytes()).expect("an escaped name is accepted"), name, "{text}");
        text
    }

    #[test]
    fn printable_names_of_any_language_are_printed_as_they_are() {
        for name in ["a b.txt", "it's \"x\"", "naïve", "cafe\u{301}", "日本語", "हिन्दी", "🦀"]
        {
            assert_eq!(round_trip(name.as_bytes()), name);
        }
    }

    #[test]
    fn what_a_terminal_would_not_show_is_escaped() {
        assert_eq!(round_trip(b"a\nb\r\t\\n"), r"a\nb\r\t\\n");
        assert_eq!(round_trip(b"\x1b[2J\0\x7f"), r"\x1b[2J\x00\x7f");
        assert_eq!(round_trip(b"\xff\xc3("), r"\xff\xc3(");
        for hidden in "\u{202e}\u{2066}\u{200f}\u{061c}\u{200b}\u{feff}\u{a0}\u{2028}".chars() {
            assert!(round_trip(hidden.to_string().as_bytes()).starts_with("\\x"), "{hidden:?}");
        }
    }

    #[test]
    fn a_backslash_that_starts_no_escape_is_refused() {
        for text in [r"a\", r"\q", r"C:\dir", r"\x1", r"\x1g", r"\xé", r"\x+1", r"\u{1b}"] {
            assert!(unescape(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_name_that_is_printed_is_accepted(name: Vec<u8>) {
            round_trip(&name);
        }

        #[test]
        fn every_printed_name_is_one_printable_line(name in any::<String>()) {
            let text = round_trip(name.as_bytes());
            prop_assert!(text.chars().all(is_printable_or_backslash), "{:?}", text);
        }

        #[test]
        fn unescaping_never_panics(text in r"(\\|x|n|[0-9a-f]|.){0,12}") {
            drop(unescape(text.as_bytes()));
        }
    }

    fn is_printable_or_backslash(c: char) -> bool {
        c == '\\' || is_printable(c)
    }
}
