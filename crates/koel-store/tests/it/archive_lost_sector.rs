//! An archive whose log lost its last bytes after it was closed: what cannot be listed is damage,
//! and one lost sector takes no version.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use koel_store::content::{Archive, ArchiveError, Chunking};
use testkit::storage::{MemoryFolder, Random};

use crate::archive::{export, names, options};

/// The largest sector of a disk.
const SECTOR: usize = 4096;

type Files = BTreeMap<String, Vec<u8>>;

/// Returns the files of a closed archive with two versions, and the bytes of the last.
fn closed() -> (Files, Vec<u8>) {
    let folder = MemoryFolder::new();
    let archive = Archive::new(options().open_in(Arc::new(folder.clone())).unwrap());
    archive.import("first", &b"first"[..], Chunking::default()).unwrap();
    let bytes = Random::new(3).bytes(40_000);
    archive.import("last", &bytes[..], Chunking::default()).unwrap();
    archive.into_store().close().unwrap();
    (folder.contents(), bytes)
}

/// Opens an archive whose newest log ends with `lost` bytes that are not what was written.
fn open(mut files: Files, lost: usize, with: u8) -> Archive {
    let log = files.keys().filter(|name| name.ends_with(".log")).max().unwrap().clone();
    let bytes = files.get_mut(&log).unwrap();
    let start = bytes.len() - lost;
    bytes[start..].fill(with);
    Archive::new(options().open_in(Arc::new(MemoryFolder::with(files))).unwrap())
}

/// Once the last version was neither listed nor exported, without an error.
#[test]
fn a_lost_last_sector_takes_no_version_and_no_number() {
    let (files, bytes) = closed();
    for lost in (8..=SECTOR).step_by(8) {
        let archive = open(files.clone(), lost, if lost % 16 == 0 { 0 } else { 0xa5 });
        assert_eq!(names(&archive), ["first", "last"], "{lost}");
        assert!(export(&archive, "last") == bytes, "{lost}");
        // Neither this import nor the collection loses what only the spare copy has.
        archive.import("next", &b"next"[..], Chunking::default()).unwrap();
        assert_eq!(archive.find("next").unwrap().0.number, 3, "{lost}");
        let _damage = archive.collect(|_| ());
        assert!(export(&archive, "last") == bytes, "{lost}");
    }
}

/// Once the chunks of such versions were dropped, and their numbers were given to others.
#[test]
fn versions_that_cannot_be_listed_are_damage_and_lose_nothing_else() {
    let (files, bytes) = closed();
    // All of the last version but its first chunks, up to the record of the first version.
    for lost in [5_000, 9_000, 25_000] {
        let archive = open(files.clone(), lost, 0);
        let listed: Vec<_> = archive.entries().unwrap().collect();
        assert_eq!(listed.iter().filter(|it| it.is_ok()).count(), 1, "{lost}");
        assert!(listed.last().unwrap().is_err(), "{lost}: the list is not complete");
        assert!(archive.versions().unwrap().any(|it| it.is_err()), "{lost}");
        assert!(!archive.verify(|_| ()).unwrap().broken.is_empty(), "{lost}");
        assert!(archive.export("last", io::sink()).is_err(), "{lost}");
        let keys = archive.store().keys().filter(|key| key.is_ok()).count();
        assert!(matches!(archive.collect(|_| ()), Err(ArchiveError::Store(_))), "{lost}");
        assert_eq!(archive.store().keys().filter(|key| key.is_ok()).count(), keys, "{lost}");
        archive.import("next", &b"next"[..], Chunking::default()).unwrap();
        assert_eq!(archive.find("next").unwrap().0.number, 3, "{lost}: the number was used");
        // The chunks that are left are found again.
        let again = archive.import("last", &bytes[..], Chunking::default()).unwrap();
        assert!(again.new_chunks < again.chunks, "{lost}");
    }
}
