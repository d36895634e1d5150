//! The header of a filter's bytes: its fields, what is refused, and what they say of the rest.
//!
//! docs/FORMAT.md describes every byte, with test vectors; a test compares its table with the one
//! here. Reading trusts nothing: each field is bounded before it is used in arithmetic.

use core::array;
use core::cmp::Ordering;
use core::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::clock::{Clock, MOST_STAMP_BITS, groups};
use super::fields::{Is, Value, got, header, put, take};
use super::format::{HEADER_BYTES, Kind, MAGIC, MOST_STEPS, SECTIONS, VERSION};
use super::shape::{Profile, Shape};
use super::sizing;
use crate::address::geometry::{CORE_BITS, Geometry};
use crate::address::hash::KeyHasher;
use crate::address::hash::Route;
use crate::error::{ImageError, require};
use crate::packing::{Codec, Layout, MAX_VALUE_BITS, SLOTS};
use crate::table::{LinearHashing, Table, stored_bytes, table_bytes};

/// Where the checksum of the bytes before it is.
const CHECKSUM_AT: usize = HEADER_BYTES - 8;

header! {
    magic: Is<{ u64::from_le_bytes(MAGIC) }>, 8, "magic";
    version: Is<{ VERSION as u64 }>, 2, "version";
    header_length: Is<{ HEADER_BYTES as u64 }>, 2, "header length";
    kind: Kind, 1, "kind";
    codec: Codec, 1, "codec", |h| h.codec == Codec::Plain || h.kind == Kind::Filter;
    slots: Is<{ SLOTS as u64 }>, 1, "slots";
    core_bits: Is<{ CORE_BITS as u64 }>, 1, "core bits";
    value_bits: u32, 1, "value bits", |h| match h.kind {
        Kind::Filter => h.value_bits == 0,
        Kind::Maplet | Kind::Counting => (1..=MAX_VALUE_BITS).contains(&h.value_bits),
        Kind::Expiring => (2..=MOST_STAMP_BITS).contains(&h.value_bits),
    };
    fingerprint_bits: u32, 1, "fingerprint bits", |h| {
        Layout::new(h.codec, h.fingerprint_bits, h.value_bits).is_some()
    };
    marked: bool, 1, "marked";
    first_bits: u32, 1, "fraction bits at first", |h| {
        let bits = h.layout().fraction_bits();
        (if h.marked { 2 } else { bits }..=bits).contains(&h.first_bits)
    };
    fraction_bits: u32, 1, "fraction bits", |h| h.fraction_bits == h.layout().fraction_bits();
    level: u32, 1, "level", |h| h.level < if h.marked { u32::BITS } else { 1 };
    segment_bits: u32, 1, "segment bits", |h| {
        sizing::fits_hash(h.segment_bits, h.segment_buckets, h.first_bits + CORE_BITS)
    };
    is_secret: bool, 1, "hash";
    segment_buckets: u32, 4, "segment buckets", |h| h.segment_buckets > 0;
    growable: bool, 1, "grows", |h| {
        h.growable == h.marked || h.growable && h.kind == Kind::Filter
    };
    trusts_hashes: bool, 1, "route";
    // A later version of the program will define it.
    secret_kind: Is<0>, 1, "secret kind";
    evicts: bool, 1, "when full", |h| h.expires() || !h.evicts;
    split: u64, 4, "split buckets", |h| {
        if h.marked { h.addresses().is_sound() } else { h.split == 0 }
    };
    narrow: u64, 4, "narrow buckets", |h| h.narrow == 0 || h.may_have_narrow_buckets();
    match_weight: u128, 16, "match weight", |h| h.marked || h.match_weight == 0;
    seed: u128, 16, "seed", |h| h.is_secret || u64::try_from(h.seed).is_ok();
    capacity: u64, 8, "capacity";
    rate: f64, 8, "requested rate", |h| h.rate > 0.0 && h.rate < 1.0;
    application: u64, 8, "application bytes";
    // Growth may leave behind entries that belong to no key, and time entries that are dead.
    len: u64, 8, "keys", |h| match h.kind {
        Kind::Filter | Kind::Counting | Kind::Maplet => h.len >= h.entries || h.marked,
        Kind::Expiring => h.len <= h.entries,
    };
    entries: u64, 8, "entries", |h| h.entries <= h.buckets() * SLOTS as u64;
    distinct: u64, 8, "distinct entries", |h| {
        h.distinct <= if h.kind == Kind::Filter { h.entries } else { 0 }
    };
    counters: u64, 8, "counters", |h| match h.kind {
        Kind::Filter if !h.marked => h.counters <= h.distinct,
        Kind::Filter | Kind::Counting => h.counters <= h.entries,
        Kind::Maplet | Kind::Expiring => h.counters == 0,
    };
    counter_limit: u64, 8, "counter limit", |h| match h.kind {
        // When growth splits an entry into two, both get its counter, whatever the limit.
        Kind::Filter => h.counters <= h.counter_limit || h.marked,
        Kind::Counting => h.counter_limit == u64::MAX,
        Kind::Maplet => true,
        Kind::Expiring => h.counter_limit == 0,
    };
    stashed: u64, 4, "stashed keys", |h| h.stashed <= if h.expires() { 0 } else { h.len };
    corrections: u64, 4, "corrections", |h| {
        h.corrections <= if h.kind == Kind::Filter { h.buckets() * SLOTS as u64 } else { 0 }
    };
    evicted: u64, 8, "evicted", |h| h.expires() || h.evicted == 0;
    sweeps: u64, 4, "sweeps", |h| h.sweeps == if h.expires() { groups(h.buckets()) } else { 0 };
    step: u16, 2, "step", |h| h.expires() || h.step == 0;
    steps: u64, 1, "steps", |h| {
        let most = u64::from(MOST_STEPS).min(h.layout().largest_value().saturating_sub(1));
        if h.expires() { (1..=most).contains(&h.steps) } else { h.steps == 0 }
    };
    /// 1 and the age of the youngest entry that was evicted, or 0.
    youngest_evicted: u64, 1, "youngest evicted", |h| {
        (h.youngest_evicted > 0) == (h.evicted > 0) && h.youngest_evicted <= h.steps + 1
    };
    step_ticks: u64, 8, "step length", |h| h.expires() == (h.step_ticks > 0);
    step_began: u64, 8, "step began", |h| h.expires() || h.step_began == 0;
    body_checksum: u64, 8, "body checksum";
    header_checksum: u64, 8, "header checksum";
}

impl Header {
    /// The header of an empty filter. One that has grown has its addresses, and the match weight of
    /// its entries.
    pub(crate) fn of(
        kind: Kind,
        shape: Shape,
        profile: &Profile,
        growth: Option<(&LinearHashing, u128)>,
        clock: Option<&Clock>,
    ) -> Self {
        let layout = shape.layout;
        let (is_secret, seed) = match profile.route.hasher() {
            KeyHasher::Xxh3 { seed } => (false, seed.into()),
            KeyHasher::Sip13 { key } => (true, u128::from_le_bytes(key)),
        };
        let mut header = Self {
            kind,
            codec: layout.codec(),
            fingerprint_bits: layout.fingerprint_bits(),
            value_bits: layout.value_bits(),
            segment_bits: shape.segment_bits,
            is_secret,
            segment_buckets: shape.segment_buckets,
            first_bits: layout.fraction_bits(),
            fraction_bits: layout.fraction_bits(),
            growable: profile.growable,
            seed,
            capacity: profile.capacity,
            rate: profile.rate,
            counter_limit: profile.counter_limit,
            trusts_hashes: profile.route.trusts_hashes(),
            application: u64::from_le_bytes(profile.application),
            ..Self::default()
        };
        if let Some((addresses, match_weight)) = growth {
            header.marked = true;
            header.first_bits = addresses.base().fraction_bits();
            (header.level, header.split) = (addresses.level(), addresses.split());
            header.narrow = addresses.narrow_buckets();
            header.match_weight = match_weight;
        }
        if let Some(clock) = clock {
            (header.step, header.step_ticks, header.steps) =
                (clock.step, clock.step_ticks, clock.steps);
            (header.step_began, header.evicts) = (clock.began, clock.evicts);
            header.evicted = clock.evicted;
            header.youngest_evicted = clock.youngest_evicted.map_or(0, |age| age + 1);
        }
        header
    }

    /// The bytes of the header, with its checksum.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = self.write();
        let (covered, checksum) = bytes.split_at_mut(CHECKSUM_AT);
        checksum.copy_from_slice(&xxh3_64(covered).to_le_bytes());
        bytes
    }

    /// What the bytes of the header say of the settings, where it is that of an empty filter: zeros
    /// stand for the seed or secret.
    pub(crate) fn settings(&self) -> [u8; HEADER_BYTES] {
        Self { seed: 0, ..*self }.write()
    }

    /// The header at the start of `image`, if it is one of this kind.
    pub(crate) fn decode_as(kind: Kind, image: &[u8]) -> Result<Self, ImageError> {
        if !image.starts_with(&MAGIC[..image.len().min(MAGIC.len())]) || image.is_empty() {
            return Err(ImageError::NotAFilter);
        }
        let Some(bytes) = image.first_chunk::<HEADER_BYTES>() else {
            let (expected, got) = (HEADER_BYTES as u64, image.len() as u64);
            return Err(ImageError::Length { expected, got });
        };
        let version = u16::from_le_bytes([bytes[MAGIC.len()], bytes[MAGIC.len() + 1]]);
        match version.cmp(&VERSION) {
            Ordering::Less => return Err(ImageError::Older { version }),
            Ordering::Greater => return Err(ImageError::Newer { version }),
            Ordering::Equal => {}
        }
        let (covered, checksum) = bytes.split_at(CHECKSUM_AT);
        if checksum != xxh3_64(covered).to_le_bytes() {
            return Err(ImageError::Checksum { part: "header" });
        }
        let header = Self::read(bytes)?;
        if header.kind != kind {
            return Err(ImageError::Kind { asked: kind.name(), found: header.kind.name() });
        }
        header.check()?;
        Ok(header)
    }

    // ---- what the fields say

    pub(crate) fn layout(&self) -> Layout {
        let layout = Layout::of(self.codec, self.fingerprint_bits, self.value_bits);
        if self.marked { layout.with_marks() } else { layout }
    }

    pub(crate) fn profile(&self) -> Profile {
        let hasher = if self.is_secret {
            KeyHasher::Sip13 { key: self.seed.to_le_bytes() }
        } else {
            KeyHasher::Xxh3 { seed: u64::try_from(self.seed).unwrap_or(0) }
        };
        Profile {
            route: Route::new(hasher, self.trusts_hashes),
            capacity: self.capacity,
            rate: self.rate,
            counter_limit: self.counter_limit,
            growable: self.growable,
            application: self.application.to_le_bytes(),
        }
    }

    /// The time of an expiring filter.
    pub(crate) fn clock(&self) -> Option<Clock> {
        self.expires().then(|| Clock {
            step_ticks: self.step_ticks,
            steps: self.steps,
            largest: self.layout().largest_value(),
            began: self.step_began,
            step: self.step,
            evicted: self.evicted,
            youngest_evicted: self.youngest_evicted.checked_sub(1),
            evicts: self.evicts,
        })
    }

    /// The addressing that the table was built with.
    pub(crate) fn geometry(&self) -> Geometry {
        Geometry::new(self.segment_bits, self.segment_buckets, self.first_bits + CORE_BITS)
    }

    /// The present addresses of the table.
    pub(crate) fn addresses(&self) -> LinearHashing {
        let Some(marks) = self.layout().marks() else {
            return LinearHashing::fixed(self.geometry());
        };
        let mut addresses = LinearHashing::new(self.geometry(), marks, self.level, self.split);
        addresses.set_narrow_buckets(self.narrow);
        addresses
    }

    /// The table in these bytes.
    pub(crate) fn table<B: AsRef<[u8]>>(&self, bytes: B) -> Table<B> {
        Table::new(self.addresses(), self.layout(), bytes).with_weight(self.match_weight)
    }

    /// Buckets that the table was built with.
    fn first_buckets(&self) -> u64 {
        u64::from(self.segment_buckets) << self.segment_bits
    }

    /// Buckets that the table has now. Saturates where a forged header has more than any table.
    fn buckets(&self) -> u64 {
        (self.first_buckets() << self.level).saturating_add(self.split)
    }

    fn expires(&self) -> bool {
        self.kind == Kind::Expiring
    }

    /// Whether a table with this header can have buckets that are still to be widened: as it was
    /// built, with the layout that its first one becomes.
    fn may_have_narrow_buckets(&self) -> bool {
        let first = Layout::new(self.codec, self.first_bits + CORE_BITS, 0);
        self.kind == Kind::Filter
            && (self.marked, self.level, self.split) == (true, 0, 0)
            && self.narrow <= self.first_buckets()
            && first.and_then(sizing::marked_layout) == Some(self.layout())
    }

    // ---- the bytes behind the header

    /// Bytes of the sections behind the buckets.
    fn section_bytes(&self) -> [u64; SECTIONS.len()] {
        let records = [self.counters, self.stashed, self.corrections, self.sweeps];
        array::from_fn(|i| records[i].saturating_mul(SECTIONS[i] as u64))
    }

    /// Bytes of the buckets, and of what is behind them. `None` where this machine cannot address
    /// them.
    pub(crate) fn lengths(&self) -> Option<(usize, usize)> {
        let trailer = self.section_bytes().into_iter().fold(0, u64::saturating_add);
        Some((table_bytes(self.layout(), self.buckets())?, usize::try_from(trailer).ok()?))
    }

    /// The buckets of `image`, and what is behind them, if it is exactly as long as the header
    /// says.
    pub(crate) fn parts<'a>(&self, image: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), ImageError> {
        let split = || {
            let (table, rest) = self.lengths()?;
            let (table, trailer) = image.get(HEADER_BYTES..)?.split_at_checked(table)?;
            (trailer.len() == rest).then_some((table, trailer))
        };
        split().ok_or_else(|| self.wrong_length(image.len() as u64))
    }

    /// The sections of the bytes behind the buckets.
    pub(crate) fn split_trailer<'a>(&self, mut trailer: &'a [u8]) -> [&'a [u8]; SECTIONS.len()] {
        self.section_bytes().map(|bytes| {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(trailer.len());
            let (section, rest) = trailer.split_at(bytes);
            trailer = rest;
            section
        })
    }

    /// Where the sections begin in the file, and where it ends.
    fn section_starts(&self) -> [u64; SECTIONS.len() + 1] {
        let table = stored_bytes(self.layout(), self.buckets()).unwrap_or(u64::MAX);
        let mut starts = [table.saturating_add(HEADER_BYTES as u64); SECTIONS.len() + 1];
        for (i, bytes) in self.section_bytes().into_iter().enumerate() {
            starts[i + 1] = starts[i].saturating_add(bytes);
        }
        starts
    }

    /// Bytes of the whole file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.section_starts()[SECTIONS.len()]
    }

    /// The range of the exact answers in the file: the stash and the corrections.
    pub(crate) fn answers(&self) -> Range<u64> {
        let [_, stash, _, end, _] = self.section_starts();
        stash..end
    }

    /// No counters, the stash and the corrections in the bytes of [`answers`](Self::answers).
    pub(crate) fn split_answers<'a>(&self, answers: &'a [u8]) -> [&'a [u8]; 3] {
        let [_, stash, ..] = self.section_bytes();
        let stash = usize::try_from(stash).unwrap_or(usize::MAX).min(answers.len());
        let (stash, corrections) = answers.split_at(stash);
        [&[], stash, corrections]
    }

    /// The probability that an entry matches an absent key.
    pub(crate) fn false_positive_rate(&self) -> f64 {
        let possible = self.addresses().possible_entries(self.entries, self.match_weight);
        (self.distinct as f64 / possible).min(1.0)
    }

    /// The error for a file of `got` bytes.
    pub(crate) fn wrong_length(&self, got: u64) -> ImageError {
        ImageError::Length { expected: self.file_bytes(), got }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    #[test]
    fn the_format_page_lists_exactly_these_fields() {
        let page = include_str!("../../../../docs/FORMAT.md");
        let table = page.lines().skip_while(|line| !line.starts_with("| offset"));
        let rows: Vec<_> = table.skip(2).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), FIELDS.len());
        let mut offset = 0;
        for ((bytes, name), row) in FIELDS.iter().zip(rows) {
            assert!(row.starts_with(&format!("| {offset} | {bytes} | {name} |")), "{row}");
            offset += bytes;
        }
    }
}
