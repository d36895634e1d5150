//! The error of a map that has no memory for its entries.

use thiserror::Error;

/// No memory for the entries of a map. The map is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no memory for a map of {entries} entries; remove entries, or use several smaller maps")]
#[non_exhaustive]
pub struct ReserveError {
    /// The number of entries that the map would have had room for.
    pub entries: usize,
}
