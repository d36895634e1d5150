//! Provokes every error as a user would. Its message says in one line what happened, with the right
//! figures.

use koel::{
    BuildError, Builder, CountingFilter, CuckooFilter, ExpiringFilter, FullError, ImageError,
    Maplet, Merge, MergeError, Prefer,
};
use testkit::exercise::is_one_line;
use testkit::keys::{self, at};

use crate::damage::flipped;
use crate::subject::Subject;
use crate::support::{field, forged, read, with_counts};

#[track_caller]
fn assert_says(error: impl std::error::Error, words: &[&str]) {
    let line = error.to_string();
    assert!(is_one_line(&line), "{line:?}");
    assert!(words.iter().all(|word| line.contains(word)), "{line}");
}

/// The false-positive rate that an error suggests.
#[track_caller]
pub(crate) fn asked_for(error: &impl ToString) -> f64 {
    let line = error.to_string();
    let asked = line.strip_suffix(" or more").and_then(|line| line.rsplit(' ').next());
    asked.unwrap().parse().unwrap()
}

#[test]
fn the_rate_that_an_error_suggests_can_be_built() {
    for capacity in [100, 10_000, 1_000_000] {
        for prefer in [Prefer::Small, Prefer::Fast] {
            let fixed = |rate| CuckooFilter::builder(capacity, rate).prefer(prefer);
            let plans = [
                |builder: Builder<CuckooFilter>| builder.plan(),
                |builder: Builder<CuckooFilter>| builder.growable().plan(),
                |builder: Builder<CuckooFilter>| builder.grow_from(1).plan(),
            ];
            for plan in plans {
                plan(fixed(asked_for(&plan(fixed(1e-15)).unwrap_err()))).unwrap();
            }
            let grow = |rate| fixed(rate).build().unwrap().make_growable();
            grow(asked_for(&grow(1e-8).unwrap_err())).unwrap();
        }
        for bits in [1, 39, 40] {
            let fixed = |rate| Maplet::builder(capacity, rate, bits).build();
            fixed(asked_for(&fixed(1e-15).unwrap_err())).unwrap();
            let growing = |rate| Maplet::builder(capacity, rate, bits).grow_from(1).build();
            growing(asked_for(&growing(1e-15).unwrap_err())).unwrap();
        }
    }
}

#[test]
fn an_impossible_build_suggests_possible_parameters() {
    for rate in [0.0, 1.0, 2.0, -0.1, f64::NAN, f64::INFINITY] {
        let error = CuckooFilter::builder(10, rate).build().unwrap_err();
        assert!(matches!(error, BuildError::Rate { .. }), "{error:?}");
        assert_says(error, &["above 0 and below 1"]);
    }
    let error = CuckooFilter::builder(1_000_000, 1e-15).build().unwrap_err();
    let BuildError::TooPrecise { smallest, .. } = error else { panic!("{error:?}") };
    assert_says(error, &["1e-15"]);
    let asked = asked_for(&error);
    assert!((smallest..smallest * 1.01).contains(&asked), "{asked} is not {smallest}");

    let error = CuckooFilter::builder(u64::MAX, 0.01).build().unwrap_err();
    let BuildError::TooLarge { capacity: u64::MAX, largest } = error else { panic!("{error:?}") };
    assert_says(error, &[&u64::MAX.to_string(), &format!("at most {largest};")]);
    CuckooFilter::builder(largest, 0.01).plan().unwrap();
    CuckooFilter::builder(largest + 1, 0.01).plan().unwrap_err();
    // A rate that fewer keys would allow: the keys are too many, rather than the rate too small.
    let error = CuckooFilter::builder(1 << 50, 0.001).plan().unwrap_err();
    assert!(matches!(error, BuildError::TooLarge { largest: 1.., .. }), "{error:?}");
}

/// Builders once named "at most 0" keys, a limit that was refused in turn, or that of another unit.
#[test]
fn the_largest_capacity_of_an_error_can_be_built_and_one_more_cannot() {
    type Plan = Box<dyn Fn(u64) -> Result<(), BuildError>>;
    let filter = |prefer, rate, from: Option<u64>| -> Plan {
        Box::new(move |keys| {
            let builder = CuckooFilter::builder(keys, rate).prefer(prefer);
            let builder = match from {
                Some(0) => builder.growable(),
                Some(from) => builder.grow_from(from),
                None => builder,
            };
            builder.plan().map(|_| ())
        })
    };
    let expiring = |steps, from: Option<u64>| -> Plan {
        Box::new(move |keys| {
            let builder = ExpiringFilter::builder(keys, 0.001).window(600).steps(steps);
            let builder = from.map_or(builder.clone(), |from| builder.grow_from(from));
            builder.size_in_bytes().map(|_| ())
        })
    };
    let plans = [
        filter(Prefer::Small, 0.001, None),
        filter(Prefer::Small, 0.001, Some(0)),
        filter(Prefer::Fast, 0.01, Some(0)),
        filter(Prefer::Small, 1e-6, Some(0)),
        filter(Prefer::Small, 0.001, Some(1000)),
        filter(Prefer::Fast, 0.001, Some(100_000)),
        expiring(1, None),
        expiring(24, None),
        expiring(24, Some(8192)),
    ];
    for (i, plan) in plans.iter().enumerate() {
        for asked in [u64::MAX, 100_000_000_000_000] {
            let most = largest(plan(asked));
            assert!(most > 1_000_000_000, "{i} {asked}: {most}");
            assert_eq!(plan(most), Ok(()), "{i} {asked}");
            assert_eq!(largest(plan(most + 1)), most, "{i} {asked}");
        }
    }
}

/// The largest capacity that an error names, of a filter or maplet that grows from few keys.
#[track_caller]
fn largest<T: std::fmt::Debug>(built: Result<T, BuildError>) -> u64 {
    match built.unwrap_err() {
        BuildError::TooLarge { largest, .. } => largest,
        error => panic!("{error:?}"),
    }
}

/// `plan` once promised growth to any number of keys.
#[test]
fn plan_and_builder_know_one_limit_of_growth() {
    for (prefer, rate) in [(Prefer::Small, 0.05), (Prefer::Small, 1e-6), (Prefer::Fast, 0.001)] {
        let from = |keys: u64| CuckooFilter::builder(keys, rate).prefer(prefer).grow_from(1000);
        let most = largest(from(u64::MAX).plan());
        assert_eq!(largest(from(u64::MAX).build()), most);
        assert!((1 << 30..1 << 34).contains(&most), "{most}");
        let plan = from(most).plan().unwrap();
        let limit = plan.growth_limit.unwrap();
        assert!(limit >= most && from(most).build().unwrap().is_growable());
        let grown = from(most).plan_grown(limit).unwrap();
        assert_eq!((grown.growth_limit, grown.capacity), (Some(limit), limit));
        assert_eq!(largest(from(most).plan_grown(limit + 1)), limit);
    }
    // A table that leaves no bucket numbers for growth.
    let fixed = CuckooFilter::builder(20_000_000_000, 0.001);
    assert_eq!(fixed.plan().unwrap().growth_limit, None);
    assert!(largest(fixed.clone().growable().plan()) > 1_000_000_000);
    let largest_fixed = |keys| CuckooFilter::builder(keys, 1e-6).plan().unwrap().growth_limit;
    let limit = largest_fixed(4_000_000_000).unwrap();
    assert!(largest_fixed(limit + limit / 8).is_none_or(|larger| larger > limit + limit / 8));
    let growable = CuckooFilter::builder(1000, 0.001).growable();
    assert!(growable.plan().unwrap().growth_limit.unwrap() > 1 << 30);
    assert_eq!(growable.build().unwrap().growth_limit(), growable.plan().unwrap().growth_limit);
    let offsets = |keys: u64| Maplet::builder(keys, 1e-5, 38).grow_from(1).build();
    assert!(largest(offsets(u64::MAX)) > 1 << 30);
    let counts = |keys: u64| CountingFilter::builder(keys, 0.001).grow_from(1).build();
    counts(largest(counts(u64::MAX))).unwrap();
}

#[test]
fn a_filter_too_precise_to_grow_suggests_a_rate_that_grows() {
    for (prefer, rate) in [(Prefer::Small, 1e-7), (Prefer::Fast, 3e-7), (Prefer::Small, 1e-9)] {
        let builder = |rate| CuckooFilter::builder(100_000, rate).prefer(prefer);
        let mut filter = builder(rate).build().unwrap();
        assert!(!filter.layout().can_grow() && filter.growth_limit().is_none());
        let error = filter.make_growable().unwrap_err();
        assert!(asked_for(&error) > rate, "{error}");
        let mut filter = builder(asked_for(&error)).growable().build().unwrap();
        assert!(filter.layout().can_grow());
        filter.reserve(200_000).unwrap();
        assert!(filter.has_grown() && filter.layout().can_grow());
    }
}

/// Filters and maplets share one message.
#[test]
fn a_full_table_says_its_size_and_why_it_is_full() {
    fn of<S: Subject>(mut it: S) {
        let hashes = keys::hashes(1, 1000).map(at);
        let mut refusals = hashes.filter_map(|key| it.put(&key, 1).err());
        let full = refusals.find(|full| matches!(full, FullError::Slots { .. })).unwrap();
        let FullError::Slots { in_use, capacity: 10 } = full else { panic!("{full:?}") };
        drop(refusals);
        assert!((10..=it.len()).contains(&in_use));
        let says = format!("the table is full: {in_use} entries in one built for 10 keys; ");
        assert_eq!(full.to_string(), says + "build a larger one from the keys");
    }
    of(CuckooFilter::builder(10, 0.001).build().unwrap());
    of(Maplet::builder(10, 0.001, 8).build().unwrap());

    let mut filter = CuckooFilter::builder(10, 1e-8).counter_limit(0).build().unwrap();
    let full = keys::hashes(1, 1000).find_map(|hash| filter.insert(&at(hash)).err()).unwrap();
    assert_eq!(full, FullError::Slots { in_use: filter.slots_in_use(), capacity: 10 });
    let full = filter.insert(&at(keys::hashes(1, 1).next().unwrap())).unwrap_err();
    assert_eq!(full, FullError::Counters { limit: 0 });
    assert_says(full, &["counter limit"]);
}

/// The bytes of a valid filter with two counts above 2^63.
#[test]
fn a_count_beyond_64_bits_is_refused_and_changes_nothing() {
    let mut filter = CuckooFilter::builder(10, 0.001).build().unwrap();
    (0..9).for_each(|_| filter.insert("often").unwrap());
    let bytes = with_counts(&filter.to_bytes(), &[u64::MAX - filter.slots_in_use()]);
    let bytes = forged(&bytes, &[("keys", u64::MAX)]);
    let mut filter = CuckooFilter::from_bytes(&bytes).unwrap();
    assert_eq!(filter.count("often"), u64::MAX);
    assert_eq!(filter.insert("often"), Err(FullError::Overflow));
    assert_eq!(filter.insert("another"), Err(FullError::Overflow));
    let twin = filter.clone();
    assert_eq!(filter.merge(&twin, Merge::Sum), Err(MergeError::Full(FullError::Overflow)));
    assert_eq!(filter.merge(&twin, Merge::Max), Ok(()));
    assert!(filter.to_bytes() == bytes);
    assert_says(FullError::Overflow, &["2^64"]);
    assert!(filter.remove("often"));
    filter.insert("another").unwrap();
    assert_eq!(filter.verify(), Ok(()));
}

#[test]
fn filters_that_differ_are_neither_merged_nor_compared_and_the_error_names_the_difference() {
    let base = CuckooFilter::builder(1000, 0.001);
    let refused = |other: Builder<CuckooFilter>| {
        let (mut filter, other) = (base.build().unwrap(), other.build().unwrap());
        let error = filter.compare(&other).unwrap_err();
        for counts in [Merge::Sum, Merge::Max] {
            assert_eq!(filter.merge(&other, counts), Err(error));
        }
        assert!(filter == base.build().unwrap());
        error
    };
    for (field, other) in [
        ("layout", CuckooFilter::builder(1000, 0.01)),
        ("hash", base.clone().seed(1)),
        ("hash", base.clone().sip_key([0; 16])),
        ("route", base.clone().trust_hashes()),
        ("application bytes", base.clone().application([1, 0, 0, 0, 0, 0, 0, 0])),
        ("application bytes", base.clone().application([0, 1, 0, 0, 0, 0, 0, 0])),
    ] {
        let error = refused(other);
        assert_eq!(error, MergeError::Incompatible { field });
        assert_says(error, &[field]);
    }
    let error = refused(CuckooFilter::builder(2000, 0.001));
    assert_eq!(error, MergeError::Sizes { ours: 1000, theirs: 2000 });
    assert_says(error, &["1000", "2000"]);
    // Only the first two bytes say what the keys are.
    let other = base.clone().application([0, 0, 1, 1, 1, 1, 1, 1]).build().unwrap();
    let mut filter = base.build().unwrap();
    assert!(filter.compare(&other).is_ok() && filter.merge(&other, Merge::Sum).is_ok());
    assert_eq!(filter.application(), [0; 8]);

    let mut filter = CuckooFilter::builder(1, 0.001).build().unwrap();
    let mut other = filter.clone();
    keys::hashes(1, 120).for_each(|hash| filter.insert(&at(hash)).unwrap());
    keys::hashes(2, 120).for_each(|hash| other.insert(&at(hash)).unwrap());
    let error = filter.merge(&other, Merge::Sum).unwrap_err();
    assert!(matches!(error, MergeError::Full(FullError::Slots { .. })));
    assert_says(error, &["union", "full"]);
}

#[test]
fn invalid_bytes_are_refused_with_the_reason() {
    let bytes = CuckooFilter::with_capacity(10).to_bytes();
    let sealed = |name: &str, value: u64| {
        CuckooFilter::from_bytes(&forged(&bytes, &[(name, value)])).unwrap_err()
    };
    let damaged =
        |offset: usize| CuckooFilter::from_bytes(&flipped(&bytes, 8 * offset)).unwrap_err();
    let version = read(&bytes, "version");
    let (older, newer) = (version - 1, version + 1);
    assert_says(sealed("magic", 0), &["not a Koel filter"]);
    let words = [&format!("version {older}"), "build the filter again"];
    assert_says(sealed("version", older), &words);
    assert_says(sealed("version", newer), &[&format!("version {newer}"), "newer"]);
    assert_says(damaged(field("capacity").start), &["header", "checksum"]);
    assert_says(damaged(bytes.len() - 1), &["body", "checksum"]);
    assert_says(sealed("grows", 4), &["grows", "4"]);
    let cut = CuckooFilter::from_bytes(&bytes[..100]).unwrap_err();
    assert!(matches!(cut, ImageError::Length { got: 100, .. }));
    assert_says(cut, &["cut short", "100"]);
    let longer = CuckooFilter::from_bytes(&[&bytes[..], &[0]].concat()).unwrap_err();
    assert_says(longer, &[&bytes.len().to_string(), &(bytes.len() + 1).to_string()]);
}
