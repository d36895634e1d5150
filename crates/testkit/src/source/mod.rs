//! Reads Rust and Cargo manifests as text, well enough for tests of imports, words and lines.
//!
//! There is no parser: comments, strings and characters are blanked out, and the rest is searched.
//! That is exact for words and paths; macros are not expanded. [`graph`] finds the dependencies
//! among files, [`circles`] their cycles, and [`lines`] counts.

use std::ops::Range;

pub mod circles;
pub mod graph;
pub mod lines;
mod scope;

/// The text with comments, strings and characters blanked out.
#[must_use]
pub fn code_of(text: &str) -> String {
    blank(text, |part| part != Part::Code)
}

/// The text with comments blanked out.
#[must_use]
pub fn without_comments(text: &str) -> String {
    blank(text, |part| part == Part::Comment)
}

/// The text with everything but comments blanked out.
#[must_use]
pub fn comments_of(text: &str) -> String {
    blank(text, |part| part != Part::Comment)
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Part {
    Code,
    Comment,
    /// A string or a character.
    Literal,
}

/// The text with spaces in place of the hidden parts. Line numbers and offsets stay.
fn blank(text: &str, hidden: impl Fn(Part) -> bool) -> String {
    let mut left = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, None);
    while let Some(first) = rest.chars().next() {
        let length = literal_length(rest, before);
        let part = match length {
            0 => Part::Code,
            _ if first == '/' => Part::Comment,
            _ => Part::Literal,
        };
        let (token, after) = rest.split_at(if length == 0 { first.len_utf8() } else { length });
        if hidden(part) {
            push_blank(&mut left, token);
        } else {
            left.push_str(token);
        }
        before = Some(if part == Part::Code { first } else { ' ' });
        rest = after;
    }
    left
}

/// The length of the comment, string or character at the start of `rest`; 0 if there is none.
fn literal_length(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_length(rest);
    }
    let inside_a_name = before.is_some_and(is_word);
    if let Some(raw) = rest.strip_prefix('r').filter(|_| !inside_a_name || before == Some('b')) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = 1 + hashes + 1;
            return rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len());
        }
    }
    match rest.as_bytes() {
        [b'"', ..] => quoted_length(rest, '"'),
        [b'\'', b'\\', ..] => quoted_length(rest, '\''),
        [b'\'', ..] => {
            let end = rest[1..].chars().next().map_or(1, |c| 1 + c.len_utf8());
            if rest[end..].starts_with('\'') { end + 1 } else { 0 }
        }
        _ => 0,
    }
}

fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Whether the file is compiled only for tests.
#[must_use]
pub fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// Code without the items behind `#[cfg(test)]`, which are blanked out.
#[must_use]
pub fn without_tests(code: &str) -> String {
    blank_ranges(code, &tests_in(code))
}

/// The ranges of items behind `#[cfg(test)]`.
fn tests_in(code: &str) -> Vec<Range<usize>> {
    let (mut tests, mut from) = (Vec::new(), 0);
    while let Some(found) = code[from..].find(TEST) {
        let start = from + found;
        from = start + TEST.len();
        from += end_of_item(&code[from..]);
        tests.push(start..from);
    }
    tests
}

const TEST: &str = "#[cfg(test)]";

/// The bytes of the item at the start of `code`, its other attributes included: they end in a
/// bracket, the item itself in a brace or a semicolon.
fn end_of_item(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        depth += match c {
            '(' | '[' | '{' => 1,
            ')' | ']' | '}' => -1,
            _ => 0,
        };
        if depth == 0 && (c == '}' || c == ';') {
            return at + 1;
        }
    }
    code.len()
}

fn blank_ranges(text: &str, ranges: &[Range<usize>]) -> String {
    let (mut left, mut from) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        left.push_str(&text[from..range.start]);
        push_blank(&mut left, &text[range.clone()]);
        from = range.end;
    }
    left + &text[from..]
}

/// Blanks with as many bytes and lines as `hidden`.
fn push_blank(left: &mut String, hidden: &str) {
    left.extend(hidden.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
}

/// Words, `::`, and every other character that is not a space.
fn tokens_of(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// Whether `word` is in the code, and not as a part of a longer name.
#[must_use]
pub fn has_word(code: &str, word: &str) -> bool {
    code.split(|c| !is_word(c)).any(|found| found == word)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Section and crate of every dependency in a manifest.
#[must_use]
pub fn dependencies(manifest: &str) -> Vec<(String, String)> {
    let kind_of = |header: &str| {
        let kinds = ["dev-dependencies", "build-dependencies", "dependencies"];
        kinds.into_iter().find(|kind| header.split(['.', '[', ']']).any(|part| part == *kind))
    };
    let (mut section, mut found) = (None, Vec::new());
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if line.starts_with('[') {
            section = kind_of(line);
            // `[dependencies.name]`, whose lines are no dependencies, except that one may rename
            // it.
            let name = line.trim_matches(['[', ']']).rsplit('.').next().unwrap_or(line);
            if let Some(kind) = section.take_if(|kind| *kind != name) {
                found.push((kind, name.to_owned()));
            }
        } else if let Some((_, package)) = line.split_once("package = \"") {
            let kind = section.unwrap_or("dependencies");
            found.push((kind, package.split('"').next().unwrap_or(package).to_owned()));
        } else if let Some(kind) = section
            && let Some((name, _)) = line.split_once(['.', ' ', '='])
        {
            found.push((kind, name.trim_matches('"').to_owned()));
        }
    }
    found.into_iter().map(|(kind, name)| (kind.to_owned(), name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(code: &str) -> Vec<&str> {
        code.split_whitespace().collect()
    }

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        let text = r##"let a = "unsafe"; // unsafe
            /* unsafe /* unsafe */ unsafe */ let b = r#"un"safe"#; let c = ['"', '\'', '/'];
            fn life<'a>(x: &'a str) -> char { b"\"unsafe\\"; br"unsafe\"; for r in x {} } end"##;
        let code = code_of(text);
        assert!(!has_word(&code, "unsafe"));
        assert_eq!(code.lines().count(), text.lines().count());
        let left = "let a = ; let b = ; let c = [ , , ]; fn life<'a>(x: &'a str) -> char { b ; b ; for r in x {} } end";
        assert_eq!(words(&code), words(left));
    }

    #[test]
    fn a_word_is_found_whole_or_not_at_all() {
        assert!(has_word("a { unsafe { x } }", "unsafe"));
        assert!(!has_word("#![forbid(unsafe_code)] nonunsafe", "unsafe"));
        assert!(has_word("use std::fs;", "std"));
        assert!(!has_word("my_std::fs", "std"));
    }

    #[test]
    fn test_items_are_cut_out() {
        let code =
            "a #[cfg(test)] const F: [u8; 2] = [1; 2]; b #[cfg(test)] mod t { fn f() { x } } c";
        assert_eq!(words(&without_tests(code)), ["a", "b", "c"]);
        assert_eq!(words(&without_tests("a #[cfg(test)] mod tests; b")), ["a", "b"]);
        let behind_another = "a #[cfg(test)] #[expect(dead_code)] fn f(x: [u8; 3]) {} b";
        assert_eq!(words(&without_tests(behind_another)), ["a", "b"]);
    }

    #[test]
    fn dependencies_are_found_in_every_form() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\na = \"1\"\nb.workspace = true\n# c = 1\n\
            d = { path = \"..\", package = \"real\" }\n[dev-dependencies]\n\"e\" = \"1\"\n\
            [dependencies.f]\nversion = \"1\"\npackage = \"renamed\"\n[target.'cfg(unix)'.dependencies]\ng = \"1\"\n[features]\nh = []\n";
        let found = dependencies(manifest);
        let expected = [
            ("dependencies", "a"),
            ("dependencies", "b"),
            ("dependencies", "real"),
            ("dev-dependencies", "e"),
            ("dependencies", "f"),
            ("dependencies", "renamed"),
            ("dependencies", "g"),
        ];
        assert_eq!(found, expected.map(|(kind, name)| (kind.to_owned(), name.to_owned())));
    }
}
