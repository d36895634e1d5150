//! The cells of a key in a Bloom filter, plain or counting: how many cells and probes, and where.
//!
//! Double hashing of one XXH3-64, reduced to any size by a multiplication. Source: A. Kirsch, M.
//! Mitzenmacher, Less Hashing, Same Performance (ESA 2006).

use koel::KeyHasher;

/// The number of cells and probes for this many keys at this false-positive rate.
#[derive(Clone, Copy)]
pub(super) struct Probes {
    cells: u64,
    probes: u32,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and far below 2^32 and 2^64"
)]
impl Probes {
    pub(super) fn new(keys: usize, rate: f64) -> Self {
        let probes = (-rate.log2()).round().max(1.0);
        // Solves (1 - exp(-k n / m))^k = p for m, with a whole number of probes k.
        let empty = 1.0 - rate.powf(1.0 / probes);
        let cells = (keys as f64 * probes / -empty.ln()).ceil() as u64;
        Self { cells, probes: probes as u32 }
    }
}

impl Probes {
    pub(super) fn cells(self) -> usize {
        usize::try_from(self.cells).unwrap_or(usize::MAX)
    }

    /// The cells of a key. A cell may come up twice.
    #[inline(always)]
    pub(super) fn of(self, key: u64) -> impl Iterator<Item = usize> {
        let hash = KeyHasher::default().hash(&key).get();
        let step = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..u64::from(self.probes)).map(move |probe| {
            let mixed = hash.wrapping_add(step.wrapping_mul(probe));
            let (_, cell) = mixed.carrying_mul(self.cells, 0);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "below `cells`, which are in memory"
            )]
            let cell = cell as usize;
            cell
        })
    }
}
