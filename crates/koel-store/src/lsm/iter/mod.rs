//! Entries of memtables and tables as one sequence, and ranges of keys.

mod merge;
mod range;

pub(super) use merge::MergeCursor;
pub use range::Range;
pub(super) use range::Sources;
