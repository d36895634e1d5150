//! `figures`: what the pages show of measurements, from one source.
//!
//! A measurement prints Markdown tables. `record` keeps them in a file of `docs/figures`, with the
//! command, the machine, the day, the commit, and the folders of the code that was measured.
//! `write` puts them into the pages, between the markers of `page.rs`; `check` says which pages
//! differ, and which files are older than the code. `scripts/figures` runs all measurements.
//!
//! The file is JSON with the cells as they were printed, so that a page shows what was measured and
//! nothing else.

mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::json;

use crate::args::{FiguresArgs, FiguresCommand};
use crate::table::Table;
use crate::{Failure, machine};

/// The files of figures, from the root of the repository.
const FOLDER: &str = "docs/figures";

/// Lets `git diff` leave out changes of nothing but comments.
const COMMENTS: &str = r"-I^\s*//";

/// Where pages are that show figures.
const PAGES: [&str; 6] =
    [".", "docs", "docs/benchmarks", "crates/koel-c", "crates/koel-python", "crates/koel-wasm/npm"];

/// What one measurement printed, and where that came from.
#[derive(Deserialize)]
struct Figures {
    command: String,
    machine: String,
    day: String,
    commit: String,
    /// The folders and files whose change makes the figures old.
    code: Vec<String>,
    tables: Vec<Table>,
}

pub(crate) fn run(args: &FiguresArgs) -> Result<(), Failure> {
    let root = &args.root;
    match &args.command {
        FiguresCommand::Record { name, command, code } => {
            let mut printed = String::new();
            stdin().read_to_string(&mut printed)?;
            record(root, name, command, code, &printed)
        }
        FiguresCommand::Write => {
            let figures = read_all(root)?;
            for path in pages(root)? {
                let text = fs::read_to_string(&path)?;
                let filled = page::filled(&text, &figures)
                    .map_err(|failure| format!("{}: {failure}", path.display()))?;
                if filled != text {
                    fs::write(&path, filled)?;
                    println!("wrote {}", path.display());
                }
            }
            Ok(())
        }
        FiguresCommand::Check => {
            let figures = read_all(root)?;
            check(root, &figures)?;
            for name in older_than_code(root, &figures)? {
                println!("older than the code it measures: {FOLDER}/{name}.json");
            }
            Ok(())
        }
    }
}

fn record(
    root: &Path,
    name: &str,
    command: &str,
    code: &[String],
    printed: &str,
) -> Result<(), Failure> {
    let tables = Table::all_in(printed);
    if tables.is_empty() {
        return Err(format!("`{command}` printed no table").into());
    }
    if let Some(missing) = code.iter().find(|path| !root.join(path).exists()) {
        return Err(format!("there is no {missing} whose figures these could be").into());
    }
    let changed = git(root, "status", &["--porcelain"], code)?;
    if !changed.is_empty() {
        return Err(format!("commit first what was measured:\n{changed}").into());
    }
    let figures = Figures {
        command: command.to_owned(),
        machine: machine::description(),
        day: machine::today()?,
        commit: git(root, "rev-parse", &["--short=10", "HEAD"], &[])?,
        code: code.to_vec(),
        tables,
    };
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name).with_extension("json"), figures.text())?;
    Ok(())
}

/// Fails with the pages that differ from their figures, and the figures that no page shows.
fn check(root: &Path, figures: &BTreeMap<String, Figures>) -> Result<(), Failure> {
    let mut complaints = Vec::new();
    let mut shown = BTreeSet::new();
    for path in pages(root)? {
        let text = fs::read_to_string(&path)?;
        shown.extend(page::names(&text));
        match page::filled(&text, figures) {
            Ok(filled) if filled == text => {}
            Ok(_) => complaints.push(format!(
                "{} differs from its figures; run `scripts/figures write`",
                path.display()
            )),
            Err(failure) => complaints.push(format!("{}: {failure}", path.display())),
        }
    }
    let unused = figures.keys().filter(|name| !shown.contains(*name));
    complaints.extend(unused.map(|name| format!("no page shows {FOLDER}/{name}.json")));
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n").into()) }
}

/// The names of those whose code has changed since they were measured, other than in comments.
fn older_than_code(
    root: &Path,
    figures: &BTreeMap<String, Figures>,
) -> Result<Vec<String>, Failure> {
    let mut older = Vec::new();
    for (name, it) in figures {
        let since = format!("{}..HEAD", it.commit);
        if !git(root, "diff", &["--shortstat", COMMENTS, &since], &it.code)?.is_empty() {
            older.push(name.clone());
        }
    }
    Ok(older)
}

/// What git prints, for these paths only.
fn git(root: &Path, verb: &str, options: &[&str], paths: &[String]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    command.current_dir(root).arg(verb).args(options);
    if !paths.is_empty() {
        command.arg("--").args(paths);
    }
    machine::printed(&mut command)
}

/// The pages that may have markers.
fn pages(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut pages = Vec::new();
    for folder in PAGES.map(|folder| root.join(folder)).iter().filter(|folder| folder.exists()) {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// All files of figures by their names.
fn read_all(root: &Path) -> Result<BTreeMap<String, Figures>, Failure> {
    let mut all = BTreeMap::new();
    let folder = root.join(FOLDER);
    if !folder.exists() {
        return Ok(all);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        let figures = serde_json::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        all.insert(name.to_owned(), figures);
    }
    Ok(all)
}

impl Figures {
    /// The file: a row of a table in each line, so that a change is seen as such.
    fn text(&self) -> String {
        let mut text = String::from("{\n");
        let fields = [
            ("command", json!(self.command)),
            ("machine", json!(self.machine)),
            ("day", json!(self.day)),
            ("commit", json!(self.commit)),
            ("code", json!(self.code)),
        ];
        for (name, value) in fields {
            text += &format!("  \"{name}\": {value},\n");
        }
        let tables: Vec<_> = self.tables.iter().map(Self::table_text).collect();
        text + &format!("  \"tables\": [\n{}\n  ]\n}}\n", tables.join(",\n"))
    }

    fn table_text(table: &Table) -> String {
        let rows: Vec<_> = table.rows.iter().map(|row| format!("      {}", json!(row))).collect();
        format!(
            "    {{\"columns\": {}, \"rows\": [\n{}\n    ]}}",
            json!(table.columns),
            rows.join(",\n")
        )
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Write, stderr};

    use super::*;

    #[test]
    fn a_file_of_figures_is_read_as_it_was_written() {
        let tables = Table::all_in("| a | b |\n|---|--:|\n| x \\| y | 1 |\n");
        let figures = Figures {
            command: "bench \"quick\"".into(),
            machine: "one core".into(),
            day: "2026-01-02".into(),
            commit: "0123456789".into(),
            code: vec!["crates/koel/src".into()],
            tables,
        };
        let text = figures.text();
        assert_eq!(serde_json::from_str::<Figures>(&text).unwrap().text(), text);
        assert!(serde_json::from_str::<Figures>(r#"{ "command": "x" }"#).is_err());
    }

    #[test]
    fn pages_show_what_the_files_of_figures_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let figures = read_all(&root).unwrap();
        check(&root, &figures).unwrap();
        // Named, and no failure: figures are measured again before a release.
        let older = older_than_code(&root, &figures).unwrap_or_default();
        if !older.is_empty() {
            let line = format!("figures older than the code they measure: {}\n", older.join(", "));
            stderr().write_all(line.as_bytes()).unwrap();
        }
    }
}
