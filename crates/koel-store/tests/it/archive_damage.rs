//! An archive with damaged records: no wrong byte is exported, and imports repair what they can.
//! One whose log lost its last bytes after it was closed: what cannot be listed is damage, and one
//! lost sector takes no version.

use std::io;
use std::sync::Arc;

use koel_store::Error;
use koel_store::content::{Archive, ArchiveError, Chunking};
use testkit::storage::{MemoryFolder, Random};

use crate::archive::{archive, export, names, options};
use crate::damage::Image;
use crate::trial::flip;

/// Returns an archive with a chunk that was deleted or changed directly in the store.
fn without_a_chunk(replace: Option<&[u8]>) -> (Archive, Vec<u8>) {
    let archive = archive();
    let bytes = Random::new(7).bytes(200_000);
    archive.import("name", &bytes[..], Chunking::default()).unwrap();
    let hash = *blake3::hash(&bytes[16_384..32_768]).as_bytes();
    let key = [&[0xff, b'c'], &hash[..]].concat();
    match replace {
        None => assert!(archive.store().delete(&key, koel_store::Durability::None).unwrap()),
        Some(value) => archive.store().put(&key, value, koel_store::Durability::None).unwrap(),
    }
    (archive, bytes)
}

#[test]
fn a_wrong_or_missing_chunk_is_never_exported() {
    for replace in [None, Some(&b"wrong"[..]), Some(&[][..])] {
        let (archive, bytes) = without_a_chunk(replace);
        let mut out = Vec::new();
        let error = archive.export("name", &mut out).unwrap_err();
        assert!(error.to_string().contains("chunk 1 "), "{error}");
        assert!(out == bytes[..16_384], "what comes before it is right");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, "as it was").unwrap();
        assert!(archive.export_file("name", &path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"as it was");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
        let verified = archive.verify(|_| ()).unwrap();
        assert_eq!((verified.sound, &verified.broken[0].0[..]), (0, "name"));
    }
}

/// Returns an empty archive in memory, and its folder.
fn in_memory() -> (MemoryFolder, Archive) {
    let folder = MemoryFolder::new();
    let archive = Archive::new(options().open_in(Arc::new(folder.clone())).unwrap());
    (folder, archive)
}

/// Closes an archive, and opens it again with a flipped bit in this part.
fn reopened(folder: &MemoryFolder, archive: Archive, part: &[u8]) -> Archive {
    archive.into_store().close().unwrap();
    let mut files = folder.contents();
    flip(&mut files, part);
    Archive::new(options().open_in(Arc::new(MemoryFolder::with(files))).unwrap())
}

/// Returns an archive with a flipped bit in this block of a stored chunk.
fn with_a_flipped_bit(chunk: usize, block: usize) -> (Archive, Vec<u8>) {
    let (folder, archive) = in_memory();
    let bytes = Random::new(12).bytes(4 * chunk);
    archive.import("name", &bytes[..], Chunking::Fixed(chunk)).unwrap();
    let part = &bytes[chunk + (block << 16) + 100..][..32];
    (reopened(&folder, archive, part), bytes)
}

/// Once only the first block of a chunk was checked.
#[test]
fn importing_a_file_again_repairs_a_damaged_chunk() {
    for (chunk, block) in [(150_000, 0), (150_000, 1), (150_000, 2), (4096, 0)] {
        let (archive, bytes) = with_a_flipped_bit(chunk, block);
        assert!(archive.export("name", io::sink()).is_err());
        let again = archive.import("again", &bytes[..], Chunking::Fixed(chunk)).unwrap();
        assert_eq!((again.chunks, again.new_chunks, again.new_bytes), (4, 1, chunk as u64));
        assert!(export(&archive, "again") == bytes && export(&archive, "name") == bytes);
        let once_more = archive.import("name", &bytes[..], Chunking::Fixed(chunk)).unwrap();
        assert_eq!(once_more.new_chunks, 0);
    }
}

/// Once such a file could be neither imported again nor removed, or was never listed again.
#[test]
fn a_file_whose_own_record_is_damaged_is_imported_again_or_removed() {
    // The record of the version, and the list of versions, for which the versions stand in.
    for (part, broken) in [(&b"\xffv\x02\0\0\0\0\0\0\0"[..], 1), (b"\xffnhurt", 0)] {
        for imported in [true, false] {
            let (folder, archive) = in_memory();
            for name in ["first", "hurt", "last"] {
                archive.import(name, &b"bytes"[..], Chunking::default()).unwrap();
            }
            let archive = reopened(&folder, archive, part);
            assert_eq!(archive.verify(|_| ()).unwrap().broken.len(), broken);
            if imported {
                archive.import("hurt", &b"new bytes"[..], Chunking::default()).unwrap();
                assert_eq!(export(&archive, "hurt"), b"new bytes");
            } else {
                assert!(archive.remove("hurt").unwrap());
                assert!(!archive.remove("hurt").unwrap());
            }
            let listed = names(&archive).iter().filter(|name| *name == "hurt").count();
            assert_eq!(listed, usize::from(imported));
            let verified = archive.verify(|_| ()).unwrap();
            // A list of versions is written again with the old version, which is sound.
            let versions = u64::from(imported) * if broken == 0 { 2 } else { 1 };
            assert_eq!((verified.sound, verified.broken), (2 + versions, vec![]));
        }
    }
}

/// Once nothing was listed, collected or imported under a new name.
#[test]
fn an_archive_with_a_damaged_next_number_still_works() {
    let (folder, archive) = in_memory();
    for name in ["first", "second", "last"] {
        archive.import(name, name.as_bytes(), Chunking::default()).unwrap();
    }
    let archive = reopened(&folder, archive, b"\xfft\x03\x04\0\0\0\0\0\0\0");
    assert_eq!(names(&archive), ["first", "second", "last"]);
    archive.import("new", &b"new"[..], Chunking::default()).unwrap();
    assert_eq!(archive.find("new").unwrap().0.number, 4);
    // The damaged record was replaced, so there is damage only while it is still on disk.
    let _damage = archive.collect(|_| ());
    assert_eq!(names(&archive), ["first", "second", "last", "new"]);
    for name in ["first", "second", "last", "new"] {
        assert_eq!(export(&archive, name), name.as_bytes());
    }
}

/// Once the search ended at the damage and nothing was compacted; later, chunks after it were not
/// dropped.
#[test]
fn a_collection_frees_space_despite_a_damaged_record() {
    let folder = MemoryFolder::new();
    let options = || options().segment_bytes(100_000);
    let archive = Archive::new(options().open_in(Arc::new(folder.clone())).unwrap());
    let bytes = Random::new(13).bytes(1_100_000);
    archive.import("goes", &bytes[..1_000_000], Chunking::Fixed(4096)).unwrap();
    archive.import("stays", &bytes[1_000_000..], Chunking::Fixed(4096)).unwrap();
    archive.into_store().close().unwrap();
    for damaged in [10_000, 500_000, 1_090_000] {
        let mut files = folder.contents();
        flip(&mut files, &bytes[damaged..][..32]);
        let store = options().open_in(Arc::new(MemoryFolder::with(files))).unwrap();
        let archive = Archive::new(store);
        assert!(archive.remove("goes").unwrap());
        let before = archive.store().stats().log_bytes;
        let told = archive.collect(|_| ());
        // Damage that nothing needs is dropped, other damage is told.
        let is_needed = damaged > 1_000_000;
        match &told {
            Err(ArchiveError::Store(Error::Damaged { .. })) if is_needed => {}
            Ok(told) if !is_needed => assert_eq!(told.compacted.damage_dropped, 1),
            _ => panic!("{told:?} with damage at {damaged}"),
        }
        let damages = archive.store().verify(|_, _| ()).unwrap().damages.len();
        assert_eq!(damages, usize::from(is_needed));
        let after = archive.store().stats().log_bytes;
        assert!(after < before / 4, "{after} of {before} with damage at {damaged}");
    }
}

/// The largest sector of a disk.
const SECTOR: usize = 4096;

/// Returns the files of a closed archive with two versions, and the bytes of the last.
fn closed() -> (Image, Vec<u8>) {
    let (folder, archive) = in_memory();
    archive.import("first", &b"first"[..], Chunking::default()).unwrap();
    let bytes = Random::new(3).bytes(40_000);
    archive.import("last", &bytes[..], Chunking::default()).unwrap();
    archive.into_store().close().unwrap();
    (folder.contents(), bytes)
}

/// Opens an archive whose newest log ends with `lost` bytes that are not what was written.
fn open(mut files: Image, lost: usize, with: u8) -> Archive {
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
