//! The two buckets of a place in registers: what is in them, and what they become. Nothing is read or written here, so that a table of plain bytes and
//! one of atomic words share it.

use super::Put;
use crate::layout::{Lanes, Word};

/// The two buckets of a place as registers, and the lanes in them that hold a certain slot.
pub(crate) struct Pair<W> {
    words: [W; 2],
    equal: [W; 2],
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
        let pattern = lanes.pattern::<W, SORTED>(slot);
        let [at_home, elsewhere] = words.map(|word| lanes.equal::<W, SORTED>(word, pattern));
        Self { words, equal: [at_home, if same { W::ZERO } else { elsewhere }] }
    }

    /// Which of `words` a new copy of the slot goes to, the emptier one, and its new word; or why it goes to none.
    #[inline(always)]
    pub(crate) fn put<const SORTED: bool>(
        lanes: &Lanes,
        words: [W; 2],
        same: bool,
        (slot, most): (u64, u64),
    ) -> Result<(usize, W), Put> {
        let pattern = lanes.pattern::<W, SORTED>(slot);
        // A new entry is the rule, and then lanes show that it is new.
        let [home, alternate] = words.map(|word| lanes.maybe_equal(word, pattern));
        if (home | alternate) != W::ZERO {
            let copies = Self::new::<SORTED>(lanes, words, same, slot).copies(lanes);
            if copies > most {
                return Err(Put::Repeated(copies));
            }
        }
        let empty = words.map(|word| lanes.empty::<W, SORTED>(word));
        let chosen = usize::from(lanes.more(empty[1], empty[0]));
        if empty[chosen] == W::ZERO {
            return Err(Put::Full);
        }
        Ok((chosen, lanes.replace::<W, SORTED>(words[chosen], empty[chosen], 0, slot)))
    }

    /// Which bucket has a copy of the slot `old` that becomes `new`, and its new word.
    #[inline(always)]
    pub(crate) fn exchange<const SORTED: bool>(
        &self,
        lanes: &Lanes,
        old: u64,
        new: u64,
    ) -> Option<(usize, W)> {
        let chosen = usize::from(self.equal[0] == W::ZERO);
        let (word, equal) = (self.words[chosen], self.equal[chosen]);
        self.has_any().then(|| (chosen, lanes.replace::<W, SORTED>(word, equal, old, new)))
    }

    #[inline(always)]
    fn has_any(&self) -> bool {
        (self.equal[0] | self.equal[1]) != W::ZERO
    }

    /// Whether exactly one slot of both buckets holds it.
    #[inline(always)]
    pub(crate) fn has_one(&self, lanes: &Lanes) -> bool {
        lanes.is_one(self.equal)
    }

    #[inline(always)]
    pub(crate) fn copies(&self, lanes: &Lanes) -> u64 {
        lanes.count(self.equal[0]) + lanes.count(self.equal[1])
    }
}
