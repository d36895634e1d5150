//! Rust as lines of text, for tests of layers and words and for `scripts/lines`.
//!
//! rustfmt decides how a file looks, so no parser is needed: a comment has `//` at the start of a
//! line or behind a blank, and an item ends at a line that is indented like its first.

/// Whether the file is compiled only for tests.
#[must_use]
pub fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// The lines with code, without comments, and without items behind `#[cfg(test)]`.
pub fn code(text: &str) -> impl Iterator<Item = &str> {
    let mut test_item = None;
    text.lines().filter_map(move |line| {
        let (indent, code) = (line.len() - line.trim_start().len(), line.trim());
        if code == "#[cfg(test)]" {
            test_item.get_or_insert(indent);
        }
        let is_code = !code.is_empty() && !code.starts_with("//") && test_item.is_none();
        if test_item == Some(indent) && code.ends_with(['}', ';']) {
            test_item = None;
        }
        is_code.then(|| code.split(" // ").next().unwrap_or_default())
    })
}

/// How often this is in the code.
#[must_use]
pub fn count(text: &str, what: &str) -> usize {
    code(text).map(|line| line.matches(what).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_items_for_tests_are_no_code() {
        let text = "//! a\n\n/// unsafe {\nfn f() { // unsafe {\n    \"one\n  two\"\n}\n\
            #[cfg(test)]\nmod t {\n    fn g() { unsafe { h() } }\n}\n#[cfg(test)]\nmod tests;\nunsafe { b() }\n";
        let lines = ["fn f() {", "\"one", "two\"", "}", "unsafe { b() }"];
        assert!(code(text).eq(lines));
        assert_eq!(count(text, "unsafe {"), 1);
    }
}
