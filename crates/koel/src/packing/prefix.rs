//! Compares marked fingerprints with a key, all lanes at once. A lane matches when its core is the
//! key's, and the bits that it stores are the key's first ones.
//!
//! ```text
//!     | value | core, high 2 bits | 0 ... 0 1 | stored bits | core, low 4 bits, of a plain slot |
//!                     ^ guard     '-------- field ---------'
//! ```
//!
//! * Let x be the exclusive-or of the lane's field and the key's. The lowest bit of x says how many
//!   bits agree. The highest bit of the field says how many are stored.
//! * `x ^ (x - 1)` is all ones up to the lowest bit of x. So a lane matches when
//!   `x ^ (x - 1) >= field`.
//! * The guard is a bit above the field that x always has, so no lane borrows from the next one.
//! * The comparison subtracts from the top bit of the core, which stays set where the lane matches.
//!   A sum sets the same bit of another word where the cores differ.

use super::lanes::Register;
use super::marked::Marked;

/// The masks of marked fingerprints, each for every lane.
#[derive(Clone, Copy, Default)]
pub(super) struct Prefixes {
    /// The field: stored bits, mark, and zeros.
    field: u128,
    /// The lowest bit of the field.
    unit: u128,
    /// The bit above the field.
    guard: u128,
    /// The top bit of the fingerprint, which is a bit of the core, and all bits of the lane below.
    top: u128,
    below: u128,
    /// The core without its top bit.
    core: u128,
    /// Bits of the lane above the fingerprint: how far the result of `matches` is from the tops.
    pub(super) above: u32,
}

impl Prefixes {
    /// The masks of lanes of `width` bits whose lowest bits are `ones`. The lanes lack the low
    /// `cut` bits of each fingerprint.
    pub(super) fn new(
        marked: Marked,
        ones: u128,
        (cut, fingerprint_bits): (u32, u32),
        width: u32,
    ) -> Self {
        let [top, guard, unit] = marked.edges().map(|bit| ones << (bit - cut));
        let (field, below) = (guard - unit, top - ones);
        let above = width - (fingerprint_bits - cut);
        Self { field, unit, guard, top, below, core: below & !field, above }
    }

    /// The top bit of the fingerprint in every lane of `word` that matches the `key`, which is the
    /// longest fingerprint of a key, in every lane. Where nibbles are stored apart, the bits of
    /// `nibbles` differ from the key's.
    #[inline(always)]
    pub(super) fn matches<R: Register>(&self, word: R, key: R, nibbles: Option<R>) -> R {
        let (field, top, below) = (R::of(self.field), R::of(self.top), R::of(self.below));
        let x = word ^ key;
        let core = x & R::of(self.core);
        // The top bit of the fingerprint is set where the cores differ.
        let core_mismatch = match nibbles {
            Some(nibbles) => (((core | nibbles) & below) + below) | nibbles | x,
            None => (core + below) | x,
        };
        let x = (x & field) | R::of(self.guard);
        let agreed = x ^ (x - R::of(self.unit));
        ((agreed | top) - (word & field)) & !core_mismatch & top
    }
}
