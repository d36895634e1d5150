//! The filters under measurement.
//!
//! To add a filter, write a function in `rivals.rs` that builds it with its calls, and add a line
//! to [`SUBJECTS`].

mod growing;
mod koel;
mod mix;
mod rivals;

use std::collections::hash_map::DefaultHasher;

use crate::subject::{Build, Mode, Subject};
use crate::{Failure, subject};
pub(crate) use growing::{FIRST, GROWING, Growing, fixed};
pub(crate) use mix::Mix;
pub(crate) use rivals::{atomic_cuckoo_shared, no_delete};

/// The filter that the others are compared with: the first of [`SUBJECTS`].
pub(crate) const YARDSTICK: &str = "koel-fast";

const fn single(name: &'static str, build: Build, note: &'static str) -> Subject {
    Subject { note, ..Subject::new(name, Mode::Single, build) }
}

const fn no_delete_in(name: &'static str, build: Build, note: &'static str) -> Subject {
    Subject { deletes: false, ..single(name, build, note) }
}

const fn batch(name: &'static str, build: Build) -> Subject {
    Subject::new(name, Mode::Batch, build)
}

/// Only the build is measured: the filter is that of the other lines.
const fn bulk(name: &'static str, build: Build) -> Subject {
    Subject { find: None, ..Subject::new(name, Mode::Bulk, build) }
}

const EIGHT_BITS: &str = "8-bit fingerprints, whatever the target rate";
const NEVER_FULL: &str = "never full: load is that of its first growth";
const FOUR_WIDTHS: &str = "the smallest of its 4, 8, 16 and 32 bits that meets the rate";

/// The first line is the one that the others are compared with.
pub(crate) static SUBJECTS: &[Subject] = &[
    single(YARDSTICK, koel::fast, ""),
    batch(YARDSTICK, koel::fast),
    bulk(YARDSTICK, koel::fast),
    single("koel-small", koel::small, ""),
    batch("koel-small", koel::small),
    bulk("koel-small", koel::small),
    single("cuckoofilter", rivals::cuckoofilter::<DefaultHasher>, EIGHT_BITS),
    single("cuckoofilter+mix", rivals::cuckoofilter::<Mix>, EIGHT_BITS),
    single("valkey-cuckoo", rivals::valkey_cuckoo::<DefaultHasher>, EIGHT_BITS),
    single("valkey-cuckoo+mix", rivals::valkey_cuckoo::<Mix>, EIGHT_BITS),
    single(
        "scalable_cuckoo_filter",
        rivals::scalable_cuckoo::<scalable_cuckoo_filter::DefaultHasher>,
        NEVER_FULL,
    ),
    single("scalable_cuckoo_filter+mix", rivals::scalable_cuckoo::<Mix>, NEVER_FULL),
    single("atomic-cuckoo-filter", rivals::atomic_cuckoo::<DefaultHasher>, FOUR_WIDTHS),
    single("atomic-cuckoo-filter+mix", rivals::atomic_cuckoo::<Mix>, FOUR_WIDTHS),
    single("qfilter", rivals::qfilter, "refuses above a load of 0.95 by design"),
    no_delete_in("fastbloom", rivals::fastbloom, ""),
    no_delete_in("fastbloom+mix", rivals::fastbloom_mix, ""),
    no_delete_in("sbbf", rivals::sbbf, "the crate sbbf-rs-safe, with XXH3; whole bits per key"),
    Subject {
        insert: Mode::Bulk,
        ..no_delete_in(
            "xorf",
            rivals::xorf,
            "built once from all keys; 8 or 16 bits, whichever is closer to the rate",
        )
    },
];

/// The filters with these names, or all of them if no name is given.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<&'static Subject>, Failure> {
    subject::chosen(SUBJECTS, |subject| subject.name, names)
}
