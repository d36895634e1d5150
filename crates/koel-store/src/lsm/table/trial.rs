//! One table file for trials from outside the crate: building one, and reading one of unknown bytes
//! in every way.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::builder::{TableBuilder, TableOptions};
use super::frame::Codec;
use super::reader::{BlockCache, Table};
use super::salvage::DamagedTable;
use super::verify::verify;
use crate::Error;
use crate::kernel::damage::Damage;
use crate::kernel::files::Folder;
use crate::lsm::entry::{Cursor, Entry};

/// A key, a sequence number, and a value unless the key was deleted.
pub type OwnedEntry = (Vec<u8>, u64, Option<Vec<u8>>);

/// The number of a table, and the salt and the seed of its store.
pub type Identity = (u64, u64, u64);

/// What reading a table in every way gave.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reading {
    /// What a check of the whole file found.
    pub damages: Vec<Damage>,
    /// The entries of all sound blocks, in the order of the file.
    pub salvaged: Vec<OwnedEntry>,
    /// The entries from the first to the last, or why they cannot be read.
    pub forward: Result<Vec<OwnedEntry>, Error>,
    /// The entries from the last to the first.
    pub backward: Result<Vec<OwnedEntry>, Error>,
    /// Each of the salvaged entries, asked for by its key and its sequence number.
    pub found: Vec<Result<Option<OwnedEntry>, Error>>,
}

/// Builds a table. `codec`: 0 none, 1 LZ4, 2 zstd.
///
/// # Errors
/// I/O errors, and entries that are out of order.
pub fn build(
    folder: &dyn Folder,
    (number, salt, seed): Identity,
    (block_bytes, codec): (usize, u8),
    entries: &[OwnedEntry],
) -> Result<(), Error> {
    let codec = [Codec::None, Codec::Lz4, Codec::Zstd][usize::from(codec % 3)];
    let mut builder =
        TableBuilder::new(folder, number, &TableOptions { salt, seed, block_bytes, codec })?;
    for (key, sequence, value) in entries {
        builder.add(Entry { key, sequence: *sequence, value: value.as_deref() })?;
    }
    builder.finish().map(drop)
}

/// Reads a table in every way.
///
/// # Errors
/// I/O errors. Damage is in what it returns.
pub fn read(folder: &dyn Folder, identity: Identity) -> Result<Reading, Error> {
    let (number, salt, seed) = identity;
    let mut damages = Vec::new();
    verify(folder, identity, &mut damages, &mut |_| ())?;
    let mut salvaged = Vec::new();
    if let Some(table) = DamagedTable::open(folder, number, salt)? {
        table.entries(&mut Vec::new(), &mut |entry| {
            salvaged.push(owned(&entry));
            Ok(())
        })?;
        table.lost_hashes(seed)?;
    }
    let open = || Table::open(folder, number, salt, &Arc::new(BlockCache::new(1 << 16)));
    let table = match open() {
        Ok(table) => Arc::new(table),
        Err(error) => {
            let (forward, backward) = (Err(error), open().map(|_| Vec::new()));
            return Ok(Reading { damages, salvaged, forward, backward, found: Vec::new() });
        }
    };
    let mut hashes = (table.hashes(), Vec::new());
    while hashes.0.next(&mut hashes.1).is_ok_and(|more| more) {}
    let found = salvaged.iter().map(|(key, sequence, _)| {
        let found = table.get(key, xxh3_64_with_seed(key, seed), *sequence)?;
        Ok(found.map(|found| (key.clone(), found.sequence, found.value)))
    });
    let found = found.collect();
    let forward = all(&table, |cursor| cursor.first(), |cursor| cursor.next());
    let backward = all(&table, |cursor| cursor.last(), |cursor| cursor.previous());
    Ok(Reading { damages, salvaged, forward, backward, found })
}

fn owned(entry: &Entry<'_>) -> OwnedEntry {
    (entry.key.to_vec(), entry.sequence, entry.value.map(<[u8]>::to_vec))
}

/// Returns the entries from a place on, one step after another.
fn all(
    table: &Arc<Table>,
    start: impl FnOnce(&mut dyn Cursor) -> Result<(), Error>,
    step: impl Fn(&mut dyn Cursor) -> Result<(), Error>,
) -> Result<Vec<OwnedEntry>, Error> {
    let (mut cursor, mut entries) = (table.cursor(true), Vec::new());
    start(&mut cursor)?;
    while let Some(entry) = cursor.entry() {
        entries.push(owned(&entry));
        step(&mut cursor)?;
    }
    Ok(entries)
}
