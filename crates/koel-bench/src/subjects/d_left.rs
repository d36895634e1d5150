//! A d-left counting Bloom filter: four tables, each key goes to its emptiest bucket, and no entry
//! ever moves. Memory: its cells.
//!
//! A 16-bit cell holds a 14-bit remainder and a 2-bit counter that saturates at 3; a free cell
//! is 0. Each table permutes (bucket, remainder) by its own odd multiplier, so that keys with a
//! common remainder do not share all four buckets. The number of buckets is a power of two. A
//! bucket has as many cells as the average load needs, plus two.
//!
//! Source: F. Bonomi, M. Mitzenmacher, R. Panigrahy, S. Singh, G. Varghese, An Improved
//! Construction for Counting Bloom Filters (ESA 2006).

use koel::KeyHasher;

use crate::subject::{Filter, tally, until_refused};

const TABLES: usize = 4;
const REMAINDER_BITS: u32 = 14;
const STUCK: u16 = 3;
const ODD: [u64; TABLES] = [1, 0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

struct DLeft {
    hasher: KeyHasher,
    bucket_bits: u32,
    cells_a_bucket: usize,
    /// Ordered by table, then by bucket.
    cells: Vec<u16>,
}

pub(super) fn build(keys: usize, _rate: f64) -> Box<dyn Filter> {
    // Four to eight keys per bucket on average.
    let bucket_bits = (keys / (TABLES * 4)).max(1).ilog2();
    let buckets = TABLES << bucket_bits;
    let cells_a_bucket = (keys + 2 * buckets).div_ceil(buckets) + usize::from(bucket_bits > 22);
    let cells = vec![0; buckets * cells_a_bucket];
    Box::new(DLeft { hasher: KeyHasher::default(), bucket_bits, cells_a_bucket, cells })
}

impl DLeft {
    /// For each table: the first cell of the key's bucket, and the cell value of the key with a
    /// counter of 0.
    #[inline(always)]
    fn places(&self, key: u64) -> [(usize, u16); TABLES] {
        let bits = self.bucket_bits + REMAINDER_BITS;
        let fingerprint = self.hasher.hash(&key).get() >> (u64::BITS - bits);
        let mut table = 0;
        ODD.map(|odd| {
            let permuted = fingerprint.wrapping_mul(odd) & !(u64::MAX << bits);
            let (bucket, remainder) = split(permuted);
            let first = ((table << self.bucket_bits) + bucket) * self.cells_a_bucket;
            table += 1;
            (first, remainder << 2)
        })
    }

    #[inline(always)]
    fn bucket(&self, first: usize) -> &[u16] {
        &self.cells[first..first + self.cells_a_bucket]
    }

    /// The cell that holds a key.
    #[inline(always)]
    fn cell(&self, key: u64) -> Option<usize> {
        self.places(key).into_iter().find_map(|(first, remainder)| {
            let is = |&cell: &u16| cell & !STUCK == remainder && cell & STUCK != 0;
            self.bucket(first).iter().position(is).map(|at| first + at)
        })
    }

    /// Whether the remainder is in the bucket. Reads all cells, so that no branch depends on the
    /// data.
    #[inline(always)]
    fn has(&self, first: usize, remainder: u16) -> bool {
        let is =
            |found: bool, &cell: &u16| found | ((cell & !STUCK == remainder) & (cell != remainder));
        self.bucket(first).iter().fold(false, is)
    }

    fn add(&mut self, key: u64) -> bool {
        if let Some(cell) = self.cell(key) {
            if self.cells[cell] & STUCK < STUCK {
                self.cells[cell] += 1;
            }
            return true;
        }
        let used =
            |&(first, _): &(usize, u16)| self.bucket(first).iter().filter(|&&c| c > 0).count();
        // Ties go to the leftmost bucket.
        let places = self.places(key);
        let emptiest = places.iter().min_by_key(|&place| used(place)).copied();
        let Some((first, remainder)) = emptiest else { return false };
        let free = self.bucket(first).iter().position(|&cell| cell == 0);
        free.inspect(|&at| self.cells[first + at] = remainder | 1).is_some()
    }
}

/// Bucket and remainder of a permuted fingerprint.
#[inline]
fn split(permuted: u64) -> (usize, u16) {
    let remainder = permuted & !(u64::MAX << REMAINDER_BITS);
    ((permuted >> REMAINDER_BITS) as usize, remainder as u16)
}

impl Filter for DLeft {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| self.add(key))
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| {
            self.places(key).iter().fold(false, |found, &(first, r)| found | self.has(first, r))
        })
    }

    fn delete(&mut self, keys: &[u64]) -> usize {
        tally(keys, |key| {
            let cell = self.cell(key);
            if let Some(cell) = cell {
                match self.cells[cell] & STUCK {
                    STUCK => {}
                    1 => self.cells[cell] = 0,
                    _ => self.cells[cell] -= 1,
                }
            }
            cell.is_some()
        })
    }

    fn bytes(&self) -> usize {
        self.cells.len() * 2
    }

    fn slots(&self) -> Option<usize> {
        Some(self.cells.len())
    }
}
