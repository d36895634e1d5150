//! What the bytes of a file hold.

/// The type that the bytes hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Fingerprints, and counters for copies.
    Filter,
    /// Fingerprints with values.
    Maplet,
    /// Fingerprints with counts, and counters for counts that do not fit there.
    Counting,
    /// Fingerprints with the time at which they were inserted.
    Expiring,
}

impl Kind {
    /// The kinds, at the index that is their number in a file.
    pub(super) const ALL: [Self; 4] = [Self::Filter, Self::Maplet, Self::Counting, Self::Expiring];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Maplet => "maplet",
            Self::Counting => "counting filter",
            Self::Expiring => "expiring filter",
        }
    }

    pub(super) fn has_values(self) -> bool {
        self != Self::Filter
    }
}
