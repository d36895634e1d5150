//! The kinds of stores, and the names of their files (docs/FORMAT-STORES.md, The files of a store).

use std::fmt;

/// The manifest.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// The next manifest while it is being written.
pub(crate) const NEW_MANIFEST: &str = "MANIFEST.new";
/// The file whose lock is that of the folder. It is empty and stays in the folder.
pub(crate) const LOCK: &str = "LOCK";

const SEGMENT_SUFFIX: &str = ".log";
const HINT_SUFFIX: &str = ".hint";
const TABLE_SUFFIX: &str = ".table";

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreKind {
    /// A [`LogStore`](crate::LogStore).
    Log,
    /// An [`LsmStore`](crate::LsmStore).
    Lsm,
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "log store",
            Self::Lsm => "ordered store",
        })
    }
}

/// Returns the file name of segment `number`.
pub(crate) fn segment(number: u64) -> String {
    numbered(number, SEGMENT_SUFFIX)
}

/// Returns the file name of the hint of segment `number`.
pub(crate) fn hint(number: u64) -> String {
    numbered(number, HINT_SUFFIX)
}

/// Returns the file name of table `number`.
pub(crate) fn table(number: u64) -> String {
    numbered(number, TABLE_SUFFIX)
}

/// Returns the segment number in `name`, if that is the name of a segment.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    number_in(name, SEGMENT_SUFFIX)
}

/// Returns the segment number in `name`, if that is the name of a hint.
pub(crate) fn hint_number(name: &str) -> Option<u64> {
    number_in(name, HINT_SUFFIX)
}

/// Returns the table number in `name`, if that is the name of a table.
pub(crate) fn table_number(name: &str) -> Option<u64> {
    number_in(name, TABLE_SUFFIX)
}

fn numbered(number: u64, suffix: &str) -> String {
    format!("{number:016x}{suffix}")
}

fn number_in(name: &str, suffix: &str) -> Option<u64> {
    let number = u64::from_str_radix(name.strip_suffix(suffix)?, 16).ok()?;
    (numbered(number, suffix) == name).then_some(number)
}
