//! An archive that lost one sector: what is exported is what was imported or is reported, an import
//! of the same tree brings everything back, and a collection drops the damage.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use koel_store::Durability;
use koel_store::content::{
    Archive, ArchiveError, Entry, Kind, RestoreOptions, Selection, Target, TreeOptions, TreeReport,
};
use testkit::storage::{MemoryFolder, Random};

use crate::archive::options;
use crate::damage::Image;
use crate::trial::{count, report};

/// The bytes of files by name; folders and links have none.
type Contents = BTreeMap<String, Option<Vec<u8>>>;

/// A folder on disk, and the files of a closed archive with it.
struct Sample {
    folder: tempfile::TempDir,
    files: Image,
    contents: Contents,
}

impl Sample {
    /// Small files in folders, and a file of several chunks.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random::new(11);
        for inner in ["a", "b/c"] {
            fs::create_dir_all(folder.path().join(inner)).unwrap();
            for number in 0..40 {
                let bytes = random.bytes(60 + number % 7 * 300);
                fs::write(folder.path().join(format!("{inner}/file {number}")), bytes).unwrap();
            }
        }
        fs::write(folder.path().join("large"), random.bytes(120_000)).unwrap();
        // Until a later change is sure to have another time.
        sleep(Duration::from_millis(120));
        let memory = MemoryFolder::new();
        let archive = Archive::new(options().open_in(Arc::new(memory.clone())).unwrap());
        let mut sample = Self { folder, files: Image::new(), contents: Contents::new() };
        sample.import(&archive, false).unwrap();
        let (contents, problems) = newest(&archive);
        assert_eq!((contents.len(), problems), (85, 0));
        sample.contents = contents;
        archive.into_store().close().unwrap();
        sample.files = memory.contents();
        sample
    }

    fn import(&self, archive: &Archive, read_all: bool) -> Result<TreeReport, ArchiveError> {
        let options = TreeOptions::default().read_all(read_all);
        archive.import_tree("tree", self.folder.path(), &options, &mut |_| ())
    }

    /// Calls `judge` with the archive after each sector of this size was lost in turn, unless the
    /// store does not open then. Returns for how many it did.
    fn each_loss(&self, sector: usize, mut judge: impl FnMut(&MemoryFolder, &str)) -> usize {
        let logs = self.files.iter().filter(|(name, _)| name.ends_with(".log"));
        let mut opened = 0;
        for (name, log) in logs {
            for start in (0..log.len()).step_by(sector) {
                let mut files = self.files.clone();
                let end = log.len().min(start + sector);
                files.get_mut(name).unwrap()[start..end].fill(0);
                let folder = MemoryFolder::with(files);
                if options().open_in(Arc::new(folder.clone())).is_ok() {
                    opened += 1;
                    judge(&folder, &format!("{name} without the sector at {start}"));
                }
            }
        }
        opened
    }
}

fn open(folder: &MemoryFolder) -> Archive {
    Archive::new(options().open_in(Arc::new(folder.clone())).unwrap())
}

/// Returns what can be read of the newest version, and the number of errors.
fn newest(archive: &Archive) -> (Contents, usize) {
    let (mut contents, mut problems) = (Contents::new(), 0);
    let Ok((version, entry)) = archive.find("tree") else { return (contents, 1) };
    let walked = archive.walk(&version.name, &entry, &mut |path: &[u8], entry: &Entry| {
        let mut bytes = Vec::new();
        let read = match entry.kind {
            Kind::File(_) => archive.export_entry(path, entry, &mut bytes).map(|_| Some(bytes)),
            _ => Ok(None),
        };
        match read {
            Ok(bytes) => drop(contents.insert(String::from_utf8_lossy(path).into_owned(), bytes)),
            Err(_) => problems += 1,
        }
        Ok(true)
    });
    (contents, problems + usize::from(walked.is_err()))
}

/// Lost sectors, in bytes.
fn sectors() -> &'static [usize] {
    if count(0, 1) == 0 { &[4096] } else { &[512, 4096, 65_536] }
}

/// Once the files of the lost chunks were skipped, and the new version could not be exported.
#[test]
fn an_import_after_a_lost_sector_can_be_exported() {
    let sample = Sample::new();
    for &sector in sectors() {
        let mut healed = 0;
        let opened = sample.each_loss(sector, |folder, what| {
            let archive = open(folder);
            let (before, problems) = newest(&archive);
            assert!(before == sample.contents || problems > 0, "silently short: {what}");
            let report = sample.import(&archive, false).unwrap();
            healed += u64::from(report.repaired > 0);
            assert_eq!(report.problems, [], "{what}");
            assert!(newest(&archive) == (sample.contents.clone(), 0), "{what}");
        });
        assert!(healed > 0);
        report("archive losses", &format!("{opened} sectors of {sector}: {healed} imports healed"));
    }
}

/// Once the dead record that had been damaged stayed damage for ever.
#[test]
fn a_collection_after_such_an_import_leaves_no_damage() {
    let sample = Sample::new();
    let kept = [true, false];
    for (&sector, keep_newest) in sectors().iter().flat_map(|it| kept.map(|kept| (it, kept))) {
        sample.each_loss(sector, |folder, what| {
            let archive = open(folder);
            sample.import(&archive, true).unwrap();
            if keep_newest {
                archive.keep_newest("tree", 1).unwrap();
            }
            archive.collect(|_| ()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(archive.store().verify(|_, _| ()).unwrap().damages, [], "{what}");
            assert_eq!(archive.verify(|_| ()).unwrap().broken, [], "{what}");
            assert!(newest(&archive) == (sample.contents.clone(), 0), "{what}");
            archive.into_store().close().unwrap();
            assert!(newest(&open(folder)) == (sample.contents.clone(), 0), "{what}: reopened");
        });
    }
}

/// Once a sector in the listing of a folder took all entries that came after it.
#[test]
fn a_lost_sector_takes_the_entries_of_no_folder() {
    let sample = Sample::new();
    for sector in [4096, 65_536] {
        let opened = sample.each_loss(sector, |folder, what| {
            let mut archive = open(folder);
            if archive.find("tree").is_err() {
                // The list of its versions was lost too, and how many versions there are.
                assert!(sector > 4096, "{what}");
                drop(archive);
                let salvaged = options().open_in(Arc::new(MemoryFolder::new())).unwrap();
                salvaged.salvage_in(folder, |_, _| ()).unwrap();
                archive = Archive::new(salvaged);
                archive.repair().unwrap();
            }
            let (contents, problems) = newest(&archive);
            assert_eq!(contents.len() + problems, sample.contents.len(), "{what}");
        });
        assert!(opened > 3);
    }
}

/// Once the summary counted one folder where dozens of files were missing.
#[test]
fn what_is_missing_of_a_folder_is_counted() {
    let sample = Sample::new();
    let archive = open(&MemoryFolder::with(sample.files.clone()));
    let store = archive.store();
    let copies: Vec<_> = store.keys().map(Result::unwrap).collect();
    let copies = copies.into_iter().filter(|key| key.starts_with(b"\xffC"));
    let mut missing = Vec::new();
    for copy in copies {
        let original = [b"\xffc", &copy[2..]].concat();
        let value = store.get(&original).unwrap().unwrap();
        assert_eq!(store.get(&copy).unwrap().as_ref(), Some(&value));
        for key in [&original, &copy] {
            assert!(store.delete(key, Durability::None).unwrap());
        }
        let verified = archive.verify(|_| ()).unwrap();
        let (folder, (_, entry)) = (tempfile::tempdir().unwrap(), archive.find("tree").unwrap());
        let all = &mut |_: &[u8], _: &Entry| Selection::Take;
        let (target, options) = (Target::Path(folder.path()), RestoreOptions::default());
        let restored = archive.restore("tree", &entry, target, &options, all, &mut |_| ()).unwrap();
        let there = restored.files + restored.folders + restored.links;
        assert_eq!(there + restored.missing, sample.contents.len() as u64);
        assert_eq!((verified.missing, verified.broken.len()), (restored.missing, 1));
        let what = format!("; {} files, folders and links in it are missing", restored.missing);
        assert!(restored.problems[0].what.ends_with(&what), "{:?}", restored.problems);
        assert!(verified.broken[0].1.ends_with(&what), "{:?}", verified.broken);
        missing.push(restored.missing);
        store.put(&original, &value, Durability::None).unwrap();
        store.put(&copy, &value, Durability::None).unwrap();
    }
    assert!(missing.contains(&84) && missing.contains(&40), "{missing:?}");
}
