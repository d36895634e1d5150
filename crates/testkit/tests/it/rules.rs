//! Rules that no compiler checks: which crate or layer imports which, how source files look, the
//! width of comments and the length of pages.
//!
//! Each rule is a function from the text of a file to complaints. The workspace must have none, and
//! small texts that break the rule must have one, because a rule that cannot fail protects nothing.

use testkit::source::{code, count, is_test};
use testkit::workspace;

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
            &["filter", "maplet", "counting", "expiring", "concurrent", "remote", "file", "face"],
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
    /// The lines of code that are not for tests.
    fn shipped(&self) -> Vec<&str> {
        if is_test(&self.path) { Vec::new() } else { code(&self.text).collect() }
    }
}

// ---- the rules

/// The compiler refuses what is not brought in by `extern crate std`.
fn use_of_the_standard_library(source: &Source) -> Vec<String> {
    let free = source.path.starts_with("crates/koel/src/") && !STD_FILES.contains(&&*source.path);
    let found = free && source.shipped().contains(&"extern crate std;");
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
    let is_in = |name: &str, path: &str| {
        let behind = path.strip_prefix(name).map(|rest| rest.chars().next());
        behind.is_some_and(|next| next.is_none_or(|next| !next.is_alphanumeric() && next != '_'))
    };
    let code = source.shipped();
    let paths = code.iter().flat_map(|line| line.split("crate::").skip(1));
    let mut above = layers[..below].iter().copied().flatten();
    let found = above.find(|name| paths.clone().any(|path| is_in(name, path)));
    let name = found.copied().unwrap_or_default();
    let what = format!("`{name}` is in a higher layer: pass it as an argument, or move it down");
    complain(found.is_some(), source, &what)
}

fn wide_comment(source: &Source) -> Vec<String> {
    let marks = if is_rust(&source.path) { ["//", " // "] } else { ["#", "\n"] };
    let is_wide = |(_, line): &(usize, &str)| {
        let is_comment = line.trim().starts_with(marks[0]) || line.contains(marks[1]);
        is_comment && line.chars().count() > MAX_COMMENT_COLUMNS
    };
    let wide = (1..).zip(source.text.lines()).find(is_wide);
    let (at, line) = wide.unwrap_or_default();
    let columns = line.chars().count();
    let what = format!("line {at} has {columns} columns; with a comment {MAX_COMMENT_COLUMNS}");
    complain(wide.is_some(), source, &what)
}

/// The other rules find comments by their slashes.
fn block_comment(source: &Source) -> Vec<String> {
    let is_block = |line: &str| line.trim().starts_with("/*") || line.contains(" /*\x20");
    complain(source.text.lines().any(is_block), source, "write comments with `//`")
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
    let says = |line: &&str| ["`koel ", " --"].iter().any(|advice| line.contains(advice));
    let found = source.shipped().iter().any(says);
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

/// Cargo allows no circles, and no package that is published needs one that is not.
#[test]
fn each_crate_imports_what_the_architecture_says() {
    let read = |path| std::fs::read_to_string(workspace::root().join(path)).expect("a text");
    let page = read("ARCHITECTURE.md");
    let ours = |text: &str, mark| -> Vec<String> {
        let names = text.split(mark).skip(1).step_by(2);
        let mut names: Vec<_> =
            names.filter(|it| it.starts_with("koel")).map(str::to_owned).collect();
        names.sort();
        names
    };
    for lock in ["Cargo.lock", "crates/koel-python/Cargo.lock", "fuzz/Cargo.lock"] {
        let lock = read(lock);
        for package in lock.split("[[package]]").skip(1).filter(|it| !it.contains("source = ")) {
            let (_, named) = package.split_once("name = \"").expect("a package");
            let (name, rest) = named.split_once('"').expect("a name");
            let is_row = |line: &&str| line.replace('/', "").starts_with(&format!("| `{name}` |"));
            let row = page.lines().find(is_row).and_then(|row| row.rsplit('|').nth(1));
            assert_eq!(ours(rest, '"'), ours(row.unwrap_or_default(), '`'), "{name}");
        }
    }
}

#[test]
fn the_library_uses_nothing_of_the_standard_library() {
    assert_kept(is_rust, use_of_the_standard_library);
    complaint("crates/koel/src/a.rs", "extern crate std;", use_of_the_standard_library);
    assert_silent(STD_FILES[0], "extern crate std;", use_of_the_standard_library);
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
    assert_kept(is_rust, block_comment);
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
    let shipped = files.iter().filter(|file| !is_test(&file.path));
    let counts = shipped.map(|file| count(&file.text, "unsafe {"));
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
        complaint("a.rs", &format!("fn a() {{}}\n{comment} {wide}\n"), wide_comment);
    }
    for comment in ["/* b */", "    /*\n", "f(); /*\x20b */"] {
        complaint("a.rs", comment, block_comment);
    }
    assert_silent("a.rs", "f(\"tree/*.txt\"); // b /*", block_comment);
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
