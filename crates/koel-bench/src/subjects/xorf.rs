//! `xorf` 0.13: binary fuse filters, built once from all keys. Memory: their fingerprints. `insert`
//! is that one build.

use xorf::{BinaryFuse8, BinaryFuse16, Filter as _};

use crate::subject::{Filter, tally};

/// Between 2^-8 and 2^-16.
const MIDDLE: f64 = 1.0 / 4096.0;

enum Rival {
    Empty { wide: bool },
    Narrow(BinaryFuse8),
    Wide(BinaryFuse16),
}

pub(super) fn build(_keys: usize, rate: f64) -> Box<dyn Filter> {
    Box::new(Rival::Empty { wide: rate < MIDDLE })
}

impl Filter for Rival {
    fn insert(&mut self, keys: &[u64]) -> usize {
        let built = match self {
            Self::Empty { wide: false } => BinaryFuse8::try_from(keys).map(Self::Narrow),
            Self::Empty { wide: true } => BinaryFuse16::try_from(keys).map(Self::Wide),
            Self::Narrow(_) | Self::Wide(_) => Err("built already"),
        };
        match built {
            Ok(filter) => {
                *self = filter;
                keys.len()
            }
            Err(_) => 0,
        }
    }

    fn find(&self, keys: &[u64]) -> usize {
        match self {
            Self::Empty { .. } => 0,
            Self::Narrow(filter) => tally(keys, |key| filter.contains(&key)),
            Self::Wide(filter) => tally(keys, |key| filter.contains(&key)),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Empty { .. } => 0,
            Self::Narrow(filter) => filter.fingerprints.len(),
            Self::Wide(filter) => filter.fingerprints.len() * 2,
        }
    }
}
