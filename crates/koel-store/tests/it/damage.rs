//! Flipped bits, cut files and swapped files: reported or harmless, never a wrong answer or a
//! panic.
//!
//! * *Reported*: an error from opening, reading or iterating. For a store that was not closed, also
//!   a torn end in [`LogStore::open_report`] together with an earlier state: at the end of such a
//!   log, damage and a torn write look alike.
//! * *Harmless*: every answer is still right.
//! * *Older*: an earlier state without a report. This is allowed only if the last log of a store
//!   that was not closed is cut between two records, as a crash would leave it.
//! * Anything else is *silent* and fails the test.
//!
//! The ordered store has the same trials (`lsm/mod.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use koel_store::{Durability, Error, LogOptions, LogStore, TornEnd};
use testkit::storage::{History, MemoryFolder, Op, Random, State, Write};

use crate::subject::{Subject, Trial};
use crate::trial::{count, first_seed, report};

pub(crate) type Image = BTreeMap<String, Vec<u8>>;

/// A store that is damaged.
pub(crate) trait Damaged: Subject {
    /// The longest value, and the number of operations before the damage.
    const LENGTHS: (usize, usize);

    fn options(seed: u64) -> Self::LogOptions {
        Self::small(seed)
    }
}

impl Damaged for LogStore {
    const LENGTHS: (usize, usize) = (20_000, 400);

    fn options(seed: u64) -> LogOptions {
        options().seed(seed)
    }
}

/// The files of a store and its contents, all durable.
pub(crate) struct Victim<S: Subject> {
    options: S::LogOptions,
    pub(crate) image: Image,
    /// The files of the same store at an earlier moment.
    pub(crate) earlier: Image,
    keys: Vec<Vec<u8>>,
    pub(crate) now: State,
    /// Every key with every value that it ever had.
    pub(crate) ever: BTreeSet<(Vec<u8>, Vec<u8>)>,
    /// Every earlier state, none of them durable.
    states: History,
    pub(crate) closed: bool,
    /// The last log, and how much of it was durable when two more durable writes followed. As long
    /// as those are there, damage before this offset must not look like a torn end.
    pub(crate) known: (String, u64),
}

/// How a file was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// The end of the last log is unchanged, or has a single wrong bit.
    Within,
    /// The end of the last log is gone.
    End,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Reported,
    Harmless,
    Older,
    Silent(String),
}

pub(crate) fn options() -> LogOptions {
    LogOptions::default().segment_bytes(8192).background_compaction(false)
}

/// A store of several files, with dead bytes, tombstones, batches and large values; closed, or left
/// as the power failed.
pub(crate) fn victim<S: Damaged>(seed: u64, closed: bool) -> Victim<S> {
    let folder = MemoryFolder::new();
    let ((longest, count), options) = (S::LENGTHS, S::options(seed));
    let program = S::program(seed, 40, longest);
    let keys = program.keys().to_vec();
    let opened = Trial::<S>::open(Arc::new(folder.clone()), &options, &program, History::new());
    let mut trial = opened.unwrap();
    let ops: Vec<_> = program.take(count).collect();
    let (mut states, mut ever, mut earlier) = (History::new(), BTreeSet::new(), Image::new());
    let middle = ops.len() * 4 / 5;
    for (number, op) in ops.into_iter().chain([Op::Sync]).enumerate() {
        let values = op.changes().into_iter();
        ever.extend(values.filter_map(|(key, value)| Some((key, value?))));
        let before = trial.history.now().clone();
        trial.step(op).unwrap();
        states.write(difference(&before, trial.history.now()));
        if number == middle {
            earlier = folder.crash_clone(100, seed).contents();
        }
    }
    let before = folder.contents();
    for number in 0..2 {
        let changes = vec![(keys[1].clone(), Some(vec![number]))];
        let op = Op::Write { changes: changes.clone(), synced: true };
        trial.step(op).unwrap();
        states.write(changes);
        ever.insert((keys[1].clone(), vec![number]));
    }
    // The log with these writes. If they started a new one, nothing of it was durable before.
    let after = folder.contents();
    let grown = |(name, bytes): &(&String, &Vec<u8>)| before.get(*name) != Some(*bytes);
    let (active, _) = after.iter().rfind(|file| file.0.ends_with(".log") && grown(file)).unwrap();
    let known = (active.clone(), before.get(active).map_or(0, |bytes| bytes.len() as u64));
    let now = trial.history.now().clone();
    if closed {
        trial.store.unwrap().close().unwrap();
    }
    let image = folder.crash_clone(100, seed).contents();
    Victim { options, image, earlier, keys, now, ever, states, closed, known }
}

/// Returns the changes from one state to the other.
fn difference(before: &State, after: &State) -> Write {
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let new = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
    gone.map(|key| (key.clone(), None))
        .chain(new.map(|(key, value)| (key.clone(), Some(value.clone()))))
        .collect()
}

impl<S: Subject> Victim<S> {
    /// Returns whether the damage is noticed, and if not, whether it matters.
    fn judge(&self, damaged: Image, harm: Harm) -> Outcome {
        let folder = Arc::new(MemoryFolder::with(damaged));
        let Ok(store) = S::open_in(&self.options, folder) else { return Outcome::Reported };
        let Ok((by_iteration, by_key)) = self.read(&store) else { return Outcome::Reported };
        if by_iteration == self.now && by_key == self.now {
            return Outcome::Harmless;
        }
        if by_iteration != by_key {
            return Outcome::Silent("iteration and get differ".to_owned());
        }
        let torn = store.torn();
        let torn = torn.as_ref();
        match self.states.clone().survived(by_iteration, 0) {
            Ok(_) if torn.is_some_and(|torn| self.may_be_torn(torn, harm)) => Outcome::Reported,
            Ok(_) if torn.is_none() && !self.closed && harm == Harm::End => Outcome::Older,
            Ok(count) => Outcome::Silent(format!("{count} operations, torn: {torn:?}")),
            Err(complaint) => Outcome::Silent(complaint),
        }
    }

    fn may_be_torn(&self, torn: &TornEnd, harm: Harm) -> bool {
        let behind_the_known = torn.file == self.known.0 && torn.offset >= self.known.1;
        !self.closed && (harm == Harm::End || behind_the_known)
    }

    fn read(&self, store: &S) -> Result<(State, State), Error> {
        let by_iteration = store.contents()?;
        let mut by_key = State::new();
        for key in &self.keys {
            if let Some(value) = store.get(key)? {
                by_key.insert(key.clone(), value);
            }
        }
        Ok((by_iteration, by_key))
    }

    /// Judges, and counts a panic as silent, since a program cannot handle it.
    fn try_judge(&self, damaged: Image, harm: Harm) -> Outcome {
        catch_unwind(AssertUnwindSafe(|| self.judge(damaged, harm)))
            .unwrap_or_else(|_| Outcome::Silent("a panic".to_owned()))
    }

    /// Returns a file that is not empty; each kind of file is equally likely.
    pub(crate) fn file(&self, random: &mut Random) -> String {
        let mut kinds: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
        for (name, _) in self.image.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            kinds.entry(kind(name)).or_default().push(name);
        }
        let files = kinds.values().nth(random.below(kinds.len())).expect("one of the kinds");
        files[random.below(files.len())].clone()
    }

    /// Returns the harm of losing the bytes of a file after `end`.
    fn harm(&self, name: &str, end: usize) -> Harm {
        let at_the_end = name == self.known.0 && end as u64 > self.known.1;
        if at_the_end { Harm::End } else { Harm::Within }
    }
}

fn kind(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[derive(Debug, Default)]
struct Outcomes {
    reported: u64,
    harmless: u64,
    older: u64,
}

impl Outcomes {
    fn note(&mut self, outcome: Outcome, context: impl Fn() -> String) {
        match outcome {
            Outcome::Reported => self.reported += 1,
            Outcome::Harmless => self.harmless += 1,
            Outcome::Older => self.older += 1,
            Outcome::Silent(what) => panic!("{}: silent, {what}", context()),
        }
    }

    fn report<S: Subject>(&self, name: &str) {
        let Self { reported, harmless, older } = self;
        let older = if *older > 0 { format!(", {older} older") } else { String::new() };
        report(
            &format!("{}{name}", S::PREFIX),
            &format!("{reported} reported, {harmless} harmless{older}, 0 silent, 0 panics"),
        );
        assert!(*reported > 0, "damage was never reported");
    }
}

/// `count` trials over victims of several seeds, every second of them closed.
pub(crate) fn damage<S: Damaged>(
    name: &str,
    count: u64,
    harm: impl Fn(&Victim<S>, &mut Random, &mut Image) -> (Harm, String),
) {
    let victims: Vec<Victim<S>> =
        (0..8).map(|number| victim(first_seed() + number, number % 2 == 0)).collect();
    damage_of(&victims, name, count, harm);
}

/// `count` trials over these victims in turn.
pub(crate) fn damage_of<S: Subject>(
    victims: &[Victim<S>],
    name: &str,
    count: u64,
    harm: impl Fn(&Victim<S>, &mut Random, &mut Image) -> (Harm, String),
) {
    let mut outcomes = Outcomes::default();
    for (number, victim) in (0..count).zip(victims.iter().cycle()) {
        let mut random = Random::new(first_seed() + number);
        let mut image = victim.image.clone();
        let (harm, what) = harm(victim, &mut random, &mut image);
        outcomes.note(victim.try_judge(image, harm), || {
            format!("seed {}, trial {number}, closed: {}: {what}", first_seed(), victim.closed)
        });
    }
    outcomes.report::<S>(name);
}

/// A closed store into which all this was put, in this order.
pub(crate) fn closed_victim<S: Subject>(
    options: S::LogOptions,
    puts: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Victim<S> {
    let folder = MemoryFolder::new();
    let store = S::open_in(&options, Arc::new(folder.clone())).unwrap();
    let mut now = State::new();
    for (key, value) in puts {
        store.put(&key, &value, Durability::None).unwrap();
        now.insert(key, value);
    }
    store.close().unwrap();
    let keys = now.keys().cloned().collect();
    let (image, earlier, known) = (folder.contents(), Image::new(), (String::new(), 0));
    let (ever, states) = (BTreeSet::new(), History::new());
    Victim { options, image, earlier, keys, now, ever, states, closed: true, known }
}

/// Harms an image. Returns how, also in words.
pub(crate) type Harming<S> = fn(&Victim<S>, &mut Random, &mut Image) -> (Harm, String);

/// What may happen to one file, by the names of its trials.
pub(crate) fn harms<S: Subject>() -> [(&'static str, Harming<S>); 4] {
    [("flips", flip), ("cuts", cut), ("misplaced", misplace), ("pieces", overwrite)]
}

/// Flips a bit.
fn flip<S: Subject>(victim: &Victim<S>, random: &mut Random, image: &mut Image) -> (Harm, String) {
    let name = victim.file(random);
    let bytes = image.get_mut(&name).expect("one of the files");
    let (at, bit) = (random.below(bytes.len()), random.below(8));
    bytes[at] ^= 1 << bit;
    (Harm::Within, format!("bit {bit} of byte {at} of {name}, {} bytes", bytes.len()))
}

/// Cuts a file.
fn cut<S: Subject>(victim: &Victim<S>, random: &mut Random, image: &mut Image) -> (Harm, String) {
    let name = victim.file(random);
    let bytes = image.get_mut(&name).expect("one of the files");
    let (full, len) = (bytes.len(), random.below(bytes.len()));
    bytes.truncate(len);
    (victim.harm(&name, full), format!("{name} of {full} bytes cut to {len}"))
}

/// Removes a file, or replaces it by another.
fn misplace<S: Subject>(
    victim: &Victim<S>,
    random: &mut Random,
    image: &mut Image,
) -> (Harm, String) {
    let (name, other) = (victim.file(random), victim.file(random));
    if name == other {
        image.remove(&name);
        return (Harm::Within, format!("{name} is missing"));
    }
    let bytes = image[&other].clone();
    image.insert(name.clone(), bytes);
    (Harm::Within, format!("{name} has the bytes of {other}"))
}

/// Writes zeros, or the bytes of another offset.
fn overwrite<S: Subject>(
    victim: &Victim<S>,
    random: &mut Random,
    image: &mut Image,
) -> (Harm, String) {
    let name = victim.file(random);
    let bytes = image.get_mut(&name).expect("one of the files");
    let len = (1 + random.below(512)).min(bytes.len());
    let (to, from) = (random.below(bytes.len() - len + 1), random.below(bytes.len() - len + 1));
    let what = if random.chance(50) {
        bytes[to..to + len].fill(0);
        format!("{len} bytes of {name} at {to} are 0")
    } else {
        bytes.copy_within(from..from + len, to);
        format!("{len} bytes of {name} at {to} are those at {from}")
    };
    (victim.harm(&name, to + len), what)
}

/// Does each harm so often.
pub(crate) fn every_harm<S: Damaged>(counts: [u64; 4]) {
    for ((name, harm), count) in harms::<S>().into_iter().zip(counts) {
        damage(name, count, harm);
    }
}

/// The probe for which docs/RELIABILITY.md has figures of other engines: 20,000 entries, closed,
/// one bit flipped, opened, every key read. Half of the bits are drawn from all files, half from a
/// drawn file.
pub(crate) fn probe<S: Subject>(options: S::LogOptions, count: u64) {
    let mut random = Random::new(first_seed());
    let entries = (0..20_000).map(|_| (random.bytes(16), random.bytes(100)));
    let victim = closed_victim::<S>(options, entries.collect::<State>());
    damage_of(&[victim], "probe", count, |victim, random, image| {
        let all: usize = image.values().map(Vec::len).sum();
        let (name, at) = if random.chance(50) {
            let mut at = random.below(all);
            let found = victim.image.iter().find(|(_, bytes)| {
                let here = at < bytes.len();
                at -= if here { 0 } else { bytes.len() };
                here
            });
            (found.expect("below the sum of all lengths").0, at)
        } else {
            let name = victim.image.keys().nth(random.below(image.len())).expect("a file");
            (name, random.below(image[name].len()))
        };
        image.get_mut(name).expect("a file")[at] ^= 1 << random.below(8);
        (Harm::Within, format!("byte {at} of {name}"))
    });
}

#[test]
fn every_harm_is_reported_or_harmless() {
    let counts = [(2_000, 10_000), (1_000, 2_000), (500, 2_000), (500, 2_000)];
    every_harm::<LogStore>(counts.map(|(slice, full)| count(slice, full)));
}

#[test]
fn a_flipped_bit_among_twenty_thousand_entries_is_reported_or_harmless() {
    let options = LogOptions::default().segment_bytes(1 << 20).background_compaction(false);
    probe::<LogStore>(options.seed(first_seed()), count(60, 2_400));
}

#[test]
fn every_kind_of_file_is_damaged() {
    let victim: Victim<LogStore> = victim(first_seed(), true);
    let mut random = Random::new(1);
    let names: Vec<String> = (0..200).map(|_| victim.file(&mut random)).collect();
    let kinds: BTreeSet<&str> = names.iter().map(|name| kind(name)).collect();
    assert_eq!(kinds, BTreeSet::from(["MANIFEST", "hint", "log"]));
}
