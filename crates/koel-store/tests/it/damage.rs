//! Flipped bits, cut files and files in each other's place: reported or harmless, never a wrong answer and never a panic.
//!
//! *Reported* is an error from opening, reading or iterating, or, of a store that was not closed, a torn end that [`LogStore::opened`] tells
//! of and a state that once was: at the very end of a log that goes on behind what the manifest knows, damage and a torn write look alike.
//! *Harmless* is that every answer is still right. *Older* is a state that once was, with no report: allowed only where the last log of a
//! store that was not closed is cut between two records, which is exactly what a crash before the later ones leaves. All else is silent,
//! and fails.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use koel_store::files::Folder;
use koel_store::{Batch, Durability, Error, LogStore, Options, TornEnd};
use testkit::storage::{History, MemoryFolder, Op, Program, Random, State, Write};

use crate::trial::{Trial, count, first_seed, flip, iterate, report};

pub(crate) type Image = BTreeMap<String, Vec<u8>>;

/// The files of a store and what is in it, all of it durable.
pub(crate) struct Victim {
    pub(crate) image: Image,
    keys: Vec<Vec<u8>>,
    pub(crate) now: State,
    /// Every key with every value that it ever had.
    pub(crate) ever: BTreeSet<(Vec<u8>, Vec<u8>)>,
    /// Every state that ever was, none of them durable.
    states: History,
    pub(crate) closed: bool,
    /// The last log, and how much of it was durable when two more writes were made durable behind it: up to here no damage may pass for a
    /// torn end, as long as those two are there.
    known: (String, u64),
}

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// The end of the last log is as it was, or has a single wrong bit.
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

pub(crate) fn options() -> Options {
    Options::default().segment_bytes(8192).background_compaction(false)
}

/// A store of some segments, with hints, dead bytes, tombstones, batches and large values; closed, or left as the power failed.
pub(crate) fn victim(seed: u64, closed: bool) -> Victim {
    let folder = MemoryFolder::new();
    let program = Program::new(seed, 40, 20_000);
    let keys = program.keys().to_vec();
    let options = options().seed(seed);
    let mut trial =
        Trial::open(Arc::new(folder.clone()), &options, &program, History::new()).unwrap();
    let (mut states, mut ever) = (History::new(), BTreeSet::new());
    for op in program.take(400).chain([Op::Sync]) {
        if let Op::Write { changes, .. } = &op {
            let values = changes.iter().cloned();
            ever.extend(values.filter_map(|(key, value)| Some((key, value?))));
        }
        let before = trial.history.now().clone();
        trial.step(op).unwrap();
        states.write(difference(&before, trial.history.now()));
    }
    let before = folder.contents();
    for number in 0..2 {
        let changes = vec![(keys[1].clone(), Some(vec![number]))];
        trial.step(Op::Write { changes: changes.clone(), synced: true }).unwrap();
        states.write(changes);
        ever.insert((keys[1].clone(), vec![number]));
    }
    // The log that these went to. Where they began a new one, nothing of it was durable before.
    let after = folder.contents();
    let grown = |(name, bytes): &(&String, &Vec<u8>)| before.get(*name) != Some(*bytes);
    let (active, _) = after.iter().rfind(|file| file.0.ends_with(".log") && grown(file)).unwrap();
    let known = (active.clone(), before.get(active).map_or(0, |bytes| bytes.len() as u64));
    let now = trial.history.now().clone();
    if closed {
        trial.store.take().unwrap().close().unwrap();
    }
    let image = folder.crash_clone(100, seed).contents();
    Victim { image, keys, now, ever, states, closed, known }
}

/// What turns one state into the other.
fn difference(before: &State, after: &State) -> Write {
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let new = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
    gone.map(|key| (key.clone(), None))
        .chain(new.map(|(key, value)| (key.clone(), Some(value.clone()))))
        .collect()
}

impl Victim {
    /// Whether `damaged` is told from the real files, and if not, whether it matters.
    fn judge(&self, damaged: Image, harm: Harm) -> Outcome {
        let folder = Arc::new(MemoryFolder::with(damaged));
        let Ok(store) = options().open_in(folder) else { return Outcome::Reported };
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

    fn read(&self, store: &LogStore) -> Result<(State, State), Error> {
        let by_iteration = iterate(store)?;
        let mut by_key = State::new();
        for key in &self.keys {
            if let Some(value) = store.get(key)? {
                by_key.insert(key.clone(), value);
            }
        }
        Ok((by_iteration, by_key))
    }

    /// Judges, and counts a panic as silent: it reports nothing that a program could handle.
    fn try_judge(&self, damaged: Image, harm: Harm) -> Outcome {
        catch_unwind(AssertUnwindSafe(|| self.judge(damaged, harm)))
            .unwrap_or_else(|_| Outcome::Silent("a panic".to_owned()))
    }

    /// A file that is not empty, each kind as often as any other, however many there are of it.
    pub(crate) fn file(&self, random: &mut Random) -> String {
        let mut kinds: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
        for (name, _) in self.image.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            kinds.entry(kind(name)).or_default().push(name);
        }
        let files = kinds.values().nth(random.below(kinds.len())).expect("one of the kinds");
        files[random.below(files.len())].clone()
    }

    /// What it means to lose the bytes of a file up to `end`.
    fn harm(&self, name: &str, end: usize) -> Harm {
        let at_the_end = name == self.known.0 && end as u64 > self.known.1;
        if at_the_end { Harm::End } else { Harm::Within }
    }
}

fn kind(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[derive(Debug, Default)]
struct Tally {
    reported: u64,
    harmless: u64,
    older: u64,
}

impl Tally {
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
            name,
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
    let mut tally = Tally::default();
    let victims: Vec<Victim> =
        (0..8).map(|number| victim(first_seed() + number, number % 2 == 0)).collect();
    for number in 0..count {
        let victim = &victims[usize::try_from(number % 8).unwrap()];
        let mut random = Random::new(first_seed() + number);
        let mut image = victim.image.clone();
        let (harm, what) = harm(victim, &mut random, &mut image);
        tally.note(victim.try_judge(image, harm), || {
            format!("seed {}, trial {number}, closed: {}: {what}", first_seed(), victim.closed)
        });
    }
    tally.report(name);
}

#[test]
fn a_flipped_bit_is_reported_or_harmless() {
    damage("flips", count(2_000, 10_000), |victim, random, image| {
        let name = victim.file(random);
        let bytes = image.get_mut(&name).expect("one of the files");
        let (at, bit) = (random.below(bytes.len()), random.below(8));
        bytes[at] ^= 1 << bit;
        (Harm::Within, format!("bit {bit} of byte {at} of {name}, {} bytes", bytes.len()))
    });
}

#[test]
fn a_cut_file_is_reported_or_harmless() {
    damage("cuts", count(1_000, 2_000), |victim, random, image| {
        let name = victim.file(random);
        let bytes = image.get_mut(&name).expect("one of the files");
        let (full, len) = (bytes.len(), random.below(bytes.len()));
        bytes.truncate(len);
        (victim.harm(&name, full), format!("{name} of {full} bytes cut to {len}"))
    });
}

#[test]
fn a_missing_or_misplaced_file_is_reported_or_harmless() {
    damage("misplaced", count(500, 2_000), |victim, random, image| {
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
fn a_piece_of_zeros_or_of_another_place_is_reported_or_harmless() {
    damage("pieces", count(500, 2_000), |victim, random, image| {
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

/// The probe that docs/RELIABILITY.md has figures of other engines for: 20,000 entries, closed, one bit flipped, opened, every key read. Half
/// of the bits are any bit of any file, half any bit of a file that was chosen first.
#[test]
fn a_flipped_bit_among_twenty_thousand_entries_is_reported_or_harmless() {
    let folder = MemoryFolder::new();
    let options = Options::default().segment_bytes(1 << 20).background_compaction(false);
    let store = options.seed(first_seed()).open_in(Arc::new(folder.clone())).unwrap();
    let mut random = Random::new(first_seed());
    let now: State = (0..20_000).map(|_| (random.bytes(16), random.bytes(100))).collect();
    for (key, value) in &now {
        store.put(key, value, Durability::None).unwrap();
    }
    store.close().unwrap();
    let keys = now.keys().cloned().collect();
    let (image, known) = (folder.contents(), (String::new(), 0));
    let (ever, states) = (BTreeSet::new(), History::new());
    let victim = Victim { image, keys, now, ever, states, closed: true, known };
    let mut tally = Tally::default();
    for trial in 0..count(60, 2_400) {
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
        tally.note(outcome, || format!("seed {}, byte {at} of {name}", first_seed()));
    }
    tally.report("probe");
}

#[test]
fn every_kind_of_file_is_damaged() {
    let victim = victim(first_seed(), true);
    let mut random = Random::new(1);
    let names: Vec<String> = (0..200).map(|_| victim.file(&mut random)).collect();
    let kinds: BTreeSet<&str> = names.iter().map(|name| kind(name)).collect();
    assert_eq!(kinds, BTreeSet::from(["MANIFEST", "hint", "log"]));
}

/// A compaction chose the segment with the damage again and again, and none of the others.
#[test]
fn damage_in_one_segment_keeps_the_others_from_nothing() {
    let folder = MemoryFolder::new();
    let open = |folder: &MemoryFolder| options().seed(1).open_in(Arc::new(folder.clone())).unwrap();
    let store = open(&folder);
    let put = |store: &LogStore, key: u8, value: u8| {
        store.put(&[key], &[value; 700], Durability::None).unwrap();
    };
    // Of the first segment most is dead, so it is the best to begin with; of each later one a half.
    (0..11).for_each(|key| put(&store, key, 0));
    (0..10).for_each(|key| put(&store, key, 1));
    for key in 20..120 {
        put(&store, key, 0);
        put(&store, 200, key);
    }
    store.close().unwrap();
    let mut files = folder.contents();
    let first = files.iter_mut().find(|(name, _)| name.ends_with(".log")).unwrap();
    let (name, end) = (first.0.clone(), first.1.len());
    first.1[end - 9] ^= 1;
    let folder = MemoryFolder::with(files);
    let store = open(&folder);
    let before = store.stats();
    let is_of_the_first = |result: Result<_, Error>| match result {
        Err(Error::Damaged { file, .. }) => file == name,
        _ => false,
    };
    assert!(is_of_the_first(store.compact()));
    let after = store.stats();
    assert!(after.dead_bytes < 9000 && after.log_bytes < before.log_bytes * 2 / 3, "{after:?}");
    // It is remembered, and not read again.
    assert!(is_of_the_first(store.compact()));
    assert_eq!(store.stats().compacted_bytes, after.compacted_bytes);
    (20..120).for_each(|key| assert_eq!(store.get(&[key]).unwrap(), Some(vec![0; 700])));
    drop(store);
    let store = open(&folder);
    assert!(is_of_the_first(store.compact()), "another session looks once more");
}

/// A manifest that opens no more was read at the next opening, and not by who was asked to check everything.
#[test]
fn verify_looks_for_the_manifest_of_its_own_store() {
    let other = |seed: u64| {
        let folder = MemoryFolder::new();
        let store = options().seed(seed).open_in(Arc::new(folder.clone())).unwrap();
        (0..20).for_each(|key| store.put(&[key], &[0; 700], Durability::None).unwrap());
        store.close().unwrap();
        folder.contents().remove("MANIFEST").unwrap()
    };
    let folder = MemoryFolder::new();
    let store = options().seed(1).open_in(Arc::new(folder.clone())).unwrap();
    let damages = || store.verify(|_, _| ()).unwrap().damages;
    let put_back = |bytes: &[u8]| {
        folder.remove("MANIFEST").unwrap();
        folder.create("MANIFEST").unwrap().write_at(bytes, 0).unwrap();
    };
    assert_eq!(damages(), []);
    let older = folder.contents().remove("MANIFEST").unwrap();
    (0..20).for_each(|key| store.put(&[key], &[0; 700], Durability::None).unwrap());
    store.compact().unwrap();
    assert_eq!(damages(), []);
    for wrong in [&older, &other(2), &b"koelman\n"[..].to_vec()] {
        put_back(wrong);
        assert!(matches!(&damages()[..], [damage] if damage.file == "MANIFEST"), "{:?}", damages());
    }
    put_back(&other(1));
    assert_eq!(damages(), [], "that of a store with the same files");
    folder.remove("MANIFEST").unwrap();
    assert!(matches!(&damages()[..], [damage] if damage.file == "MANIFEST"), "{:?}", damages());
    store.put(b"key", &[0; 8000], Durability::None).unwrap();
    assert_eq!(damages(), [], "it is written anew with each segment");
}

/// Tombstones in front of, in and behind damage: what they hide never comes back, whatever is compacted. Where hints tell whose the damaged record was, every key can be written and deleted.
#[test]
fn beside_damage_keys_are_written_and_deleted_and_stay_so() {
    for seed in first_seed()..first_seed() + count(100, 2_000) {
        deletes_beside_damage(seed);
    }
}

fn deletes_beside_damage(seed: u64) {
    let mut random = Random::new(seed);
    let folder = MemoryFolder::new();
    let open = |folder: &MemoryFolder| options().seed(1).open_in(Arc::new(folder.clone()));
    let store = open(&folder).unwrap();
    let mut now = State::new();
    let step = |store: &LogStore, now: &mut State, random: &mut Random| {
        let key = vec![u8::try_from(random.below(100)).unwrap()];
        if random.chance(40) {
            let was_there = store.delete(&key, Durability::None).unwrap();
            assert_eq!(was_there, now.remove(&key).is_some(), "{seed}: key {key:?}");
        } else {
            let count = random.below(900);
            let value = random.bytes(count);
            store.put(&key, &value, Durability::None).unwrap();
            now.insert(key, value);
        }
    };
    (0..200).for_each(|_| step(&store, &mut now, &mut random));
    store.close().unwrap();
    // A bit of a record in any segment but the last one turns over; hints tell of the record as it was.
    let mut files = folder.contents();
    let logs: Vec<String> = files.keys().filter(|name| name.ends_with(".log")).cloned().collect();
    let name = &logs[random.below(logs.len() - 1)];
    let log = files.get_mut(name).unwrap();
    let at = 40 + random.below(log.len() - 40);
    log[at] ^= 1 << random.below(8);
    let mut folder = MemoryFolder::with(files);
    for _ in 0..4 {
        let store = open(&folder).unwrap();
        for _ in 0..60 {
            step(&store, &mut now, &mut random);
            if random.chance(10) {
                let compacted = store.compact();
                assert!(matches!(compacted, Ok(_) | Err(Error::Damaged { .. })), "{compacted:?}");
            }
        }
        let mut damaged = 0;
        for key in 0..100 {
            match store.get(&[key]) {
                Ok(found) => assert!(found.as_ref() == now.get(&[key][..]), "{seed}: key {key}"),
                Err(_) => damaged += 1,
            }
        }
        assert!(damaged <= 1, "{seed}: {damaged} keys for one bit");
        drop(store);
        folder = folder.crash_clone(100, seed);
    }
}

/// Opening looked at the earlier record of a key that was written again, and one flipped bit in it took all other keys along.
#[test]
fn a_damaged_record_keeps_no_other_key_from_being_read() {
    let folder = MemoryFolder::new();
    let store = options().seed(1).open_in(Arc::new(folder.clone())).unwrap();
    let value = |key: u8, version: u8| [&[0xa5, key, version][..], &[version; 700]].concat();
    for version in 0..3 {
        (0..30).for_each(|key| {
            store.put(&[key], &value(key, version), Durability::None).unwrap();
        });
    }
    (20..30).for_each(|key| assert!(store.delete(&[key], Durability::None).unwrap()));
    store.close().unwrap();
    let files = folder.contents();
    for (key, version) in (0..30).flat_map(|key| (0..3).map(move |version| (key, version))) {
        let mut files = files.clone();
        let damaged = value(key, version);
        for log in files.iter_mut().filter(|(name, _)| name.ends_with(".log")).map(|(_, log)| log) {
            if let Some(at) = log.windows(703).position(|bytes| bytes == damaged) {
                log[at + 300] ^= 1;
            }
        }
        let folder = MemoryFolder::with(files);
        // The second time all other segments were compacted.
        for _ in 0..2 {
            let store = options().open_in(Arc::new(folder.clone())).unwrap();
            for other in 0..30 {
                let found = store.get(&[other]);
                let expected = (other < 20).then(|| value(other, 2));
                if (other, 2) == (key, version) && other < 20 {
                    assert!(matches!(found, Err(Error::Damaged { .. })), "key {other}");
                } else {
                    assert!(found.unwrap() == expected, "key {other} beside {key}.{version}");
                }
            }
            assert_eq!(store.stats().keys, 20);
            assert_eq!(store.verify(|_, _| ()).unwrap().damages.len(), 1);
            let compacted = store.compact();
            assert!(matches!(compacted, Ok(_) | Err(Error::Damaged { .. })), "{compacted:?}");
        }
        // Its own key can be written again, alone or in a batch, and deleted.
        let store = options().open_in(Arc::new(folder)).unwrap();
        let mut batch = Batch::new();
        batch.put(&[key], &value(key, 3)).unwrap();
        if version == 1 {
            store.write(&batch, Durability::None).unwrap();
        } else {
            store.put(&[key], &value(key, 3), Durability::None).unwrap();
        }
        assert!(store.get(&[key]).unwrap() == Some(value(key, 3)));
        assert!(store.delete(&[key], Durability::None).unwrap());
        assert_eq!(store.get(&[key]).unwrap(), None);
    }
}

/// An iterator ended at the first damage, and what lay behind it could only be reached by who knew its keys.
#[test]
fn an_iteration_goes_on_behind_damage() {
    let folder = MemoryFolder::new();
    let store = options().seed(1).open_in(Arc::new(folder.clone())).unwrap();
    (0..30).for_each(|key| store.put(&[key], &[key; 700], Durability::None).unwrap());
    store.close().unwrap();
    let mut files = folder.contents();
    [0, 7, 8, 29].into_iter().for_each(|key| flip(&mut files, &[key; 700]));
    let store = options().open_in(Arc::new(MemoryFolder::with(files))).unwrap();
    let (sound, damaged): (Vec<_>, Vec<_>) = store.iter().partition(Result::is_ok);
    assert!(damaged.iter().all(|item| matches!(item, Err(Error::Damaged { .. }))));
    // Two that are side by side are one.
    assert_eq!(damaged.len(), 3);
    let keys: Vec<u8> = sound.into_iter().map(|item| item.unwrap().0[0]).collect();
    assert_eq!(keys, (0..30).filter(|key| ![0, 7, 8, 29].contains(key)).collect::<Vec<u8>>());
    assert_eq!(store.keys().filter(Result::is_err).count(), 3);
}
