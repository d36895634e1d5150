//! The promised false-positive rate, bounded from both sides; `alike.rs` measures all types at
//! every load.

use koel::{
    BuildError, ConcurrentFilter, CountingFilter, CuckooFilter, ExpiringFilter, Maplet, Prefer,
};
use testkit::addressing::Addressing;
use testkit::keys::{self, at};

const QUERIES: u64 = 4_000_000;

#[test]
fn the_rate_holds_in_filters_of_several_segments() {
    let mut filter = CuckooFilter::builder(5_000_000, 0.001).build().unwrap();
    assert!(filter.segments() > 1);
    keys::hashes(3, 5_000_000).for_each(|hash| filter.insert(&at(hash)).unwrap());
    let mean = QUERIES as f64 * filter.false_positive_rate();
    let hits = keys::hashes(99, QUERIES).filter(|&hash| filter.contains(&at(hash))).count() as f64;
    assert!((hits - mean).abs() < 5.0 * mean.sqrt(), "{hits} hits, expected {mean}");
}

#[test]
fn the_rate_holds_for_text_and_integers_under_both_hashes() {
    for sip in [false, true] {
        let builder = CuckooFilter::builder(100_000, 0.01);
        let builder = if sip { builder.sip_key([7; 16]) } else { builder.seed(12_345) };
        let mut filter = builder.build().unwrap();
        for i in 0..50_000_u64 {
            filter.insert(&i).unwrap();
            filter.insert(&format!("user{i}@example.org")).unwrap();
        }
        let mut hits = 0;
        for i in 1_000_000..1_500_000_u64 {
            hits += u64::from(filter.contains(&i));
            hits += u64::from(filter.contains(&format!("user{i}@example.org")));
        }
        let rate = filter.false_positive_rate();
        let (mean, sigma) = (1e6 * rate, (1e6 * rate).sqrt());
        assert!(
            (hits as f64 - mean).abs() < 5.0 * sigma,
            "{hits} hits, expected {mean} +- {sigma}"
        );
    }
}

#[test]
fn no_fingerprint_is_wrong_more_often_than_another() {
    let mut filter = CuckooFilter::builder(300_000, 0.03).build().unwrap();
    keys::hashes(5, 300_000).for_each(|hash| filter.insert(&at(hash)).unwrap());
    let addressing = Addressing::of(&filter.to_bytes());
    // Grouped by core, the part of the fingerprint that also determines the alternate bucket.
    let mut wrong = [0_u32; 64];
    for hash in keys::hashes(98, QUERIES).filter(|&hash| filter.contains(&at(hash))) {
        wrong[usize::try_from(addressing.fingerprint(hash) >> addressing.fraction_bits())
            .unwrap()] += 1;
    }
    assert_eq!(wrong[0], 0);
    let mean = f64::from(wrong.iter().sum::<u32>()) / 63.0;
    let distance = wrong[1..].iter().map(|&count| (f64::from(count) - mean).powi(2) / mean);
    let sigmas = (distance.sum::<f64>() - 62.0) / (2.0_f64 * 62.0).sqrt();
    assert!(sigmas < 5.0, "{sigmas} sigmas: {wrong:?}");
}

/// The rates that small filters are tried with.
const RATES: [f64; 6] = [0.03, 0.01, 0.001, 1e-4, 1e-5, 1e-6];

/// Fills a filter of each type until it refuses. Calls `check` with what it is, the keys that it
/// took, and its rate then.
fn fill_small(capacity: u64, rate: f64, check: &mut dyn FnMut(&str, u64, f64)) {
    macro_rules! fill {
        ($name:literal, $builder:expr, $it:pat => |$key:ident| $insert:expr, $rate:expr) => {
            match $builder.build() {
                Ok($it) => {
                    let mut keys = keys::hashes(capacity, u64::MAX).map(at);
                    let taken = keys.position(|$key| $insert.is_err());
                    check($name, taken.expect("it is fixed") as u64, $rate);
                }
                Err(BuildError::TooPrecise { smallest, .. }) => assert!(smallest > rate),
                Err(error) => panic!("{error}"),
            }
        };
    }
    let filter = CuckooFilter::builder(capacity, rate);
    fill!("small", filter, mut it => |key| it.insert(&key), it.false_positive_rate());
    let filter = filter.prefer(Prefer::Fast);
    fill!("fast", filter, mut it => |key| it.insert(&key), it.false_positive_rate());
    let counting = CountingFilter::builder(capacity, rate);
    fill!("counting", counting, mut it => |key| it.insert(&key), it.false_positive_rate());
    let maplet = Maplet::builder(capacity, rate, 4);
    fill!("maplet", maplet, mut it => |key| it.insert(&key, 1), it.false_candidates());
    let expiring = ExpiringFilter::builder(capacity, rate).window(60);
    fill!("expiring", expiring, mut it => |key| it.insert(&key), it.false_positive_rate());
    let shared = ConcurrentFilter::builder(capacity, rate);
    let said = |it: &ConcurrentFilter| it.snapshot().expect("memory").false_positive_rate();
    fill!("concurrent", shared, it => |key| it.insert(&key), said(&it));
}

#[test]
fn small_filters_take_their_capacity_and_keep_their_rate_until_they_refuse() {
    for rate in RATES {
        for capacity in 1..=1000 {
            fill_small(capacity, rate, &mut |name, taken, reached| {
                assert!(taken >= capacity, "{name} {capacity} {rate}: {taken}");
                assert!(reached <= 1.35 * rate, "{name} {capacity} {rate}: {reached}");
            });
        }
    }
}

#[test]
#[ignore = "a measurement: prints the table of docs/decisions/0003-sizes.md"]
fn small_filters() {
    println!(
        "| built for | rate asked | type | keys until it refuses | rate then, times the asked |"
    );
    for rate in [0.03, 0.001, 1e-5] {
        for capacity in [1, 4, 16, 64, 250, 1000] {
            fill_small(capacity, rate, &mut |name, taken, reached| {
                println!("| {capacity} | {rate} | {name} | {taken} | {:.2} |", reached / rate);
            });
        }
    }
}
