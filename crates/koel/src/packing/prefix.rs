//! Marked fingerprints against a key, in all lanes at once: a lane matches when its core is the
//! key's and the bits that it stores are the key's first ones.
//!
//! ```text
//!     | value | core, high 2 bits | 0 ... 0 1 | stored bits | core, low 4 bits, of a plain slot |
//!                     ^ guard     '-------- field ---------'
//! ```
//!
//! Let x be the exclusive-or of the lane's field and the key's. The lowest bit of x tells how many
//! bits agree, and the highest bit of the field how many are stored. `x ^ (x - 1)` is all ones up
//! to the lowest bit of x, so a lane matches when `x ^ (x - 1) >= field`. The guard is a bit above
//! the field that x always has, so that nothing is borrowed from the next lane. The comparison
//! subtracts from the top bit of the core, and leaves it there where the lane matches. Where cores
//! differ, a sum sets the same bit of another word.

use super::Marked;
use super::slot_coding::Coding;
use super::swar::{Lanes, Opened, Pattern, Register};

/// The masks of marked fingerprints, each for every lane.
#[derive(Clone, Copy, Default)]
pub(super) struct Prefixes {
    /// The field: stored bits, mark, and zeros.
    field: u128,
    /// The lowest bit of the field.
    unit: u128,
    /// The bit above the field.
    guard: u128,
    /// The top bit of the fingerprint, which is the core's, and all bits of the lane below it.
    top: u128,
    below: u128,
    /// The core without its top bit: what every match has in common with the key.
    core: u128,
    /// How far the top bit of the lane is above that of the fingerprint.
    above: u32,
}

impl Prefixes {
    /// Of each fingerprint, `cut` bits are not in its lane.
    pub(super) fn new(
        marked: Marked,
        ones: u128,
        (cut, fingerprint_bits): (u32, u32),
        width: u32,
    ) -> Self {
        let [top, guard, unit] = marked.edges().map(|bit| ones << (bit - cut));
        let (field, below) = (guard - unit, top - ones);
        Self {
            field,
            unit,
            guard,
            top,
            below,
            core: below & !field,
            above: width - (fingerprint_bits - cut),
        }
    }
}

impl Lanes {
    /// The top bit of the fingerprint in every lane that matches the key of `pattern`, which is the
    /// longest fingerprint of a key.
    #[inline(always)]
    pub(super) fn prefix_matches<R: Register, C: Coding>(
        &self,
        (word, nibbles): Opened<R>,
        pattern: Pattern<R>,
    ) -> R {
        let prefixes = &self.prefixes;
        let (field, top) = (R::of(prefixes.field), R::of(prefixes.top));
        let below = R::of(prefixes.below);
        let x = word ^ pattern.lanes;
        let core = x & R::of(prefixes.core);
        // As in `nonzero`, but at the top bit of the fingerprint: it is set where the cores differ.
        let core_mismatch = if C::SORTED {
            let nibbles = self.spread(nibbles) ^ pattern.nibbles;
            (((core | nibbles) & below) + below) | nibbles | x
        } else {
            (core + below) | x
        };
        let x = (x & field) | R::of(prefixes.guard);
        let agreed = x ^ (x - R::of(prefixes.unit));
        ((agreed | top) - (word & field)) & !core_mismatch & top
    }

    /// The tops of all lanes that match the key of `pattern`.
    #[inline]
    pub(super) fn prefix_tops<R: Register, C: Coding>(
        &self,
        word: Opened<R>,
        pattern: Pattern<R>,
    ) -> R {
        self.prefix_matches::<R, C>(word, pattern) << self.prefixes.above
    }
}
