//! Decides which bytes are a valid filter: a second implementation of docs/FORMAT.md.
//!
//! The library and this file share no code, so a check missing in one of them shows when a fuzzer
//! finds bytes on which they disagree. It is written for clarity: it reads a bucket bit by bit and
//! keeps every entry as its name.

mod growth;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::image::{self, HEADER_BYTES, word};
pub use growth::Name;
use growth::Table;

/// Checks these bytes against the format.
///
/// # Errors
/// The first rule that they break.
pub fn audit(image: &[u8]) -> Result<(), &'static str> {
    let (header, body) = image.split_at_checked(HEADER_BYTES).ok_or("no room for a header")?;
    let header = Header(header);
    header.check_constants()?;
    header.check_shape()?;
    header.check_profile()?;
    let mut resealed = image.to_vec();
    image::reseal(&mut resealed);
    require(
        resealed[image::field("body checksum")] == image[image::field("body checksum")],
        "body",
    )?;
    require(resealed == image, "header checksum")?;

    let table = Table::of(&header)?;
    let slots = header.slots(&table, body)?;
    let [counters, corrections] = ["counters", "corrections"].map(|name| header.number(name));
    let stashed = read_exact(image)?;
    check_padding(&header, slots, table.buckets())?;

    let names = table.names(slots)?;
    let in_use = names.len() as u64;
    require(header.number("entries") == in_use, "entries")?;
    let numbers = names.iter().map(|name| name.number(&table)).collect();
    let counted = read_counters(image, &numbers)?;
    let all = counted + stashed + u128::from(in_use);
    let (keys, distinct) = (u128::from(header.number("keys")), header.number("distinct entries"));
    require(stashed <= keys, "stashed copies")?;
    require(corrections <= table.buckets() * 4, "corrections")?;
    if header.is_marked() {
        require(distinct <= in_use, "distinct entries")?;
        require(counters <= in_use, "more counters than entries")?;
        table.check_match_weight(&names)?;
        return require(keys <= all, "keys");
    }
    require(distinct == numbers.len() as u64, "distinct entries")?;
    require(keys == all, "keys")
}

/// The totals of the rest of the bytes, as a header of a table of one size has them. `None` if the
/// rest is no such table.
#[must_use]
pub fn totals(image: &[u8]) -> Option<[(&'static str, u64); 3]> {
    let (header, body) = image.split_at_checked(HEADER_BYTES)?;
    let header = Header(header);
    header.check_constants().and_then(|()| header.check_shape()).ok()?;
    let table = Table::of(&header).ok().filter(|_| !header.is_marked())?;
    let names = table.names(header.slots(&table, body).ok()?).ok()?;
    let numbers: BTreeSet<u64> = names.iter().map(|name| name.number(&table)).collect();
    let sections = [("counters", 1), ("stashed keys", 2)];
    let mut copies = sections.into_iter().flat_map(|(section, copies)| {
        image::section(image, section).map(move |record| word(record, copies))
    });
    let keys = copies.try_fold(names.len() as u64, u64::checked_add)?;
    let distinct = numbers.len() as u64;
    Some([("keys", keys), ("entries", names.len() as u64), ("distinct entries", distinct)])
}

fn require(holds: bool, rule: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(rule) }
}

struct Header<'a>(&'a [u8]);

impl Header<'_> {
    fn number(&self, name: &str) -> u64 {
        image::read(self.0, name)
    }

    fn fingerprint_bits(&self) -> u64 {
        self.number("fingerprint bits")
    }

    fn is_marked(&self) -> bool {
        self.number("marked") == 1
    }

    fn fraction_bits(&self) -> u64 {
        self.fingerprint_bits() - 6 - self.number("marked")
    }

    fn is_semi_sorted(&self) -> bool {
        self.number("codec") == 1
    }

    fn bucket_bits(&self) -> u64 {
        4 * self.fingerprint_bits() - if self.is_semi_sorted() { 4 } else { 0 }
    }

    /// The bytes of the slots, of a body whose other bytes are as many as the header says.
    fn slots<'b>(&self, table: &Table<'_>, body: &'b [u8]) -> Result<&'b [u8], &'static str> {
        let buckets_end = u128::from(table.buckets()) * u128::from(self.bucket_bits());
        let table_bytes = buckets_end.div_ceil(64) * 8 + 16;
        let records = [("counters", 16), ("stashed keys", 24), ("corrections", 8)]
            .map(|(name, width)| u128::from(self.number(name)) * width);
        let length = table_bytes + records.iter().sum::<u128>();
        require(length == body.len() as u128, "length")?;
        Ok(&body[..usize::try_from(table_bytes).expect("within the body")])
    }

    fn check_constants(&self) -> Result<(), &'static str> {
        require(self.0.starts_with(b"koel\r\n\x1a\n"), "magic")?;
        let constants = [
            ("version", 5),
            ("header length", 192),
            ("kind", 0),
            ("slots", 4),
            ("core bits", 6),
            ("value bits", 0),
            ("secret kind", 0),
        ];
        for (name, value) in constants {
            require(self.number(name) == value, name)?;
        }
        for name in ["marked", "grows", "route", "hash"] {
            require(self.number(name) <= 1, name)?;
        }
        let is_zero = |name: &&str| self.0[image::field(name)].iter().all(|&byte| byte == 0);
        let growth = ["level", "split buckets", "match weight", "narrow buckets"];
        require(self.is_marked() || growth.iter().all(is_zero), "growth without marks")?;
        require(image::TIME.iter().all(is_zero), "time in a filter")
    }

    fn check_shape(&self) -> Result<(), &'static str> {
        let (f, k, m) =
            (self.fingerprint_bits(), self.number("segment bits"), self.number("segment buckets"));
        let widest = match self.number("codec") {
            0 => 32,
            1 => 33,
            _ => return Err("codec"),
        };
        require((8..=widest).contains(&f), "fingerprint bits")?;
        let bits = self.bucket_bits();
        require(widest == 33 || bits.is_multiple_of(8), "fingerprint bits")?;
        let first = self.number("fraction bits at first");
        require(self.number("fraction bits") == self.fraction_bits(), "fraction bits")?;
        let least = if self.is_marked() { 2 } else { self.fraction_bits() };
        require((least..=self.fraction_bits()).contains(&first), "fraction bits at first")?;
        require(m >= 1, "segment buckets")?;
        let bits_of_m = u64::from((m - 1).checked_ilog2().map_or(0, |log| log + 1));
        require(bits_of_m + k + 6 + first <= 56, "segment bits")
    }

    fn check_profile(&self) -> Result<(), &'static str> {
        let seed = &self.0[image::field("seed")];
        require(self.number("hash") == 1 || seed[8..] == [0; 8], "seed")?;
        require(self.number("stashed keys") <= self.number("keys"), "stashed keys")?;
        let rate = f64::from_bits(self.number("requested rate"));
        require(rate > 0.0 && rate < 1.0, "requested rate")?;
        let limited = self.number("counter limit") >= self.number("counters");
        require(limited || self.is_marked(), "counter limit")
    }
}

/// Whether all bits behind the last bucket are zero.
fn check_padding(header: &Header<'_>, table: &[u8], buckets: u64) -> Result<(), &'static str> {
    let end = buckets * header.bucket_bits();
    let zeros = (end..table.len() as u64 * 8).all(|bit| bits(table, bit, 1) == 0);
    require(zeros, "zeros behind the last bucket")
}

/// The four slots of a bucket.
fn slots_of(header: &Header<'_>, table: &[u8], bucket: u64) -> Result<[u64; 4], &'static str> {
    let (start, f) = (bucket * header.bucket_bits(), header.fingerprint_bits());
    if header.is_semi_sorted() {
        return semi_sorted_slots(table, start, f);
    }
    Ok([0, 1, 2, 3].map(|slot| bits(table, start + slot * f, f)))
}

fn semi_sorted_slots(table: &[u8], start: u64, f: u64) -> Result<[u64; 4], &'static str> {
    let rest = f - 4;
    let code = usize::try_from(bits(table, start + 4 * rest, 12)).expect("12 bits");
    let nibbles = codes().get(code).ok_or("a code above 3875")?;
    let halves = [0, 1, 2, 3].map(|i| (nibbles[i], bits(table, start + i as u64 * rest, rest)));
    require(halves.is_sorted(), "slots out of order")?;
    Ok(halves.map(|(nibble, high)| (high << 4) | nibble))
}

/// The sorted nibbles of each code.
fn codes() -> &'static [[u64; 4]] {
    static CODES: OnceLock<Vec<[u64; 4]>> = OnceLock::new();
    CODES.get_or_init(|| {
        let mut codes: Vec<_> = (0..1 << 16)
            .map(|packed| [0, 4, 8, 12].map(|shift| (packed >> shift) & 15))
            .filter(|nibbles: &[u64; 4]| nibbles.is_sorted())
            .collect();
        let code = |[a, b, c, d]: &[u64; 4]| {
            let triples = (c + 2) * (c + 1) * c / 6;
            let quadruples = (d + 3) * (d + 2) * (d + 1) * d / 24;
            a + (b + 1) * b / 2 + triples + quadruples
        };
        codes.sort_unstable_by_key(code);
        assert!((0..3876).eq(codes.iter().map(code)));
        codes
    })
}

/// The sum of all counts. Each counter has one of these names of entries.
fn read_counters(image: &[u8], names: &BTreeSet<u64>) -> Result<u128, &'static str> {
    let counters = || image::section(image, "counters");
    let is_sound = |record| names.contains(&word(record, 0)) && word(record, 1) > 0;
    require(counters().all(is_sound), "a counter beside no entry, or of 0")?;
    let are_sorted = counters().map(|record| word(record, 0)).is_sorted_by(|one, next| one < next);
    require(are_sorted, "counters out of order")?;
    Ok(counters().map(|record| u128::from(word(record, 1))).sum())
}

/// The sum of all copies in the stash.
fn read_exact(image: &[u8]) -> Result<u128, &'static str> {
    let stash = || image::section(image, "stashed keys");
    let is_sound = |record| word(record, 1) == 0 && word(record, 2) > 0;
    require(stash().all(is_sound), "a value in the stash, or no copies")?;
    let addresses: Vec<u64> = stash().map(|record| word(record, 0)).collect();
    require(addresses.is_sorted_by(|one, next| one < next), "stash out of order")?;
    let corrections = image::corrections(image);
    require(corrections.is_sorted_by(|one, next| one < next), "corrections out of order")?;
    let is_in = |address| addresses.binary_search(address).is_ok();
    require(!corrections.iter().any(is_in), "a correction of a key in the stash")?;
    Ok(stash().map(|record| u128::from(word(record, 2))).sum())
}

/// `count` bits, at most 33, from bit `start` on.
fn bits(bytes: &[u8], start: u64, count: u64) -> u64 {
    let first = usize::try_from(start / 8).expect("within the table");
    let window = bytes[first..].iter().take(8).rev();
    let window = window.fold(0, |number, &byte| (number << 8) | u64::from(byte));
    (window >> (start % 8)) & ((1 << count) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::at;
    use crate::{image, keys};
    use koel::{CuckooFilter, Prefer};

    #[test]
    fn filters_of_every_width_pass() {
        for prefer in [Prefer::Small, Prefer::Fast] {
            for exponent in 1..28 {
                let rate = 0.5_f64.powi(exponent);
                let mut filter = CuckooFilter::builder(300, rate).prefer(prefer).build().unwrap();
                keys::hashes(1, 300).for_each(|hash| filter.insert(&at(hash)).unwrap());
                let (copies, times) = (keys::hashes(1, 300).step_by(7), 0..5);
                copies.for_each(|hash| {
                    times.clone().for_each(|_| filter.insert(&at(hash)).unwrap());
                });
                assert_eq!(audit(&filter.to_bytes()), Ok(()));
            }
        }
    }

    #[test]
    fn broken_rules_are_named() {
        let mut filter = CuckooFilter::builder(20, 0.03).build().unwrap();
        (0..5).for_each(|_| filter.insert("a").unwrap());
        let whole = filter.to_bytes();
        let forged = |at: usize, value: u8| {
            let mut forged = whole.clone();
            forged[at] = value;
            image::reseal(&mut forged);
            audit(&forged).unwrap_err()
        };
        let refuse = |name: &str, value| forged(image::field(name).start, value);
        assert_eq!(audit(&whole[..100]), Err("no room for a header"));
        assert_eq!(refuse("magic", 0), "magic");
        assert_eq!(refuse("keys", 9), "keys");
        assert_eq!(refuse("entries", 9), "entries");
        assert_eq!(refuse("distinct entries", 2), "distinct entries");
        assert_eq!(refuse("counters", 2), "length");
        assert_eq!(refuse("counter limit", 0), "counter limit");
        let counters = image::section_bytes(&whole, "counters");
        assert_eq!(forged(counters.end - 8, 0), "a counter beside no entry, or of 0");
        assert_eq!(forged(counters.start + 7, 255), "a counter beside no entry, or of 0");
        assert_eq!(forged(counters.start - 1, 1), "zeros behind the last bucket");
    }
}
