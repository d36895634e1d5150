//! Flipped bits, cut files and swapped files: reported or harmless, never a wrong answer or a
//! panic. As `crate::damage`, for the ordered store; the words mean the same.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use koel_store::{Durability, Error, LsmOptions, LsmStore, TornEnd};
use testkit::storage::{
    History, MemoryFolder, Op, OrderedOp, OrderedProgram, Random, State, Write,
};

use super::trial::{OrderedTrial, collect, small};
use crate::trial::{count, first_seed, report};

type Image = BTreeMap<String, Vec<u8>>;

/// The files of a store and its contents, all durable.
struct Victim {
    options: LsmOptions,
    image: Image,
    /// The files of the same store at an earlier moment.
    earlier: Image,
    keys: Vec<Vec<u8>>,
    now: State,
    /// Every earlier state, none of them durable.
    states: History,
    closed: bool,
    /// The last file of the log, and how much of it was durable when two more durable writes
    /// followed.
    known: (String, u64),
}

/// How a file was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// The end of the log is unchanged, or has a single wrong bit.
    Within,
    /// The end of the log is gone.
    End,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Reported,
    Harmless,
    Older,
    Silent(String),
}

/// A store with runs and a log that has entries, closed, or left as the power failed.
fn victim(seed: u64, closed: bool) -> Victim {
    let folder = MemoryFolder::new();
    let program = OrderedProgram::new(seed, 40, 3_000);
    let keys = program.keys().to_vec();
    let options = small(seed);
    let mut trial =
        OrderedTrial::open(Arc::new(folder.clone()), &options, &program, History::new()).unwrap();
    let (mut states, mut earlier) = (History::new(), Image::new());
    for (number, op) in program.take(500).chain([OrderedOp::Common(Op::Sync)]).enumerate() {
        let before = trial.history.now().clone();
        trial.step(op).unwrap();
        states.write(difference(&before, trial.history.now()));
        if number == 400 {
            earlier = folder.crash_clone(100, seed).contents();
        }
    }
    let before = folder.contents();
    for number in 0..2 {
        let changes = vec![(keys[1].clone(), Some(vec![number]))];
        let op = Op::Write { changes: changes.clone(), synced: true };
        trial.step(OrderedOp::Common(op)).unwrap();
        states.write(changes);
    }
    let after = folder.contents();
    let grown = |(name, bytes): &(&String, &Vec<u8>)| before.get(*name) != Some(*bytes);
    let (active, _) = after.iter().rfind(|file| file.0.ends_with(".log") && grown(file)).unwrap();
    let known = (active.clone(), before.get(active).map_or(0, |bytes| bytes.len() as u64));
    let now = trial.history.now().clone();
    if closed {
        trial.store.take().unwrap().close().unwrap();
    }
    let image = folder.crash_clone(100, seed).contents();
    Victim { options, image, earlier, keys, now, states, closed, known }
}

/// Returns the changes from one state to the other.
fn difference(before: &State, after: &State) -> Write {
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let new = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
    gone.map(|key| (key.clone(), None))
        .chain(new.map(|(key, value)| (key.clone(), Some(value.clone()))))
        .collect()
}

impl Victim {
    /// Returns whether the damage is noticed, and if not, whether it matters.
    fn judge(&self, damaged: Image, harm: Harm) -> Outcome {
        let folder = Arc::new(MemoryFolder::with(damaged));
        let Ok(store) = self.options.clone().open_in(folder) else { return Outcome::Reported };
        let Ok((by_iteration, by_key)) = self.read(&store) else { return Outcome::Reported };
        if by_iteration == self.now && by_key == self.now {
            return Outcome::Harmless;
        }
        if by_iteration != by_key {
            return Outcome::Silent("iteration and get differ".to_owned());
        }
        let torn = store.open_report().torn.as_ref();
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

    fn read(&self, store: &LsmStore) -> Result<(State, State), Error> {
        let by_iteration = collect(store.iter()?)?;
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
    fn file(&self, random: &mut Random) -> String {
        let mut kinds: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
        for (name, _) in self.image.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            let kind = name.rsplit('.').next().unwrap_or(name);
            kinds.entry(kind).or_default().push(name);
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

    fn report(&self, name: &str) {
        let Self { reported, harmless, older } = self;
        let older = if *older > 0 { format!(", {older} older") } else { String::new() };
        report(
            &format!("ordered {name}"),
            &format!("{reported} reported, {harmless} harmless{older}, 0 silent, 0 panics"),
        );
        assert!(*reported > 0, "damage was never reported");
    }
}

/// `count` trials over victims of several seeds, every second of them closed.
fn damage(
    name: &str,
    count: u64,
    harm: impl Fn(&Victim, &mut Random, &mut Image) -> (Harm, String),
) {
    let mut outcomes = Outcomes::default();
    let victims: Vec<Victim> =
        (0..8).map(|number| victim(first_seed() + number, number % 2 == 0)).collect();
    for number in 0..count {
        let victim = &victims[usize::try_from(number % 8).unwrap()];
        let mut random = Random::new(first_seed() + number);
        let mut image = victim.image.clone();
        let (harm, what) = harm(victim, &mut random, &mut image);
        outcomes.note(victim.try_judge(image, harm), || {
            format!("seed {}, trial {number}, closed: {}: {what}", first_seed(), victim.closed)
        });
    }
    outcomes.report(name);
}

#[test]
fn a_flipped_bit_is_reported_or_harmless() {
    damage("flips", count(1_000, 10_000), |victim, random, image| {
        let name = victim.file(random);
        let bytes = image.get_mut(&name).expect("one of the files");
        let (at, bit) = (random.below(bytes.len()), random.below(8));
        bytes[at] ^= 1 << bit;
        (Harm::Within, format!("bit {bit} of byte {at} of {name}, {} bytes", bytes.len()))
    });
}

#[test]
fn a_cut_file_is_reported_or_harmless() {
    damage("cuts", count(500, 2_000), |victim, random, image| {
        let name = victim.file(random);
        let bytes = image.get_mut(&name).expect("one of the files");
        let (full, len) = (bytes.len(), random.below(bytes.len()));
        bytes.truncate(len);
        (victim.harm(&name, full), format!("{name} of {full} bytes cut to {len}"))
    });
}

#[test]
fn a_missing_or_misplaced_file_is_reported_or_harmless() {
    damage("misplaced", count(300, 2_000), |victim, random, image| {
        let (name, other) = (victim.file(random), victim.file(random));
        if name == other {
            image.remove(&name);
            return (Harm::Within, format!("{name} is missing"));
        }
        let bytes = image[&other].clone();
        image.insert(name.clone(), bytes);
        (Harm::Within, format!("{name} has the bytes of {other}"))
    });
}

#[test]
fn a_piece_of_zeros_or_of_another_offset_is_reported_or_harmless() {
    damage("pieces", count(300, 2_000), |victim, random, image| {
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
    });
}

/// The same store at two moments: a file of the earlier one, or two that are not MANIFEST, and the
/// rest of the later one. With MANIFEST and all that it names, it would be the earlier store.
#[test]
fn a_file_of_an_earlier_moment_is_reported_or_harmless() {
    damage("earlier files", count(300, 2_000), |victim, random, image| {
        let mut names: Vec<&String> = victim.earlier.keys().chain(victim.image.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let mut swapped = Vec::new();
        let mut harm = Harm::Within;
        for _ in 0..=random.below(2) {
            let name = names[random.below(names.len())].clone();
            if name == "MANIFEST" && !swapped.is_empty() {
                break;
            }
            match victim.earlier.get(&name) {
                Some(bytes) => image.insert(name.clone(), bytes.clone()),
                None => image.remove(&name),
            };
            if name == victim.known.0 {
                harm = Harm::End;
            }
            let is_manifest = name == "MANIFEST";
            swapped.push(name);
            if is_manifest {
                break;
            }
        }
        (harm, format!("{swapped:?} are older"))
    });
}

/// The probe for which docs/RELIABILITY.md has figures of other engines: 20,000 entries, closed,
/// one bit flipped, opened, every key read.
#[test]
fn a_flipped_bit_among_twenty_thousand_entries_is_reported_or_harmless() {
    let folder = MemoryFolder::new();
    let options =
        LsmOptions::default().memtable_bytes(1 << 20).background(false).seed(first_seed());
    let store = options.clone().open_in(Arc::new(folder.clone())).unwrap();
    let mut random = Random::new(first_seed());
    let now: State = (0..20_000).map(|_| (random.bytes(16), random.bytes(100))).collect();
    for (key, value) in &now {
        store.put(key, value, Durability::None).unwrap();
    }
    store.close().unwrap();
    let keys = now.keys().cloned().collect();
    let (image, known) = (folder.contents(), (String::new(), 0));
    let (earlier, states) = (Image::new(), History::new());
    let victim = Victim { options, image, earlier, keys, now, states, closed: true, known };
    let mut outcomes = Outcomes::default();
    for trial in 0..count(40, 2_400) {
        let mut image = victim.image.clone();
        let all: usize = image.values().map(Vec::len).sum();
        let (name, at) = if trial % 2 == 0 {
            let mut at = random.below(all);
            let found = image.iter().find(|(_, bytes)| {
                let here = at < bytes.len();
                at -= if here { 0 } else { bytes.len() };
                here
            });
            (found.expect("below the sum of all lengths").0.clone(), at)
        } else {
            let name = image.keys().nth(random.below(image.len())).expect("a file").clone();
            let at = random.below(image[&name].len());
            (name, at)
        };
        image.get_mut(&name).expect("a file")[at] ^= 1 << random.below(8);
        let outcome = victim.try_judge(image, Harm::Within);
        outcomes.note(outcome, || format!("seed {}, byte {at} of {name}", first_seed()));
    }
    outcomes.report("probe");
}
