//! Prints the size of every crate, and of every folder of `koel`, as tables in Markdown.
//!
//! `scripts/lines [FOLDER]` runs it; FOLDER is the root of a checkout, this one unless given. What
//! is counted: `testkit::source::lines`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use testkit::source::lines::{Counts, count};
use testkit::workspace::{by_crate, root, sources};

const HEADING: &str = "\
| | files | code lines | longest file | longest comment line | `inline(always)` | `unsafe` blocks | `pub` functions |";
const RULE: &str = "|---|--:|--:|--:|--:|--:|--:|--:|";

fn main() {
    let root = std::env::args().nth(1).map_or_else(root, PathBuf::from);
    let crates = by_crate(sources(&root, |path| path.ends_with(".rs")));
    println!("{HEADING}\n{RULE}");
    for (name, files) in &crates {
        println!("{}", row(name, total(files.iter())));
    }
    println!("\n{HEADING}\n{RULE}");
    let koel = crates.get("koel").into_iter().flatten();
    let mut folders: BTreeMap<&str, Vec<(&String, &String)>> = BTreeMap::new();
    for (path, text) in koel {
        if let Some(inside) = path.strip_prefix("crates/koel/src/") {
            let folder = inside.rsplit_once('/').map_or("", |(folder, _)| folder);
            folders.entry(folder).or_default().push((path, text));
        }
    }
    for (folder, files) in &folders {
        println!("{}", row(&format!("`src/{folder}`"), total(files.iter().copied())));
    }
    let all = folders.into_values().flatten();
    println!("{}", row("`crates/koel/src`", total(all)));
}

fn total<'a>(files: impl Iterator<Item = (&'a String, &'a String)>) -> Counts {
    let mut total = Counts::default();
    files.for_each(|(path, text)| total += count(path, text));
    total
}

fn row(name: &str, counts: Counts) -> String {
    let Counts { files, code, longest_file, longest_comment, .. } = counts;
    format!(
        "| {name} | {files} | {code} | {longest_file} | {longest_comment} | {} | {} | {} |",
        counts.inline_always, counts.unsafe_blocks, counts.public_functions
    )
}
