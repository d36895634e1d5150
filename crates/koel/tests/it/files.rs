//! Saving and loading through paths and streams: equal bytes, all or nothing, and no memory
//! allocated for bytes that never arrive.

use std::fs;
use std::io::{self, Cursor, Read, Write};

use koel::{CountingFilter, CuckooFilter, FileError, FilterView, ImageError, Maplet};
use tempfile::{TempDir, tempdir};
use testkit::image::HEADER_BYTES;
use testkit::keys::{self, at};

use crate::support::forged;

/// The names in a folder, in order.
fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn filter(keys: u64) -> CuckooFilter {
    let mut filter = CuckooFilter::builder(keys, 0.001).build().unwrap();
    keys::hashes(1, keys).for_each(|hash| filter.insert(&at(hash)).unwrap());
    (0..9).for_each(|_| filter.insert("again").unwrap());
    filter
}

fn grown() -> CuckooFilter {
    let mut filter = CuckooFilter::builder(1000, 0.001).growable().build().unwrap();
    filter.try_extend(0_u64..20_000).unwrap();
    filter
}

fn maplet() -> Maplet {
    let mut maplet = Maplet::builder(1000, 0.001, 9).build().unwrap();
    (0..500_u64).for_each(|key| maplet.insert(&key, key).unwrap());
    maplet
}

fn counting() -> CountingFilter {
    let mut filter = CountingFilter::builder(100, 0.001).build().unwrap();
    (0..100_u64).for_each(|key| assert_eq!(filter.add(&key, 10 * key + 1), Ok(10 * key + 1)));
    filter
}

fn image_error(loaded: Result<CuckooFilter, FileError>) -> ImageError {
    match loaded {
        Err(FileError::Image { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_type_round_trips_through_a_file_and_a_stream() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    // All are saved to one path in turn. Reading the largest takes several steps.
    for filter in [filter(100), filter(2_000_000), grown()] {
        filter.save(&path).unwrap();
        assert!(fs::read(&path).unwrap() == filter.to_bytes());
        assert!(CuckooFilter::load(&path).unwrap() == filter);
        let mut stream = Vec::new();
        filter.save_to(&mut stream).unwrap();
        assert!(stream == filter.to_bytes());
        assert!(CuckooFilter::load_from(&*stream).unwrap() == filter);
        let view = FilterView::open(&stream).unwrap();
        view.save(&path).unwrap();
        assert!(fs::read(&path).unwrap() == stream);
    }
    maplet().save(&path).unwrap();
    assert!(Maplet::load(&path).unwrap() == maplet());
    assert!(matches!(image_error(CuckooFilter::load(&path)), ImageError::Kind { .. }));
    counting().save(&path).unwrap();
    assert!(CountingFilter::load(&path).unwrap() == counting());
    assert_eq!(names(&folder), ["a"]);
}

/// Returns one byte per call, with an interruption before each.
struct Slow<R>(R, bool);

impl<R: Read> Read for Slow<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let few = bytes.len().min(1);
        self.0.read(&mut bytes[..few])
    }
}

#[test]
fn a_slow_stream_is_read_exactly_to_the_end_of_the_image() {
    let mut stream = filter(100).to_bytes();
    maplet().save_to(&mut stream).unwrap();
    stream.extend(b"rest");
    let mut stream = Slow(Cursor::new(stream), false);
    assert!(CuckooFilter::load_from(&mut stream).unwrap() == filter(100));
    assert!(Maplet::load_from(&mut stream).unwrap() == maplet());
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "rest");
}

#[test]
fn damage_is_refused_with_the_reason_wherever_it_is() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    let whole = filter(100).to_bytes();
    for len in [
        0,
        1,
        100,
        HEADER_BYTES - 1,
        HEADER_BYTES,
        HEADER_BYTES + 1,
        whole.len() - 20,
        whole.len() - 1,
    ] {
        let cut = image_error(CuckooFilter::load_from(&whole[..len]));
        assert_eq!(Err(cut), CuckooFilter::from_bytes(&whole[..len]), "{len}");
        fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(image_error(CuckooFilter::load(&path)), cut, "{len}");
    }
    fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    let got = whole.len() as u64 + 1;
    let error = image_error(CuckooFilter::load(&path));
    assert_eq!(error, ImageError::Length { expected: got - 1, got });
    for byte in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1;
        let error = image_error(CuckooFilter::load_from(&*damaged));
        assert_eq!(Err(error), CuckooFilter::from_bytes(&damaged), "{byte}");
    }
    let missing = CuckooFilter::load(folder.path().join("b")).unwrap_err();
    assert!(
        matches!(&missing, FileError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    );
}

/// A header for a table of 2^50 bytes: allocating all of it would fail on any machine.
#[test]
fn a_forged_header_allocates_no_memory_for_missing_bytes() {
    let small = CuckooFilter::builder(1, 0.03).build().unwrap().to_bytes();
    let bytes = forged(&small, &[("segment bits", 42)]);
    let error = image_error(CuckooFilter::load_from(&*bytes));
    let ImageError::Length { expected, got } = error else { panic!("{error}") };
    assert!(expected > 1 << 48 && got == bytes.len() as u64, "{error}");
    let endless = bytes.chain(io::repeat(0).take(20 << 20));
    let error = image_error(CuckooFilter::load_from(endless));
    assert!(matches!(error, ImageError::Length { .. }), "{error}");
}

/// Takes `0` bytes, then fails.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_failed_save_returns_an_error_and_keeps_the_old_file() {
    for room in [0, 192, 500] {
        let error = filter(10_000).save_to(Full(room)).unwrap_err();
        assert!(
            matches!(&error, FileError::Io { error, .. } if error.kind() == io::ErrorKind::StorageFull)
        );
        assert!(std::error::Error::source(&error).is_none() && !error.to_string().is_empty());
    }
    let folder = tempdir().unwrap();
    // The target is a folder, so the final rename fails.
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    assert!(matches!(filter(100).save(folder.path().join("a")), Err(FileError::Io { .. })));
    assert!(matches!(filter(100).save(folder.path().join("none/a")), Err(FileError::Io { .. })));
    assert_eq!(names(&folder), ["a"]);
}

#[cfg(unix)]
#[test]
fn a_new_file_is_private_and_an_old_one_keeps_its_permissions_and_its_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = tempdir().unwrap();
    let (path, link) = (folder.path().join("a"), folder.path().join("link"));
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    filter(100).save(&path).unwrap();
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    symlink(&path, &link).unwrap();
    grown().save(&link).unwrap();
    assert_eq!(mode(), 0o644);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(CuckooFilter::load(&path).unwrap() == grown());
    assert_eq!(names(&folder), ["a", "link"]);
}

/// Regression: `save` replaced the link, and gave the file to the group of the process.
#[cfg(unix)]
#[test]
fn saving_keeps_a_dangling_link_and_the_group_of_a_file() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    let folder = tempdir().unwrap();
    let (path, link) = (folder.path().join("a"), folder.path().join("link"));
    symlink("next", &link).unwrap();
    symlink("a", folder.path().join("next")).unwrap();
    filter(100).save(&link).unwrap();
    assert!(CuckooFilter::load(&path).unwrap() == filter(100));
    assert_eq!(names(&folder), ["a", "link", "next"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // Only root may give a file away; for other users the rest checks nothing.
    if chown(&path, Some(1234), Some(4321)).is_err() {
        return;
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    grown().save(&path).unwrap();
    let saved = fs::metadata(&path).unwrap();
    assert_eq!((saved.uid(), saved.gid(), saved.mode() & 0o777), (1234, 4321, 0o640));
}

/// Regression: `save` replaced a pipe by a file, and as root a device.
#[cfg(unix)]
#[test]
fn saving_to_a_pipe_writes_into_the_pipe() {
    use std::os::unix::fs::FileTypeExt;

    let folder = tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || CuckooFilter::load(pipe).unwrap()
    });
    filter(10_000).save(&pipe).unwrap();
    assert!(reader.join().unwrap() == filter(10_000));
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(names(&folder), ["pipe"]);
}

/// Such a folder takes new files and cannot be opened: the file was replaced, and an error said
/// that it was not. A user who may read any folder sees no difference.
#[cfg(unix)]
#[test]
fn a_save_into_a_folder_that_cannot_be_read_says_what_happened() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let mode =
        |mode| std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(mode)).unwrap();
    let path = inner.join("a.koel");
    filter(100).save(&path).unwrap();
    mode(0o300);
    let saved = filter(200).save(&path);
    mode(0o700);
    assert!(saved.is_ok() && CuckooFilter::load(&path).unwrap() == filter(200));
}

#[test]
fn errors_of_files_name_the_path_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.koel");
    std::fs::write(&path, "text").unwrap();
    for path in [path, folder.path().join("none")] {
        let said = CuckooFilter::load(&path).unwrap_err().to_string();
        assert_eq!(said.matches(&path.display().to_string()).count(), 1, "{said}");
    }
    assert!(!CuckooFilter::load_from(&b"text"[..]).unwrap_err().to_string().contains(": :"));
}

#[test]
fn a_concurrent_filter_is_saved_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.koel");
    let mut shared = koel::ConcurrentFilter::builder(1000, 0.02).build().unwrap();
    let empty = shared.snapshot().unwrap();
    (0..900_u64).chain([7; 5]).for_each(|key| shared.insert(&key).unwrap());
    shared.save(&path).unwrap();
    assert!(CuckooFilter::load(&path).unwrap() == shared.snapshot().unwrap());
    shared.clear();
    assert!(shared.is_empty() && shared.snapshot().unwrap() == empty);
    assert!(!(0..900_u64).any(|key| shared.contains(&key)));
}

#[test]
fn a_filter_that_cannot_be_shared_comes_back() {
    let mut grown = CuckooFilter::builder(100_000, 0.001).grow_from(1000).build().unwrap();
    grown.insert("ada").unwrap();
    let back = koel::ConcurrentFilter::try_from(grown.clone()).unwrap_err();
    assert!(back.error == koel::ConvertError::Grown && *back.filter == grown);
    let mut wide = CuckooFilter::builder(1000, 1e-7).build().unwrap();
    wide.insert("ada").unwrap();
    let back = koel::ConcurrentFilter::try_from(wide.clone()).unwrap_err();
    assert!(matches!(back.error, koel::ConvertError::TooWide { .. }) && *back.filter == wide);
    let mut refuted = CuckooFilter::builder(1000, 0.1).build().unwrap();
    (0..900_u64).for_each(|key| refuted.insert(&key).unwrap());
    let wrong = (1000..).find(|key: &u64| refuted.contains(key)).unwrap();
    assert_eq!(refuted.refute(&wrong), Ok(true));
    let back = koel::ConcurrentFilter::try_from(refuted.clone()).unwrap_err();
    let exact = koel::ConvertError::Exact { stashed: 0, corrections: 1 };
    assert!(back.error == exact && *back.filter == refuted);
}
