//! Names: which ones are allowed, and how they are printed and read back.
//!
//! A name is a relative path in bytes: components between slashes, none of them empty, `.` or `..`.
//! So no name leads out of the folder that it is restored in.
//!
//! [`escape`] prints a name on one line of printable text: `\\` for a backslash, `\n`, `\u{202e}`
//! for a character that is not printable, `\xff` for a byte that is not UTF-8. [`unescape`] reads
//! that back, so every printed name is accepted wherever a name is expected.

/// Maximum length of a name in bytes.
pub(super) const MAX_NAME: usize = 4096;

/// Returns whether a stored name is a relative path of at most 4,096 bytes.
pub(super) fn is_name(name: &[u8]) -> bool {
    name.len() <= MAX_NAME && name.split(|byte| *byte == b'/').all(is_component)
}

/// Returns whether this can be the name of a file in a folder.
pub(super) fn is_component(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && name.len() <= MAX_NAME
        && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Turns a path into a name: drops slashes at both ends and `.`, and resolves `..` without looking
/// at the disk.
///
/// ```
/// use koel_store::content::normalize;
///
/// assert_eq!(normalize(b"/usr/./include/"), b"usr/include");
/// assert_eq!(normalize(b"../photos/2024/../2025"), b"photos/2025");
/// ```
#[must_use]
pub fn normalize(path: &[u8]) -> Vec<u8> {
    let mut components = Vec::new();
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => drop(components.pop()),
            component => components.push(component),
        }
    }
    components.join(&b'/')
}

/// Appends a component to a path.
pub(super) fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, name].join(&b'/') }
}

/// Returns a name as printable text on one line.
///
/// ```
/// use koel_store::content::{escape, unescape};
///
/// let name = b"two\nlines \\ \xff \xe2\x80\xae.txt";
/// let printed = escape(name);
/// assert_eq!(printed, r"two\nlines \\ \xff \u{202e}.txt");
/// assert_eq!(unescape(printed.as_bytes()).as_deref(), Some(&name[..]));
/// ```
#[must_use]
pub fn escape(name: &[u8]) -> String {
    let mut printed = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        chunk.valid().chars().for_each(|character| push_escaped(&mut printed, character));
        printed.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    printed
}

/// Appends a character, escaped unless it is printable. Combining marks count as printable, and
/// quotes need no backslash.
fn push_escaped(printed: &mut String, character: char) {
    if matches!(character, '"' | '\'') {
        printed.push(character);
    } else {
        // `escape_debug` escapes a combining mark only at the start of a text.
        printed.extend(format!("-{character}").escape_debug().skip(1));
    }
}

/// Returns the name that [`escape`] printed, or `None` at a backslash that starts no escape.
#[must_use]
pub fn unescape(printed: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(printed.len());
    let mut rest = printed;
    while let Some((byte, after)) = rest.split_first() {
        rest = if *byte == b'\\' {
            push_unescaped(&mut name, after)?
        } else {
            name.push(*byte);
            after
        };
    }
    Some(name)
}

/// Appends what an escape stands for. Returns the rest after it.
fn push_unescaped<'a>(name: &mut Vec<u8>, escape: &'a [u8]) -> Option<&'a [u8]> {
    let (kind, rest) = escape.split_first()?;
    match kind {
        b'\\' => name.push(b'\\'),
        b'n' => name.push(b'\n'),
        b'r' => name.push(b'\r'),
        b't' => name.push(b'\t'),
        b'0' => name.push(0),
        b'x' => {
            let (digits, rest) = rest.split_at_checked(2)?;
            name.push(u8::try_from(hexadecimal(digits)?).ok()?);
            return Some(rest);
        }
        b'u' => {
            let digits = rest.strip_prefix(b"{")?;
            let end = digits.iter().position(|byte| *byte == b'}')?;
            let character = char::from_u32(hexadecimal(&digits[..end])?)?;
            name.extend(character.encode_utf8(&mut [0; 4]).bytes());
            return Some(&digits[end + 1..]);
        }
        _ => return None,
    }
    Some(rest)
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let are_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    are_digits.then(|| u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that test every rule of printing: text, marks, controls, parts of characters.
    fn pieces() -> Vec<&'static [u8]> {
        let texts = [
            "a",
            "\\",
            "n",
            "x4",
            "{",
            "\n",
            "\0",
            "\u{1b}[2J",
            "\u{202e}",
            "\u{e9}",
            "e\u{301}",
            "\u{2028}",
        ];
        let bytes: [&[u8]; 4] = [b"\xff", b"\xe2\x80", b"\xc3", b"\xed\xa0\x80"];
        texts.iter().map(|text| text.as_bytes()).chain(bytes).collect()
    }

    #[test]
    fn every_printed_name_is_printable_and_read_back() {
        let pieces = pieces();
        for first in &pieces {
            for second in &pieces {
                for third in &pieces {
                    let name = [*first, second, third].concat();
                    let printed = escape(&name);
                    assert_eq!(unescape(printed.as_bytes()), Some(name), "{printed}");
                    let is_plain =
                        |c: char| !c.is_control() && !matches!(c, '\u{202e}' | '\u{2028}');
                    assert!(printed.chars().all(is_plain), "{printed:?}");
                }
            }
        }
    }

    #[test]
    fn printable_names_are_printed_as_they_are() {
        for name in [
            "plain",
            "with space",
            "it's \"quoted\"",
            "\u{e9}t\u{e9}",
            "e\u{301}",
            "\u{65e5}\u{672c}",
        ] {
            assert_eq!(escape(name.as_bytes()), name);
        }
    }

    #[test]
    fn wrong_escapes_are_refused() {
        for wrong in [
            "\\",
            "\\q",
            "\\x",
            "\\x1",
            "\\xg0",
            "\\x+1",
            "\\u",
            "\\u{",
            "\\u{}",
            "\\u{d800}",
            "\\u{110000}",
        ] {
            assert_eq!(unescape(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn only_relative_paths_without_dots_are_names() {
        for wrong in ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a\0b"] {
            assert!(!is_name(wrong.as_bytes()), "{wrong}");
            let name = normalize(wrong.as_bytes());
            assert!(name.is_empty() || is_name(&name) || wrong.contains('\0'), "{wrong}");
        }
        for name in ["a", "a/b", "...", "..a", "a\\..\\b", " "] {
            assert!(
                is_name(name.as_bytes()) && normalize(name.as_bytes()) == name.as_bytes(),
                "{name}"
            );
        }
    }
}
