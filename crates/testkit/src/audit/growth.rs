//! The meaning of entries in a table: a second implementation of the section "Growth" of
//! docs/FORMAT.md for those with marked fingerprints.

use super::{Header, require, slots_of};
use crate::addressing::{Addressing, Entry};
use crate::image::{HEADER_BYTES, field};

/// The name of an entry: the smaller base, the core, and the stored bits in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The smaller of its two base buckets.
    pub base: u64,
    /// Its core.
    pub core: u64,
    /// The first bits of the strings of its keys.
    pub string: Vec<bool>,
}

impl Name {
    /// The name of the entry with this fingerprint in a bucket.
    ///
    /// # Panics
    /// If `image` is not one of a table with such an entry.
    #[must_use]
    pub fn in_slot(image: &[u8], bucket: u64, fingerprint: u64) -> Self {
        let header = Header(&image[..HEADER_BYTES]);
        let table = Table::of(&header).expect("a table");
        table.name(bucket, fingerprint).expect("an entry")
    }

    /// The name of an entry of a table that has not grown.
    fn of_entry(addressing: &Addressing, Entry { lower, fingerprint }: Entry) -> Self {
        let bits = addressing.fraction_bits();
        let string = (0..bits).map(|i| fingerprint >> i & 1 == 1).collect();
        Self { base: lower, core: fingerprint >> bits, string }
    }

    /// All that a table can know of a hash.
    ///
    /// # Panics
    /// If `image` is shorter than a header.
    #[must_use]
    pub fn of_hash(image: &[u8], hash: u64) -> Self {
        let addressing = Addressing::of(image);
        let mut name = Self::of_entry(&addressing, addressing.entry(hash));
        name.string.extend((0..64 - addressing.fraction_bits()).map(|i| hash >> i & 1 == 1));
        name
    }

    /// The name as a number, which counters have.
    pub(super) fn number(&self, table: &Table<'_>) -> u64 {
        table.addressing.name(self.base, self.core, self.string.iter().rev().copied())
    }

    /// Whether every key of `other` is one of this entry.
    #[must_use]
    pub fn has(&self, other: &Self) -> bool {
        (self.base, self.core) == (other.base, other.core) && other.string.starts_with(&self.string)
    }
}

/// A table, as its header describes it.
pub(super) struct Table<'a> {
    header: &'a Header<'a>,
    addressing: Addressing,
    level: u64,
    split: u64,
}

impl<'a> Table<'a> {
    /// The table that a header describes.
    pub(super) fn of(header: &'a Header<'a>) -> Result<Self, &'static str> {
        let (level, split) = (header.number("level"), header.number("split buckets"));
        let table = Self { header, addressing: Addressing::of(header.0), level, split };
        if header.is_marked() {
            table.check_growth()?;
        }
        Ok(table)
    }

    fn check_growth(&self) -> Result<(), &'static str> {
        let Self { header, level, split, .. } = *self;
        require(header.number("grows") == 1, "a table of marks that does not grow")?;
        require(level < 32, "level")?;
        let whole = u128::from(self.addressing.buckets()) << level;
        require(u128::from(split) < whole, "split buckets")?;
        let last = whole << u32::from(split > 0);
        require(last < 1 << 32, "addresses of 32 bits")?;
        // Length of the longest string, its mark, core and base.
        let bits = u64::from(128 - last.leading_zeros());
        require(bits + 6 + header.fraction_bits() + 1 < 64, "names of 64 bits")?;
        require(self.narrow() == 0 || self.may_have_narrow_buckets(), "narrow buckets")
    }

    /// How many buckets are still to be widened.
    fn narrow(&self) -> u64 {
        self.header.number("narrow buckets")
    }

    fn may_have_narrow_buckets(&self) -> bool {
        let first = self.addressing.fraction_bits() + 6;
        let (is_first, widened) = if self.header.is_semi_sorted() {
            ((8..=33).contains(&first), Some(first + 7))
        } else {
            let widths = [8, 12, 16, 24, 32];
            let is_first = (8..=32).contains(&first) && first.is_multiple_of(2);
            (is_first, widths.into_iter().find(|&width| width >= first + 7))
        };
        let is_as_built = self.level == 0 && self.split == 0;
        let is_widened = widened.map(u64::from) == Some(self.header.fingerprint_bits());
        is_as_built && is_first && is_widened && self.narrow() <= self.addressing.buckets()
    }

    /// Buckets of the table.
    pub(super) fn buckets(&self) -> u64 {
        (self.addressing.buckets() << self.level) + self.split
    }

    /// The names of all entries, with repetitions.
    pub(super) fn names(&self, table: &[u8]) -> Result<Vec<Name>, &'static str> {
        let mut names = Vec::new();
        for bucket in 0..self.buckets() {
            let slots = slots_of(self.header, table, bucket)?;
            for slot in slots.into_iter().filter(|&slot| slot != 0) {
                let name = self.name(bucket, slot)?;
                let is_first =
                    name.string.len() as u64 == u64::from(self.addressing.fraction_bits());
                require(bucket >= self.narrow() || is_first, "bits in a narrow bucket")?;
                names.push(name);
            }
        }
        Ok(names)
    }

    /// The name of the entry in a slot of a bucket.
    fn name(&self, bucket: u64, slot: u64) -> Result<Name, &'static str> {
        let known_bits = self.header.fraction_bits();
        if !self.header.is_marked() {
            require(slot >> known_bits > 0, "a core of 0")?;
            let entry = self.addressing.entry_in(bucket, slot);
            return Ok(Name::of_entry(&self.addressing, entry));
        }
        let core = (slot >> (known_bits + 5)) << 4 | slot & 15;
        let marked = (slot >> 4) % (1 << (known_bits + 1));
        require(core > 0, "a core of 0")?;
        require(marked > 0, "a fingerprint without a mark")?;
        let bases = self.addressing.buckets();
        let number =
            if bucket < bases { self.addressing.interleaved_number(bucket) } else { bucket };
        let is_split = number < self.split || number >= bases << self.level;
        let depth = self.level + u64::from(is_split);
        let (turn, world) = (number % bases, number / bases);
        let base = self.addressing.bucket_with_number(turn);
        let sum = u128::from(turn) * 0x9e37_79b9 + u128::from(core) * 0x01d8_af3c_6e2f_4d1b;
        let turned = world ^ (u64::try_from(sum % (1 << 64)).expect("64 bits") >> 16);
        let first = (0..depth).map(|i| turned >> i & 1 == 1);
        let rest = (0..u64::from(marked.ilog2())).map(|i| marked >> i & 1 == 1);
        let string = first.chain(rest).collect();
        let other = self.addressing.other(base, core << self.addressing.fraction_bits());
        Ok(Name { base: base.min(other), core, string })
    }

    /// Whether the match weight of these entries equals that in the header.
    pub(super) fn check_match_weight(&self, names: &[Name]) -> Result<(), &'static str> {
        let weight: u128 = names.iter().map(|name| (1 << 64) >> name.string.len()).sum();
        require(self.header.0[field("match weight")] == weight.to_le_bytes(), "match weight")
    }
}
