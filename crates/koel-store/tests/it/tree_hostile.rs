//! Archives that were made to do harm: nothing is written outside the target, nothing runs for
//! ever, and nothing takes more memory or stack than there is.
//!
//! The records are made here, by docs/FORMAT-STORES.md: an import would not make them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use koel_store::Durability;
use koel_store::content::{Archive, ArchiveError, Entry, RestoreOptions, Selection, Target};
use testkit::storage::Random;
use testkit::trees::snapshot;

use crate::archive::archive;
use crate::trial::{count, first_seed, report};

/// Length, hash, height 0: bytes in one chunk.
fn content(archive: &Archive, bytes: &[u8]) -> Vec<u8> {
    let hash = *blake3::hash(bytes).as_bytes();
    if !bytes.is_empty() {
        let key = [&[0xff, b'c'], &hash[..]].concat();
        archive.store().put(&key, bytes, Durability::None).unwrap();
    }
    [&(bytes.len() as u64).to_le_bytes()[..], &hash, &[0]].concat()
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_le_bytes(), bytes].concat()
}

fn entry(kind: u8, name: &[u8], rest: &[u8]) -> Vec<u8> {
    let attributes = [&0o644_u16.to_le_bytes()[..], &[0; 8], &[0; 12]].concat();
    [&[kind, 1], &text(name)[..], &attributes, rest].concat()
}

fn file(archive: &Archive, name: &[u8], bytes: &[u8], link_number: u64) -> Vec<u8> {
    let end = [&link_number.to_le_bytes()[..], &[0; 20]].concat();
    entry(0, name, &[content(archive, bytes), end].concat())
}

fn folder(archive: &Archive, name: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
    entry(1, name, &folder_of(archive, &entries.concat(), entries.len() as u64))
}

/// A folder with this listing, and a number of entries below it.
fn folder_of(archive: &Archive, listing: &[u8], below: u64) -> Vec<u8> {
    [content(archive, listing), below.to_le_bytes().to_vec()].concat()
}

fn link(name: &[u8], target: &[u8]) -> Vec<u8> {
    entry(2, name, &text(target))
}

/// Stores a version of a name.
fn version(archive: &Archive, number: u64, name: &[u8], entry: &[u8]) {
    let value = [&[3][..], &[0; 12], &text(name), entry].concat();
    let numbers = [&[3][..], &number.to_le_bytes()].concat();
    let next = [&[3][..], &(number + 1).to_le_bytes()].concat();
    let version = [&[0xff, b'v'], &number.to_le_bytes()[..]].concat();
    for (key, value) in
        [(&version[..], value), (&[&[0xff, b'n'], name].concat(), numbers), (b"\xfft", next)]
    {
        archive.store().put(key, &value, Durability::None).unwrap();
    }
}

fn restore_all(archive: &Archive, to: &Path) -> usize {
    let mut problems = 0;
    for version in archive.entries().unwrap() {
        let Ok(version) = version else {
            problems += 1;
            continue;
        };
        let all = &mut |_: &[u8], _: &Entry| Selection::Take;
        let options = RestoreOptions::default();
        let target = Target::Below(to);
        let restored = archive
            .restore(&version.name, &version.entry, target, &options, all, &mut |_| ())
            .unwrap();
        problems += restored.problems.len();
    }
    problems
}

/// A folder with a target to restore in, and a precious file beside it.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("outside")).unwrap();
    fs::write(place.path().join("outside/precious"), "as it was").unwrap();
    fs::create_dir(place.path().join("target")).unwrap();
    place
}

#[test]
fn names_that_lead_out_of_the_target_are_refused() {
    let absolute = tempfile::tempdir().unwrap().path().join("koel-was-here");
    for name in [
        &b".."[..],
        b"../outside/precious",
        absolute.as_os_str().as_encoded_bytes(),
        b"a/../../outside/precious",
        b"a/b",
        b"",
        b".",
        b"a\0b",
    ] {
        // As the name of an entry, and as that of a version.
        for inside in [true, false] {
            let (archive, place) = (archive(), place());
            if inside {
                let inner = [file(&archive, name, b"harm", 0)];
                version(&archive, 1, b"tree", &folder(&archive, b"", &inner));
            } else if name != b"a/b" {
                version(&archive, 1, name, &file(&archive, b"", b"harm", 0));
            } else {
                continue;
            }
            let before = snapshot(&place.path().join("outside")).unwrap();
            assert_eq!(restore_all(&archive, &place.path().join("target")), 1, "{name:?}");
            assert_eq!(snapshot(&place.path().join("outside")).unwrap(), before);
            assert!(!absolute.exists());
            assert_eq!(archive.verify(|_| ()).unwrap().broken.len(), 1, "{name:?}");
        }
    }
}

#[test]
fn nothing_is_written_through_a_link_of_the_archive() {
    let (archive, place) = (archive(), place());
    let outside = place.path().join("outside");
    let target = outside.as_os_str().as_encoded_bytes();
    let harm = |archive: &Archive| file(archive, b"precious", b"harm", 0);
    // A link and a folder of the same name, in both orders, in one listing.
    let inner = folder(&archive, b"d", &[harm(&archive)]);
    let twice = folder(&archive, b"", &[link(b"d", target), inner.clone()]);
    version(&archive, 1, b"twice", &twice);
    let reversed = folder(&archive, b"", &[inner, link(b"d", target)]);
    version(&archive, 2, b"reversed", &reversed);
    // A name that is a link, and another name below it.
    version(&archive, 3, b"n", &link(b"", target));
    version(&archive, 4, b"n/precious", &file(&archive, b"", b"harm", 0));
    // A hard link to what a link leads to.
    let first = [link(b"a", target), file(&archive, b"b", b"x", 1)];
    version(&archive, 5, b"hard", &folder(&archive, b"", &first));
    version(&archive, 6, b"l/precious", &file(&archive, b"", b"harm", 1));
    let copy = place.path().join("target");
    symlink(&outside, copy.join("l")).unwrap();
    let before = snapshot(&outside).unwrap();
    let problems = restore_all(&archive, &copy);
    assert_eq!(snapshot(&outside).unwrap(), before);
    assert_eq!(problems, 4, "two listings, and two names below links");
}

/// 2^60 files in 60 records.
#[test]
fn folders_that_contain_each_other_many_times_are_visited_once() {
    let archive = archive();
    let mut inner = vec![file(&archive, b"f", b"text", 0)];
    for _ in 0..60 {
        inner = vec![folder(&archive, b"a", &inner), folder(&archive, b"b", &inner)];
    }
    version(&archive, 1, b"bomb", &folder(&archive, b"", &inner));
    let verified = archive.verify(|_| ()).unwrap();
    assert_eq!((verified.sound, verified.broken), (1 << 60, Vec::new()));
    assert_eq!(archive.collect(|_| ()).unwrap().dropped, 0);
}

#[test]
fn folders_too_deep_for_the_stack_are_reported() {
    let (archive, place) = (archive(), place());
    let mut inner = Vec::new();
    for _ in 0..20_000 {
        inner = vec![folder(&archive, b"d", &inner)];
    }
    version(&archive, 1, b"deep", &folder(&archive, b"", &inner));
    assert_eq!(archive.verify(|_| ()).unwrap().broken.len(), 1);
    assert!(matches!(archive.collect(|_| ()), Err(ArchiveError::Broken { .. })));
    assert_eq!(restore_all(&archive, &place.path().join("target")), 1);
    let (_, entry) = archive.find("deep").unwrap();
    assert!(archive.walk("deep", &entry, &mut |_, _| Ok(true)).is_err());
}

/// Lengths that no byte stands for.
#[test]
fn lengths_in_records_reserve_nothing() {
    let archive = archive();
    let huge = [&u64::MAX.to_le_bytes()[..], &[7; 32], &[6], &[8; 32]].concat();
    let end = [&0_u64.to_le_bytes()[..], &[0; 20]].concat();
    version(&archive, 1, b"file", &entry(0, b"", &[huge.clone(), end].concat()));
    let tree = [&huge[..], &u64::MAX.to_le_bytes()].concat();
    version(&archive, 2, b"tree", &entry(1, b"", &tree));
    let verified = archive.verify(|_| ()).unwrap();
    assert_eq!((verified.sound, verified.broken.len()), (0, 2));
    let next = [&[3][..], &u64::MAX.to_le_bytes()].concat();
    archive.store().put(b"\xfft", &next, Durability::None).unwrap();
    assert_eq!(archive.entries().unwrap().count(), 2);
}

/// A random entry: sound, or with a name, a target, a link number or bytes of an attacker.
fn random_entry(archive: &Archive, random: &mut Random, name: &[u8], depth: u32) -> Vec<u8> {
    let targets: [&[u8]; 5] = [b"..", b"../outside", b"../../outside", b"/", b"a"];
    match random.below(if depth == 0 { 3 } else { 5 }) {
        0 => link(name, targets[random.below(5)]),
        1 | 2 => file(archive, name, b"harm", random.below(3) as u64),
        _ => {
            let names: [&[u8]; 8] = [b"A", b"a", b"b", b"c", b"precious", b"..", b"x/y", b"."];
            let mut entries = Vec::new();
            for candidate in names {
                if random.chance(if candidate.len() == 1 { 50 } else { 10 }) {
                    entries.push(random_entry(archive, random, candidate, depth - 1));
                }
            }
            let mut bytes = entries.concat();
            if random.chance(5) && !bytes.is_empty() {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            let below = if random.chance(20) { u64::MAX } else { entries.len() as u64 };
            entry(1, name, &folder_of(archive, &bytes, below))
        }
    }
}

#[test]
fn no_hostile_archive_writes_outside_the_target() {
    let runs = count(150, 20_000);
    for seed in (first_seed()..).take(usize::try_from(runs).unwrap()) {
        let (archive, place) = (archive(), place());
        let mut random = Random::new(seed);
        let names: [&[u8]; 5] = [b"a", b"a/b", b"b", b"b/precious", b"c"];
        for (number, name) in (1..).zip(names) {
            let entry = random_entry(&archive, &mut random, b"", 4);
            version(&archive, number, name, &entry);
        }
        let before = snapshot(&place.path().join("outside")).unwrap();
        let target = place.path().join("target");
        if random.chance(30) {
            symlink("../outside", target.join("a")).unwrap();
        }
        restore_all(&archive, &target);
        archive.verify(|_| ()).unwrap();
        assert_eq!(snapshot(&place.path().join("outside")).unwrap(), before, "seed {seed}");
        let mut beside: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        beside.sort();
        assert_eq!(beside, ["outside", "target"], "seed {seed}");
    }
    report("hostile", &format!("{runs} archives: nothing outside"));
}
