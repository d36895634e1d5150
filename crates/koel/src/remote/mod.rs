//! A filter that is asked where it lies: on a web server, in an object store, in a cache of pages.
//!
//! A key is in one of two buckets. So two ranges of at most 17 bytes answer for it, once the first
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

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

pub use batch::{Batch, RemoteOptions};

use crate::address::hash::Route;
use crate::error::{ImageError, RemoteError};
use crate::image::{HEADER_BYTES, Header, Kind};
use crate::packing::{
    AnyPacking, Exact, Layout, Packing, Prefixed, bit_in_byte, load, with_packing,
};
use crate::side::Side;
use crate::table::LinearHashing;
use crate::table::place::{Place, at_place};
use crate::{Key, KeyHasher};

/// Bytes that a bucket of a filter reaches into at most: 128 bits from any bit of a byte on.
const BUCKET_BYTES: usize = 17;
/// Bytes from one bucket to the next where both are read as registers, zeros behind them.
const APART: usize = 64;

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
/// let remote = Remote::open(header, fetch(&Remote::tail(header)?).to_vec())?;
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
    packing: AnyPacking,
    route: Route,
    /// Stash and corrections. The counters stay where they are: a lookup never reads them.
    side: Side<Vec<u8>>,
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
    /// this crate would write.
    pub fn open(header: &[u8], tail: Vec<u8>) -> Result<Self, ImageError> {
        let decoded = Header::decode_as(Kind::Filter, header)?;
        let (expected, got) = (decoded.answers(), tail.len() as u64);
        if got != expected.end - expected.start {
            return Err(ImageError::Length { expected: expected.end - expected.start, got });
        }
        let (stash, corrections) = decoded.split_answers(tail);
        let side = Side::stored([Vec::new(), stash, corrections]);
        side.verify(|_| false, 0)?;
        let (layout, addresses) = (decoded.layout(), decoded.addresses());
        let packing = AnyPacking::new(layout, None);
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(&header[..HEADER_BYTES]);
        let route = decoded.profile().route;
        Ok(Self { header: decoded, bytes, addresses, layout, packing, route, side })
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

    /// The two ranges of the file that answer for a key, of at most 17 bytes. Both may be the same.
    #[must_use]
    pub fn question<K: Key + ?Sized>(&self, key: &K) -> [Range<u64>; 2] {
        self.place(self.route.address(key)).ranges
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
        let place = self.place(address);
        let mut both = [0; 2 * APART];
        for (i, range) in place.ranges.iter().enumerate() {
            let (bytes, begin) = fetched(range, i);
            let bucket = within(bytes, range.start.wrapping_sub(begin), range)?;
            both[i * APART..][..bucket.len()].copy_from_slice(bucket);
        }
        let starts = [0, 1].map(|i| (i * APART * 8) as u64 + place.shifts[i]);
        for (start, bucket) in starts.into_iter().zip(place.buckets) {
            let word = load(&both, start, self.layout.bucket_bits());
            if !self.layout.is_sound(word) {
                return Err(RemoteError::Bucket { bucket });
            }
        }
        let matches = with_packing!(&self.packing, packing => if self.addresses.grows() {
            packing.matches::<Prefixed>(&both, starts, place.fingerprints)
        } else {
            packing.matches::<Exact>(&both, starts, place.fingerprints)
        });
        Ok(self.side.settle(address, matches))
    }

    /// Where the key with this address may be.
    fn place(&self, address: u64) -> Questioned {
        let ((home, other), fingerprints) = at_place!(self.addresses, Somewhere => {
            let location = Somewhere::locate(&self.addresses, address);
            (location.pair(), location.fingerprints(&self.addresses))
        });
        let bits = u64::from(self.layout.bucket_bits());
        let ranges = [home, other].map(|bucket| {
            let start = bucket * bits;
            let (first, end) = (start / 8, (start + bits).div_ceil(8));
            first + HEADER_BYTES as u64..end + HEADER_BYTES as u64
        });
        let shifts = [home, other].map(|bucket| u64::from(bit_in_byte(bucket * bits)));
        Questioned { buckets: [home, other], fingerprints, ranges, shifts }
    }
}

/// Where a key may be: its buckets, and for each the fingerprint, the range of the file, and the
/// bit of the first byte at which it begins.
struct Questioned {
    buckets: [u64; 2],
    fingerprints: [u64; 2],
    ranges: [Range<u64>; 2],
    shifts: [u64; 2],
}

/// The bytes of a range of the file, of bytes that begin `skipped` before it.
fn within<'a>(bytes: &'a [u8], skipped: u64, range: &Range<u64>) -> Result<&'a [u8], RemoteError> {
    let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(BUCKET_BYTES);
    let from = usize::try_from(skipped).ok().and_then(|skipped| bytes.get(skipped..)?.get(..len));
    from.ok_or_else(|| RemoteError::Missing { range: range.clone() })
}
