//! Counts lines, attributes and functions in a folder of Rust.
//!
//! A code line has more than blanks and comments and is not test code: items behind `#[cfg(test)]`,
//! files named `tests.rs` and folders named `tests` are left out. Attributes and lines with a lone
//! brace count. One pass over each file.

use std::ops::AddAssign;

use super::{blank_ranges, code_of, comments_of, is_test, tests_in, tokens_of};
use super::{without_comments, without_tests};

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
    let code = without_tests(&code_of(text));
    let words = tokens_of(&code);
    let follow = |wanted: &[&str]| words.windows(wanted.len()).filter(|at| *at == wanted).count();
    Counts {
        files: 1,
        code: code_lines(text),
        longest_file: text.lines().count(),
        longest_comment,
        inline_always: follow(&["#", "[", "inline", "(", "always", ")", "]"]),
        unsafe_blocks: follow(&["unsafe", "{"]),
        public_functions: public_functions(&words),
    }
}

/// The lines with a comment: their numbers from 1, and their columns.
pub fn comment_lines(text: &str) -> Vec<(usize, usize)> {
    let comments = comments_of(text);
    let lines = text.lines().zip(comments.lines()).enumerate();
    let with_comment = lines.filter(|(_, (_, comment))| !comment.trim().is_empty());
    with_comment.map(|(at, (line, _))| (at + 1, line.chars().count())).collect()
}

/// The code lines. Literals count: a line of a long string is code.
fn code_lines(text: &str) -> usize {
    let shipped = blank_ranges(&without_comments(text), &tests_in(&code_of(text)));
    shipped.lines().filter(|line| !line.trim().is_empty()).count()
}

fn public_functions(words: &[&str]) -> usize {
    let starts = words.iter().enumerate().filter(|(_, word)| **word == "pub");
    let is_function = |&(at, _): &(usize, &&str)| {
        let qualifiers = ["const", "unsafe", "async"];
        words[at + 1..].iter().find(|word| !qualifiers.contains(word)) == Some(&"fn")
    };
    starts.filter(is_function).count()
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
