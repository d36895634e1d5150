//! The addressing: its involution, its uniformity, and the vectors of docs/FORMAT.md.

use super::*;
use alloc::vec::Vec;
use testkit::keys::splitmix64 as hash;

/// The chi-square statistic of `counts`, in standard deviations from its mean.
fn chi_square_sigmas(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let distance = |&count: &u64| (count as f64 - expected).powi(2) / expected;
    let degrees = (counts.len() - 1) as f64;
    (counts.iter().map(distance).sum::<f64>() - degrees) / (2.0 * degrees).sqrt()
}

#[test]
fn the_alternate_of_the_alternate_is_home_in_segments_of_every_size_up_to_5000() {
    for buckets in 1..=5000 {
        let geometry = Geometry::new(1, buckets, 8);
        let base = u64::from(buckets);
        for fingerprint in (1..=CORES).map(|core| core << 2) {
            for bucket in base..2 * base {
                let other = geometry.alternate(base, bucket, fingerprint);
                assert!((base..2 * base).contains(&other));
                assert_eq!(geometry.alternate(base, other, fingerprint), bucket);
            }
        }
    }
}

#[test]
fn the_alternate_is_an_involution_in_large_segments_and_ignores_the_fraction() {
    for i in 0..1_000_000 {
        let buckets = low_half(hash(i) >> 32).max(1);
        let fingerprint_bits = 8 + low_half(hash(i) % 17);
        let geometry = Geometry::new(0, buckets, fingerprint_bits);
        let local = hash(!i) % u64::from(buckets);
        let core = 1 + hash(i + 7) % CORES;
        let fingerprint = core << (fingerprint_bits - CORE_BITS);
        let other = geometry.alternate(0, local, fingerprint);
        assert!(other < u64::from(buckets));
        assert_eq!(geometry.alternate(0, other, fingerprint | 3), local);
    }
}

#[test]
fn an_entry_found_in_either_bucket_leads_back_to_the_same_pair() {
    let geometry = Geometry::new(3, 1234, 13);
    for i in 0..100_000 {
        let location = geometry.locate(hash(i));
        let (home, alternate) = location.buckets();
        assert_eq!(geometry.location_of(home, location.fingerprint), location);
        let back = geometry.location_of(alternate, location.fingerprint);
        assert_eq!(back.buckets(), (alternate, home));
        assert!(home < geometry.buckets() && alternate < geometry.buckets());
    }
}

#[test]
fn interleaved_buckets_cycle_through_the_segments() {
    for (segment_bits, segment_buckets) in [(0, 7), (1, 1), (3, 5), (5, 77)] {
        let geometry = Geometry::new(segment_bits, segment_buckets, 13);
        let mut buckets: Vec<_> = (0..geometry.buckets()).collect();
        buckets.sort_by_key(|&bucket| bucket % u64::from(segment_buckets));
        for (index, bucket) in (0..).zip(buckets) {
            let (segment, local) = geometry.deinterleave(index);
            assert_eq!(geometry.interleave(segment, local), index);
            assert_eq!(geometry.bucket_at(index), bucket);
        }
    }
    let geometry = Geometry::new(3, 1234, 13);
    for hash in (0..10_000).map(hash) {
        let Location { base, home, .. } = geometry.locate(hash);
        let index = geometry.interleave(geometry.segment(hash), home - base);
        assert_eq!(geometry.bucket_at(index), home);
    }
}

#[test]
fn the_digits_are_uniform_and_independent() {
    const KEYS: u64 = 8_000_000;
    let (buckets, fraction_bits) = (100_u32, 4);
    let geometry = Geometry::new(2, buckets, CORE_BITS + fraction_bits);
    let fingerprints = usize::try_from(CORES << fraction_bits).unwrap();
    let mut joint = alloc::vec![0; 4 * buckets as usize * fingerprints];
    let mut by_bucket = [0; 400];
    let mut by_fingerprint = alloc::vec![0; fingerprints];
    for i in 0..KEYS {
        let location = geometry.locate(hash(i));
        let bucket = usize::try_from(location.buckets().0).unwrap();
        let fingerprint = usize::try_from(location.fingerprint).unwrap() - (1 << fraction_bits);
        by_bucket[bucket] += 1;
        by_fingerprint[fingerprint] += 1;
        joint[bucket * fingerprints + fingerprint] += 1;
    }
    for counts in [&by_bucket[..], &by_fingerprint, &joint] {
        let sigmas = chi_square_sigmas(counts);
        assert!(sigmas.abs() < 5.0, "{} cells, {sigmas} sigmas", counts.len());
    }
}

#[test]
fn the_top_bits_of_the_address_are_the_segment() {
    let geometry = Geometry::new(5, 77, 12);
    for i in 0..10_000 {
        assert_eq!(geometry.locate(hash(i)).base, (hash(i) >> 59) * 77);
    }
}

/// Computes the digits as a vector unit does, without a product wider than 32 x 32 bits.
#[test]
fn products_of_32_by_32_bits_give_the_same_addresses() {
    fn digit(fraction: u64, range: u64) -> (u64, u64) {
        let low = (fraction & 0xffff_ffff) * range;
        let high = (fraction >> 32) * range + (low >> 32);
        (high >> 32, (high << 32) | (low & 0xffff_ffff))
    }
    for i in 0..1_000_000 {
        let segment_bits = low_half(hash(i) % 8);
        let segment_buckets = low_half(hash(i) >> 40).max(1);
        let geometry = Geometry::new(segment_bits, segment_buckets, 17);
        let (bucket, rest) = digit(hash(!i), geometry.buckets());
        let (core, string) = digit(rest, CORES);
        let location = geometry.locate(hash(!i));
        assert_eq!(location.buckets().0, bucket);
        assert_eq!(location.fingerprint, ((core + 1) << 11) | (string >> 53));
    }
}

#[test]
fn the_vectors_of_the_format_match_the_code() {
    let page = include_str!("../../../../../docs/FORMAT.md");
    let table = page.lines().skip_while(|line| !line.starts_with("| k | M"));
    let rows: Vec<_> = table.skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 15);
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [k, m, f] = [0, 1, 2].map(|cell| cells[cell].parse().unwrap());
        let hex = |cell: usize| u64::from_str_radix(cells[cell], 16).unwrap();
        let location = Geometry::new(k, m, f).locate(hex(3));
        let (home, other) = location.buckets();
        assert_eq!([home, other], [4, 5].map(|cell| cells[cell].parse::<u64>().unwrap()), "{row}");
        assert_eq!(location.fingerprint, hex(6), "{row}");
    }
}
