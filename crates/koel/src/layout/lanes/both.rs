//! The two buckets of a key at once: plain ones side by side in a vector register.
//!
//! The integer unit has the addresses of the next keys to work out, and what waits in it for the memory is in their way: so the vector unit compares, and inserts and removals take a
//! tenth less time (docs/decisions/0006-speed.md). Who fills a slot of a semi-sorted bucket needs its word in the integer unit anyway; the way there and back would cost more than it saves.

use super::{Lanes, Pattern, Word, sorted};

impl Lanes {
    /// `slot` in every lane of two words.
    #[inline(always)]
    fn pattern_of_both<W: Word, const SORTED: bool>(&self, slot: u64) -> Pattern<W::Pair> {
        let Pattern { lanes, nibbles } = self.pattern::<W, SORTED>(slot);
        Pattern { lanes: W::pair([lanes; 2]), nibbles: W::pair([nibbles; 2]) }
    }

    /// Two words, and their nibbles.
    #[inline(always)]
    fn opened_both<W: Word, const SORTED: bool>(&self, words: [W; 2]) -> (W::Pair, W::Pair) {
        let [one, other] = words;
        let nibbles = [self.nibbles::<W, SORTED>(one), self.nibbles::<W, SORTED>(other)];
        (W::pair(words), W::pair([W::from(nibbles[0]), W::from(nibbles[1])]))
    }

    /// [`equal`](Self::equal) of two words.
    #[inline(always)]
    pub(crate) fn both_equal<W: Word, const SORTED: bool>(
        &self,
        words: [W; 2],
        slot: u64,
    ) -> [W; 2] {
        let words = self.opened_both::<W, SORTED>(words);
        W::apart(self.exactly::<_, SORTED>(words, self.pattern_of_both::<W, SORTED>(slot)))
    }

    /// Whether a lane of two words equals `slot` as far as lanes show it: in a semi-sorted bucket there are the nibbles besides.
    #[inline(always)]
    pub(crate) fn either_may_equal<W: Word, const SORTED: bool>(
        &self,
        words: [W; 2],
        slot: u64,
    ) -> bool {
        let [one, other] = if SORTED {
            let pattern = self.pattern::<W, SORTED>(slot);
            words.map(|word| self.any_zero(word ^ pattern.lanes))
        } else {
            let pattern = self.pattern_of_both::<W, SORTED>(slot);
            W::apart(self.any_zero(W::pair(words) ^ pattern.lanes))
        };
        (one | other) != W::ZERO
    }

    /// [`empty`](Self::empty) of two words.
    #[inline(always)]
    pub(crate) fn both_empty<W: Word, const SORTED: bool>(&self, words: [W; 2]) -> [W; 2] {
        if SORTED {
            words.map(|word| self.empty::<W, SORTED>(word))
        } else if self.core_in_lane {
            W::apart(self.zero(W::pair(words)))
        } else {
            self.both_equal::<W, SORTED>(words, 0)
        }
    }

    /// Whether a bucket with `these` empty lanes has more of them than one with `those`. Of semi-sorted lanes the empty ones come first, and then more are a greater number.
    #[inline(always)]
    pub(crate) fn is_emptier<W: Word, const SORTED: bool>(&self, these: W, those: W) -> bool {
        if SORTED { these > those } else { self.more(these, those) }
    }

    /// Whether a lane of one word or of the other, each beside its nibbles, has the fingerprint. No branch on the data; both words at once in the vector unit.
    #[inline(always)]
    pub(crate) fn pair_has<const SORTED: bool>(
        &self,
        [one, other]: [(u64, u64); 2],
        fingerprint: u64,
    ) -> bool {
        let pattern = self.pattern_of_both::<u64, SORTED>(fingerprint);
        let words = (u64::pair([one.0, other.0]), u64::pair([one.1, other.1]));
        let difference = self.difference::<_, SORTED>(words, pattern, self.fingerprints);
        let [one, other] = u64::apart(self.any_zero(difference));
        (one | other) != 0
    }

    /// Which of two words, each beside its nibbles, a new entry `slot` goes to, the emptier one, all ones for the other, and the bits of it that change: none where both are full, or where a lane may
    /// have a copy. By arithmetic alone, for vector code. Fingerprints have their core in their lanes.
    #[inline(always)]
    pub(crate) fn new_entry<const SORTED: bool>(
        &self,
        [one, other]: [(u64, u64); 2],
        slot: u64,
    ) -> (u64, u64) {
        let Pattern { lanes, .. } = self.pattern::<u64, SORTED>(slot);
        let copies = self.any_zero(one.0 ^ lanes) | self.any_zero(other.0 ^ lanes);
        let empty = [self.zero(one.0), self.zero(other.0)];
        let chosen = mask(self.is_emptier::<u64, SORTED>(empty[1], empty[0]));
        let room = by_mask(chosen, empty);
        let change = if SORTED {
            let word = (by_mask(chosen, [one.0, other.0]), by_mask(chosen, [one.1, other.1]));
            self.rewritten(word.0, sorted::with(word, self.width, slot))
        } else {
            (room.lowest() >> (self.width - 1)).times(slot)
        };
        (chosen, change & mask(copies == 0) & mask(room != 0))
    }

    /// Which of two words, each beside its nibbles, has the only lane of both that holds `slot`, all ones for the other, and the bits of it that change when that is emptied: none where no lane
    /// holds it, or more than one. By arithmetic alone, for vector code.
    #[inline(always)]
    pub(crate) fn only_entry<const SORTED: bool>(
        &self,
        [one, other]: [(u64, u64); 2],
        slot: u64,
    ) -> (u64, u64) {
        let pattern = self.pattern::<u64, SORTED>(slot);
        let equal = [one, other].map(|word| self.exactly::<u64, SORTED>(word, pattern));
        let top = equal[0] | equal[1];
        let more = (equal[0] & equal[1]) | (top & top.wrapping_sub(1));
        let chosen = mask(equal[0] == 0);
        let change = if SORTED {
            let word = (by_mask(chosen, [one.0, other.0]), by_mask(chosen, [one.1, other.1]));
            let lane = self.count(top.wrapping_sub(1) & self.tops());
            self.rewritten(word.0, sorted::without(word, self.width, (top, lane)))
        } else {
            (top >> (self.width - 1)).times(slot)
        };
        (chosen, change & mask(more == 0) & mask(top != 0))
    }

    /// The bits of a semi-sorted word that change when these are its lanes and its code.
    #[inline(always)]
    fn rewritten(&self, word: u64, (lanes, code): (u64, u64)) -> u64 {
        let end = 4 * self.width;
        (word ^ (lanes & !(u64::MAX << end) | code << end)) & self.bucket::<u64>()
    }
}

/// The second of two numbers where `other` is all ones, the first where it is 0.
#[inline(always)]
fn by_mask(other: u64, [one, two]: [u64; 2]) -> u64 {
    one ^ ((one ^ two) & other)
}

/// All ones where something is so.
#[inline(always)]
fn mask(is_so: bool) -> u64 {
    u64::from(is_so).wrapping_neg()
}
