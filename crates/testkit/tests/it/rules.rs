//! Rules that no compiler checks: which crate or layer imports which, how source files look, the
//! width of comments and the length of pages.
//!
//! Each rule is a function from the text of a file to complaints. The workspace must have none, and
//! small texts that break the rule must have one, because a rule that cannot fail protects nothing.

use testkit::source::lines::{self, comment_lines};
use testkit::source::{Token, count, has_word, is_test, shipped};
use testkit::workspace;

/// The crates, with the others that each imports. Cargo allows no circles, and no package that is
/// published needs one that is not.
const CRATES: &str = "
koel: testkit
koel-bench: koel koel-map koel-store testkit
koel-cli: koel koel-plan koel-store testkit
koel-instructions: koel testkit
koel-map: testkit
koel-plan: koel
koel-store: koel testkit
koel-valkey: koel testkit
koel-wasm: koel koel-plan
testkit: koel koel-store
koel-python: koel
fuzz: koel-valkey testkit
";

/// The files of `koel` that use the standard library, behind the feature `std`: paths, locks, and
/// files.
const STD_FILES: [&str; 6] = [
    "crates/koel/src/address/key/paths.rs",
    "crates/koel/src/concurrent/convert.rs",
    "crates/koel/src/concurrent/sync.rs",
    "crates/koel/src/file/disk.rs",
    "crates/koel/src/file/pieces.rs",
    "crates/koel/src/file/replace.rs",
];

/// The modules of a crate in layers, top to bottom. None may import from a higher layer; those that
/// are not listed may import from all.
type Layers = &'static [&'static [&'static str]];

const LAYERS: [(&str, Layers); 2] = [
    ("crates/koel-store/src/", &[&["content"], &["log", "lsm"], &["kernel", "error"]]),
    (
        "crates/koel/src/",
        &[
            &["filter", "maplet", "counting", "expiring", "concurrent", "file", "face"],
            &["state", "builder"],
            &["image", "error"],
            &["table"],
            &["packing"],
            &["address"],
            &["mem"],
        ],
    ),
];

const MAX_COMMENT_COLUMNS: usize = 100;

/// A page of a decision is at most one screen and a half long.
const MAX_PAGE_LINES: usize = 80;
const MAX_PAGE_COLUMNS: usize = 200;

/// The front page of the library's documentation.
const FRONT_PAGE: &str = "crates/koel/README.md";

/// A file: its path from the root of the repository, with slashes, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The module of `crates/koel/src` that the file belongs to.
    fn module(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("crates/koel/src/")?;
        inside.split(['/', '.']).next()
    }

    /// The code without tests.
    fn shipped(&self) -> Vec<Token> {
        if is_test(&self.path) { Vec::new() } else { shipped(&self.text) }
    }
}

// ---- the rules

fn use_of_the_standard_library(source: &Source) -> Vec<String> {
    let free = source.module().is_some() && !STD_FILES.contains(&source.path.as_str());
    let found = free && has_word(&source.shipped(), "std");
    complain(found, source, "the library is `no_std`: take it from `core` or `alloc`")
}

fn missing_header(source: &Source) -> Vec<String> {
    let text = source.text.trim_start();
    let found = !text.starts_with("//! ") && !text.starts_with("#![doc = include_str!");
    complain(found, source, "open with `//!`: what the file is, why it exists, its invariants")
}

fn import_of_a_higher_layer(source: &Source) -> Vec<String> {
    let Some((inside, layers)) = LAYERS
        .iter()
        .find_map(|(folder, layers)| Some((source.path.strip_prefix(folder)?, layers)))
    else {
        return Vec::new();
    };
    let own = inside.split(['/', '.']).next();
    let is_own = |layer: &[&str]| layer.iter().any(|name| own == Some(name));
    let below = layers.iter().position(|layer| is_own(layer)).unwrap_or(0);
    let code = source.shipped();
    let mut above = layers[..below].iter().copied().flatten();
    let found = above.find(|name| count(&code, &["crate", ":", ":", name]) > 0);
    let name = found.copied().unwrap_or_default();
    let what = format!("`{name}` is in a higher layer: pass it as an argument, or move it down");
    complain(found.is_some(), source, &what)
}

fn wide_comment(source: &Source) -> Vec<String> {
    let lines = if is_rust(&source.path) {
        comment_lines(&source.text)
    } else {
        let comments = (1..).zip(source.text.lines().map(str::trim));
        let comments = comments.filter(|(_, line)| line.starts_with('#'));
        comments.map(|(at, line)| (at, line.chars().count())).collect()
    };
    let wide = lines.into_iter().find(|(_, columns)| *columns > MAX_COMMENT_COLUMNS);
    let (at, columns) = wide.unwrap_or_default();
    let what = format!("line {at} has {columns} columns; with a comment {MAX_COMMENT_COLUMNS}");
    complain(wide.is_some(), source, &what)
}

fn long_page(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    let columns = source.text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let found = lines > MAX_PAGE_LINES || columns > MAX_PAGE_COLUMNS;
    let most = format!("{MAX_PAGE_LINES} and {MAX_PAGE_COLUMNS} at most");
    complain(found, source, &format!("{lines} lines of up to {columns} columns; {most}"))
}

/// A verb or an option of the command in the code or a message of a library.
fn command_advice(source: &Source) -> Vec<String> {
    let tokens = source.shipped();
    let is_said = |advice: &&str| tokens.iter().any(|token| token.text.contains(*advice));
    let found = ["`koel ", " --"].iter().any(is_said);
    complain(found, source, "advice of the command: the library has other users")
}

/// The numbers of `unsafe` blocks and of files with one, as the front page states them.
fn stated_unsafe(page: &str) -> Option<[usize; 2]> {
    let (_, after) = page.split_once("`unsafe` is ")?;
    let (blocks, after) = after.split_once(" blocks in ")?;
    let (files, _) = after.split_once(" files")?;
    Some([blocks.parse().ok()?, files.parse().ok()?])
}

/// A package contains only files of its folder.
fn licences_left_behind(manifest: &Source) -> Vec<String> {
    let is_there =
        |name: &str| workspace::root().join(&manifest.path).with_file_name(name).is_file();
    let whole = ["LICENSE-MIT", "LICENSE-APACHE"].into_iter().all(is_there);
    let found = !manifest.text.contains("publish = false") && !whole;
    complain(found, manifest, "published without the licences: link to them beside it")
}

/// With a `CDPATH`, `cd scripts/..` may lead to another folder than this one.
fn wanders_off(script: &Source) -> Vec<String> {
    let found = script.text.lines().any(|line| line.starts_with("cd "));
    complain(found, script, "go to the repository with `CDPATH= cd`")
}

fn bytes_beyond_ascii(source: &Source) -> Vec<String> {
    let line = source.text.lines().position(|line| !line.is_ascii());
    complain(line.is_some(), source, &format!("line {} is not ASCII", line.unwrap_or(0) + 1))
}

fn complain(found: bool, source: &Source, what: &str) -> Vec<String> {
    if found { vec![format!("{}: {what}", source.path)] } else { Vec::new() }
}

// ---- the workspace

/// Every file of the repository whose path `wanted` accepts.
fn sources(wanted: impl Fn(&str) -> bool) -> Vec<Source> {
    let found = workspace::sources(&workspace::root(), wanted);
    assert!(!found.is_empty());
    found.into_iter().map(|(path, text)| Source { path, text }).collect()
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

#[track_caller]
fn assert_kept(wanted: impl Fn(&str) -> bool, rule: impl Fn(&Source) -> Vec<String>) {
    let complaints: Vec<String> = sources(wanted).iter().flat_map(rule).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn each_crate_imports_what_the_table_says() {
    let mut found = String::from("\n");
    for lock in ["Cargo.lock", "crates/koel-python/Cargo.lock", "fuzz/Cargo.lock"] {
        let text = std::fs::read_to_string(workspace::root().join(lock)).expect("a lock file");
        for package in text.split("[[package]]").filter(|it| !it.contains("source = ")) {
            let mut names = package.split('"').skip(1).step_by(2);
            let name = names.next().unwrap_or_default();
            let is_ours = |it: &&str| it.starts_with("koel") || *it == "testkit";
            let imports: Vec<&str> = names.filter(is_ours).collect();
            let is_new = !name.is_empty() && !found.contains(&format!("\n{name}: "));
            if is_new && !imports.is_empty() {
                found += &format!("{name}: {}\n", imports.join(" "));
            }
        }
    }
    assert_eq!(found, CRATES, "change CRATES and ARCHITECTURE.md, or leave an import out");
}

#[test]
fn the_library_uses_nothing_of_the_standard_library() {
    assert_kept(is_rust, use_of_the_standard_library);
}

#[test]
fn no_module_imports_from_a_higher_layer() {
    assert_kept(is_rust, import_of_a_higher_layer);
    let path = "crates/koel/src/table/mod.rs";
    complaint(path, "use crate::filter::Filter;", import_of_a_higher_layer);
    complaint(path, "fn f() -> crate::image::X {}", import_of_a_higher_layer);
    assert_silent(path, "use crate::mem::X; // crate::filter", import_of_a_higher_layer);
    assert_silent("crates/koel/src/lib.rs", "use crate::filter::X;", import_of_a_higher_layer);
}

#[test]
fn published_crates_contain_their_licences() {
    assert_kept(
        |path| path.starts_with("crates/") && path.ends_with("/Cargo.toml"),
        licences_left_behind,
    );
}

#[test]
fn scripts_ignore_cdpath() {
    assert_kept(|path| path.starts_with("scripts/"), wanders_off);
    complaint("scripts/test", "cd \"$(dirname \"$0\")/..\"\n", wanders_off);
}

#[test]
fn every_file_has_a_header_and_is_ascii() {
    assert_kept(is_rust, missing_header);
    let made_by_cargo = |path: &str| path.ends_with("Cargo.lock");
    assert_kept(|path| !made_by_cargo(path) && is_source(path), bytes_beyond_ascii);
}

/// Rust, manifests and scripts, but not data.
fn is_source(path: &str) -> bool {
    is_rust(path) || path.ends_with(".toml") || path.starts_with("scripts/")
}

#[test]
fn comments_are_narrow_and_decisions_are_short() {
    assert_kept(|path| is_rust(path) || path.starts_with("scripts/"), wide_comment);
    assert_kept(|path| path.starts_with("docs/decisions/"), long_page);
}

#[test]
fn messages_of_the_libraries_do_not_name_the_command() {
    let libraries = ["crates/koel/src/", "crates/koel-map/src/", "crates/koel-store/src/"];
    let is_library = |path: &str| libraries.iter().any(|folder| path.starts_with(folder));
    assert_kept(|path| is_rust(path) && is_library(path), command_advice);
}

#[test]
fn the_front_page_states_the_true_count_of_unsafe_blocks() {
    let files = sources(|path| is_rust(path) && path.starts_with("crates/koel/src/"));
    let counts = files.iter().map(|file| lines::count(&file.path, &file.text).unsafe_blocks);
    let counts: Vec<usize> = counts.filter(|&blocks| blocks > 0).collect();
    let stated = stated_unsafe(&sources(|path| path == FRONT_PAGE)[0].text);
    assert_eq!(stated, Some([counts.iter().sum(), counts.len()]), "blocks and files in the page");
    assert_eq!(stated_unsafe("`unsafe` is three blocks in 2 files"), None);
}

// ---- the rules on texts that break them

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

/// The one complaint of a rule about a text, which names the file.
#[track_caller]
fn complaint(path: &str, text: &str, rule: impl Fn(&Source) -> Vec<String>) -> String {
    let [complaint] = <[String; 1]>::try_from(rule(&source(path, text))).expect("one complaint");
    assert!(complaint.starts_with(path), "{complaint}");
    complaint
}

#[track_caller]
fn assert_silent(path: &str, text: &str, rule: impl Fn(&Source) -> Vec<String>) {
    assert_eq!(rule(&source(path, text)), Vec::<String>::new());
}

#[test]
fn a_library_file_that_uses_the_standard_library_is_named() {
    let path = "crates/koel/src/hash.rs";
    complaint(path, "use std::fmt;", use_of_the_standard_library);
    for path in STD_FILES {
        assert_silent(path, "use std::sync::Mutex;", use_of_the_standard_library);
    }
    assert_silent(path, "/// std::fmt\nuse core::fmt;", use_of_the_standard_library);
    assert_silent("crates/koel-cli/src/main.rs", "use std::fmt;", use_of_the_standard_library);
}

#[test]
fn a_file_without_header_or_not_ascii_is_named() {
    let path = "crates/koel/examples/a.rs";
    complaint(path, "// A story.\nfn main() {}", missing_header);
    complaint(path, "", missing_header);
    assert_silent(path, "//! A story.", missing_header);
    assert_silent(path, "#![doc = include_str!(\"../README.md\")]", missing_header);
    assert!(complaint(path, "a\n\u{e4}", bytes_beyond_ascii).contains("line 2"));
}

#[test]
fn a_wide_comment_and_a_long_page_are_named() {
    let wide = "x".repeat(MAX_COMMENT_COLUMNS - 2);
    for comment in ["//", "   //", "///", "//!", "f(); //"] {
        let complaint =
            complaint("a.rs", &format!("fn a() {{}}\n{comment} {wide}\n"), wide_comment);
        assert!(complaint.starts_with("a.rs: line 2 "), "{complaint}");
    }
    complaint("a.rs", &format!("/* a\n {wide}   */"), wide_comment);
    complaint("scripts/a", &format!("# {wide}x"), wide_comment);
    assert_silent("scripts/a", &format!("# {wide}\necho {wide} wide"), wide_comment);
    let no_comment = format!("let a = \"// {wide}\";\n// {}", &wide[1..]);
    assert_silent("a.rs", &no_comment, wide_comment);
    complaint("a.md", &"x\n".repeat(MAX_PAGE_LINES + 1), long_page);
    complaint("a.md", &"x".repeat(MAX_PAGE_COLUMNS + 1), long_page);
}

#[test]
fn advice_of_the_command_is_named_in_messages_and_not_in_comments() {
    for text in ["const A: &str = \"build one with `koel build`\";", "f(\"use --grow\")"] {
        complaint("a.rs", text, command_advice);
    }
    let fine =
        "/// `koel build --grow`\nf(\"a koel filter\");\n#[cfg(test)]\nmod t { f(\"a --b\") }";
    assert_silent("a.rs", fine, command_advice);
}
