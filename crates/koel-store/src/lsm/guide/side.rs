//! The pairs of a hash and a run that find no slot in the maplet, exactly.
//!
//! A pair of buckets has room for eight entries. A key that is in more runs, or that shares its
//! buckets with many others, has the rest here. One entry a hash: a mask of runs, so that a hot key
//! takes one however many runs it is in.
//!
//! Pairs are counted. Two inputs of a merge may have had a pair each, both are pairs of the output
//! now, and the surplus one is removed in a later step. Two keys with one hash count as well. So a
//! pair leaves when the last key does, never before.

use koel::CuckooMap;
use koel::map::ReserveError;

use super::Ids;

#[derive(Debug, Default)]
pub(super) struct Side {
    ids: CuckooMap<u64, Ids>,
    /// Pairs beyond the first of each hash and run. Nearly always empty.
    copies: CuckooMap<(u64, u8), u64>,
    /// Pairs, copies included.
    pairs: u64,
}

impl Side {
    /// The number of hashes.
    pub(super) fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    /// The number of pairs.
    pub(super) fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The bytes of its tables.
    pub(super) fn bytes(&self) -> u64 {
        let (ids, copies) = (self.ids.slots(), self.copies.slots());
        (ids * size_of::<(u64, Ids)>() + copies * size_of::<((u64, u8), u64)>()) as u64
    }

    pub(super) fn try_clone(&self) -> Result<Self, ReserveError> {
        let (ids, copies) = (self.ids.try_clone()?, self.copies.try_clone()?);
        Ok(Self { ids, copies, pairs: self.pairs })
    }

    /// The runs of a hash.
    #[inline]
    pub(super) fn ids(&self, hash: u64) -> Ids {
        if self.pairs == 0 { 0 } else { self.ids.get(&hash).copied().unwrap_or(0) }
    }

    pub(super) fn add(&mut self, hash: u64, id: u8) -> Result<(), ReserveError> {
        let before = self.ids(hash);
        if before >> id & 1 == 1 {
            let copies = self.copies.get(&(hash, id)).copied().unwrap_or(0);
            self.copies.try_insert((hash, id), copies + 1)?;
        } else {
            self.ids.try_insert(hash, before | 1 << id)?;
        }
        self.pairs += 1;
        Ok(())
    }

    /// Removes a pair. False if there is none.
    pub(super) fn remove(&mut self, hash: u64, id: u8) -> bool {
        let before = self.ids(hash);
        if before >> id & 1 == 0 {
            return false;
        }
        self.pairs -= 1;
        if let Some(copies) = self.copies.get_mut(&(hash, id)) {
            *copies -= 1;
            if *copies == 0 {
                self.copies.remove(&(hash, id));
            }
        } else if before == 1 << id {
            self.ids.remove(&hash);
        } else if let Some(ids) = self.ids.get_mut(&hash) {
            *ids ^= 1 << id;
        }
        true
    }

    /// Makes the pairs of the runs `old` pairs of the run `new`, which had none unless it is one of
    /// them.
    pub(super) fn relabel(&mut self, old: Ids, new: u8) -> Result<(), ReserveError> {
        for (&hash, ids) in self.ids.iter_mut() {
            let moved = *ids & old;
            if moved == 0 {
                continue;
            }
            *ids = *ids & !old | 1 << new;
            let mut pairs = u64::from(moved.count_ones());
            if !self.copies.is_empty() {
                let copies = super::each_id(moved).filter_map(|id| self.copies.remove(&(hash, id)));
                pairs += copies.sum::<u64>();
            }
            if pairs > 1 {
                self.copies.try_insert((hash, new), pairs - 1)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_stays_until_its_last_copy_is_removed() {
        let mut side = Side::default();
        for id in [3, 3, 5, 7] {
            side.add(1, id).unwrap();
        }
        side.relabel(1 << 3 | 1 << 5, 5).unwrap();
        assert_eq!((side.ids(1), side.pairs(), side.len()), (1 << 5 | 1 << 7, 4, 1));
        for left in [2, 1, 0] {
            assert!(side.remove(1, 5));
            assert_eq!(side.ids(1) >> 5 & 1 == 1, left > 0);
        }
        assert!(!side.remove(1, 5) && !side.remove(1, 3) && !side.remove(2, 7));
        assert!(side.remove(1, 7));
        assert_eq!((side.ids(1), side.pairs(), side.len()), (0, 0, 0));
    }
}
