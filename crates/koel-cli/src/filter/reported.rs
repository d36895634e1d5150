//! The lines that a filter reports although its user says that they are absent.
//!
//! A list of hosts is asked for parent domains too (`koel check --url`), so a line has several
//! names. Those that the filter reports are kept as hashes: a filter treats the hash of a key like
//! the key ([`KeyHash`]).
//!
//! Cost: a lookup of each name. Memory: 16 bytes or so of each that is reported, and there are at
//! most as many as the filter has keys and may have corrections.

use std::collections::HashSet;

use koel::{CuckooFilter, FullError, KeyHash};

use crate::failure::Failure;
use crate::input::Inputs;
use crate::lists::skipped::Skipped;
use koel_lines::Format;

/// Names that a filter reports.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) names: HashSet<KeyHash>,
    /// The lines that were asked.
    pub(crate) lines: u64,
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
        asked: Names,
        most: u64,
    ) -> Result<Self, Failure> {
        let (mut names, mut lines, mut found) = (HashSet::new(), 0, Vec::new());
        let hasher = filter.hasher();
        let skipped = inputs.each("asking", |keys| {
            lines += keys.len() as u64;
            found.clear();
            found.resize(keys.len(), false);
            filter.contains_many(keys, &mut found);
            let reported = keys.iter().zip(&found).filter(|&(_, &found)| found);
            names.extend(reported.map(|(key, _)| hasher.hash(key)));
            if let Names::WithParents(format) = asked {
                for key in keys {
                    koel_lines::host_or_parent(key, format == Format::Lines, |name| {
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
        Ok(Self { names, lines, skipped })
    }

    /// Makes corrections for all names. Returns how many were made.
    pub(crate) fn refute(&self, filter: &mut CuckooFilter) -> Result<u64, Failure> {
        let hashes: Vec<KeyHash> = self.names.iter().copied().collect();
        filter.refute_many(&hashes).map_err(|full| failure(filter, full))
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
