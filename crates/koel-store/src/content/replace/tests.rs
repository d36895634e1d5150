//! A file is the old one or the new one, and private until it is complete.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

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

/// The modes of all open or named temporary files in a folder.
fn modes_of_temporary_files(folder: &Path) -> Vec<u32> {
    let is_open_here = |path: &PathBuf| {
        let file = fs::read_link(path).unwrap_or_default();
        file.starts_with(folder) && file != folder
    };
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open = open.map(|entry| entry.path()).filter(is_open_here);
    let named = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let named = named.filter(|path| path.file_name().unwrap().to_str().unwrap() != "target");
    open.chain(named).filter_map(|path| Some(fs::metadata(path).ok()?.mode() & 0o777)).collect()
}

/// Regression: the temporary file had the mode of any new file until it was complete.
#[test]
fn a_file_is_never_readable_by_others_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let target = folder.join("target");
    for old_mode in [None, Some(0o600), Some(0o640), Some(0o666)] {
        if let Some(mode) = old_mode {
            fs::write(&target, "old").unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
        }
        replace(&target, Readers::Usual, |sink| {
            sink.write_all(&[7; 1 << 20])?;
            let modes = modes_of_temporary_files(&folder);
            assert!(modes.contains(&0o600), "{modes:?}");
            assert!(modes.iter().all(|mode| mode & 0o77 == 0), "{modes:?}");
            Ok(())
        })
        .unwrap();
        let mode = fs::metadata(&target).unwrap().mode() & 0o777;
        assert_eq!(mode, old_mode.unwrap_or(usual_mode(&folder)));
    }
    let (file, _name) = named(&folder, create).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
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

/// Without unnamed files, as on other systems.
#[test]
fn a_named_temporary_file_is_renamed_or_removed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    for completes in [false, true] {
        let (file, name) = named(folder.path(), create).unwrap();
        let (sink, target) = (BufWriter::new(file), target.clone());
        let mut new = Replacement { sink, target, name: Some(name) };
        new.write_all(b"new").unwrap();
        sweep(folder.path());
        if completes {
            new.finish(Readers::Usual).unwrap();
        } else {
            drop(new);
        }
        assert_eq!(folder.path().read_dir().unwrap().count(), usize::from(completes));
    }
    assert_eq!(fs::read(&target).unwrap(), b"new");
}
