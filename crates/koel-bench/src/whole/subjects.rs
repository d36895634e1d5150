//! Koel's filters, and what else holds keys and can be merged as a whole: a quotient filter, a
//! Bloom filter, and two exact sets.
//!
//! Roaring bitmaps are not here: they are for numbers near each other, and of random keys of 64
//! bits `roaring` makes nearly as many bitmaps as there are keys.

use fastbloom::BloomFilter;
use hashbrown::HashSet;
use koel::{CuckooFilter, Merge, Prefer};
use qfilter::Filter as Quotient;
use testkit::keys::hashes;

use super::{Op, Round};
use crate::clock::{each, timed_everywhere};
use crate::machine;

/// The false-positive rate that is asked for.
const RATE: f64 = 0.001;
/// What grows begins with room for this many.
const FIRST: u64 = 1000;

/// The keys, the same for all subjects.
pub(super) struct Keys {
    all: Vec<u64>,
    pub(super) count: usize,
}

impl Keys {
    pub(super) fn new(count: usize) -> Self {
        Self { all: hashes(1, (count + count / 2) as u64).collect(), count }
    }

    fn first(&self) -> &[u64] {
        &self.all[..self.count]
    }

    /// As many, of which 1 % are new.
    fn second(&self) -> &[u64] {
        &self.all[self.count / 100..][..self.count]
    }

    /// Half as many, all of them new.
    fn new_ones(&self) -> &[u64] {
        &self.all[self.count..]
    }
}

/// What is measured as a whole. `None`: it has no such operation.
trait Whole: Clone {
    /// Adds those of the keys that are not in.
    fn insert(&mut self, keys: &[u64]) -> Option<()>;
    fn bytes(&self) -> usize;
    fn merge(&mut self, other: &Self, counts: Merge) -> Option<()>;

    /// The number of keys in common.
    fn common(&self, _other: &Self) -> Option<u64> {
        None
    }
    fn patch_to(&self, _new: &Self) -> Option<Vec<u8>> {
        None
    }
    fn patched(&self, _patch: &[u8]) -> Option<Self> {
        None
    }
    fn remove(&mut self, _keys: &[u64]) {}
    fn shrink(&mut self) -> Option<()> {
        None
    }
    fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }
    fn from_bytes(_bytes: &[u8]) -> Option<Self> {
        None
    }
}

impl Whole for CuckooFilter {
    fn insert(&mut self, keys: &[u64]) -> Option<()> {
        self.insert_unique_many(keys, &mut vec![false; keys.len()]).ok()
    }

    fn bytes(&self) -> usize {
        self.size_in_bytes()
    }

    fn merge(&mut self, other: &Self, counts: Merge) -> Option<()> {
        Self::merge(self, other, counts).ok()
    }

    fn common(&self, other: &Self) -> Option<u64> {
        self.compare(other).ok().map(|comparison| comparison.surplus_first())
    }

    fn patch_to(&self, new: &Self) -> Option<Vec<u8>> {
        Self::patch_to(self, new).ok()
    }

    fn patched(&self, patch: &[u8]) -> Option<Self> {
        Self::patched(self, patch).ok()
    }

    fn remove(&mut self, keys: &[u64]) {
        self.remove_many(keys, &mut vec![false; keys.len()]);
    }

    fn shrink(&mut self) -> Option<()> {
        // To no smaller table than it was built with, which one that does not grow always is.
        self.is_growable().then(|| self.shrink_to_fit())
    }

    fn to_bytes(&self) -> Vec<u8> {
        Self::to_bytes(self)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes).ok()
    }
}

/// `qfilter` 0.3. Its merge drops duplicates or keeps them.
impl Whole for Quotient {
    fn insert(&mut self, keys: &[u64]) -> Option<()> {
        keys.iter().try_for_each(|key| self.insert(key).map(drop)).ok()
    }

    fn bytes(&self) -> usize {
        self.memory_usage()
    }

    fn merge(&mut self, other: &Self, counts: Merge) -> Option<()> {
        Self::merge(self, counts == Merge::Sum, other).ok()
    }

    fn remove(&mut self, keys: &[u64]) {
        keys.iter().for_each(|key| _ = self.remove(key));
    }

    fn shrink(&mut self) -> Option<()> {
        self.shrink_to_fit();
        Some(())
    }
}

/// `fastbloom` 0.17, with its default hash. It does not count, so it has no sum.
impl Whole for BloomFilter {
    fn insert(&mut self, keys: &[u64]) -> Option<()> {
        keys.iter().for_each(|key| _ = self.insert(key));
        Some(())
    }

    fn bytes(&self) -> usize {
        self.num_bits().div_ceil(8)
    }

    fn merge(&mut self, other: &Self, counts: Merge) -> Option<()> {
        (counts == Merge::Max).then(|| self.union(other))
    }
}

/// `hashbrown` 0.17, with its default hash. A set does not count, so it has no sum.
impl Whole for HashSet<u64> {
    fn insert(&mut self, keys: &[u64]) -> Option<()> {
        self.extend(keys);
        Some(())
    }

    fn bytes(&self) -> usize {
        self.allocation_size()
    }

    fn merge(&mut self, other: &Self, counts: Merge) -> Option<()> {
        (counts == Merge::Max).then(|| self.extend(other))
    }

    fn common(&self, other: &Self) -> Option<u64> {
        Some(self.intersection(other).count() as u64)
    }

    fn remove(&mut self, keys: &[u64]) {
        keys.iter().for_each(|key| _ = self.remove(key));
    }

    fn shrink(&mut self) -> Option<()> {
        self.shrink_to_fit();
        Some(())
    }
}

/// Keys in order: the sort finds the two runs of a union, and merges them.
impl Whole for Vec<u64> {
    fn insert(&mut self, keys: &[u64]) -> Option<()> {
        self.extend(keys);
        self.sort();
        self.dedup();
        Some(())
    }

    fn bytes(&self) -> usize {
        size_of_val(&**self)
    }

    fn merge(&mut self, other: &Self, counts: Merge) -> Option<()> {
        self.extend(other);
        self.sort();
        if counts == Merge::Max {
            self.dedup();
        }
        Some(())
    }

    fn common(&self, other: &Self) -> Option<u64> {
        let mut others = other.iter().peekable();
        let is_common = |key: &&u64| {
            while others.next_if(|other| other < key).is_some() {}
            others.peek() == Some(key)
        };
        Some(self.iter().filter(is_common).count() as u64)
    }
}

/// Measures a subject once.
pub(super) type Measure = Box<dyn Fn(&Keys) -> Round>;

/// Fills filters with the keys, once for all measurements.
type Prepare = fn(&Keys) -> Measure;

pub(super) static SUBJECTS: [(&str, Prepare); 8] = [
    ("koel-small", |keys| filled(keys, |room| koel(room, Prefer::Small))),
    ("koel-fast", |keys| filled(keys, |room| koel(room, Prefer::Fast))),
    ("koel-small grown", |keys| filled(keys, |_| growing(Prefer::Small))),
    ("koel-fast grown", |keys| filled(keys, |_| growing(Prefer::Fast))),
    ("qfilter", |keys| filled(keys, |room| Quotient::new(room, RATE).expect("a common rate"))),
    ("fastbloom", |keys| filled(keys, bloom)),
    ("hashbrown", |keys| filled(keys, |room| HashSet::with_capacity(whole(room)))),
    ("sorted", |keys| filled(keys, |room| Vec::with_capacity(whole(room)))),
];

fn koel(room: u64, prefer: Prefer) -> CuckooFilter {
    CuckooFilter::builder(room, RATE).prefer(prefer).build().expect("a common rate")
}

fn growing(prefer: Prefer) -> CuckooFilter {
    let builder = CuckooFilter::builder(FIRST, RATE).prefer(prefer).growable();
    builder.build().expect("a common rate")
}

fn bloom(room: u64) -> BloomFilter {
    BloomFilter::with_false_pos(RATE).seed(&1).expected_items(whole(room))
}

fn whole(room: u64) -> usize {
    usize::try_from(room).expect("a number of keys in memory")
}

fn filled<W: Whole + 'static>(keys: &Keys, empty: impl Fn(u64) -> W) -> Measure {
    let of = |room: usize, keys: &[u64]| {
        let mut filter = empty((room + room / 20) as u64);
        filter.insert(keys).expect("room for all");
        filter
    };
    let [first, second] = [keys.first(), keys.second()].map(|it| of(keys.count, it));
    let [roomy, other] = [keys.first(), keys.new_ones()].map(|it| of(keys.all.len(), it));
    Box::new(move |keys| round(keys, [&first, &second], [&roomy, &other]))
}

/// Measures everything with copies of these filters.
fn round<W: Whole>(keys: &Keys, [first, second]: [&W; 2], [roomy, other]: [&W; 2]) -> Round {
    machine::touch(2 * first.bytes());
    let (count, half) = (keys.count, keys.count / 2);
    let mut round = Round::default();
    let mut copy = first.clone();
    time(&mut round, Op::InsertAgain, count, || copy.insert(keys.second()));
    copy = first.clone();
    time(&mut round, Op::Max, count, || copy.merge(second, Merge::Max));
    copy = roomy.clone();
    time(&mut round, Op::InsertNew, keys.new_ones().len(), || copy.insert(keys.new_ones()));
    copy = roomy.clone();
    time(&mut round, Op::Sum, keys.new_ones().len(), || copy.merge(other, Merge::Sum));
    time(&mut round, Op::Compare, count, || first.common(second));
    if let Some(patch) = time(&mut round, Op::PatchTo, count, || first.patch_to(second)) {
        time(&mut round, Op::Patched, count, || first.patched(&patch));
    }
    copy = first.clone();
    copy.remove(&keys.first()[..half]);
    time(&mut round, Op::Shrink, count - half, || copy.shrink());
    let bytes = first.to_bytes();
    time(&mut round, Op::FromBytes, count, || W::from_bytes(&bytes));
    round[Op::Bits as usize] = Some(8.0 * first.bytes() as f64 / count as f64);
    round
}

/// Nanoseconds a key of `work`, on whatever threads, if there is such an operation. Its result is
/// dropped untimed.
fn time<T>(round: &mut Round, op: Op, keys: usize, work: impl FnOnce() -> Option<T>) -> Option<T> {
    let (time, done) = timed_everywhere(work);
    round[op as usize] = done.as_ref().map(|_| each(time, keys as u64));
    done
}
