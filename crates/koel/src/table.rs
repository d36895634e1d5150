//! The cuckoo table: buckets in a row of bytes, each entry in one of its two buckets.
//!
//! ```text
//!     | bucket 0 | bucket 1 | ... | bucket N-1 | zeros up to a multiple of 8 bytes | 16 bytes of zeros |
//! ```
//!
//! The zeros at the end let every bucket be read as a whole register. A lookup loads both buckets before it looks at either, so
//! that the two cache misses overlap. All methods speak of single entries in single buckets; who may move where is `placement.rs`.

use alloc::vec::Vec;

use crate::buffer::Buffer;
use crate::geometry::{BLOCK, Column, Geometry, Place, Places};
use crate::layout::{Bucket, Form, Lanes, Layout, Register, SLOTS, Word};
use crate::prefetch::prefetch;
use crate::vector::InstructionSet;

/// Places worked on between two requests to the memory, so that neither waits for the other.
pub(crate) const GROUP: usize = 8;

/// Calls the method in the form of the table's lanes: `method::<register, semi-sorted>(arguments)`.
macro_rules! in_form {
    ($table:expr, $method:ident($($argument:expr),*)) => {
        match $table.lanes.form() {
            Form::Plain => $table.$method::<u64, false>($($argument),*),
            Form::Sorted => $table.$method::<u64, true>($($argument),*),
            Form::WidePlain => $table.$method::<u128, false>($($argument),*),
            Form::WideSorted => $table.$method::<u128, true>($($argument),*),
        }
    };
}

/// Zeros behind the last bucket, so that it can be read like any other.
const PADDING: usize = 16;

/// Bytes of a table of `buckets` buckets; `None` where no machine could address them.
pub(crate) fn table_bytes(layout: Layout, buckets: u64) -> Option<usize> {
    let bits = buckets.checked_mul(u64::from(layout.bucket_bits()))?;
    let words = usize::try_from(bits.div_ceil(64)).ok()?;
    words.checked_mul(8)?.checked_add(PADDING).filter(|&bytes| isize::try_from(bytes).is_ok())
}

/// Buckets and their shape.
#[derive(Clone, PartialEq)]
pub(crate) struct Table<B> {
    geometry: Geometry,
    layout: Layout,
    lanes: Lanes,
    bytes: B,
}

impl<B: AsRef<[u8]>> Table<B> {
    /// The table in `bytes`, which are as many as [`table_bytes`] says.
    pub(crate) fn new(geometry: Geometry, layout: Layout, bytes: B) -> Self {
        debug_assert_eq!(Some(bytes.as_ref().len()), table_bytes(layout, geometry.buckets()));
        Self { geometry, layout, lanes: Lanes::new(layout), bytes }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Whether either bucket of `place` holds its fingerprint. O(1): two loads, no branch on the data.
    #[inline(always)]
    pub(crate) fn contains(&self, place: &Place) -> bool {
        let (pair, fingerprint) = (place.buckets(), place.fingerprint);
        match self.lanes.form() {
            Form::Plain => {
                self.lanes.pair_has::<false>(self.load_pair::<_, false>(pair), fingerprint)
            }
            Form::Sorted => {
                self.lanes.pair_has::<true>(self.load_pair::<_, true>(pair), fingerprint)
            }
            Form::WidePlain | Form::WideSorted => self.contains_wide(pair, fingerprint),
        }
    }

    #[cold]
    fn contains_wide(&self, pair: (u64, u64), fingerprint: u64) -> bool {
        in_form!(self, either_has(pair, fingerprint))
    }

    #[inline(always)]
    fn either_has<W: Word, const SORTED: bool>(&self, pair: (u64, u64), fingerprint: u64) -> bool {
        let words = self.load_pair::<W, SORTED>(pair);
        let opened = words.map(|word| (word, self.lanes.nibbles::<W, SORTED>(word)));
        let pattern = self.lanes.pattern::<W, SORTED>(fingerprint);
        self.lanes.either_has::<W, SORTED>(opened, pattern)
    }

    /// The places of the hashes that `hash` writes.
    #[inline]
    pub(crate) fn locate_many(
        &self,
        set: InstructionSet,
        hash: impl FnOnce(&mut Column),
        places: &mut Places,
    ) {
        self.geometry.locate_many(set, self.lanes.bucket_bits(), hash, places);
    }

    /// Loads the buckets of the eight places from `first` on into `words`.
    #[inline(always)]
    fn load_group<const SORTED: bool>(&self, places: &Places, first: usize, words: &mut Words) {
        for i in first..first + GROUP {
            let [home, alternate] = places.bits(i).map(|bit| self.load_at::<u64, SORTED>(bit));
            words.set::<SORTED>(&self.lanes, i, [home, alternate]);
        }
    }

    /// `contains` for a block of places, whose buckets the memory was asked for, while it is asked for those of the `coming` block.
    pub(crate) fn contains_block(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        match self.lanes.form() {
            Form::Plain => self.contains_block_in::<false>(set, (ready, coming), words, found),
            Form::Sorted => self.contains_block_in::<true>(set, (ready, coming), words, found),
            Form::WidePlain | Form::WideSorted => {
                for (i, found) in found.iter_mut().enumerate() {
                    if i.is_multiple_of(GROUP) {
                        self.prefetch_group(coming, i);
                    }
                    *found = self.contains_wide(ready.buckets(i), ready.fingerprints()[i]);
                }
            }
        }
    }

    #[inline]
    fn contains_block_in<const SORTED: bool>(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        for first in (0..BLOCK).step_by(GROUP) {
            self.prefetch_group(coming, first);
            self.load_group::<SORTED>(ready, first, words);
        }
        set.run(
            #[inline(always)]
            || test::<SORTED>(&self.lanes, ready, words, found),
        );
    }

    /// Asks the memory for the buckets of the eight places from `first` on.
    #[inline(always)]
    pub(crate) fn prefetch_group(&self, places: &Places, first: usize) {
        for i in first..first + GROUP {
            for bit in places.bits(i) {
                self.prefetch(bit);
            }
        }
    }

    /// How many entries of the pair of buckets equal `slot`.
    pub(crate) fn copies(&self, place: &Place, slot: u64) -> u64 {
        in_form!(self, copies_in(place, slot))
    }

    fn copies_in<W: Word, const SORTED: bool>(&self, place: &Place, slot: u64) -> u64 {
        self.pair::<W, SORTED>(self.bits(place), slot).copies(&self.lanes)
    }

    /// The bits of the table that the two buckets of `place` start at.
    #[inline(always)]
    pub(crate) fn bits(&self, place: &Place) -> [u64; 2] {
        let (home, alternate) = place.buckets();
        [home, alternate].map(|bucket| bucket * self.lanes.bucket_bits())
    }

    /// The buckets at `bits`, and where `slot` is in them.
    #[inline(always)]
    fn pair<W: Word, const SORTED: bool>(&self, bits: [u64; 2], slot: u64) -> Pair<W> {
        let words = bits.map(|bit| self.load_at::<W, SORTED>(bit));
        Pair::new::<SORTED>(&self.lanes, words, bits[0] == bits[1], slot)
    }

    /// The slots of bucket `local` of the segment that starts at `base`, each with its other bucket.
    pub(crate) fn neighbours(&self, base: u64, local: u32) -> [Neighbour; SLOTS] {
        in_form!(self, neighbours_in(base, local))
    }

    #[inline]
    fn neighbours_in<W: Word, const SORTED: bool>(
        &self,
        base: u64,
        local: u32,
    ) -> [Neighbour; SLOTS] {
        let other = |slot| self.geometry.alternate(local, self.layout.fingerprint_of(slot));
        let load = |local| self.load::<W, SORTED>(base + u64::from(local));
        Neighbour::all_of::<W, SORTED>(&self.lanes, local, other, load)
    }

    /// Asks the memory for the other buckets of the entries of bucket `local`.
    pub(crate) fn prefetch_neighbours(&self, base: u64, local: u32) {
        in_form!(self, prefetch_neighbours_in(base, local));
    }

    #[inline]
    fn prefetch_neighbours_in<W: Word, const SORTED: bool>(&self, base: u64, local: u32) {
        let word = self.load::<W, SORTED>(base + u64::from(local));
        for slot in self.lanes.slots::<W, SORTED>(word) {
            let target = self.geometry.alternate(local, self.layout.fingerprint_of(slot));
            self.prefetch((base + u64::from(target)) * self.lanes.bucket_bits());
        }
    }

    /// Asks the memory for what a search will look at first, where both buckets of `place` are full.
    #[inline]
    pub(crate) fn prefetch_search(&self, place: &Place) {
        if in_form!(self, is_full(place)) {
            self.prefetch_neighbours(place.base, place.home);
            self.prefetch_neighbours(place.base, place.alternate);
        }
    }

    #[inline(always)]
    fn is_full<W: Word, const SORTED: bool>(&self, place: &Place) -> bool {
        let words = self.load_pair::<W, SORTED>(place.buckets());
        let [home, alternate] = words.map(|word| self.lanes.empty::<W, SORTED>(word));
        (home | alternate) == W::ZERO
    }

    /// Asks the memory for the bucket that starts at bit `bit`.
    #[inline(always)]
    fn prefetch(&self, bit: u64) {
        prefetch(self.bytes.as_ref(), byte_index(bit / 8));
    }

    /// The decoded bucket.
    pub(crate) fn read(&self, bucket: u64) -> Bucket {
        self.layout.decode(self.word(bucket))
    }

    /// The bucket as it is stored.
    pub(crate) fn word(&self, bucket: u64) -> u128 {
        let word = match self.lanes.form() {
            Form::Plain | Form::Sorted => u128::from(self.load::<u64, true>(bucket)),
            Form::WidePlain | Form::WideSorted => self.load::<u128, true>(bucket),
        };
        word & self.lanes.bucket::<u128>()
    }

    /// A register that starts with the bucket; bits of the next one may follow.
    #[inline(always)]
    fn load<W: Word, const SORTED: bool>(&self, bucket: u64) -> W {
        self.load_at::<W, SORTED>(bucket * self.lanes.bucket_bits())
    }

    /// The same for a bucket that starts at bit `bit` of the table.
    #[inline(always)]
    fn load_at<W: Word, const SORTED: bool>(&self, bit: u64) -> W {
        let (byte, shift) = position::<W, SORTED>(bit);
        W::read(self.bytes.as_ref(), byte) >> shift
    }

    /// Both, loaded before either is looked at, so that the cache misses overlap.
    #[inline(always)]
    fn load_pair<W: Word, const SORTED: bool>(&self, (home, alternate): (u64, u64)) -> [W; 2] {
        [home, alternate].map(|bucket| self.load::<W, SORTED>(bucket))
    }

    /// The same table in memory of its own.
    pub(crate) fn to_owned_table(&self) -> Table<Buffer> {
        Table::new(self.geometry.clone(), self.layout, Buffer::copy_of(self.bytes()))
    }

    /// Whether all bits behind the last bucket are zero.
    pub(crate) fn is_padded_with_zeros(&self) -> bool {
        let (byte, shift) =
            position::<u64, true>(self.lanes.bucket_bits() * self.geometry.buckets());
        self.bytes()[byte] >> shift == 0 && self.bytes()[byte + 1..].iter().all(|&byte| byte == 0)
    }

    /// All buckets in order, decoded.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Bucket> {
        (0..self.geometry.buckets()).map(|bucket| self.read(bucket))
    }

    /// The place of every entry, those stored twice only once. O(buckets).
    pub(crate) fn distinct_entries(&self) -> impl Iterator<Item = Place> {
        let segment_buckets = self.geometry.segment_buckets();
        let segments = (0..self.geometry.buckets()).step_by(segment_buckets as usize);
        segments.flat_map(move |base| {
            (0..segment_buckets).flat_map(move |home| self.first_entries(base, home))
        })
    }

    /// The entries of a bucket that stand in no slot before, of this bucket or of an earlier one.
    fn first_entries(&self, base: u64, home: u32) -> impl Iterator<Item = Place> {
        let bucket = self.read(base + u64::from(home)).0;
        (0..bucket.len()).filter_map(move |i| {
            let slot = bucket[i];
            let fingerprint = self.layout.fingerprint_of(slot);
            let alternate = self.geometry.alternate(home, fingerprint);
            let place = Place { base, home, alternate, fingerprint };
            let earlier = || self.read(base + u64::from(alternate)).copies(slot) > 0;
            let repeated = bucket[..i].contains(&slot) || (alternate < home && earlier());
            (slot != 0 && !repeated).then_some(place)
        })
    }
}

impl Table<Buffer> {
    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        self.bytes.as_mut().fill(0);
    }

    /// The bytes of each segment, where segments are whole bytes.
    pub(crate) fn segments_mut(&mut self) -> Vec<&mut [u8]> {
        let bits = u64::from(self.geometry.segment_buckets()) * self.lanes.bucket_bits();
        let segments = 1 << self.geometry.segment_bits();
        debug_assert!(bits.is_multiple_of(8) || segments == 1);
        let bytes = self.bytes.as_mut();
        bytes.chunks_mut(byte_index(bits / 8)).take(segments).collect()
    }

    /// Fills an empty slot of the emptier bucket of the pair at `bits` with `slot`, where the pair has at most `most` copies of it.
    #[inline(always)]
    pub(crate) fn put(&mut self, bits: [u64; 2], slot: u64, most: u64) -> Put {
        match self.lanes.form() {
            Form::Plain => self.put_in::<u64, false>(bits, slot, most),
            _ => self.put_in_form(bits, slot, most),
        }
    }

    #[inline(never)]
    fn put_in_form(&mut self, bits: [u64; 2], slot: u64, most: u64) -> Put {
        in_form!(self, put_in(bits, slot, most))
    }

    #[inline(always)]
    fn put_in<W: Word, const SORTED: bool>(&mut self, bits: [u64; 2], slot: u64, most: u64) -> Put {
        let words = bits.map(|bit| self.load_at::<W, SORTED>(bit));
        match Pair::put::<SORTED>(&self.lanes, words, bits[0] == bits[1], (slot, most)) {
            Ok((chosen, word)) => {
                self.store_at::<W, SORTED>(bits[chosen], word);
                Put::Done
            }
            Err(refused) => refused,
        }
    }

    /// Empties a slot of the pair at `bits` that holds `slot`.
    #[inline(always)]
    pub(crate) fn take(&mut self, bits: [u64; 2], slot: u64) -> Taken {
        match self.lanes.form() {
            Form::Plain => self.take_in::<u64, false>(bits, slot),
            _ => self.take_in_form(bits, slot),
        }
    }

    #[inline(never)]
    fn take_in_form(&mut self, bits: [u64; 2], slot: u64) -> Taken {
        in_form!(self, take_in(bits, slot))
    }

    #[inline(always)]
    fn take_in<W: Word, const SORTED: bool>(&mut self, bits: [u64; 2], slot: u64) -> Taken {
        let pair = self.pair::<W, SORTED>(bits, slot);
        let Some((chosen, word)) = pair.take::<SORTED>(&self.lanes, slot) else {
            return Taken::Nothing;
        };
        self.store_at::<W, SORTED>(bits[chosen], word);
        if self.lanes.is_one(pair.equal) { Taken::Last } else { Taken::Copy }
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if there is none.
    ///
    /// With 0 for `old` this fills an empty slot, with 0 for `new` it empties one.
    pub(crate) fn replace(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        in_form!(self, replace_in(bucket, old, new))
    }

    #[inline(always)]
    fn replace_in<W: Word, const SORTED: bool>(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        let word = self.load::<W, SORTED>(bucket);
        let equal = self.lanes.equal::<W, SORTED>(word, self.lanes.pattern::<W, SORTED>(old));
        let found = equal != W::ZERO;
        if found {
            self.store::<W, SORTED>(bucket, self.lanes.replace::<W, SORTED>(word, equal, old, new));
        }
        found
    }

    /// Writes a bucket as [`word`](Self::word) reads it.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn set_word(&mut self, bucket: u64, word: u128) {
        match self.lanes.form() {
            Form::Plain | Form::Sorted => self.store::<u64, true>(bucket, u64::truncate(word)),
            Form::WidePlain | Form::WideSorted => self.store::<u128, true>(bucket, word),
        }
    }

    #[inline(always)]
    fn store<W: Word, const SORTED: bool>(&mut self, bucket: u64, word: W) {
        self.store_at::<W, SORTED>(bucket * self.lanes.bucket_bits(), word);
    }

    /// Writes the bucket at bit `bit` and leaves the bits around it alone, whatever follows the bucket in `word`.
    #[inline(always)]
    fn store_at<W: Word, const SORTED: bool>(&mut self, bit: u64, word: W) {
        let (byte, shift) = position::<W, SORTED>(bit);
        let mask = self.lanes.bucket::<W>() << shift;
        let around = W::read(self.bytes.as_ref(), byte) & !mask;
        (around | ((word << shift) & mask)).write(self.bytes.as_mut(), byte);
    }
}

/// The buckets of a block of places as registers, in columns.
#[repr(align(64))]
pub(crate) struct Words {
    home: Column,
    home_nibbles: Column,
    alternate: Column,
    alternate_nibbles: Column,
}

impl Words {
    pub(crate) fn new() -> Self {
        let column = [0; BLOCK];
        Self { home: column, home_nibbles: column, alternate: column, alternate_nibbles: column }
    }

    /// The words of the buckets of place `i`.
    #[inline(always)]
    pub(crate) fn set<const SORTED: bool>(
        &mut self,
        lanes: &Lanes,
        i: usize,
        [home, alternate]: [u64; 2],
    ) {
        (self.home[i], self.alternate[i]) = (home, alternate);
        if SORTED {
            self.home_nibbles[i] = lanes.nibbles::<u64, SORTED>(home);
            self.alternate_nibbles[i] = lanes.nibbles::<u64, SORTED>(alternate);
        }
    }
}

/// Whether either word of each place has its fingerprint.
#[inline(always)]
pub(crate) fn test<const SORTED: bool>(
    lanes: &Lanes,
    places: &Places,
    words: &Words,
    found: &mut [bool; BLOCK],
) {
    // Answers as bytes first: narrowed by one instruction, where a bool would be an exchange with a mask register.
    let mut bytes = [0_u8; BLOCK];
    for (i, byte) in bytes.iter_mut().enumerate() {
        let pattern = lanes.pattern::<u64, SORTED>(places.fingerprints()[i]);
        let home = (words.home[i], words.home_nibbles[i]);
        let alternate = (words.alternate[i], words.alternate_nibbles[i]);
        *byte = lanes.match_byte::<SORTED>([home, alternate], pattern);
    }
    for (found, byte) in found.iter_mut().zip(bytes) {
        *found = byte != 0;
    }
}

/// The two buckets of a place as registers, and the lanes in them that hold a certain slot.
pub(crate) struct Pair<W> {
    words: [W; 2],
    equal: [W; 2],
}

impl<W: Word> Pair<W> {
    /// Where `slot` is in `words`, which are one bucket twice if `same`: then it is one bucket.
    #[inline(always)]
    pub(crate) fn new<const SORTED: bool>(
        lanes: &Lanes,
        words: [W; 2],
        same: bool,
        slot: u64,
    ) -> Self {
        let pattern = lanes.pattern::<W, SORTED>(slot);
        let [at_home, elsewhere] = words.map(|word| lanes.equal::<W, SORTED>(word, pattern));
        Self { words, equal: [at_home, if same { W::ZERO } else { elsewhere }] }
    }

    /// Which of `words` a new copy of the slot goes to, the emptier one, and its new word; or why it goes to none.
    #[inline(always)]
    pub(crate) fn put<const SORTED: bool>(
        lanes: &Lanes,
        words: [W; 2],
        same: bool,
        (slot, most): (u64, u64),
    ) -> Result<(usize, W), Put> {
        let pattern = lanes.pattern::<W, SORTED>(slot);
        // A new entry is the rule, and then lanes show that it is new.
        let [home, alternate] = words.map(|word| lanes.maybe_equal(word, pattern));
        if (home | alternate) != W::ZERO {
            let copies = Self::new::<SORTED>(lanes, words, same, slot).copies(lanes);
            if copies > most {
                return Err(Put::Repeated(copies));
            }
        }
        let empty = words.map(|word| lanes.empty::<W, SORTED>(word));
        let chosen = usize::from(lanes.more(empty[1], empty[0]));
        if empty[chosen] == W::ZERO {
            return Err(Put::Full);
        }
        Ok((chosen, lanes.replace::<W, SORTED>(words[chosen], empty[chosen], 0, slot)))
    }

    /// Which bucket a copy of the slot is taken from, and its new word.
    #[inline(always)]
    pub(crate) fn take<const SORTED: bool>(&self, lanes: &Lanes, slot: u64) -> Option<(usize, W)> {
        let chosen = usize::from(self.equal[0] == W::ZERO);
        let (word, equal) = (self.words[chosen], self.equal[chosen]);
        self.has_any().then(|| (chosen, lanes.replace::<W, SORTED>(word, equal, slot, 0)))
    }

    #[inline(always)]
    fn has_any(&self) -> bool {
        (self.equal[0] | self.equal[1]) != W::ZERO
    }

    #[inline(always)]
    pub(crate) fn copies(&self, lanes: &Lanes) -> u64 {
        lanes.count(self.equal[0]) + lanes.count(self.equal[1])
    }
}

/// A slot of a bucket, and the other bucket its entry could move to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    /// What the slot holds.
    pub(crate) slot: u64,
    /// The other bucket, within the segment; it may be the same one.
    pub(crate) bucket: u32,
    /// Whether the other bucket has an empty slot.
    pub(crate) has_room: bool,
}

impl Neighbour {
    /// The slots of bucket `local`: `other` is the other bucket of a slot there, `load` the word of a bucket.
    #[inline(always)]
    pub(crate) fn all_of<W: Word, const SORTED: bool>(
        lanes: &Lanes,
        local: u32,
        other: impl Fn(u64) -> u32,
        load: impl Fn(u32) -> W,
    ) -> [Self; SLOTS] {
        let slots = lanes.slots::<W, SORTED>(load(local));
        let targets = slots.map(other);
        // All four are loaded before any is looked at, so that the cache misses overlap.
        let words = targets.map(load);
        [0, 1, 2, 3].map(|i| {
            let has_room = lanes.empty::<W, SORTED>(words[i]) != W::ZERO;
            Self { slot: slots[i], bucket: targets[i], has_room }
        })
    }
}

/// What became of a new copy of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It has a slot.
    Done,
    /// Nothing was written: there are more copies than allowed, this many.
    Repeated(u64),
    /// Nothing was written: both buckets are full.
    Full,
}

/// What was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The only entry there was.
    Last,
    /// One of several equal ones.
    Copy,
    /// Nothing: there is none.
    Nothing,
}

/// The byte that a bucket at bit `bit` starts in, and at which of its bits: 0 or 4, always 0 in `Form::Plain`.
#[inline(always)]
fn position<W: Word, const SORTED: bool>(bit: u64) -> (usize, u32) {
    let shift = if W::BITS == u64::BITS && !SORTED { 0 } else { shift_of(bit) };
    (byte_index(bit / 8), shift)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the table is in memory, so its offsets fit")]
fn byte_index(byte: u64) -> usize {
    byte as usize
}

/// Where in its byte a bit is.
#[inline(always)]
fn shift_of(bit: u64) -> u32 {
    (bit % 8) as u32
}
