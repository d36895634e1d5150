//! The filters under measurement, one file each.
//!
//! To add a filter, write a file here with a type that implements
//! [`Filter`](crate::subject::Filter), and add a line to [`SUBJECTS`].

mod atomic_cuckoo;
mod cuckoofilter;
mod fastbloom;
mod growing;
mod koel;
mod mix;
mod qfilter;
mod sbbf;
mod scalable_cuckoo;
mod valkey_cuckoo;
mod xorf;

use crate::subject::{Mode, Subject};
use crate::{Failure, subject};
pub(crate) use atomic_cuckoo::fingerprint_bits;
pub(crate) use growing::{FIRST, GROWING, Growing, fixed};
pub(crate) use mix::Mix;

/// The filter that the others are compared with: the first of [`SUBJECTS`].
pub(crate) const YARDSTICK: &str = "koel-fast";

const SINGLE: [Option<Mode>; 4] = [Some(Mode::Single); 4];
const BATCH: [Option<Mode>; 4] = [Some(Mode::Batch); 4];
const NO_DELETE: [Option<Mode>; 4] =
    [Some(Mode::Single), Some(Mode::Single), Some(Mode::Single), None];
const STATIC: [Option<Mode>; 4] = [Some(Mode::Bulk), Some(Mode::Single), Some(Mode::Single), None];

const BULK: [Option<Mode>; 4] = [Some(Mode::Bulk), None, None, None];

const EIGHT_BITS: &str = "8-bit fingerprints, whatever the target rate";

/// The first line is the one that the others are compared with.
pub(crate) static SUBJECTS: &[Subject] = &[
    Subject { name: YARDSTICK, modes: SINGLE, build: koel::fast, note: "" },
    Subject { name: YARDSTICK, modes: BATCH, build: koel::fast_batch, note: "" },
    Subject { name: YARDSTICK, modes: BULK, build: koel::fast_bulk, note: "" },
    Subject { name: "koel-small", modes: SINGLE, build: koel::small, note: "" },
    Subject { name: "koel-small", modes: BATCH, build: koel::small_batch, note: "" },
    Subject { name: "koel-small", modes: BULK, build: koel::small_bulk, note: "" },
    Subject { name: "cuckoofilter", modes: SINGLE, build: cuckoofilter::default, note: EIGHT_BITS },
    Subject { name: "cuckoofilter+mix", modes: SINGLE, build: cuckoofilter::mix, note: EIGHT_BITS },
    Subject {
        name: "valkey-cuckoo",
        modes: SINGLE,
        build: valkey_cuckoo::default,
        note: EIGHT_BITS,
    },
    Subject {
        name: "valkey-cuckoo+mix",
        modes: SINGLE,
        build: valkey_cuckoo::mix,
        note: EIGHT_BITS,
    },
    Subject {
        name: "scalable_cuckoo_filter",
        modes: SINGLE,
        build: scalable_cuckoo::default,
        note: "never full: load is that of its first growth",
    },
    Subject {
        name: "scalable_cuckoo_filter+mix",
        modes: SINGLE,
        build: scalable_cuckoo::mix,
        note: "never full: load is that of its first growth",
    },
    Subject {
        name: "atomic-cuckoo-filter",
        modes: SINGLE,
        build: atomic_cuckoo::default,
        note: "the smallest of its 4, 8, 16 and 32 bits that meets the rate",
    },
    Subject {
        name: "atomic-cuckoo-filter+mix",
        modes: SINGLE,
        build: atomic_cuckoo::mix,
        note: "the smallest of its 4, 8, 16 and 32 bits that meets the rate",
    },
    Subject {
        name: "qfilter",
        modes: SINGLE,
        build: qfilter::build,
        note: "refuses above a load of 0.95 by design",
    },
    Subject { name: "fastbloom", modes: NO_DELETE, build: fastbloom::default, note: "" },
    Subject { name: "fastbloom+mix", modes: NO_DELETE, build: fastbloom::mix, note: "" },
    Subject {
        name: "sbbf",
        modes: NO_DELETE,
        build: sbbf::build,
        note: "the crate sbbf-rs-safe, with XXH3; whole bits per key",
    },
    Subject {
        name: "xorf",
        modes: STATIC,
        build: xorf::build,
        note: "built once from all keys; 8 or 16 bits, whichever is closer to the rate",
    },
];

/// The filters with these names, or all of them if no name is given.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<&'static Subject>, Failure> {
    subject::chosen(SUBJECTS, |subject| subject.name, names)
}
