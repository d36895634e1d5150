//! Folders of the disk: random ones, and a description that tells any two apart.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use xxhash_rust::xxh3::xxh3_64;

use crate::storage::Random;

/// The files of a tree: kind, mode, time and content of each, by path from its top.
pub type Snapshot = BTreeMap<Vec<u8>, String>;

/// Names of files, from plain ones to such that no terminal prints.
const NAMES: &[&[u8]] = &[
    b"a",
    b"B",
    b"with space",
    b"-dash",
    b"new\nline",
    b"back\\slash",
    b"\xff\xfe",
    b"e\xcc\x81",
    b"\xe2\x80\xaetxt",
    b"..not-a-dot",
    b".hidden",
    b"*",
];

/// Describes what is at a path, and all below it.
///
/// # Errors
/// Those of reading it.
pub fn snapshot(top: &Path) -> io::Result<Snapshot> {
    let mut found = BTreeMap::new();
    describe(top, top, &mut BTreeMap::new(), &mut found)?;
    Ok(found)
}

fn describe(
    top: &Path,
    path: &Path,
    linked: &mut BTreeMap<u64, Vec<u8>>,
    found: &mut Snapshot,
) -> io::Result<()> {
    let status = fs::symlink_metadata(path)?;
    let name = path.strip_prefix(top).unwrap_or(path).as_os_str().as_bytes().to_owned();
    let kind = status.file_type();
    let content = if kind.is_symlink() {
        format!("link to {:?}", fs::read_link(path)?)
    } else if kind.is_file() {
        let first = linked.entry(status.ino()).or_insert_with(|| name.clone());
        format!("file {:016x}, first of its names {first:?}", xxh3_64(&fs::read(path)?))
    } else {
        format!("{kind:?}")
    };
    found.insert(name, format!("{content}{}", attributes(&status)));
    if kind.is_dir() {
        let mut paths = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<PathBuf>>>()?;
        paths.sort();
        paths.iter().try_for_each(|path| describe(top, path, linked, found))?;
    }
    Ok(())
}

fn attributes(status: &Metadata) -> String {
    let (seconds, nanos) = (status.mtime(), status.mtime_nsec());
    format!(", mode {:o}, changed {seconds}.{nanos:09}", status.mode())
}

/// Creates a folder with random files, folders, symbolic links and hard links.
///
/// # Errors
/// Those of the disk.
pub fn create_random(random: &mut Random, path: &Path, entries: usize) -> io::Result<()> {
    fs::create_dir(path)?;
    let (mut folders, mut files) = (vec![path.to_owned()], Vec::new());
    for _ in 0..entries {
        let name = NAMES[random.below(NAMES.len())];
        let path = folders[random.below(folders.len())].join(OsStr::from_bytes(name));
        if fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        match random.below(8) {
            0 | 1 => {
                fs::create_dir(&path)?;
                folders.push(path);
            }
            2 => symlink(["/etc/passwd", "..", "no\nsuch", "a"][random.below(4)], &path)?,
            3 if !files.is_empty() => {
                let file: &PathBuf = &files[random.below(files.len())];
                fs::hard_link(file, &path)?;
            }
            _ => {
                let limit = 1 << random.below(17);
                let length = random.below(limit);
                fs::write(&path, random.bytes(length))?;
                set_attributes(random, &path)?;
                files.push(path);
            }
        }
    }
    // Innermost first: a new entry changes the time of its folder.
    folders.iter().rev().try_for_each(|folder| set_attributes(random, folder))
}

/// Sets a random mode that its owner can read and change, and a random time.
fn set_attributes(random: &mut Random, path: &Path) -> io::Result<()> {
    let folder = if path.is_dir() { 0o1100 } else { 0 };
    let bits = [0, 0o077, 0o100, 0o044, 0o1000][random.below(5)];
    fs::set_permissions(path, Permissions::from_mode(0o600 | folder | bits))?;
    let nanos = Duration::from_nanos(random.next_u64() >> 2);
    let time = SystemTime::UNIX_EPOCH;
    let time = if random.chance(10) { time - nanos } else { time + nanos };
    File::open(path)?.set_modified(time)
}
