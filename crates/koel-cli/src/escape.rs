//! Names of files and keys as text: what the command prints, it also accepts.
//!
//! The rule is that of [`koel_store::content::escape`].

pub(crate) use koel_store::content::escape;

use crate::failure::Failure;

/// Returns the name that a text stands for.
///
/// # Errors
/// A backslash that starts no escape.
pub(crate) fn unescape(text: &[u8]) -> Result<Vec<u8>, Failure> {
    koel_store::content::unescape(text).ok_or_else(|| wrong(text))
}

/// Returns the number of bytes at the end of `text` that may be the start of a character: whoever
/// escapes a text piece by piece keeps them for the next piece.
pub(crate) fn unfinished(text: &[u8]) -> usize {
    let is_start = |length: &usize| {
        let end = &text[text.len() - length..];
        std::str::from_utf8(end)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=text.len().min(3)).find(is_start).unwrap_or(0)
}

fn wrong(text: &[u8]) -> Failure {
    Failure::Usage(format!(
        "in the name {}, a backslash starts none of the escapes \\\\, \\n, \\r, \\t and \\xHH; write \
         \\\\ for a backslash",
        String::from_utf8_lossy(text)
    ))
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
        for name in [
            "a b.txt",
            "it's \"x\"",
            "na\u{ef}ve",
            "cafe\u{301}",
            "\u{65e5}\u{672c}\u{8a9e}",
            "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
            "\u{1f980}",
        ] {
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
        for text in [r"a\", r"\q", r"C:\dir", r"\x1", r"\x1g", r"\x\u{e9}", r"\x+1", r"\u{1b}"] {
            assert!(unescape(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_name_that_is_printed_is_accepted(name: Vec<u8>) {
            round_trip(&name);
        }

        #[test]
        fn a_text_in_pieces_is_escaped_as_in_one(text in r"[a-z\\\n\PC]*", garbage: Vec<u8>, at in 0..80_usize) {
            let text = [text.as_bytes(), &garbage, text.as_bytes()].concat();
            let piece = &text[..at.min(text.len())];
            let (whole, rest) = text.split_at(piece.len() - unfinished(piece));
            prop_assert_eq!(escape(whole) + &escape(rest), escape(&text));
        }

        #[test]
        fn every_printed_name_is_one_printable_line(name in any::<String>()) {
            let text = round_trip(name.as_bytes());
            prop_assert!(is_printable_line(&text), "{:?}", text);
        }

        #[test]
        fn unescaping_never_panics(text in r"(\\|x|n|[0-9a-f]|.){0,12}") {
            drop(unescape(text.as_bytes()));
        }
    }

    /// The text escapes nothing but its backslashes once more.
    fn is_printable_line(text: &str) -> bool {
        escape(text.as_bytes()).replace("\\\\", "\\") == text
    }
}
