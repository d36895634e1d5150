//! The buckets and the fingerprint of a hash, computed from docs/FORMAT.md and the header alone.
//!
//! A second implementation of the addressing, in 128-bit arithmetic and without a table. A filter
//! is exactly a multiset of entries, each a bucket pair and a fingerprint. So the entries of the
//! inserted hashes determine every count.

use crate::image::read;

/// The addressing of one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressing {
    segment_bits: u32,
    segment_buckets: u64,
    fingerprint_bits: u32,
}

/// The bucket pair and fingerprint of a key. The filter cannot distinguish keys with equal entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The smaller bucket number of the pair.
    pub lower: u64,
    /// The fingerprint. Together with one bucket it determines the other one.
    pub fingerprint: u64,
}

impl Addressing {
    /// The addressing that the header of `image` describes.
    ///
    /// # Panics
    /// If `image` is shorter than a header.
    #[must_use]
    pub fn of(image: &[u8]) -> Self {
        let bits = |name| u32::try_from(read(image, name)).expect("a small number");
        Self {
            segment_bits: bits("segment bits"),
            segment_buckets: read(image, "segment buckets"),
            fingerprint_bits: 6 + bits("fraction bits at first"),
        }
    }

    /// Buckets of the table.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.segment_buckets << self.segment_bits
    }

    /// Bits of a fingerprint outside its core.
    #[must_use]
    pub fn fraction_bits(&self) -> u32 {
        self.fingerprint_bits - 6
    }

    /// The fingerprint of a hash.
    #[must_use]
    pub fn fingerprint(&self, hash: u64) -> u64 {
        let p = low(u128::from(hash) * u128::from(self.buckets()));
        let q = u128::from(p) * 63;
        let core = high(q) + 1;
        (core << self.fraction_bits()) | (low(q) >> (64 - self.fraction_bits()))
    }

    /// Home bucket and other bucket of a hash.
    #[must_use]
    pub fn pair(&self, hash: u64) -> (u64, u64) {
        let home = high(u128::from(hash) * u128::from(self.buckets()));
        (home, self.other(home, self.fingerprint(hash)))
    }

    /// The entry of a hash.
    #[must_use]
    pub fn entry(&self, hash: u64) -> Entry {
        self.entry_in(self.pair(hash).0, self.fingerprint(hash))
    }

    /// The entry of a fingerprint in `bucket`.
    #[must_use]
    pub fn entry_in(&self, bucket: u64, fingerprint: u64) -> Entry {
        Entry { lower: bucket.min(self.other(bucket, fingerprint)), fingerprint }
    }

    /// The name of an entry that knows these first bits of the string of its keys, the last one
    /// first.
    #[must_use]
    pub fn name(&self, lower: u64, core: u64, string: impl IntoIterator<Item = bool>) -> u64 {
        let mut place = self.buckets().leading_zeros() - 6;
        let mut name = lower << (place + 6) | core << place;
        for bit in string.into_iter().chain([true]) {
            place -= 1;
            name |= u64::from(bit) << place;
        }
        name
    }

    /// The bits behind the fraction of a name in a table that has not grown: a one and zeros.
    #[must_use]
    pub fn end_of_names(&self) -> u32 {
        self.buckets().leading_zeros() - 6 - self.fraction_bits()
    }

    /// The name of an entry of a table that has not grown.
    #[must_use]
    pub fn name_of(&self, entry: Entry) -> u64 {
        let (core, bits) = (entry.fingerprint >> self.fraction_bits(), self.fraction_bits());
        self.name(entry.lower, core, (0..bits).rev().map(|i| entry.fingerprint >> i & 1 == 1))
    }

    /// The order of an entry of a table that has not grown: its name with the bits of the fraction
    /// in reverse. Also the name of an entry with this order.
    #[must_use]
    pub fn order_of(&self, name: u64) -> u64 {
        let (end, bits) = (self.end_of_names(), self.fraction_bits());
        let fraction = name >> end & !(u64::MAX << bits);
        let reversed = (0..bits).fold(0, |reversed, i| reversed << 1 | fraction >> i & 1);
        name ^ (fraction ^ reversed) << end
    }

    /// Whether an entry of a table that has not grown may have this name.
    #[must_use]
    pub fn is_name(&self, name: u64) -> bool {
        let place = self.buckets().leading_zeros() - 6;
        let (lower, core) = (name.checked_shr(place + 6).unwrap_or(0), name >> place & 63);
        let bits = name >> self.end_of_names() & !(u64::MAX << (self.fraction_bits()));
        let entry = Entry { lower, fingerprint: core << self.fraction_bits() | bits };
        core > 0
            && lower < self.buckets()
            && self.entry_in(lower, entry.fingerprint) == entry
            && self.name_of(entry) == name
    }

    /// The interleaved number of a bucket, which counts the segments round-robin, as growth does.
    #[must_use]
    pub fn interleaved_number(&self, bucket: u64) -> u64 {
        ((bucket % self.segment_buckets) << self.segment_bits) + bucket / self.segment_buckets
    }

    /// The bucket with that number.
    #[must_use]
    pub fn bucket_with_number(&self, number: u64) -> u64 {
        let segments = 1 << self.segment_bits;
        number % segments * self.segment_buckets + number / segments
    }

    /// The number of possible entries, all equally likely: an entry has two buckets.
    #[must_use]
    pub fn possible_entries(&self) -> f64 {
        (63_u64 << self.fraction_bits()) as f64 * self.buckets() as f64 / 2.0
    }

    /// The smallest hash with this home bucket and fingerprint. The next 200 have them too, because
    /// 8 of the 64 bits are unused.
    #[must_use]
    pub fn hash_of(&self, bucket: u64, fingerprint: u64) -> u64 {
        let buckets = u128::from(self.buckets());
        let first = (u128::from(bucket) << 64).div_ceil(buckets);
        let rest = first * buckets - (u128::from(bucket) << 64);
        // Core and fraction are digits of `rest`: they begin where 63 * rest reaches this.
        let digits = u128::from(fingerprint - (1 << self.fraction_bits()));
        let wanted = (digits << (64 - self.fraction_bits())).div_ceil(63);
        low(first + wanted.saturating_sub(rest).div_ceil(buckets))
    }

    /// A hash that the entry of this name stands for. Of the bits that growth has added to the
    /// name, it has the first seven.
    #[must_use]
    pub fn hash_named(&self, name: u64) -> u64 {
        let (place, end) = (self.buckets().leading_zeros() - 6, name.trailing_zeros() + 1);
        let (lower, core) = (name.checked_shr(place + 6).unwrap_or(0), name >> place & 63);
        let (bits, string) = (self.fraction_bits(), name >> end & !(u64::MAX << (place - end)));
        let fraction = string & !(u64::MAX << bits);
        let first = self.hash_of(lower, core << bits | fraction);
        let further = (place - end).saturating_sub(bits).min(7);
        let low = (string >> bits).wrapping_sub(first) & !(u64::MAX << further);
        first + low
    }

    /// The other bucket of a fingerprint in `bucket`.
    #[must_use]
    pub fn other(&self, bucket: u64, fingerprint: u64) -> u64 {
        let local = bucket % self.segment_buckets;
        let core = fingerprint >> self.fraction_bits();
        let reflection = (mix(core) * self.segment_buckets) >> 32;
        bucket - local + (reflection + self.segment_buckets - local) % self.segment_buckets
    }
}

/// MurmurHash3's 32-bit finaliser, on 64-bit numbers.
fn mix(core: u64) -> u64 {
    let x = ((core ^ (core >> 16)) * 0x85eb_ca6b) & 0xffff_ffff;
    let x = ((x ^ (x >> 13)) * 0xc2b2_ae35) & 0xffff_ffff;
    x ^ (x >> 16)
}

fn high(product: u128) -> u64 {
    u64::try_from(product >> 64).expect("half of a product")
}

fn low(product: u128) -> u64 {
    u64::try_from(product & u128::from(u64::MAX)).expect("half of a product")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    fn shapes() -> impl Iterator<Item = Addressing> {
        let sizes = [(0, 1), (0, 2), (0, 41), (3, 1), (2, 1234), (4, 0x0001_0001)];
        sizes.into_iter().flat_map(|(segment_bits, segment_buckets)| {
            [8, 13, 32].map(|fingerprint_bits| Addressing {
                segment_bits,
                segment_buckets,
                fingerprint_bits,
            })
        })
    }

    #[test]
    fn the_smallest_hash_of_a_location_and_the_next_200_have_it_and_the_one_before_does_not() {
        for addressing in shapes() {
            for hash in keys::hashes(3, 2000) {
                let (home, fingerprint) = (addressing.pair(hash).0, addressing.fingerprint(hash));
                let made = addressing.hash_of(home, fingerprint);
                assert!(made <= hash);
                for twin in [made, made + 100, made + 200] {
                    assert_eq!(
                        (addressing.pair(twin).0, addressing.fingerprint(twin)),
                        (home, fingerprint)
                    );
                }
                let before = made.wrapping_sub(1);
                assert_ne!(
                    (addressing.pair(before).0, addressing.fingerprint(before)),
                    (home, fingerprint)
                );
            }
        }
    }

    #[test]
    fn interleaved_numbers_are_unique_and_neighbours_are_in_neighbouring_segments() {
        for addressing in shapes().filter(|addressing| addressing.buckets() < 5000) {
            for bucket in 0..addressing.buckets() {
                let number = addressing.interleaved_number(bucket);
                assert_eq!(addressing.bucket_with_number(number), bucket);
                let segments = 1 << addressing.segment_bits;
                assert_eq!(number % segments, bucket / addressing.segment_buckets);
            }
        }
    }

    #[test]
    fn the_other_bucket_of_the_other_bucket_is_home() {
        for addressing in shapes() {
            for hash in keys::hashes(4, 2000) {
                let (home, other) = addressing.pair(hash);
                assert!(home < addressing.buckets() && other < addressing.buckets());
                assert_eq!(addressing.other(other, addressing.fingerprint(hash)), home);
            }
        }
    }
}
