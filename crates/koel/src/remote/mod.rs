//! A filter that is asked where it lies: on a web server, in an object store, in a cache of pages.
//!
//! A key is in one of two buckets. So two ranges of at most 16 bytes answer for it, once the first
//! 192 bytes and the exact answers at the end of the file are known. Nothing here reads or waits:
//! the caller fetches ranges in whatever way it has, also many at once.
//!
//! ```text
//!     the header          tail(header)        the range of the exact answers
//!     that range          open(header, tail)  a Remote
//!     keys                ask(keys, ..)       a Batch: the ranges to fetch (batch.rs)
//!     those ranges        answer(batch, ..)   whether each key is in
//! ```
//!
//! **What is checked.** The header has a checksum of itself, the exact answers must ascend, and
//! each bucket must be one that this crate could have written. The checksum of the whole file
//! cannot be checked without reading it. So the caller must notice that the file was replaced
//! between two reads: by what its server says of it, or by reading the header once more behind the
//! last range ([`is_header`](Remote::is_header)). The header has the checksum of all other bytes,
//! so an equal one is of the same filter.
//!
//! Cost: a header, the exact answers, and some 1,500 bytes of memory.

mod batch;

use core::fmt;
use core::ops::Range;

pub use batch::{Batch, RemoteOptions};

use crate::address::hash::Route;
use crate::error::{ImageError, RemoteError};
use crate::image::{HEADER_BYTES, Header, Kind};
use crate::mem::buffer::Buffer;
use crate::packing::{Layout, bit_in_byte};
use crate::side::Side;
use crate::table::{LeveledBucket, LinearHashing};
use crate::{Key, KeyHasher};

/// The most bytes of a range: a bucket of 128 bits begins with a byte, others with half of one.
const BUCKET_BYTES: usize = 16;

/// A filter whose bytes are elsewhere, asked by reading a few of them.
///
/// It answers [`contains`](crate::CuckooFilter::contains) as the whole filter would, and the caller
/// fetches the bytes. There is no format of its own: any [`CuckooFilter`](crate::CuckooFilter) file
/// on any server that serves ranges will do.
///
/// ```
/// use koel::{CuckooFilter, Remote, RemoteOptions};
///
/// let mut list = CuckooFilter::with_capacity(1000);
/// list.insert("example.org")?;
/// let file = list.to_bytes();
/// // In place of a request over a network:
/// let fetch = |range: &std::ops::Range<u64>| &file[range.start as usize..range.end as usize];
///
/// let header = fetch(&Remote::HEADER);
/// let remote = Remote::open(header, fetch(&Remote::tail(header)?))?;
/// let batch = remote.ask(&["example.org", "example.net"], RemoteOptions::default())?;
/// let fetched: Vec<_> = batch.ranges().iter().map(fetch).collect();
/// let mut found = [false; 2];
/// remote.answer(&batch, &fetched, &mut found)?;
/// assert_eq!(found, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Remote {
    header: Header,
    /// The bytes of the header.
    bytes: [u8; HEADER_BYTES],
    addresses: LinearHashing,
    layout: Layout,
    route: Route,
    /// Stash and corrections. The counters stay where they are: a lookup does not read them.
    side: Side<Buffer>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl Remote {
    /// The bytes to read first.
    pub const HEADER: Range<u64> = 0..HEADER_BYTES as u64;

    /// The range of the exact answers of the file with this header, to read next. Often empty: a
    /// filter has some only for keys that found no room or were
    /// [refuted](crate::CuckooFilter::refute), 24 and 8 bytes for each.
    ///
    /// # Errors
    /// [`ImageError`] if these are not the first bytes of a filter. A maplet, a counting and an
    /// expiring filter are other types, and are read as a whole.
    pub fn tail(header: &[u8]) -> Result<Range<u64>, ImageError> {
        Ok(Header::decode_as(Kind::Filter, header)?.answers())
    }

    /// The filter with this header and these exact answers, which are the bytes of
    /// [`tail`](Self::tail). O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] if the header is not that of a filter, or if the exact answers are none that
    /// this crate would write, or without memory for them.
    pub fn open(header: &[u8], tail: &[u8]) -> Result<Self, ImageError> {
        let decoded = Header::decode_as(Kind::Filter, header)?;
        let (expected, got) = (decoded.answers(), tail.len() as u64);
        if got != expected.end - expected.start {
            return Err(ImageError::Length { expected: expected.end - expected.start, got });
        }
        let lists = decoded.split_answers(tail).map(|list| Buffer::copy_of(list, false));
        let [Some(counters), Some(stash), Some(corrections)] = lists else {
            return Err(ImageError::NoMemory);
        };
        let side = Side::stored([counters, stash, corrections]);
        side.verify(|_| false, 0)?;
        let (layout, addresses) = (decoded.layout(), decoded.addresses());
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(&header[..HEADER_BYTES]);
        let route = decoded.profile().route;
        Ok(Self { header: decoded, bytes, addresses, layout, route, side })
    }

    /// Whether these are the bytes of the header that it was opened with. If they are read again
    /// after the last range, all ranges were of one filter.
    #[must_use]
    pub fn is_header(&self, header: &[u8]) -> bool {
        header == self.bytes
    }

    /// The bytes of the whole file: what it would take to fetch it.
    #[must_use]
    pub fn size_in_bytes(&self) -> u64 {
        self.header.file_bytes()
    }

    /// The number of keys, copies included.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.header.len
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of distinct keys that the filter was built for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.header.capacity
    }

    /// The number of [corrections](crate::CuckooFilter::refute).
    #[must_use]
    pub fn corrections(&self) -> u64 {
        self.side.corrections.len()
    }

    /// The false-positive rate that it was built for.
    #[must_use]
    pub fn requested_false_positive_rate(&self) -> f64 {
        self.header.rate
    }

    /// The probability that an absent key is reported as present, 0 to 1. O(1).
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.header.false_positive_rate()
    }

    /// The layout of the buckets.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The hash function and its seed or secret.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        self.route.hasher()
    }

    /// Bytes of the application, which the builder's
    /// [`application`](crate::Builder::application) stored.
    #[must_use]
    pub fn application(&self) -> [u8; 8] {
        self.header.application.to_le_bytes()
    }

    /// The two ranges of the file that answer for a key, of at most 16 bytes. Both may be the same.
    #[must_use]
    pub fn question<K: Key + ?Sized>(&self, key: &K) -> [Range<u64>; 2] {
        self.buckets_at(self.route.address(key)).map(|bucket| self.range_of(bucket))
    }

    /// Whether a key is in, by the bytes of the ranges of its [question](Self::question). Absent
    /// keys are reported at the [false-positive rate](Self::false_positive_rate), the same ones as
    /// in the whole filter.
    ///
    /// # Errors
    /// [`RemoteError`] for bytes that are not the whole ranges, or not buckets.
    pub fn answer_one<K: Key + ?Sized>(
        &self,
        key: &K,
        fetched: [&[u8]; 2],
    ) -> Result<bool, RemoteError> {
        let address = self.route.address(key);
        self.answer_at(address, |range, i| (fetched[i], range.start))
    }

    /// Whether the key with this address is in. `fetched` returns bytes that begin with or before a
    /// range of the key, and where in the file they begin.
    fn answer_at<'a>(
        &self,
        address: u64,
        fetched: impl Fn(&Range<u64>, usize) -> (&'a [u8], u64),
    ) -> Result<bool, RemoteError> {
        let location = self.addresses.located(address);
        let mut is_in = false;
        for (i, LeveledBucket { bucket, .. }) in location.leveled_buckets.into_iter().enumerate() {
            let range = self.range_of(bucket);
            let (bytes, begin) = fetched(&range, i);
            let word = self.word(bucket, within(bytes, range.start.wrapping_sub(begin), &range)?);
            if !self.layout.is_sound(word) {
                return Err(RemoteError::Bucket { bucket });
            }
            let entries = self.layout.decode(word);
            let mut prefixes = entries.entries().map(|slot| self.addresses.prefix(bucket, slot));
            is_in |= prefixes.any(|prefix| prefix.is_start_of(&location.prefix));
        }
        Ok(self.side.settle(address, is_in))
    }

    /// Both buckets of the key with this address.
    fn buckets_at(&self, address: u64) -> [u64; 2] {
        self.addresses.located(address).leveled_buckets.map(|leveled| leveled.bucket)
    }

    /// The range of the file that has a bucket.
    fn range_of(&self, bucket: u64) -> Range<u64> {
        let bits = u64::from(self.layout.bucket_bits());
        let (first, end) = (bucket * bits / 8, ((bucket + 1) * bits).div_ceil(8));
        first + HEADER_BYTES as u64..end + HEADER_BYTES as u64
    }

    /// A bucket in the bytes of its range.
    fn word(&self, bucket: u64, bytes: &[u8]) -> u128 {
        let mut whole = [0; BUCKET_BYTES];
        whole[..bytes.len()].copy_from_slice(bytes);
        let bits = self.layout.bucket_bits();
        let shift = bit_in_byte(bucket * u64::from(bits));
        u128::from_le_bytes(whole) >> shift & (u128::MAX >> (u128::BITS - bits))
    }
}

/// The bytes of a range of the file, of bytes that begin `skipped` before it.
fn within<'a>(bytes: &'a [u8], skipped: u64, range: &Range<u64>) -> Result<&'a [u8], RemoteError> {
    let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(BUCKET_BYTES);
    let from = usize::try_from(skipped).ok().and_then(|skipped| bytes.get(skipped..)?.get(..len));
    from.ok_or_else(|| RemoteError::Missing { range: range.clone() })
}
