//! Which form of the vector address stage this machine runs: the only `unsafe` of the crate besides the prefetch.
//!
//! `locate_narrow` is compiled three times, for the baseline, AVX2 and AVX-512. A block goes to the best one that the processor has.

use super::Geometry;
use super::many::{BLOCK, Places};

#[cfg(target_arch = "x86_64")]
cpufeatures::new!(has_avx2, "avx2");
#[cfg(target_arch = "x86_64")]
cpufeatures::new!(has_avx512, "avx512f", "avx512dq", "avx512vl");

impl Geometry {
    /// The places of `hashes`, as `locate` gives them.
    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "calls functions compiled for more than the baseline")
    )]
    pub(crate) fn locate_many(&self, hashes: &[u64; BLOCK], places: &mut Places) {
        if !self.is_narrow() {
            return self.locate_each(hashes, places);
        }
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512::get() {
                // SAFETY: the processor has the features that the function was compiled for; asked just above.
                return unsafe { locate_avx512(self, hashes, places) };
            }
            if has_avx2::get() {
                // SAFETY: as above.
                return unsafe { locate_avx2(self, hashes, places) };
            }
        }
        self.locate_narrow(hashes, places);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn locate_avx2(geometry: &Geometry, hashes: &[u64; BLOCK], places: &mut Places) {
    geometry.locate_narrow(hashes, places);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn locate_avx512(geometry: &Geometry, hashes: &[u64; BLOCK], places: &mut Places) {
    geometry.locate_narrow(hashes, places);
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::keys::splitmix64 as hash;

    fn shapes() -> impl Iterator<Item = Geometry> {
        let sizes = [(0, 1), (0, 7), (0, 4_000_000_000), (1, 41), (5, 123_457), (12, 262_144)];
        sizes.into_iter().flat_map(|(bits, buckets)| {
            [8, 13, 18, 24].map(|fingerprint_bits| Geometry::new(bits, buckets, fingerprint_bits))
        })
    }

    fn assert_as_one_by_one(name: &str, locate: impl Fn(&Geometry, &[u64; BLOCK], &mut Places)) {
        for geometry in shapes() {
            let mut places = Places::new();
            for block in 0..200 {
                let mut hashes = core::array::from_fn(|i| hash(block << 8 | i as u64));
                (hashes[0], hashes[1]) = (0, u64::MAX);
                locate(&geometry, &hashes, &mut places);
                for (i, &hash) in hashes.iter().enumerate() {
                    let place = geometry.locate(hash);
                    assert_eq!(places.get(i), place, "{name}, hash {hash:x}");
                    assert_eq!(places.buckets(i), place.buckets(), "{name}, hash {hash:x}");
                    assert_eq!(places.fingerprint(i), place.fingerprint);
                }
            }
        }
    }

    #[test]
    fn every_form_of_the_address_stage_gives_the_places_of_locate() {
        assert_as_one_by_one("narrow", Geometry::locate_narrow);
        assert_as_one_by_one("each", Geometry::locate_each);
        assert_as_one_by_one("chosen", Geometry::locate_many);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    #[expect(unsafe_code, reason = "calls each form that this machine has")]
    fn the_forms_that_this_machine_would_not_choose_agree_as_well() {
        if has_avx2::get() {
            // SAFETY: the processor has AVX2.
            assert_as_one_by_one("avx2", |g, hashes, places| unsafe {
                locate_avx2(g, hashes, places)
            });
        }
        if has_avx512::get() {
            // SAFETY: the processor has the three parts of AVX-512.
            assert_as_one_by_one("avx512", |g, hashes, places| unsafe {
                locate_avx512(g, hashes, places)
            });
        }
    }

    #[test]
    fn a_table_of_more_than_32_bits_of_buckets_is_located_one_by_one() {
        let geometry = Geometry::new(8, 1 << 27, 13);
        assert!(!geometry.is_narrow());
        let hashes = core::array::from_fn(|i| hash(i as u64));
        let mut places = Places::new();
        geometry.locate_many(&hashes, &mut places);
        assert!(hashes.iter().enumerate().all(|(i, &hash)| places.get(i) == geometry.locate(hash)));
    }
}
