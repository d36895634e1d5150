//! Style rules: the width of comments, the length of pages, and words that the code must not use.
//!
//! Each rule is a function from a text to complaints, also tested on small texts that break it. A
//! list of path prefixes says where each rule applies.

use testkit::source::lines::{comment_lines, count};
use testkit::source::{has_word, shipped, tokens_of};
use testkit::workspace::{root, sources};

const MAX_COLUMNS: usize = 100;

/// Where comments are at most [`MAX_COLUMNS`] wide.
const NARROW_COMMENTS: &[&str] = &["crates/", "fuzz/", "scripts/"];

const MAX_PAGE_LINES: usize = 80;
const MAX_PAGE_COLUMNS: usize = 200;

/// Where pages are at most one screen and a half long.
const SHORT_PAGES: &[&str] = &["docs/decisions/"];

/// Where no word of [`BANNED`] is in the code.
const PLAIN_WORDS: &[&str] = &["crates/", "fuzz/"];

/// Libraries, whose messages do not advise users of the command.
const LIBRARIES: &[&str] = &["crates/koel/src/", "crates/koel-store/src/"];

/// The front page of the library's documentation.
const FRONT_PAGE: &str = "crates/koel/README.md";

/// Words that only this project used, and what to say instead.
const BANNED: &[(&str, &str)] = &[
    ("Apart", "Unpacked"),
    ("AtEach", "BlockMut"),
    ("Bell", "Wakeup"),
    ("Stretch", "LinearHashing"),
    ("Tally", "State"),
    ("Told", "HintCache"),
    ("Ways", "Frontier"),
    ("asked_ahead", "prefetch_target"),
    ("dealt_in", "interleave"),
    ("found_or_told", "resolve_damaged"),
    ("gathered", "deinterleave"),
    ("handed_on", "reborrow"),
    ("in_any_form", "Packing"),
    ("in_form", "Packing"),
    ("reenter", "replay_hints"),
    ("stretch", "growing addressing"),
    ("unstretched", "fixed"),
    ("weigh", "add_weight or subtract_weight"),
    ("weigh_in", "add_weight"),
    ("weigh_out", "subtract_weight"),
];

// ---- the rules

/// One complaint for the first comment line that is too wide.
fn wide_comment(path: &str, text: &str) -> Option<String> {
    let lines = if is_rust(path) { comment_lines(text) } else { comment_lines_of_script(text) };
    let (line, columns) = lines.into_iter().find(|(_, columns)| *columns > MAX_COLUMNS)?;
    Some(format!("{path}:{line}: a comment line of {columns} columns; {MAX_COLUMNS} at most"))
}

/// Numbers and columns of the lines of a script that are comments.
fn comment_lines_of_script(text: &str) -> Vec<(usize, usize)> {
    let comments = text.lines().enumerate().filter(|(_, line)| line.trim().starts_with('#'));
    comments.map(|(at, line)| (at + 1, line.chars().count())).collect()
}

fn long_page(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    let columns = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    (lines > MAX_PAGE_LINES || columns > MAX_PAGE_COLUMNS).then(|| {
        format!(
            "{path}: {lines} lines of up to {columns} columns; {MAX_PAGE_LINES} and \
             {MAX_PAGE_COLUMNS} at most"
        )
    })
}

fn banned_word(path: &str, text: &str) -> Option<String> {
    let tokens = tokens_of(text);
    let (word, better) = BANNED.iter().find(|(word, _)| has_word(&tokens, word))?;
    Some(format!("{path}: `{word}` is not a word of the field; say `{better}`"))
}

/// A verb or an option of the command in the code or a message of a library.
fn command_advice(path: &str, text: &str) -> Option<String> {
    let tokens = shipped(text);
    let is_said = |advice: &&str| tokens.iter().any(|token| token.text.contains(*advice));
    let advice = ["`koel ", " --"].into_iter().find(is_said)?;
    Some(format!("{path}: {advice:?} is advice of the command; the library has other users"))
}

/// The numbers of `unsafe` blocks and of files with one, as the front page states them.
fn stated_unsafe(page: &str) -> Option<[usize; 2]> {
    let (_, after) = page.split_once("`unsafe` is ")?;
    let (blocks, after) = after.split_once(" blocks in ")?;
    let (files, _) = after.split_once(" files")?;
    Some([blocks.parse().ok()?, files.parse().ok()?])
}

// ---- the workspace

/// Applies a rule to the `wanted` files whose paths begin with one of `prefixes`.
#[track_caller]
fn assert_kept(
    prefixes: &[&str],
    wanted: impl Fn(&str) -> bool,
    rule: impl Fn(&str, &str) -> Option<String>,
) {
    let holds = |path: &str| prefixes.iter().any(|prefix| path.starts_with(prefix));
    let files = sources(&root(), |path| wanted(path) && holds(path));
    for prefix in prefixes {
        assert!(files.keys().any(|path| path.starts_with(prefix)), "nothing in {prefix}");
    }
    let complaints: Vec<_> = files.iter().filter_map(|(path, text)| rule(path, text)).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

#[test]
fn comments_are_narrow() {
    let wanted = |path: &str| is_rust(path) || path.starts_with("scripts/");
    assert_kept(NARROW_COMMENTS, wanted, wide_comment);
}

#[test]
fn decisions_are_short() {
    assert_kept(SHORT_PAGES, |path| path.ends_with(".md"), long_page);
}

#[test]
fn code_has_no_banned_word() {
    assert_kept(PLAIN_WORDS, is_rust, banned_word);
}

#[test]
fn messages_of_the_libraries_do_not_name_the_command() {
    assert_kept(LIBRARIES, is_rust, command_advice);
}

#[test]
fn the_front_page_states_the_true_count_of_unsafe_blocks() {
    let files = sources(&root(), |path| is_rust(path) && path.starts_with("crates/koel/src/"));
    let counts = files.iter().map(|(path, text)| count(path, text).unsafe_blocks);
    let counts: Vec<usize> = counts.filter(|&blocks| blocks > 0).collect();
    let page = sources(&root(), |path| path == FRONT_PAGE);
    let stated = stated_unsafe(&page[FRONT_PAGE]);
    assert_eq!(stated, Some([counts.iter().sum(), counts.len()]), "blocks and files in the page");
}

// ---- the rules on texts that break them

#[test]
fn a_wide_comment_is_named() {
    let wide = "x".repeat(MAX_COLUMNS - 2);
    for comment in ["//", "   //", "///", "//!", "f(); //"] {
        let text = format!("fn a() {{}}\n{comment} {wide}\n");
        let complaint = wide_comment("a.rs", &text).expect("a complaint");
        assert!(complaint.starts_with("a.rs:2:"), "{complaint}");
    }
    let in_a_block = format!("/* a\n {wide}   */");
    assert!(wide_comment("a.rs", &in_a_block).is_some());
    assert!(wide_comment("scripts/a", &format!("# {wide}x")).is_some());
    assert_eq!(wide_comment("scripts/a", &format!("# {wide}\necho {wide} wide")), None);
    let no_comment = format!("let a = \"// {wide}\";\n// {}", &wide[1..]);
    assert_eq!(wide_comment("a.rs", &no_comment), None);
}

#[test]
fn a_long_or_wide_page_is_named() {
    assert!(long_page("a.md", &"x\n".repeat(MAX_PAGE_LINES + 1)).is_some());
    assert!(long_page("a.md", &"x".repeat(MAX_PAGE_COLUMNS + 1)).is_some());
    let full = format!("{}\n", "x".repeat(MAX_PAGE_COLUMNS)).repeat(MAX_PAGE_LINES);
    assert_eq!(long_page("a.md", &full), None);
}

#[test]
fn advice_of_the_command_is_named_in_messages_and_not_in_comments() {
    for text in ["const A: &str = \"build one with `koel build`\";", "f(\"use --grow\")"] {
        assert!(command_advice("a.rs", text).is_some(), "{text}");
    }
    let fine =
        "/// `koel build --grow`\nf(\"a koel filter\");\n#[cfg(test)]\nmod t { f(\"a --b\") }";
    assert_eq!(command_advice("a.rs", fine), None);
}

#[test]
fn a_banned_word_is_named_in_code_and_not_in_prose() {
    let complaint = banned_word("a.rs", "mod stretch;").expect("a complaint");
    assert!(complaint.contains("`growing addressing`"), "{complaint}");
    for (word, _) in BANNED {
        assert!(banned_word("a.rs", &format!("fn f() {{ {word}(1) }}")).is_some(), "{word}");
    }
    let prose = "// A Tally is weighed.\nlet weighed = \"Tally\"; let tally = Stretched;";
    assert_eq!(banned_word("a.rs", prose), None);
}

#[test]
fn a_count_that_is_not_stated_is_not_found() {
    assert_eq!(stated_unsafe("`unsafe` is 3 blocks in 2 files: a, b."), Some([3, 2]));
    assert_eq!(stated_unsafe("`unsafe` is three blocks in 2 files"), None);
    assert_eq!(stated_unsafe("It is safe."), None);
}
