//! The two buckets of a place in registers: what is in them, and what they become. Nothing is read or written here, so that a table of plain bytes and
//! one of atomic words share it.

use core::hint::select_unpredictable;

use super::Put;
use crate::layout::{Lanes, Word};

/// The two buckets of a place as registers, and the lanes in them that hold a certain slot.
pub(crate) struct Pair<W> {
    words: [W; 2],
    equal: [W; 2],
    same: bool,
}

impl<W: Word> Pair<W> {
    /// Where `slot` is in `words`, which are one bucket twice if `same`: then it is one bucket.
    #[inline(always)]
    pub(crate) fn new<const SORTED: bool>(
        lanes: &Lanes,
        words: [W; 2],
        same: bool,
        slot: u64,
    ) -> Self {
        Self { words, equal: lanes.both_equal::<W, SORTED>(words, slot), same }
    }

    /// Which of `words` a new copy of the slot goes to, the emptier one, and the bits of it that change; or why it goes to none.
    #[inline(always)]
    pub(crate) fn put<const SORTED: bool>(
        lanes: &Lanes,
        words: [W; 2],
        same: bool,
        (slot, most): (u64, u64),
    ) -> Result<(bool, W), Put> {
        // A new entry is the rule, and then lanes show that it is new.
        if lanes.either_may_equal::<W, SORTED>(words, slot) {
            let copies = Self::new::<SORTED>(lanes, words, same, slot).copies(lanes);
            if copies > most {
                return Err(Put::Repeated(copies));
            }
        }
        let empty = lanes.both_empty::<W, SORTED>(words);
        let chosen = lanes.is_emptier::<W, SORTED>(empty[1], empty[0]);
        let (word, room) = (either(chosen, words), either(chosen, empty));
        if room == W::ZERO {
            return Err(Put::Full);
        }
        Ok((chosen, lanes.change::<W, SORTED>(word, room, 0, slot)))
    }

    /// Which bucket has a copy of the slot `old` that becomes `new`, and the bits of it that change.
    #[inline(always)]
    pub(crate) fn exchange<const SORTED: bool>(
        &self,
        lanes: &Lanes,
        old: u64,
        new: u64,
    ) -> Option<(bool, W)> {
        let chosen = self.equal[0] == W::ZERO;
        let (word, equal) = (either(chosen, self.words), either(chosen, self.equal));
        let nibbles = self.words.map(|word| lanes.nibbles::<W, SORTED>(word));
        let word = (word, either(chosen, nibbles));
        let found = equal != W::ZERO;
        found.then(|| (chosen, lanes.change_beside::<W, SORTED>(word, equal, old, new)))
    }

    /// Whether exactly one slot of both buckets holds it.
    #[inline(always)]
    pub(crate) fn has_one(&self, lanes: &Lanes) -> bool {
        lanes.is_one(self.equal_once())
    }

    #[inline(always)]
    pub(crate) fn copies(&self, lanes: &Lanes) -> u64 {
        self.equal_once().map(|tops| lanes.count(tops)).iter().sum()
    }

    /// The lanes that hold the slot, those of one bucket twice only once.
    #[inline(always)]
    fn equal_once(&self) -> [W; 2] {
        let [home, alternate] = self.equal;
        [home, if self.same { W::ZERO } else { alternate }]
    }
}

/// The one or the other of a pair of buckets. Which one is drawn by lot, so a branch would be taken wrongly half of the time, and known to be only when the memory has answered.
#[inline(always)]
pub(crate) fn either<T>(other: bool, [home, alternate]: [T; 2]) -> T {
    select_unpredictable(other, alternate, home)
}
