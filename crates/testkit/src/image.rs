//! Edits the bytes of a filter.
//!
//! Checksums detect every change to a file, so random changes never reach the checks behind them.
//! [`reseal`] makes the checksums valid again, for tests of those checks. [`reshape`] makes filters
//! of a few buckets, which no builder makes: full tables, keys whose two buckets are one, and
//! segments with a single bucket.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 192;
/// The offset of the body's checksum in the header.
pub const BODY_CHECKSUM: usize = 176;
/// The offset of the header's own checksum.
pub const HEADER_CHECKSUM: usize = 184;

/// Makes both checksums of `image` valid. Does nothing if `image` is shorter than a header.
pub fn reseal(image: &mut [u8]) {
    let Some((_, body)) = image.split_at_checked(HEADER_BYTES) else { return };
    let body = xxh3_64(body);
    set(image, BODY_CHECKSUM, body);
    reseal_header(image);
}

/// Makes the checksum of the header valid, and does not change that of the body.
///
/// # Panics
/// If `image` is shorter than a header.
pub fn reseal_header(image: &mut [u8]) {
    let header = xxh3_64(&image[..HEADER_CHECKSUM]);
    set(image, HEADER_CHECKSUM, header);
}

/// The stash of a filter: copies by address. The bytes may be those of any filter with a stash.
///
/// # Panics
/// If `image` is not that of a filter.
#[must_use]
pub fn stash(image: &[u8]) -> BTreeMap<u64, u64> {
    let [stashed, corrections] = exact_lens(image);
    let start = image.len() - 16 * stashed - 8 * corrections;
    (0..stashed).map(|i| (word(image, start + 16 * i), word(image, start + 16 * i + 8))).collect()
}

/// The addresses of the corrections of a filter.
///
/// # Panics
/// If `image` is not that of a filter.
#[must_use]
pub fn corrections(image: &[u8]) -> Vec<u64> {
    let [_, corrections] = exact_lens(image);
    let start = image.len() - 8 * corrections;
    (0..corrections).map(|i| word(image, start + 8 * i)).collect()
}

/// The number of buckets that a table which has begun to grow is still to widen.
///
/// # Panics
/// If `image` is shorter than a header.
#[must_use]
pub fn narrow_buckets(image: &[u8]) -> u64 {
    word(image, 168) >> 32
}

/// Keys in the stash, and corrections.
fn exact_lens(image: &[u8]) -> [usize; 2] {
    let both = word(image, 144);
    [both & 0xffff_ffff, both >> 32].map(|len| usize::try_from(len).expect("fits the image"))
}

fn word(image: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(image[offset..offset + 8].try_into().expect("a range of 8 bytes"))
}

/// Writes the 8-byte field at `offset`.
///
/// # Panics
/// If `image` ends before the field does.
pub fn set(image: &mut [u8], offset: usize, value: u64) {
    image[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

/// The image of an empty filter or maplet like `image`, but with `1 << segment_bits` segments of
/// `segment_buckets` buckets.
///
/// # Panics
/// If `image` is shorter than a header, or the buckets would not fit into memory.
#[must_use]
pub fn reshape(image: &[u8], segment_bits: u8, segment_buckets: u32) -> Vec<u8> {
    let mut header = image[..HEADER_BYTES].to_vec();
    header[18] = segment_bits;
    header[20..24].copy_from_slice(&segment_buckets.to_le_bytes());
    // Keys, entries, counters and distinct entries.
    header[80..104].fill(0);
    header[112..120].fill(0);
    // Stash and corrections.
    header[144..152].fill(0);
    // Level, split buckets and match weight.
    header[24] = 0;
    header[32..48].fill(0);
    header[120..128].fill(0);
    let (semi_sorted, value_bits) = (header[13] == 1, usize::from(header[17]));
    let slot_bits = match usize::from(header[15]) + value_bits {
        33.. if value_bits > 0 => 64,
        bits => bits,
    };
    let bucket_bits = 4 * slot_bits - if semi_sorted { 4 } else { 0 };
    let buckets = usize::try_from(segment_buckets).expect("32 bits") << segment_bits;
    // Steps at which groups of 16 buckets were swept, eight in a record.
    let sweeps = if header[12] == 3 { buckets.div_ceil(16 * 8) } else { 0 };
    set(&mut header, 96, sweeps as u64);
    header.resize(HEADER_BYTES + (buckets * bucket_bits).div_ceil(64) * 8 + 16 + 16 * sweeps, 0);
    reseal(&mut header);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use koel::{CuckooFilter, ImageError, Prefer};

    #[test]
    fn resealing_changes_no_valid_image_and_makes_a_changed_one_valid() {
        let mut filter = CuckooFilter::with_capacity(10);
        filter.insert("a").unwrap();
        let sealed = filter.to_bytes();
        let mut image = sealed.clone();
        reseal(&mut image);
        assert_eq!(image, sealed);

        set(&mut image, 80, 2);
        assert_eq!(CuckooFilter::from_bytes(&image), Err(ImageError::Checksum { part: "header" }));
        reseal(&mut image);
        assert_eq!(
            CuckooFilter::from_bytes(&image),
            Err(ImageError::Field { field: "keys", got: 2 })
        );
        reseal(&mut image[..HEADER_BYTES - 1]);
    }

    #[test]
    fn a_reshaped_image_is_an_empty_filter_of_that_shape() {
        for (prefer, rate) in [(Prefer::Small, 0.03), (Prefer::Small, 0.001), (Prefer::Fast, 1e-5)]
        {
            let mut filter = CuckooFilter::builder(5, rate).prefer(prefer).build().unwrap();
            filter.insert("a").unwrap();
            for (segment_bits, segment_buckets) in
                [(0, 1), (0, 2), (0, 7), (1, 1), (2, 3), (0, 100)]
            {
                let image = reshape(&filter.to_bytes(), segment_bits, segment_buckets);
                let reshaped = CuckooFilter::from_bytes(&image).unwrap();
                assert_eq!(reshaped.buckets(), u64::from(segment_buckets) << segment_bits);
                assert!(reshaped.is_empty());
                assert_eq!(reshaped.to_bytes(), image);
            }
        }
    }
}
