//! Prints the size of every crate, and of every folder of `koel`, as tables in Markdown.
//!
//! `scripts/lines [FOLDER]` runs it; FOLDER is the root of a checkout, this one unless given. What
//! is counted: `testkit::source::lines`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use testkit::source::lines::{Counts, count};
use testkit::workspace::{root, sources};

fn main() {
    let root = std::env::args().nth(1).map_or_else(root, PathBuf::from);
    let (mut crates, mut folders) = (BTreeMap::new(), BTreeMap::new());
    for (path, text) in sources(&root, |path| path.ends_with(".rs")) {
        let counts = count(&path, &text);
        let name = path.trim_start_matches("crates/").split('/').next().unwrap_or_default();
        *crates.entry(name.to_owned()).or_insert_with(Counts::default) += counts;
        if let Some(inside) = path.strip_prefix("crates/koel/src/") {
            let folder = inside.rsplit_once('/').map_or("", |(folder, _)| folder);
            for name in [format!("`src/{folder}`"), "`src`, all".to_owned()] {
                *folders.entry(name).or_insert_with(Counts::default) += counts;
            }
        }
    }
    print(&crates);
    print(&folders);
}

fn print(table: &BTreeMap<String, Counts>) {
    println!(
        "| | files | code lines | longest file | longest comment line | `inline(always)` | \
         `unsafe` blocks | `pub` functions |\n|---|--:|--:|--:|--:|--:|--:|--:|"
    );
    for (name, counts) in table {
        let Counts { files, code, longest_file, longest_comment, .. } = counts;
        let Counts { inline_always, unsafe_blocks, public_functions, .. } = counts;
        println!(
            "| {name} | {files} | {code} | {longest_file} | {longest_comment} | {inline_always} | \
             {unsafe_blocks} | {public_functions} |"
        );
    }
    println!();
}
