//! Prints the size of every crate, and of every folder of `koel`, as tables in Markdown.
//!
//! `scripts/lines [FOLDER]` runs it; FOLDER is the root of a checkout, this one unless given. What
//! is code: `testkit::source`. Attributes and lines with a lone brace count.

use std::collections::BTreeMap;
use std::path::PathBuf;

use testkit::source::{code, count, is_test};
use testkit::workspace::{root, sources};

const COLUMNS: [&str; 6] = [
    "files",
    "code lines",
    "longest file",
    "`inline(always)`",
    "`unsafe` blocks",
    "`pub` functions",
];

fn counts(path: &str, text: &str) -> [usize; 6] {
    if is_test(path) {
        return [0; 6];
    }
    let is_public = |line: &&str| {
        let mut words = line.split(' ').skip_while(|it| ["const", "unsafe", "async"].contains(it));
        line.starts_with("pub ") && words.any(|word| word == "fn")
    };
    let public = code(text).filter(is_public).count();
    let [inline, blocks] = ["#[inline(always)]", "unsafe {"].map(|what| count(text, what));
    [1, code(text).count(), text.lines().count(), inline, blocks, public]
}

fn main() {
    let root = std::env::args().nth(1).map_or_else(root, PathBuf::from);
    let (mut crates, mut folders) = (BTreeMap::new(), BTreeMap::new());
    for (path, text) in sources(&root, |path| path.ends_with(".rs")) {
        let counts = counts(&path, &text);
        let add = |table: &mut BTreeMap<String, [usize; 6]>, name: String| {
            let all = table.entry(name).or_default();
            for (i, (all, count)) in all.iter_mut().zip(counts).enumerate() {
                *all = if i == 2 { count.max(*all) } else { count + *all };
            }
        };
        let name = path.trim_start_matches("crates/").split('/').next().unwrap_or_default();
        add(&mut crates, name.to_owned());
        if let Some(inside) = path.strip_prefix("crates/koel/src/") {
            let folder = inside.rsplit_once('/').map_or("", |(folder, _)| folder);
            add(&mut folders, format!("`src/{folder}`"));
            add(&mut folders, "`src`, all".to_owned());
        }
    }
    for table in [crates, folders] {
        println!("| | {} |\n|---{} |", COLUMNS.join(" | "), "|--:".repeat(COLUMNS.len()));
        for (name, counts) in table {
            println!("| {name} | {} |", counts.map(|count| count.to_string()).join(" | "));
        }
        println!();
    }
}
