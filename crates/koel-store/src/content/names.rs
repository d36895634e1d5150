//! Names: which ones are allowed, and how they are printed and read back.
//!
//! A name is a relative path in bytes: components between slashes, none of them empty, `.` or `..`.
//! So no name leads out of the folder that it is restored in.
//!
//! [`escape`] prints a name on one line of printable text, and [`unescape`] reads that back: every
//! printed name is accepted wherever a name is expected. Printable UTF-8 is printed as it is; the
//! rest is escaped as in C:
//!
//! | bytes | text |
//! |---|---|
//! | backslash, newline, carriage return, tab | `\\`, `\n`, `\r`, `\t` |
//! | every other byte that is not printable UTF-8 | `\x` and two hexadecimal digits, as in `\x1b` |
//!
//! Control characters, bidirectional marks, invisible characters and spaces other than U+0020 are
//! not printable. So a name can neither end a line, nor control a terminal, nor look like another
//! one.

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
/// assert_eq!(printed, r"two\nlines \\ \xff \xe2\x80\xae.txt");
/// assert_eq!(unescape(printed.as_bytes()).as_deref(), Some(&name[..]));
/// ```
#[must_use]
pub fn escape(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                _ if is_printable(character) => text.push(character),
                _ => push_hexadecimal(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        push_hexadecimal(&mut text, chunk.invalid());
    }
    text
}

fn push_hexadecimal(text: &mut String, bytes: &[u8]) {
    text.extend(bytes.iter().map(|byte| format!("\\x{byte:02x}")));
}

/// Returns whether a terminal shows the character, in its place, and unlike the space.
fn is_printable(character: char) -> bool {
    if matches!(character, '"' | '\'') {
        return true;
    }
    // After another one, so that accents and vowel signs of their own count as printable.
    String::from_iter(['a', character]).escape_debug().count() == 2
}

/// Returns the name that [`escape`] printed, or `None` at a backslash that starts no escape. Bytes
/// outside escapes stand for themselves, printable or not.
#[must_use]
pub fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match (byte, after) {
            (b'\\', [b'\\', after @ ..]) => (b'\\', after),
            (b'\\', [b'n', after @ ..]) => (b'\n', after),
            (b'\\', [b'r', after @ ..]) => (b'\r', after),
            (b'\\', [b't', after @ ..]) => (b'\t', after),
            (b'\\', [b'x', high, low, after @ ..]) => (hexadecimal(*high, *low)?, after),
            (b'\\', _) => return None,
            (byte, after) => (byte, after),
        };
        name.push(byte);
        rest = after;
    }
    Some(name)
}

fn hexadecimal(high: u8, low: u8) -> Option<u8> {
    let digit = |byte| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
