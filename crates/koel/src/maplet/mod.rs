//! The maplet: maps keys to small values, in little more space than the values take.
//!
//! A filter whose slots hold a value above the fingerprint, over the same tables and rules
//! (docs/decisions/0007-maplet.md). The table moves a slot as one number, whatever its parts. This
//! file has the type and its lookups; `face.rs` has what it shares with filters. `edit.rs` changes
//! a maplet, `values.rs` is what a lookup returns, and `builder.rs` sizes a maplet. `counting/` is
//! a filter whose values are counts.

mod builder;
mod edit;
mod values;

use core::mem;

use crate::Key;
use crate::face::{face, lasting_face};
use crate::image;
use crate::state::Body;
use crate::state::store::{Borrowed, Owned, Store};
use crate::table::blocks::each_candidate;

pub(crate) use builder::empty_body;
pub use values::Values;

/// Maps keys to small values: stores a fingerprint of each key and the bits of its value.
///
/// A lookup may return values that belong to other keys, but never misses one.
/// [`get`](Self::get) returns every value that was inserted for the key. It also returns
/// [`false_candidates`](Self::false_candidates) values of other keys on average, whether the key is
/// in or not; when the maplet is full, that is at most the rate it was built for.
///
/// So maplets are for values that can be checked where they lead: which of many files has the key,
/// or at which offset of a log its record starts.
///
/// ```
/// use koel::Maplet;
///
/// // In which of 32 files is the key?
/// let mut files = Maplet::builder(10_000, 0.004, 5).build()?;
/// files.insert("ada", 3)?;
/// files.insert("grace", 17)?;
/// assert!(files.get("ada").any(|file| file == 3));
///
/// // File 3 was merged into file 20.
/// assert!(files.replace("ada", 3, 20)?);
/// assert!(files.remove("ada", 20));
/// assert!(!files.contains("ada"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Values
/// Values are numbers of 1 to 40 bits; [`Maplet::builder`] takes the width. A slot of fingerprint
/// and value has 10 to 32 bits, an even number, or 64.
///
/// # Several values of a key
/// A maplet is a multiset of pairs. A key may have several values. A pair that is inserted twice
/// has two entries, and must be removed twice.
///
/// All entries of a key share two buckets, which have room for 8. Further pairs are in the
/// [stash](Self::stashed_pairs): exactly, beside the table, up to the capacity. A pair in the stash
/// takes 24 bytes of the file and about 40 in memory. [`get`](Self::get) returns it once, however
/// many copies it has.
///
/// In a large maplet some keys share both buckets, and the room for 8. Pairs in the stash, of 9
/// million entries:
///
/// | values per key | built for | pairs in the stash |
/// |--:|---|---|
/// | 2 | the entries | 1 in 28 |
/// | 2 | a tenth more | none |
/// | 3 | the entries | 1 in 9 |
/// | 3 | half as many again | 1 in 16,000 |
///
/// # Limits
/// A maplet does not store the keys. **Remove and replace only pairs that were inserted.** The pair
/// of an absent key may have the fingerprint and the value of another pair, which then changes.
///
/// It has no `refute`: the place where a value leads says whether it is of the key.
///
/// # Cost
/// Every operation reads two buckets. An insert into a nearly full maplet reads some hundred more,
/// at most 8192.
pub struct Maplet<S: Store = Owned> {
    pub(crate) body: Body<S::Bytes>,
}

/// A maplet that reads borrowed bytes of any alignment: a memory-mapped file, a part of a message.
///
/// It answers all that a [`Maplet`] does, and cannot be changed. [`MapletView::open`] makes one;
/// [`MapletView::to_owned`] makes a maplet of it.
pub type MapletView<'a> = Maplet<Borrowed<'a>>;

face!(Maplet, MapletView, Maplet);
lasting_face!(Maplet);

/// A slot in use: what a maplet stores of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MapletEntry {
    /// The bucket that it is in, one of the two of its key.
    pub bucket: u64,
    /// The fingerprint of the key.
    pub fingerprint: u64,
    /// The value.
    pub value: u64,
}

impl<S: Store> Maplet<S> {
    /// The values inserted for `key`, and seldom some of other keys: see the type. In no particular
    /// order. O(1): reads two buckets.
    // Always inlined: as a call, it writes the values of absent keys to memory.
    #[inline(always)]
    #[must_use]
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Values<'_> {
        let address = self.body.address(key);
        if self.body.state.side.stash.len() > 0 {
            return self.with_stash(address);
        }
        self.in_slots(address)
    }

    /// The values in slots.
    #[inline(always)]
    fn in_slots(&self, address: u64) -> Values<'_> {
        // Most keys are absent, so slots are decoded in a second step.
        let table = &self.body.table;
        match table.find_pair(address) {
            None => Values::default(),
            Some((pair, keys)) => Values::new(table.candidates(pair, keys), self.layout()),
        }
    }

    /// The values in slots, and those in the stash.
    #[cold]
    #[inline(never)]
    fn with_stash(&self, address: u64) -> Values<'_> {
        self.in_slots(address).and(&self.body.state.side.stash, address)
    }

    /// [`get`](Self::get) for each of `keys`. Writes the values of `keys[i]` to `values[i]`. Where
    /// it is enough to know whether there are any, [`contains_many`](Self::contains_many) is
    /// faster.
    ///
    /// ```
    /// # use koel::Values;
    /// let mut files = koel::Maplet::builder(1000, 0.001, 8).build()?;
    /// files.insert_many(&["ada", "grace"], &[1, 200])?;
    /// let mut found = vec![Values::default(); 3];
    /// files.get_many(&["ada", "mary", "grace"], &mut found);
    /// assert!(found[0].clone().eq([1]) && found[1].len() == 0 && found[2].clone().eq([200]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn get_many<'a, K: Key>(&'a self, keys: &[K], values: &mut [Values<'a>]) {
        assert_eq!(keys.len(), values.len(), "one answer for each key");
        values.fill(Values::default());
        let (hashes, layout) = (self.body.hashed(keys), self.layout());
        let found = |i, _, slots| values[i] = Values::new(slots, layout);
        each_candidate(&self.body.table, hashes, found);
        if self.body.state.side.stash.len() > 0 {
            for (key, values) in keys.iter().zip(values) {
                let address = self.body.address(key);
                *values = mem::take(values).and(&self.body.state.side.stash, address);
            }
        }
    }

    /// The number of different pairs in the stash, beside the table: their buckets were full, and
    /// no eviction path led to an empty slot.
    #[must_use]
    pub fn stashed_pairs(&self) -> u64 {
        self.body.state.side.stash.len()
    }

    /// All entries in slots, by bucket. O(buckets).
    pub fn entries(&self) -> impl Iterator<Item = MapletEntry> {
        let (table, layout) = (&self.body.table, self.layout());
        (0..table.buckets()).flat_map(move |bucket| {
            let slots = table.read(bucket).0.into_iter().filter(|&slot| slot != 0);
            slots.map(move |slot| MapletEntry {
                bucket,
                fingerprint: layout.fingerprint_of(slot),
                value: layout.value_of(slot),
            })
        })
    }

    /// The number of values that [`get`](Self::get) returns for an absent key on average, as the
    /// maplet is now. For a key that is in, it returns as many besides the key's own. O(1).
    #[must_use]
    pub fn false_candidates(&self) -> f64 {
        self.body.false_candidates()
    }

    /// Bits of a value: values are less than `1 << value_bits()`. O(1).
    #[must_use]
    pub fn value_bits(&self) -> u32 {
        self.body.layout().value_bits()
    }

    /// Bits of [`size_in_bytes`](Self::size_in_bytes) per entry of the
    /// [`capacity`](Self::capacity). Once it [has grown](Self::has_grown), the size follows the
    /// entries: then per pair of [`len`](Self::len).
    #[must_use]
    pub fn bits_per_entry(&self) -> f64 {
        let entries = if self.has_grown() { self.len() } else { self.capacity() };
        image::bits_per_key(self.size_in_bytes(), entries as f64)
    }
}
