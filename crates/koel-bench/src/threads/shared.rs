//! Filters that threads can share, each filled with the keys it is built for and with room for a
//! tenth more.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::sync::{Mutex, PoisonError, RwLock};

use atomic_cuckoo_filter::CuckooFilterBuilder;
use koel::{ConcurrentFilter, CuckooFilter, Prefer};

use crate::subject::{Mode, tally};
use crate::subjects::{Mix, fingerprint_bits};

/// A filter with lookups and, except for the plain one, changes through a shared reference. Each
/// call takes a slice, so that no key pays for a virtual call.
pub(super) trait Shared: Sync {
    fn insert_all(&self, keys: &[u64]);
    fn found(&self, keys: &[u64]) -> usize;
    fn remove_all(&self, keys: &[u64]);
}

pub(super) struct Subject {
    pub(super) name: &'static str,
    /// Single calls, or batches.
    pub(super) mode: Mode,
    /// Whether it can be changed.
    pub(super) writes: bool,
    /// Builds the filter with these keys in it, for this false-positive rate.
    pub(super) build: fn(&[u64], f64) -> Box<dyn Shared>,
}

const fn subject(
    name: &'static str,
    mode: Mode,
    writes: bool,
    build: fn(&[u64], f64) -> Box<dyn Shared>,
) -> Subject {
    Subject { name, mode, writes, build }
}

pub(super) static SUBJECTS: &[Subject] = &[
    subject("koel-concurrent", Mode::Single, true, |keys, rate| {
        filled(concurrent(keys, rate), keys)
    }),
    subject("koel-concurrent", Mode::Batch, true, |keys, rate| {
        filled(Batch(concurrent(keys, rate)), keys)
    }),
    subject("koel-plain", Mode::Single, false, |keys, rate| Box::new(plain(keys, rate))),
    subject("koel-plain", Mode::Batch, false, |keys, rate| Box::new(Batch(plain(keys, rate)))),
    subject("koel-mutex", Mode::Single, true, |keys, rate| Box::new(Mutex::new(plain(keys, rate)))),
    subject("koel-rwlock", Mode::Single, true, |keys, rate| {
        Box::new(RwLock::new(plain(keys, rate)))
    }),
    subject("atomic-cuckoo-filter", Mode::Single, true, |keys, rate| {
        filled(atomic::<DefaultHasher>(keys, rate), keys)
    }),
    subject("atomic-cuckoo-filter+mix", Mode::Single, true, |keys, rate| {
        filled(atomic::<Mix>(keys, rate), keys)
    }),
];

fn filled(filter: impl Shared + 'static, keys: &[u64]) -> Box<dyn Shared> {
    filter.insert_all(keys);
    Box::new(filter)
}

fn capacity(keys: &[u64]) -> u64 {
    keys.len() as u64 + keys.len() as u64 / 10
}

fn concurrent(keys: &[u64], rate: f64) -> ConcurrentFilter {
    let builder = ConcurrentFilter::builder(capacity(keys), rate).prefer(Prefer::Fast);
    builder.build().expect("rates and sizes of the bench can be built")
}

/// A plain filter with the same buckets, filled.
fn plain(keys: &[u64], rate: f64) -> CuckooFilter {
    let mut filter = concurrent(keys, rate).into_filter().expect("buckets that stay in place");
    filter.insert_many(keys).expect("room for these and a tenth more");
    filter
}

/// Batched instead of single calls.
struct Batch<F>(F);

impl Shared for ConcurrentFilter {
    fn insert_all(&self, keys: &[u64]) {
        keys.iter().for_each(|key| self.insert(key).expect("room for a tenth more"));
    }

    fn found(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.contains(&key))
    }

    fn remove_all(&self, keys: &[u64]) {
        assert!(keys.iter().all(|key| self.remove(key)), "a key that was inserted is missing");
    }
}

/// Counts the answers, to up to 4096 keys, that are true.
fn yeses(keys: &[u64], answer: impl Fn(&[u64], &mut [bool])) -> usize {
    let mut answers = [false; 4096];
    let answers = &mut answers[..keys.len()];
    answer(keys, answers);
    answers.iter().filter(|&&yes| yes).count()
}

impl Shared for Batch<ConcurrentFilter> {
    fn insert_all(&self, keys: &[u64]) {
        self.0.insert_many(keys).expect("room for a tenth more");
    }

    fn found(&self, keys: &[u64]) -> usize {
        yeses(keys, |keys, found| self.0.contains_many(keys, found))
    }

    fn remove_all(&self, keys: &[u64]) {
        let removed = yeses(keys, |keys, removed| self.0.remove_many(keys, removed));
        assert_eq!(removed, keys.len(), "a key that was inserted is missing");
    }
}

impl Shared for CuckooFilter {
    fn insert_all(&self, _: &[u64]) {
        unreachable!("a plain filter is not written through a shared reference");
    }

    fn found(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.contains(&key))
    }

    fn remove_all(&self, _: &[u64]) {
        unreachable!("a plain filter is not written through a shared reference");
    }
}

impl Shared for Batch<CuckooFilter> {
    fn insert_all(&self, keys: &[u64]) {
        self.0.insert_all(keys);
    }

    fn found(&self, keys: &[u64]) -> usize {
        yeses(keys, |keys, found| self.0.contains_many(keys, found))
    }

    fn remove_all(&self, keys: &[u64]) {
        self.0.remove_all(keys);
    }
}

/// The lock is taken for each key, as by threads that handle one key at a time.
macro_rules! behind_a_lock {
    ($lock:ident, $read:ident, $write:ident) => {
        impl Shared for $lock<CuckooFilter> {
            fn insert_all(&self, keys: &[u64]) {
                for key in keys {
                    let mut filter = self.$write().unwrap_or_else(PoisonError::into_inner);
                    filter.insert(key).expect("room for a tenth more");
                }
            }

            fn found(&self, keys: &[u64]) -> usize {
                tally(keys, |key| {
                    self.$read().unwrap_or_else(PoisonError::into_inner).contains(&key)
                })
            }

            fn remove_all(&self, keys: &[u64]) {
                for key in keys {
                    self.$write().unwrap_or_else(PoisonError::into_inner).remove(key);
                }
            }
        }
    };
}

behind_a_lock!(Mutex, lock, lock);
behind_a_lock!(RwLock, read, write);

fn atomic<H: Hasher + Default>(keys: &[u64], rate: f64) -> atomic_cuckoo_filter::CuckooFilter<H> {
    let bits = fingerprint_bits(rate);
    let slots = usize::try_from(capacity(keys)).expect("keys that are in memory");
    let builder = CuckooFilterBuilder::<H>::default().capacity(slots).fingerprint_size(bits);
    builder.build().expect("a width that the crate has")
}

impl<H: Hasher + Default + Sync> Shared for atomic_cuckoo_filter::CuckooFilter<H> {
    fn insert_all(&self, keys: &[u64]) {
        keys.iter().for_each(|key| self.insert(key).expect("room for a tenth more"));
    }

    fn found(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.contains(&key))
    }

    fn remove_all(&self, keys: &[u64]) {
        keys.iter().for_each(|key| {
            self.remove(key);
        });
    }
}
