//! Counts lines, attributes and functions in a folder of Rust.
//!
//! A code line has more than blanks and comments and is not test code: items behind `#[cfg(test)]`,
//! files named `tests.rs` and folders named `tests` are left out. Attributes and lines with a lone
//! brace count. One pass over each file.

use std::collections::BTreeSet;
use std::ops::AddAssign;

use super::{Token, is_test, shipped, tokens_of};

/// The counts of one file, or of several.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Files that have more than test code.
    pub files: usize,
    /// Code lines.
    pub code: usize,
    /// All lines of the longest of these files.
    pub longest_file: usize,
    /// Columns of the longest line that has a comment on it, tests included.
    pub longest_comment: usize,
    /// Attributes `#[inline(always)]`.
    pub inline_always: usize,
    /// Blocks `unsafe { .. }`.
    pub unsafe_blocks: usize,
    /// Functions declared `pub` without a restriction such as `pub(crate)`.
    pub public_functions: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.code += other.code;
        self.longest_file = self.longest_file.max(other.longest_file);
        self.longest_comment = self.longest_comment.max(other.longest_comment);
        self.inline_always += other.inline_always;
        self.unsafe_blocks += other.unsafe_blocks;
        self.public_functions += other.public_functions;
    }
}

/// The counts of one file.
#[must_use]
pub fn count(path: &str, text: &str) -> Counts {
    let longest_comment =
        comment_lines(text).into_iter().map(|(_, columns)| columns).max().unwrap_or(0);
    if is_test(path) {
        return Counts { longest_comment, ..Counts::default() };
    }
    let tokens = shipped(text);
    let follow = |texts: &[&str]| super::count(&tokens, texts);
    Counts {
        files: 1,
        code: code_lines(text, &tokens),
        longest_file: text.lines().count(),
        longest_comment,
        inline_always: follow(&["#", "[", "inline", "(", "always", ")", "]"]),
        unsafe_blocks: follow(&["unsafe", "{"]),
        public_functions: public_functions(&tokens),
    }
}

/// The lines with a comment: their numbers from 1, and their columns.
pub fn comment_lines(text: &str) -> Vec<(usize, usize)> {
    let mut comments = text.as_bytes().to_vec();
    for token in tokens_of(text) {
        // What else is not a blank is a comment. A string may have lines of its own.
        comments[token.bytes]
            .iter_mut()
            .filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b' ');
    }
    let lines = text.lines().zip(comments.split(|&byte| byte == b'\n')).enumerate();
    let with_comment = lines.filter(|(_, (_, comment))| !comment.trim_ascii().is_empty());
    with_comment.map(|(at, (line, _))| (at + 1, line.chars().count())).collect()
}

/// The lines with code. Literals count: a line of a long string is code.
fn code_lines(text: &str, shipped: &[Token]) -> usize {
    let lines: BTreeSet<usize> = shipped.iter().flat_map(|token| token.lines.clone()).collect();
    let is_code =
        |(number, line): &(usize, &str)| lines.contains(number) && !line.trim().is_empty();
    (1..).zip(text.lines()).filter(is_code).count()
}

fn public_functions(tokens: &[Token]) -> usize {
    let qualifiers = ["const", "unsafe", "async"];
    let is_function = |behind: &&[Token]| {
        let mut behind = behind.iter().map(|token| token.text.as_str());
        behind.next() == Some("pub") && behind.find(|word| !qualifiers.contains(word)) == Some("fn")
    };
    tokens.windows(5).filter(is_function).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_tests_are_not_code() {
        let text = "//! What it is.\n\n/* a\n b */\nfn f() { // why\n    \"one\n  two\"\n}\n\
            #[cfg(test)]\nmod tests {\n    fn g() {}\n}\nconst C: u8 = 1;\n";
        assert_eq!(count("src/a.rs", text).code, 5);
        assert_eq!(count("src/a.rs", text).longest_file, 13);
        assert_eq!(count("src/a/tests.rs", text).code, 0);
        assert_eq!(count("tests/it/a.rs", text).code, 5);
        assert_eq!(count("crates/x/tests/it/a.rs", text).code, 0);
    }

    #[test]
    fn text_in_comments_and_strings_is_not_counted() {
        let text = "// #[inline(always)] unsafe { } pub fn\n\
            #[inline(always)] pub fn a() { unsafe { b() } }\n\
            pub const unsafe fn c() {} pub(crate) fn d() {} unsafe fn e() {} pub struct F;\n\
            const G: &str = \"unsafe { } pub fn\";\n\
            #[cfg(test)] pub fn h() { unsafe { i() } }\n";
        let counts = count("src/a.rs", text);
        let Counts { inline_always, unsafe_blocks, public_functions, .. } = counts;
        assert_eq!([inline_always, unsafe_blocks, public_functions], [1, 1, 2]);
    }

    #[test]
    fn counts_are_added_and_the_longest_is_kept() {
        let mut total = count("src/a.rs", "fn a() {}\n// four\n");
        total += count("src/b.rs", "fn b() {}\nfn c() {} // longer\n\n");
        let Counts { files, code, longest_file, longest_comment, .. } = total;
        assert_eq!([files, code, longest_file, longest_comment], [2, 3, 3, 19]);
    }

    #[test]
    fn lines_with_comments_have_numbers_and_columns() {
        let text = "a(); // b\n\"// c\"\n/* d\n   e */ f();\n";
        assert_eq!(comment_lines(text), [(1, 9), (3, 4), (4, 12)]);
    }
}
