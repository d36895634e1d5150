//! A replaced file is the old one or the new one, and private until it is complete.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use koel::file::{Readers, Replacement};

/// Replaces the file `target` by what `fill` writes.
fn replace(
    target: &Path,
    readers: Readers,
    fill: impl FnOnce(&mut Replacement) -> io::Result<()>,
) -> io::Result<File> {
    let mut new = Replacement::of(target)?;
    fill(&mut new)?;
    new.finish(readers)
}

/// The modes of all temporary files in a folder.
fn modes_of_temporary_files(folder: &Path) -> Vec<u32> {
    let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let temporary = paths.filter(|path| !path.ends_with("target"));
    temporary.map(|path| fs::metadata(path).unwrap().mode() & 0o777).collect()
}

/// Regression: the temporary file had the mode of any new file until it was complete.
#[test]
fn a_file_is_never_readable_by_others_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let target = folder.join("target");
    for old_mode in [None, Some(0o600), Some(0o640), Some(0o666)] {
        if let Some(mode) = old_mode {
            fs::write(&target, "old").unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
        }
        replace(&target, Readers::Usual, |sink| {
            sink.write_all(&[7; 1 << 20])?;
            let modes = modes_of_temporary_files(folder);
            assert_eq!(modes, [0o600]);
            Ok(())
        })
        .unwrap();
        let mode = fs::metadata(&target).unwrap().mode() & 0o777;
        assert_eq!(mode, old_mode.unwrap_or(usual_mode(folder)));
    }
}

/// The mode of a new file, as the system gives it.
fn usual_mode(folder: &Path) -> u32 {
    let path = folder.join("usual");
    let mode = File::create(&path).unwrap().metadata().unwrap().mode() & 0o777;
    fs::remove_file(path).unwrap();
    mode
}

#[test]
fn a_private_file_is_for_its_owner_whatever_it_replaces() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    for _ in 0..2 {
        replace(&target, Readers::Owner, |sink| sink.write_all(b"new")).unwrap();
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
    }
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::write(&target, "old").unwrap();
    let failed = replace(&target, Readers::Usual, |sink| {
        sink.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs::read(&target).unwrap(), b"old");
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}
