//! What both stores do to check themselves, and to read what is left of a store that damage keeps
//! from opening.
//!
//! The files of the damaged store are not changed. The checksum of each record covers its position
//! and the salt of its store, so a sound one belongs where it is.

use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::files::Folder;
use super::manifest::Manifest;
use super::poison::Poison;
use super::segment::Segment;
use super::store_files::{FileKind, MANIFEST, NumberedFile, SEGMENT, StoreKind, TABLE};
use crate::Error;
use crate::error::{Damage, FOLDER, collect_damage};

/// What verifying a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The number of sound records of the log, live or not, and of sound entries of tables.
    pub records: u64,
    /// The number of records that are the value of a key. `None` in an ordered store, which does
    /// not count them.
    pub live: Option<u64>,
    /// The bytes that were read.
    pub bytes: u64,
    /// All damage; empty if the store is sound.
    pub damages: Vec<Damage>,
}

/// Fails if the manifest on disk is not the one of an open store. After a failed write it may be
/// the previous or the next one.
pub(crate) fn check_manifest(
    folder: &dyn Folder,
    kind: StoreKind,
    poison: &Poison,
    is_own: impl FnOnce(&Manifest) -> bool,
) -> Result<(), Error> {
    let manifest = Manifest::load_existing(kind, folder)?;
    if is_own(&manifest) || poison.has_failed() {
        Ok(())
    } else {
        Err(Error::damaged(MANIFEST, 0, "it does not name the files in use"))
    }
}

/// What salvaging a damaged store did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The number of sound records that were read, live or not.
    pub records: u64,
    /// The number of keys that were left out because their last value is known to be unreadable.
    pub lost: u64,
    /// What could not be read; empty if the store was sound.
    pub damages: Vec<Damage>,
}

/// What there is of a damaged store.
pub(crate) struct DamagedStore<'a> {
    pub(crate) folder: &'a dyn Folder,
    pub(crate) salt: u64,
    /// The manifest, if it has the salt of the files.
    pub(crate) manifest: Option<Manifest>,
    /// The numbers of all files of the log.
    pub(crate) logs: Vec<u64>,
    /// The numbers of all tables.
    pub(crate) tables: Vec<u64>,
}

impl<'a> DamagedStore<'a> {
    /// Finds the files, and lists what is wrong with the manifest.
    pub(crate) fn inspect(
        kind: StoreKind,
        folder: &'a dyn Folder,
        damages: &mut Vec<Damage>,
    ) -> Result<Self, Error> {
        let names = folder.list().map_err(Error::io("list", FOLDER))?;
        let numbers = |file: FileKind| -> Vec<u64> {
            names.iter().filter_map(|name| file.number_in(name)).collect()
        };
        let (logs, tables) = (numbers(SEGMENT), numbers(TABLE));
        let manifest = collect_damage(damages, Manifest::load_existing(kind, folder))?;
        let files = logs.iter().map(|number| (SEGMENT, *number));
        let mut salts = Vec::new();
        for (file, number) in files.chain(tables.iter().map(|number| (TABLE, *number))) {
            let salt = NumberedFile::salt_in(folder, file, number);
            salts.extend(collect_damage(&mut Vec::new(), salt)?.flatten());
        }
        let named = manifest.as_ref().map(|manifest| manifest.salt);
        let is_own = named.is_some_and(|salt| salts.is_empty() || salts.contains(&salt));
        if named.is_some() && !is_own {
            damages.push(Damage::new(MANIFEST, 0, "it does not belong to the files in the folder"));
        }
        let salt = named.filter(|_| is_own).unwrap_or_else(|| most_frequent(salts));
        Ok(Self { folder, salt, manifest: manifest.filter(|_| is_own), logs, tables })
    }

    /// Opens a file of the log, if there is one and it is a regular file.
    pub(crate) fn open_unchecked(&self, number: u64) -> Result<Option<Segment>, Error> {
        let opened = Segment::open_unchecked(self.folder, self.salt, number);
        Ok(collect_damage(&mut Vec::new(), opened)?.flatten())
    }

    /// Opens a file of the log that has at least `end` bytes, and lists what is wrong with it as a
    /// whole. Returns `None` if there is nothing to read.
    pub(crate) fn open(
        &self,
        (number, end): (u64, u64),
        damages: &mut Vec<Damage>,
    ) -> Result<Option<Arc<Segment>>, Error> {
        let opened = match Segment::open(self.folder, self.salt, number) {
            Err(Error::OtherStore { file }) => {
                damages.push(Damage::new(&file, 0, "it belongs to another store"));
                return Ok(None);
            }
            opened => collect_damage(damages, opened)?,
        };
        let opened = opened.map_or_else(|| self.open_unchecked(number), |file| Ok(Some(file)))?;
        if let Some(segment) = opened.as_ref().filter(|segment| segment.end() < end) {
            damages.push(Damage::new(&segment.name, segment.end(), "the file is cut short"));
        }
        Ok(opened.map(Arc::new))
    }
}

fn most_frequent(mut salts: Vec<u64>) -> u64 {
    salts.sort_unstable();
    let most = salts.chunk_by(|one, other| one == other).max_by_key(|same| same.len());
    most.map_or(0, |same| same[0])
}

/// Keys whose last record is unreadable, by their hash in the damaged store, and whether that
/// record is a value. Their older values are not taken for the last ones.
#[derive(Debug)]
pub(crate) struct LostKeys {
    /// The seed of the hash; unknown without a manifest. Then no key is known to be lost.
    seed: Option<u64>,
    hashes: HashMap<u64, bool>,
}

impl LostKeys {
    pub(crate) fn new(manifest: Option<&Manifest>) -> Self {
        Self { seed: manifest.map(|manifest| manifest.seed), hashes: HashMap::new() }
    }

    /// Returns the seed of the hash, if it is known.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.seed
    }

    pub(crate) fn add(&mut self, hashes: impl IntoIterator<Item = (u64, bool)>) {
        self.hashes.extend(hashes);
    }

    /// Notes that a later record of a key was read.
    pub(crate) fn found(&mut self, key: &[u8]) {
        if let Some(seed) = self.seed {
            self.hashes.remove(&xxh3_64_with_seed(key, seed));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.seed.is_none() || self.hashes.is_empty()
    }

    pub(crate) fn has(&self, key: &[u8]) -> bool {
        let has = |seed| self.hashes.contains_key(&xxh3_64_with_seed(key, seed));
        self.seed.is_some_and(has)
    }

    /// Returns the number of lost values.
    pub(crate) fn values(&self) -> u64 {
        self.hashes.values().filter(|&&is_value| is_value).count() as u64
    }
}
