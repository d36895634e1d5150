//! The error of a map that has no memory for its entries.

use core::{error, fmt};

/// No memory for the entries of a map. The map is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReserveError {
    /// The number of entries that the map would have had room for.
    pub entries: usize,
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no memory for a map of {} entries; remove entries, or use several smaller maps",
            self.entries
        )
    }
}

impl error::Error for ReserveError {}
