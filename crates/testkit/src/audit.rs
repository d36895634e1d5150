//! Decides which bytes are a valid filter: a second implementation of docs/FORMAT.md.
//!
//! The library and this file share no code, so a check missing in one of them shows when a fuzzer
//! finds bytes on which they disagree. It is written for clarity: it reads a bucket bit by bit and
//! keeps every entry in a map.

mod growth;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use crate::addressing::{Addressing, Entry};
use crate::image::{BODY_CHECKSUM, HEADER_BYTES, HEADER_CHECKSUM};
use growth::Grown;
pub use growth::Name;

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
    require(header.number(HEADER_CHECKSUM, 8) == xxh3_64(&image[..HEADER_CHECKSUM]), "header")?;
    require(header.number(BODY_CHECKSUM, 8) == xxh3_64(body), "body checksum")?;

    let grown = if header.is_marked() { Some(Grown::of(&header)?) } else { None };
    let buckets = grown.as_ref().map_or(header.buckets(), Grown::buckets);
    let buckets_end = u128::from(buckets) * u128::from(header.bucket_bits());
    let table_bytes = buckets_end.div_ceil(64) * 8 + 16;
    let counters = header.number(96, 8);
    let [stashed, corrections] = [header.number(144, 4), header.number(148, 4)];
    let records = (u128::from(counters) + u128::from(stashed)) * 16;
    let length = table_bytes + records + u128::from(corrections) * 8;
    require(length == body.len() as u128, "length")?;
    let (table, rest) = body.split_at(usize::try_from(table_bytes).expect("within the body"));
    let records_end = usize::try_from(counters * 16).expect("within the body");
    let (records, exact) = rest.split_at(records_end);
    let stashed = read_exact(exact, usize::try_from(stashed).expect("within the body"))?;
    check_padding(&header, table, buckets)?;
    let (in_use, keys) = (header.number(88, 8), u128::from(header.number(80, 8)));

    if let Some(grown) = grown {
        let names = grown.names(table)?;
        require(names.len() as u64 == in_use, "entries")?;
        require(header.number(112, 8) <= in_use, "distinct entries")?;
        require(counters <= in_use, "more counters than entries")?;
        grown.check_match_weight(&names)?;
        let named = grown.identities(&names);
        let counted = read_counters(records, |identity| named.contains(&identity.into()))?;
        return require(keys <= counted + stashed + u128::from(in_use), "keys");
    }
    let entries = read_table(&header, table)?;
    require(entries.values().sum::<u64>() == in_use, "entries")?;
    require(entries.len() as u64 == header.number(112, 8), "distinct entries")?;
    let f = header.fingerprint_bits();
    let entry = |identity| Entry { lower: identity >> f, fingerprint: identity & ((1 << f) - 1) };
    let counted = read_counters(records, |identity| entries.contains_key(&entry(identity)))?;
    require(keys == counted + stashed + u128::from(in_use), "keys")
}

fn require(holds: bool, rule: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(rule) }
}

struct Header<'a>(&'a [u8]);

impl Header<'_> {
    fn number(&self, offset: usize, bytes: usize) -> u64 {
        let field = self.0[offset..offset + bytes].iter().rev();
        field.fold(0, |number, &byte| (number << 8) | u64::from(byte))
    }

    fn fingerprint_bits(&self) -> u64 {
        self.number(15, 1)
    }

    fn is_marked(&self) -> bool {
        self.number(25, 1) == 1
    }

    fn fraction_bits(&self) -> u64 {
        self.fingerprint_bits() - 6 - self.number(25, 1)
    }

    fn is_semi_sorted(&self) -> bool {
        self.number(13, 1) == 1
    }

    fn bucket_bits(&self) -> u64 {
        4 * self.fingerprint_bits() - if self.is_semi_sorted() { 4 } else { 0 }
    }

    fn buckets(&self) -> u64 {
        self.number(20, 4) << self.number(18, 1)
    }

    fn check_constants(&self) -> Result<(), &'static str> {
        require(self.0.starts_with(b"koel\r\n\x1a\n"), "magic")?;
        require(self.number(8, 2) == 4, "version")?;
        require(self.number(10, 2) == 192, "header length")?;
        require(self.number(12, 1) == 0, "kind")?;
        require(self.number(14, 1) == 4, "slots")?;
        require(self.number(16, 1) == 6, "core bits")?;
        require(self.number(17, 1) == 0, "value bits")?;
        require(self.number(25, 1) <= 1, "marked")?;
        require(self.number(28, 4) <= 1, "flags")?;
        let growth = [(24, 1), (32, 8), (40, 8), (120, 8), (172, 4)];
        let is_zero = growth.iter().all(|&(offset, bytes)| self.number(offset, bytes) == 0);
        require(self.is_marked() || is_zero, "growth without marks")?;
        require(self.number(128, 1) <= 1, "route")?;
        let mut later = self.0[129..136].iter().chain(&self.0[152..172]);
        require(later.all(|&byte| byte == 0), "room for later versions")
    }

    fn check_shape(&self) -> Result<(), &'static str> {
        let (f, k, m) = (self.fingerprint_bits(), self.number(18, 1), self.number(20, 4));
        let widest = match self.number(13, 1) {
            0 => 32,
            1 => 33,
            _ => return Err("codec"),
        };
        require((8..=widest).contains(&f), "fingerprint bits")?;
        let bits = self.bucket_bits();
        require(widest == 33 || bits.is_multiple_of(8), "fingerprint bits")?;
        let first = self.number(26, 1);
        require(self.number(27, 1) == self.fraction_bits(), "fraction bits")?;
        let least = if self.is_marked() { 2 } else { self.fraction_bits() };
        require((least..=self.fraction_bits()).contains(&first), "fraction bits at first")?;
        require(m >= 1, "segment buckets")?;
        let bits_of_m = u64::from((m - 1).checked_ilog2().map_or(0, |log| log + 1));
        require(bits_of_m + k + 6 + first <= 56, "segment bits")
    }

    fn check_profile(&self) -> Result<(), &'static str> {
        require(self.number(19, 1) <= 1, "hash")?;
        require(self.number(19, 1) == 1 || self.number(56, 8) == 0, "seed")?;
        require(self.number(144, 4) <= self.number(80, 8), "stashed keys")?;
        let rate = f64::from_bits(self.number(72, 8));
        require(rate > 0.0 && rate < 1.0, "requested rate")?;
        let limited = self.number(104, 8) >= self.number(96, 8);
        require(limited || self.is_marked(), "counter limit")
    }
}

/// Every entry of the table, and the number of its slots.
fn read_table(header: &Header<'_>, table: &[u8]) -> Result<BTreeMap<Entry, u64>, &'static str> {
    let addressing = Addressing::of(header.0);
    let mut entries = BTreeMap::new();
    for bucket in 0..header.buckets() {
        let slots = slots_of(header, table, bucket)?;
        for fingerprint in slots.into_iter().filter(|&slot| slot != 0) {
            require(fingerprint >> addressing.fraction_bits() != 0, "a core of 0")?;
            *entries.entry(addressing.entry_in(bucket, fingerprint)).or_default() += 1;
        }
    }
    Ok(entries)
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

/// The sum of all counts. `is_name` must accept each counter's entry.
fn read_counters(records: &[u8], is_name: impl Fn(u64) -> bool) -> Result<u128, &'static str> {
    let (mut sum, mut last) = (0, None);
    for record in records.chunks(16) {
        let (identity, count) = (Header(record).number(0, 8), Header(record).number(8, 8));
        require(is_name(identity), "a counter beside no entry")?;
        require(last < Some(identity), "counters out of order")?;
        require(count > 0, "a count of 0")?;
        last = Some(identity);
        sum += u128::from(count);
    }
    Ok(sum)
}

/// The sum of all copies in a stash of `stashed` keys, which the corrections follow.
fn read_exact(bytes: &[u8], stashed: usize) -> Result<u128, &'static str> {
    let (stash, corrections) = bytes.split_at(stashed * 16);
    let (mut sum, mut addresses) = (0, Vec::new());
    for record in stash.chunks(16) {
        let (address, copies) = (Header(record).number(0, 8), Header(record).number(8, 8));
        require(copies > 0, "no copies in the stash")?;
        addresses.push(address);
        sum += u128::from(copies);
    }
    require(addresses.is_sorted_by(|one, next| one < next), "stash out of order")?;
    let corrections: Vec<u64> =
        corrections.chunks(8).map(|record| Header(record).number(0, 8)).collect();
    require(corrections.is_sorted_by(|one, next| one < next), "corrections out of order")?;
    let is_in = |address| addresses.binary_search(address).is_ok();
    require(!corrections.iter().any(is_in), "a correction of a key in the stash")?;
    Ok(sum)
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
        let refuse = |offset: usize, value: u8| {
            let mut forged = whole.clone();
            let offset = if offset < 1000 { offset } else { whole.len() - (2000 - offset) };
            forged[offset] = value;
            image::reseal(&mut forged);
            audit(&forged).unwrap_err()
        };
        assert_eq!(audit(&whole[..100]), Err("no room for a header"));
        assert_eq!(refuse(0, 0), "magic");
        assert_eq!(refuse(80, 9), "keys");
        assert_eq!(refuse(88, 9), "entries");
        assert_eq!(refuse(112, 2), "distinct entries");
        assert_eq!(refuse(96, 2), "length");
        assert_eq!(refuse(104, 0), "counter limit");
        // Backwards from the end: the count of the counter, its identity, and the zeros before it.
        assert_eq!(refuse(2000 - 8, 0), "a count of 0");
        assert_eq!(refuse(2000 - 16, 0), "a counter beside no entry");
        assert_eq!(refuse(2000 - 17, 1), "zeros behind the last bucket");
    }
}
