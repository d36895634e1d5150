//! `koel tour`: a demonstration on a real list that checks every promise.
//!
//! The commonest uses come first, as a new user types them. Then the library shows its figures.
//! Every number is measured or counted in the same run, except where the text says computed. A
//! broken promise is marked in the text and makes the exit code 2, so the tour is also a test. The
//! absent names are the same in every run, so the results do not vary.
//!
//! This file runs the chapters, which are in [`chapters`]; `names.rs` has the list.

mod chapters;
mod names;

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use koel::CuckooFilter;

use crate::failure::{Failure, Outcome};
use crate::filter::sizing::build_failure;
use crate::output;
use chapters::{CHAPTERS, Shown};

/// The number of absent names.
const ABSENT: usize = 1_000_000;
/// At this rate a sign-up form asks one honest user in a thousand to write to support.
const PROMISED_RATE: f64 = 0.001;
/// Columns of the text.
const WIDTH: usize = 88;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel tour

The tour takes a few seconds. It writes some files to TMPDIR and removes them.

Exit codes: 0 every promise was kept, 2 one was broken.")]
pub(crate) struct Args;

pub(crate) fn run(_: &Args) -> Result<Outcome, Failure> {
    let mut tour = Tour::new()?;
    for (number, (title, about, show)) in (1..).zip(CHAPTERS) {
        let space = if number > 1 { "\n" } else { "" };
        output::print(&format!("{space}{number}. {title}\n"))?;
        tour.say(about)?;
        show(&mut tour)?;
    }
    if tour.broken.is_empty() {
        output::print(&format!(
            "\nAll {} promises were kept. Try it with your own list:\n\n   \
             koel build LIST -o list.koel && koel check list.koel NAMES\n",
            tour.kept
        ))?;
        return Ok(Outcome::Done);
    }
    Err(Failure::Broken(format!(
        "these promises of the tour were broken: {}; please report this output",
        tour.broken.join("; ")
    )))
}

/// What the chapters share, and the promises so far.
struct Tour {
    list: Vec<String>,
    /// The same names.
    set: HashSet<String>,
    /// Names that are not on the list.
    absent: Vec<String>,
    /// A filter of the list, empty until the chapter that builds it.
    filter: CuckooFilter,
    folder: tempfile::TempDir,
    kept: u32,
    broken: Vec<&'static str>,
}

impl Tour {
    fn new() -> Result<Self, Failure> {
        let list = names::listed()
            .map_err(|error| Failure::read(Path::new("the list in this program"), error))?;
        let set: HashSet<String> = list.iter().cloned().collect();
        let absent = names::absent(&set).take(ABSENT).collect();
        let folder =
            tempfile::tempdir().map_err(|error| Failure::write(&std::env::temp_dir(), error))?;
        let filter = empty_filter(&list)?;
        Ok(Self { list, set, absent, filter, folder, kept: 0, broken: Vec::new() })
    }

    /// Prints a paragraph.
    fn say(&self, text: &str) -> Shown {
        let mut lines = String::new();
        let mut width = WIDTH;
        for word in text.split_whitespace() {
            if width + 1 + word.len() > WIDTH {
                lines.push_str(if lines.is_empty() { "   " } else { "\n   " });
                width = 3;
            } else {
                lines.push(' ');
                width += 1;
            }
            lines.push_str(word);
            width += word.len();
        }
        output::print(&(lines + "\n"))
    }

    /// Prints and records whether a promise was kept.
    fn promise(&mut self, held: bool, promise: &'static str) -> Shown {
        if held {
            self.kept += 1;
        } else {
            self.broken.push(promise);
        }
        let mark = if held { "kept" } else { "BROKEN" };
        output::print(&format!("   [{mark}] {promise}\n"))
    }

    /// The path of a file of the tour.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Bytes of a file.
    fn size(&self, name: &str) -> Result<u64, Failure> {
        let path = self.path(name);
        fs::metadata(&path).map(|file| file.len()).map_err(|error| Failure::read(&path, error))
    }

    fn write(&self, name: &str, lines: &[impl AsRef<str>]) -> Shown {
        let text: String = lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect();
        let path = self.path(name);
        fs::write(&path, text).map_err(|error| Failure::write(&path, error))
    }

    /// Prints a command line, runs it with this program, and prints what it printed. Output goes
    /// into a file after `>`. Returns the output and the exit code.
    fn run(&self, line: &str) -> Result<(String, Option<i32>), Failure> {
        output::print(&format!("\n   $ koel {line}\n"))?;
        let (words, target) = line.split_once(" > ").unwrap_or((line, ""));
        let ran = std::env::current_exe().and_then(|program| {
            let mut command = Command::new(program);
            command.args(words.split_whitespace()).current_dir(&self.folder).stdin(Stdio::null());
            if !target.is_empty() {
                command.stdout(File::create(self.path(target))?);
            }
            command.output()
        });
        let ran = ran.map_err(|error| Failure::read(Path::new("this program"), error))?;
        let [out, report] =
            [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let lines = out.lines().chain(report.lines()).map(|line| format!("   {line}\n"));
        output::print(&lines.collect::<String>())?;
        Ok((out, ran.status.code()))
    }
}

/// An empty filter with room for a list.
fn empty_filter(list: &[String]) -> Result<CuckooFilter, Failure> {
    let filter = CuckooFilter::builder(list.len() as u64, PROMISED_RATE).build();
    filter.map_err(|error| build_failure(&error))
}
