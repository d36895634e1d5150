//! The lines that a filter reports although its user says that they are absent.
//!
//! A list of hosts is asked for parent domains too (`koel check --url`), so a line has several
//! names. Those that the filter reports are kept as hashes: a filter treats the hash of a key like
//! the key ([`KeyHash`]).
//!
//! Cost: a lookup of each name. Memory: 16 bytes or so of each that is reported, and there are at
//! most as many as the filter has keys and may have corrections.

use std::collections::HashSet;
use std::path::Path;

use koel::{CuckooFilter, FullError, KeyHash, RefuteError};
use koel_lines::Format;

use crate::failure::Failure;
use crate::input::Inputs;
use crate::lists::skipped::Skipped;
use crate::quantity::{counted, grouped};

/// Names that a filter reports.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) names: HashSet<KeyHash>,
    /// The lines that were asked.
    pub(crate) lines: u64,
    /// The names of these lines that were asked.
    asked: u64,
    pub(crate) skipped: Skipped,
}

/// Which names of a line are asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Names {
    /// The key of the line.
    Key,
    /// Those that `koel check --url` asks of a filter of such a list: the parent domains too.
    WithParents(Format),
}

impl Reported {
    /// Asks a filter for every line. Fails if it reports more than `most` names.
    pub(crate) fn by(
        filter: &CuckooFilter,
        inputs: &Inputs,
        which: Names,
        most: u64,
    ) -> Result<Self, Failure> {
        let (mut names, mut lines, mut asked) = (HashSet::new(), 0, 0);
        let mut found = Vec::new();
        let hasher = filter.hasher();
        let skipped = inputs.each("asking", |keys| {
            lines += keys.len() as u64;
            asked += keys.len() as u64;
            found.clear();
            found.resize(keys.len(), false);
            filter.contains_many(keys, &mut found);
            let reported = keys.iter().zip(&found).filter(|&(_, &found)| found);
            names.extend(reported.map(|(key, _)| hasher.hash(key)));
            if let Names::WithParents(format) = which {
                for key in keys {
                    koel_lines::host_or_parent(key, format == Format::Lines, |name| {
                        asked += 1;
                        if filter.contains(name) {
                            names.insert(hasher.hash(name));
                        }
                        false
                    });
                }
            }
            if names.len() as u64 > most {
                let limit = filter.slots();
                return Err(failure(filter, FullError::Corrections { limit }));
            }
            Ok(())
        })?;
        Ok(Self { names, lines, asked, skipped })
    }

    /// Fails if the filter reports more names than chance explains: then some are keys of it.
    pub(crate) fn check(&self, path: &Path, filter: &CuckooFilter) -> Result<(), Failure> {
        let checked = filter.check_refutation(self.asked, self.names.len() as u64);
        checked.map_err(|error| match error {
            RefuteError::Full(full) => failure(filter, full),
            RefuteError::Members { asked, reported, expected } => Failure::about(
                path,
                format!(
                    "reports {} of {}, and chance explains about {}: names that were added would be \
                     hidden; nothing was changed; leave those out (koel build --never knows them), \
                     or use --force if none was added, as with lines that koel check printed",
                    grouped(reported),
                    counted(asked, "name"),
                    grouped(expected)
                ),
            ),
            error => Failure::about(path, error),
        })
    }

    /// Makes corrections for all names. Returns how many were made.
    pub(crate) fn refute(&self, filter: &mut CuckooFilter) -> Result<u64, Failure> {
        let hashes: Vec<KeyHash> = self.names.iter().copied().collect();
        filter.force_refute_many(&hashes).map_err(|full| failure(filter, full))
    }
}

fn failure(filter: &CuckooFilter, full: FullError) -> Failure {
    let remedy = match full {
        FullError::NoMemory => "nothing was changed; free some memory",
        _ => {
            "nothing was changed; refute fewer lines, or build the filter for a lower --fpr, so \
             that fewer need a correction"
        }
    };
    Failure::Full { full, keys: filter.len(), remedy: remedy.to_owned() }
}
