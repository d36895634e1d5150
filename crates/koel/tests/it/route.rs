//! A filter works equally well with hashes that have other uses and with skewed hashes.
//!
//! With each population of hashes, capacity and false-positive rate stay within 3 % of those with
//! fresh hashes: docs/decisions/0010-hash-route.md.

use koel::{CuckooFilter, KeyHash, KeyHasher, Maplet};
use testkit::keys::{address, hashes};

const KEYS: usize = 20_000;
const PROBES: usize = 300_000;
/// Seeds that average out chance, and those that show a large difference.
const SEEDS: u64 = 6;
const FEW_SEEDS: u64 = 2;
const RATE: f64 = 0.03;

/// The measurements of one population, summed over some seeds.
#[derive(Debug, Default)]
struct Figures {
    seeds: u64,
    /// Keys accepted by a fixed filter, a growing filter and a maplet.
    taken: [usize; 3],
    /// Keys in a fixed filter before the first refusal.
    first_refusal: f64,
    /// Slots of the filter that has grown.
    slots: f64,
    /// False positives of the two filters, and wrong values of the maplet.
    wrong: [f64; 3],
}

/// Measures a population; `draw(seed)` returns an endless sample of it.
fn figures<I: Iterator<Item = u64>>(trusts: bool, seeds: u64, draw: impl Fn(u64) -> I) -> Figures {
    let mut figures = Figures { seeds, ..Figures::default() };
    for seed in 0..seeds {
        let sample: Vec<_> = draw(seed).map(KeyHash::new).take(KEYS + PROBES).collect();
        assert_eq!(sample.len(), KEYS + PROBES);
        let (keys, absent) = sample.split_at(KEYS);
        let fixed = CuckooFilter::builder(KEYS as u64, RATE);
        let growing = fixed.clone().grow_from(1000);
        let maplet = Maplet::builder(KEYS as u64, RATE, 5);
        let (fixed, growing, maplet) = if trusts {
            (fixed.trust_hashes(), growing.trust_hashes(), maplet.trust_hashes())
        } else {
            (fixed, growing, maplet)
        };
        for (kind, builder) in [fixed, growing].into_iter().enumerate() {
            let mut filter = builder.build().unwrap();
            figures.taken[kind] += keys.iter().filter(|key| filter.insert(*key).is_ok()).count();
            figures.wrong[kind] += absent.iter().filter(|key| filter.contains(*key)).count() as f64;
            if filter.is_growable() {
                figures.slots += filter.slots() as f64;
            } else {
                let more = absent.iter().take_while(|key| filter.insert(*key).is_ok()).count();
                figures.first_refusal += (KEYS + more) as f64;
            }
        }
        let mut maplet = maplet.build().unwrap();
        figures.taken[2] += keys.iter().filter(|key| maplet.insert(*key, 1).is_ok()).count();
        figures.wrong[2] += absent.iter().map(|key| maplet.get(key).count()).sum::<usize>() as f64;
    }
    figures
}

/// Whether the figures are within 3 % of those for fresh hashes.
fn is_kept(found: &Figures, fresh: &Figures) -> bool {
    let near = |found: f64, fresh: f64| (found / fresh - 1.0).abs() <= 0.03;
    assert_eq!(found.seeds, fresh.seeds);
    found.taken == fresh.taken
        && near(found.first_refusal, fresh.first_refusal)
        && near(found.slots, fresh.slots)
        && found.wrong.iter().zip(fresh.wrong).all(|(&found, fresh)| near(found, fresh))
}

fn fresh(seeds: u64) -> Figures {
    let fresh = figures(false, seeds, |seed| hashes(100 + seed, u64::MAX));
    assert_eq!(fresh.taken, [KEYS * usize::try_from(seeds).unwrap(); 3]);
    fresh
}

type Division = (&'static str, fn(u64) -> bool);

/// How systems partition keys by a hash, and the part that this filter gets.
const DIVISIONS: [Division; 9] = [
    ("top bit", |h| h >> 63 == 1),
    ("top 4 bits", |h| h >> 60 == 5),
    ("top 8 bits", |h| h >> 56 == 5),
    ("h % 16", |h| h % 16 == 3),
    ("h % 1024", |h| h % 1024 == 3),
    ("h * 10 >> 64", |h| (u128::from(h) * 10) >> 64 == 4),
    ("h % 7", |h| h % 7 == 2),
    ("bits 20 to 25", |h| h >> 20 & 63 == 7),
    ("folded to a byte", |h| (h ^ h >> 32) & 255 == 9),
];

type Skew = (&'static str, fn(u64) -> u64);

/// Hashes that differ in some bits only.
const SKEWED: [Skew; 6] = [
    ("i << 44", |i| i << 44),
    ("multiples of 2^8", |i| i << 8),
    ("multiples of 2^20", |i| i << 20),
    ("multiples of 2^32", |i| i << 32),
    ("sequential", |i| i),
    ("sequential from the top", |i| !i),
];

fn divided((_, part): Division) -> impl Fn(u64) -> Box<dyn Iterator<Item = u64>> {
    move |seed| Box::new(hashes(seed, u64::MAX).filter(move |&hash| part(hash)))
}

fn skewed(number: fn(u64) -> u64) -> impl Fn(u64) -> Box<dyn Iterator<Item = u64>> {
    move |seed| Box::new((seed * (KEYS + PROBES) as u64..).map(number))
}

#[test]
fn keys_divided_by_their_hash_keep_capacity_and_rate() {
    let fresh = fresh(SEEDS);
    for division in DIVISIONS {
        let found = figures(false, SEEDS, divided(division));
        assert!(is_kept(&found, &fresh), "{}: {found:?}, not {fresh:?}", division.0);
    }
}

#[test]
fn skewed_hashes_keep_capacity_and_rate() {
    let fresh = fresh(SEEDS);
    for (name, number) in SKEWED {
        let found = figures(false, SEEDS, skewed(number));
        assert!(is_kept(&found, &fresh), "{name}: {found:?}, not {fresh:?}");
    }
}

/// Other systems partition keys by XXH3-64 with seed 0, which no filter uses by default.
#[test]
fn keys_divided_by_xxh3_with_seed_0_keep_capacity_and_rate() {
    let fresh = fresh(SEEDS);
    let raw = KeyHasher::Xxh3 { seed: 0 };
    for division in DIVISIONS.iter().filter(|(name, _)| *name != "h % 1024") {
        let found = figures(false, SEEDS, |seed| {
            let keys = (seed << 40..).filter(|key: &u64| division.1(address(raw.hash(key))));
            keys.map(|key| KeyHasher::default().hash(&key).get())
        });
        assert!(is_kept(&found, &fresh), "{}: {found:?}, not {fresh:?}", division.0);
    }
}

/// Shows that the tests above can fail: a filter that trusts hashes skips the finalizer, and with
/// these populations it leaves the bounds.
#[test]
fn a_filter_that_trusts_hashes_depends_on_them() {
    let kept = figures(true, SEEDS, |seed| hashes(200 + seed, u64::MAX));
    assert!(is_kept(&kept, &fresh(SEEDS)));
    let fresh = fresh(FEW_SEEDS);
    for name in ["top bit", "top 4 bits", "top 8 bits", "h % 1024", "h * 10 >> 64"] {
        let division = *DIVISIONS.iter().find(|division| division.0 == name).unwrap();
        assert!(!is_kept(&figures(true, FEW_SEEDS, divided(division)), &fresh), "{name}");
    }
    for (name, number) in SKEWED {
        assert!(!is_kept(&figures(true, FEW_SEEDS, skewed(number)), &fresh), "{name}");
    }
}
