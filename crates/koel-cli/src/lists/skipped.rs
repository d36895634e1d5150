//! What gave no key, counted by reason, for people and for programs.

use std::collections::BTreeMap;

use koel_lines::{Column, Skip};

use crate::quantity::counted;
use crate::streams::Warnings;

/// The name of each reason in JSON, a noun for what is skipped, and what follows the noun.
const SKIPS: [(Skip, &str, &str, &str); 15] = [
    (Skip::Empty, "empty", "empty line", ""),
    (Skip::Comment, "comment", "comment", ""),
    (Skip::TooLong, "too_long", "line", " above --max-line"),
    (Skip::NoField, "no_field", "line", " without field"),
    (Skip::NoHost, "no_host", "line", " without a host"),
    (Skip::Range, "address_range", "address range", ""),
    (Skip::Local, "local_name", "name", " of the local machine"),
    (Skip::Applied, "applied", "rule", " that takes out others"),
    (Skip::Exception, "exception", "exception rule", " for less than a host"),
    (Skip::Cosmetic, "cosmetic", "cosmetic rule", ""),
    (Skip::Partial, "partial_host", "rule", " for less than a host"),
    (Skip::Narrow, "some_requests", "rule", " for some requests or pages only"),
    (Skip::Modifier, "no_block", "rule", " that blocks nothing"),
    (Skip::Disabled, "disabled", "rule", " that $badfilter switches off"),
    (Skip::Allowed, "allowed", "rule", " that an exception takes out"),
];

/// How many lines, or parts of lines, gave no key, for each reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skipped {
    counts: BTreeMap<Skip, u64>,
    /// The field that was looked for.
    column: Option<Column>,
}

impl Skipped {
    pub(crate) fn of(column: Option<Column>) -> Self {
        Self { column, ..Self::default() }
    }

    pub(crate) fn note(&mut self, skip: Skip) {
        self.add_many(skip, 1);
    }

    pub(crate) fn add_many(&mut self, skip: Skip, count: u64) {
        if count > 0 {
            *self.counts.entry(skip).or_default() += count;
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.column = other.column.clone();
        other.counts.iter().for_each(|(&skip, &count)| self.add_many(skip, count));
    }

    /// Whether something was skipped that is neither empty nor a comment nor a local name.
    pub(crate) fn is_misread(&self) -> bool {
        let is_usual =
            |skip| matches!(skip, Skip::Empty | Skip::Comment | Skip::Local | Skip::Applied);
        self.counts.keys().any(|&skip| !is_usual(skip))
    }

    /// What was skipped, for people; empty if nothing was.
    pub(crate) fn sentence(&self) -> String {
        let part = |(skip, _, noun, rest): &(Skip, &str, &str, &str)| {
            let counted = counted(*self.counts.get(skip)?, noun);
            Some(match &self.column {
                Some(column) if *skip == Skip::NoField => format!("{counted}{rest} {column}"),
                _ => format!("{counted}{rest}"),
            })
        };
        SKIPS.iter().filter_map(part).collect::<Vec<_>>().join(", ")
    }

    /// Prints the sentence on standard error, for a verb without a report.
    pub(crate) fn warn(&self) {
        let warnings = Warnings::default();
        if !self.counts.is_empty() {
            warnings.add(format!("skipped {}", self.sentence()));
        }
        warnings.print();
    }

    /// Every reason with its number.
    pub(crate) fn json(&self) -> serde_json::Value {
        let count = |skip| self.counts.get(skip).copied().unwrap_or_default();
        SKIPS.iter().map(|(skip, name, ..)| ((*name).to_owned(), count(skip))).collect()
    }
}
