//! `koel build --never`: lines that the filter never reports, unless they are in its list.
//!
//! After the build, the filter is asked for every line of ALLOWED. What it reports is a false
//! positive or a key of the list, and the filter cannot tell which. So the list is read once more:
//! its keys stay, and are conflicts for the user to see. The other lines are refuted.
//!
//! A list that can be read only once is copied to an unnamed temporary file first. Memory: some
//! bytes for each line that the filter reports.

use koel::{CuckooFilter, KeyHash};
use serde_json::{Value, json};

use super::Args;
use crate::failure::Failure;
use crate::filter::reported::{Names, Reported};
use crate::input::Inputs;
use crate::lists::skipped::Skipped;
use crate::output;
use crate::quantity::{counted, grouped};
use crate::report::Report;
use koel_lines::Format;

/// Conflicts that are named in the report.
const NAMED: usize = 3;

/// The lines of `--never`.
#[derive(Debug)]
pub(super) struct Never {
    allowed: Inputs,
    asked: Names,
}

/// What became of them.
#[derive(Debug)]
pub(super) struct Refuted {
    lines: u64,
    corrections: u64,
    conflicts: u64,
    /// The first names that are also keys of the list.
    named: Vec<String>,
    skipped: Skipped,
}

impl Never {
    /// Opens the files of `--never`, and makes the list one that can be read again. `None` without
    /// that option. The files are read as the list is, with `--like` as that filter says.
    pub(super) fn open(
        args: &Args,
        list: &mut Inputs,
        like: Option<&CuckooFilter>,
    ) -> Result<Option<Self>, Failure> {
        if args.never.is_empty() {
            return Ok(None);
        }
        let files = args.input.beside(&args.never)?;
        let mut allowed = files.open()?;
        allowed.read_as_allowed();
        match (&args.like, like) {
            (Some(old), Some(like)) => drop(allowed.use_recipe_of(old, like.application())?),
            _ => allowed.find_taken_out()?,
        }
        allowed.refuse_output(args.out.path())?;
        list.make_rereadable()?;
        let asked = match allowed.recipe().format {
            Format::Lines => Names::Key,
            format => Names::WithParents(format),
        };
        Ok(Some(Self { allowed, asked }))
    }

    /// Refutes what the filter reports and the list, with so many keys, does not have.
    pub(super) fn refute(
        &self,
        filter: &mut CuckooFilter,
        list: &Inputs,
        keys: u64,
    ) -> Result<Refuted, Failure> {
        let most = filter.slots().saturating_add(filter.len());
        let mut reported = Reported::by(filter, &self.allowed, self.asked, most)?;
        let all = reported.names.len();
        let named = strike(&mut reported, filter, list, keys)?;
        let conflicts = (all - reported.names.len()) as u64;
        let corrections = reported.refute(filter)?;
        let Reported { lines, skipped, .. } = reported;
        Ok(Refuted { lines, corrections, conflicts, named, skipped })
    }
}

/// Takes the keys of the list from the names that are to be refuted. Returns the first of them.
fn strike(
    reported: &mut Reported,
    filter: &CuckooFilter,
    list: &Inputs,
    keys: u64,
) -> Result<Vec<String>, Failure> {
    let (mut read, mut named, mut found) = (0, Vec::new(), Vec::new());
    let hasher = filter.hasher();
    let changed = || {
        let sentence = "the list has changed since it was read; nothing was written, build again";
        Failure::Usage(sentence.to_owned())
    };
    if reported.names.is_empty() {
        return Ok(named);
    }
    list.each_again("comparing", |keys| {
        read += keys.len() as u64;
        found.clear();
        found.resize(keys.len(), false);
        filter.contains_many(keys, &mut found);
        // A key that is not in the filter was not in the list when that was built.
        if found.contains(&false) {
            return Err(changed());
        }
        for key in keys {
            let hash: KeyHash = hasher.hash(key);
            if reported.names.remove(&hash) && named.len() < NAMED {
                named.push(String::from_utf8_lossy(key).into_owned());
            }
        }
        Ok(())
    })?;
    if read == keys { Ok(named) } else { Err(changed()) }
}

impl Refuted {
    /// How many were made.
    pub(super) fn corrections(&self) -> u64 {
        self.corrections
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "lines": self.lines,
            "corrections": self.corrections,
            "conflicts": self.conflicts,
            "first_conflicts": self.named,
            "skipped": self.skipped.json(),
        })
    }

    pub(super) fn add_rows(&self, report: &mut Report) {
        let skipped = match &*self.skipped.sentence() {
            "" => String::new(),
            sentence => format!("; skipped {sentence}"),
        };
        let (lines, corrections) = (grouped(self.lines), counted(self.corrections, "correction"));
        report.row("allowed lines", format!("{lines}, {corrections}{skipped}"));
        if self.conflicts > 0 {
            let more = if self.conflicts > self.named.len() as u64 { ", .." } else { "" };
            let names = output::escape_controls(&self.named.join(", "));
            let conflicts = counted(self.conflicts, "allowed name");
            let text = format!("{conflicts} in the list, so reported: {names}{more}");
            report.row("conflicts", text);
        }
    }
}
