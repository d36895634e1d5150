//! Reads Rust, for tests of imports, words and lines.
//!
//! `proc_macro2` divides a file into tokens, which know their places and have no comments. Macros
//! are not expanded: what they are called with is read as tokens. [`lines`] counts.

use std::ops::{Range, RangeInclusive};

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

pub mod lines;

/// A token of a file. A bracket, a brace and a parenthesis are tokens too.
#[derive(Debug)]
pub struct Token {
    /// Its text.
    pub text: String,
    /// Its bytes in the file.
    pub bytes: Range<usize>,
    /// The lines that it is on, from 1.
    pub lines: RangeInclusive<usize>,
}

/// The tokens of a file.
///
/// # Panics
/// If the text is not Rust.
#[must_use]
pub fn tokens_of(text: &str) -> Vec<Token> {
    flat(without_comments(text, true))
}

/// The tokens of a file that are not in items behind `#[cfg(test)]`.
///
/// # Panics
/// If the text is not Rust.
#[must_use]
pub fn shipped(text: &str) -> Vec<Token> {
    flat(without_comments(text, false))
}

/// Whether one of the tokens is this word.
#[must_use]
pub fn has_word(tokens: &[Token], word: &str) -> bool {
    count(tokens, &[word]) > 0
}

/// How often these tokens follow each other.
#[must_use]
pub fn count(tokens: &[Token], texts: &[&str]) -> usize {
    let is_there =
        |at: &&[Token]| at.iter().map(|token| token.text.as_str()).eq(texts.iter().copied());
    tokens.windows(texts.len()).filter(is_there).count()
}

/// The tokens of a file, with or without tests.
fn without_comments(text: &str, tests: bool) -> TokenStream {
    let stream = text.parse().unwrap_or_else(|error| panic!("{error} in a file:\n{text}"));
    kept(stream, tests)
}

/// Leaves out what documents: a comment is an attribute whose every token has all of its bytes.
fn kept(stream: TokenStream, tests: bool) -> TokenStream {
    let (mut trees, mut kept_trees) = (stream.into_iter().peekable(), TokenStream::new());
    while let Some(mut tree) = trees.next() {
        let is_hash = matches!(&tree, TokenTree::Punct(mark) if mark.as_char() == '#');
        if is_hash && tree.span().byte_range().len() > 1 {
            trees.find(|tree| matches!(tree, TokenTree::Group(_)));
            continue;
        }
        if is_hash && !tests && trees.peek().is_some_and(is_for_tests) {
            trees.find(ends_an_item);
            continue;
        }
        if let TokenTree::Group(group) = &mut tree {
            let span = group.span();
            *group = Group::new(group.delimiter(), kept(group.stream(), tests));
            group.set_span(span);
        }
        kept_trees.extend([tree]);
    }
    kept_trees
}

fn is_for_tests(attribute: &TokenTree) -> bool {
    attribute.to_string().replace(' ', "") == "[cfg(test)]"
}

fn ends_an_item(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => other.to_string() == ";",
    }
}

fn flat(stream: TokenStream) -> Vec<Token> {
    let token = |text: &str, span: Span| Token {
        text: text.to_owned(),
        bytes: span.byte_range(),
        lines: span.start().line..=span.end().line,
    };
    let mut tokens = Vec::new();
    for tree in stream {
        let TokenTree::Group(group) = tree else {
            tokens.push(token(&tree.to_string(), tree.span()));
            continue;
        };
        let [open, close] = match group.delimiter() {
            Delimiter::Parenthesis => ["(", ")"],
            Delimiter::Brace => ["{", "}"],
            Delimiter::Bracket | Delimiter::None => ["[", "]"],
        };
        tokens.push(token(open, group.span_open()));
        tokens.extend(flat(group.stream()));
        tokens.push(token(close, group.span_close()));
    }
    tokens
}

/// Whether the file is compiled only for tests.
#[must_use]
pub fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(tokens: &[Token]) -> Vec<&str> {
        tokens.iter().map(|token| token.text.as_str()).collect()
    }

    #[test]
    fn comments_are_no_tokens_and_strings_are_no_words() {
        let text = "//! a\nlet b = \"unsafe\"; // unsafe\n/* unsafe */ /** unsafe */ #[doc = \"c\"] fn d() { /// unsafe\ne }";
        let tokens = tokens_of(text);
        assert!(!has_word(&tokens, "unsafe") && has_word(&tokens, "\"unsafe\""));
        let left = "let b = \"unsafe\" ; # [ doc = \"c\" ] fn d ( ) { e }";
        assert_eq!(words(&tokens).join(" "), left);
        assert!(tokens.iter().all(|token| text[token.bytes.clone()] == token.text));
        assert_eq!((*tokens[0].lines.start(), *tokens[tokens.len() - 1].lines.end()), (2, 4));
    }

    #[test]
    fn a_word_is_found_whole_or_not_at_all() {
        let has = |text, word| has_word(&tokens_of(text), word);
        assert!(has("a { unsafe { x } }", "unsafe") && has("use std::fs;", "std"));
        assert!(!has("#![forbid(unsafe_code)] nonunsafe", "unsafe") && !has("my_std::fs", "std"));
    }

    #[test]
    fn test_items_are_cut_out() {
        for text in [
            "a #[cfg(test)] const F: [u8; 2] = [1; 2]; #[cfg(test)] mod t { fn f() { x } } c",
            "a #[cfg(test)] mod tests; c",
            "a #[cfg(test)] #[expect(dead_code)] fn f(x: [u8; 3]) {} c",
        ] {
            assert_eq!(words(&shipped(text)), ["a", "c"], "{text}");
        }
    }
}
