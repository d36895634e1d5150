//! The plan: what all machines that build one filter agree on.

use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64;

use super::error::PieceError;
use super::message::{FRAME_BYTES, PART, Part};
use crate::builder::Builder;
use crate::error::BuildError;
use crate::filter::builder::{profile, shape};
use crate::filter::parts::Parts;
use crate::image::shape::{Profile, Shape};
use crate::table::blocks::{Hashed, Hashes};
use crate::{CuckooFilter, Key, KeyHasher};

/// How a filter is built in pieces, by any number of machines.
///
/// Each machine makes the same plan from the same settings. It [splits](Self::split) the keys that
/// it has, and sends each [`Part`] to the machine that [builds](Self::build) its segment. The
/// pieces are [joined](Self::join), or saved as a file in constant memory (`save`, with the feature
/// `std`). The bytes depend on the keys only.
///
/// ```
/// let plan = koel::CuckooFilter::builder(3_000_000, 0.001).pieces()?;
/// let keys: Vec<u64> = (0..100_000).collect();
/// // Two machines split their keys, and a third one builds a segment from what they send.
/// let parts = [plan.split(&keys[..70_000])?, plan.split(&keys[70_000..])?].concat();
/// let mut pieces = Vec::new();
/// for segment in 0..plan.segments() {
///     let of_it = parts.iter().filter(|part| part.segment() == segment);
///     pieces.push(plan.build(segment, of_it)?);
/// }
/// let filter = plan.join(&pieces, None)?;
/// assert!(filter.len() == 100_000 && keys.iter().all(|key| filter.contains(key)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PiecePlan {
    pub(super) shape: Shape,
    pub(super) profile: Profile,
    pub(super) unique: bool,
}

impl Builder<CuckooFilter> {
    /// A plan to build the filter in pieces.
    ///
    /// # Errors
    /// As [`plan`](Self::plan), and [`BuildError::Pieces`] for a filter that starts small and
    /// [grows](Self::grow_from).
    pub fn pieces(&self) -> Result<PiecePlan, BuildError> {
        let shape = shape(&self.settings)?;
        if shape.layout.marks().is_some() {
            return Err(BuildError::Pieces);
        }
        Ok(PiecePlan { shape, profile: profile(&self.settings), unique: false })
    }
}

impl PiecePlan {
    /// Adds each key once, however often it comes, as
    /// [`insert_unique`](CuckooFilter::insert_unique) does. Parts then hold a key once, so that a
    /// frequent key makes none of them large.
    #[must_use]
    pub fn unique(self) -> Self {
        Self { unique: true, ..self }
    }

    /// The number of segments, a power of two. Each takes about 2 MiB of the filter, or less.
    #[must_use]
    pub fn segments(&self) -> u64 {
        1 << self.shape.segment_bits
    }

    /// The segment that a key belongs to: the top bits of its [address](Self::address).
    #[must_use]
    pub fn segment_of<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.segment_at(self.address(key))
    }

    /// The 64 bits that say where a key is in any filter with this hash. They are the same for all
    /// capacities and rates.
    #[must_use]
    pub fn address<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.profile.route.address(key)
    }

    /// The hash function of the keys.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        self.profile.route.hasher()
    }

    /// Distinct keys that will fit.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.profile.capacity
    }

    /// Divides keys by segment: a part for each segment that a key belongs to. O(keys), and 16
    /// bytes of memory for each.
    ///
    /// # Errors
    /// [`PieceError::NoMemory`].
    pub fn split<K: Key + Sync>(&self, keys: &[K]) -> Result<Vec<Part>, PieceError> {
        self.divide(Hashed(self.profile.route, keys)).ok_or(PieceError::NoMemory)
    }

    fn divide(&self, hashes: impl Hashes) -> Option<Vec<Part>> {
        let divided = Parts::of(hashes, 0..hashes.len(), self.shape.segment_bits)?;
        let (digest, mut parts) = (self.digest(), Vec::new());
        for segment in 0..1_usize << self.shape.segment_bits {
            let runs = || divided.of_segment(segment);
            let keys: usize = runs().map(<[_]>::len).sum();
            if keys > 0 {
                let mut bytes = PART.with_room(keys * size_of::<u64>())?;
                runs().for_each(|run| bytes.extend_from_slice(run.as_flattened()));
                parts.try_reserve(1).ok()?;
                parts.push(self.sealed(digest, segment as u64, bytes));
            }
        }
        Some(parts)
    }

    /// The part with these addresses, which are behind the room for its frame.
    fn sealed(&self, digest: u64, segment: u64, mut bytes: Vec<u8>) -> Part {
        let keys = (bytes.len() - FRAME_BYTES) / size_of::<u64>();
        if self.unique {
            let addresses = bytes[FRAME_BYTES..].as_chunks_mut::<8>().0;
            addresses.sort_unstable();
            let distinct = dedup(addresses);
            bytes.truncate(FRAME_BYTES + distinct * size_of::<u64>());
        }
        PART.seal([digest, segment, keys as u64], &mut bytes);
        Part::new(segment, bytes)
    }

    pub(super) fn segment_at(&self, address: u64) -> u64 {
        address.checked_shr(u64::BITS - self.shape.segment_bits).unwrap_or(0)
    }

    /// Tells plans apart: XXH3-64 of the settings, as docs/FORMAT.md lists them.
    pub(super) fn digest(&self) -> u64 {
        let Self { shape, profile, unique } = self;
        let route = profile.route;
        let (is_secret, seed) = match route.hasher() {
            KeyHasher::Xxh3 { seed } => (false, u128::from(seed).to_le_bytes()),
            KeyHasher::Sip13 { key } => (true, key),
        };
        let flags = [profile.growable, *unique, route.trusts_hashes(), is_secret];
        let flags = flags.iter().rev().fold(0, |flags, &flag| flags << 1 | u8::from(flag));
        let layout = shape.layout;
        let [fingerprint_bits, segment_bits] =
            [layout.fingerprint_bits(), shape.segment_bits].map(|bits| bits.to_le_bytes()[0]);
        let settings = [
            &profile.capacity.to_le_bytes()[..],
            &profile.rate.to_bits().to_le_bytes(),
            &profile.counter_limit.to_le_bytes(),
            &shape.segment_buckets.to_le_bytes(),
            &[segment_bits, layout.codec() as u8, fingerprint_bits, flags],
            &seed,
            &profile.application,
        ];
        xxh3_64(&settings.concat())
    }
}

/// Moves the distinct ones of sorted elements to the front. Returns how many there are.
fn dedup<T: PartialEq + Copy>(sorted: &mut [T]) -> usize {
    let mut distinct = 0;
    for i in 0..sorted.len() {
        if distinct == 0 || sorted[i] != sorted[distinct - 1] {
            sorted[distinct] = sorted[i];
            distinct += 1;
        }
    }
    distinct
}
