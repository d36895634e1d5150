//! The guide on disk: a store that is opened reads it instead of the hashes of all tables.
//!
//! | bytes | what |
//! |---|---|
//! | 40 | the header of a numbered file: its number is the next one in the manifest |
//! | 56 for each id | what it stands for |
//! | 8 | checksum of these |
//! | the rest | the image of the maplet, which has checksums of its own |
//!
//! Nothing depends on the file, so it is written without a sync and replaced by a rename. What a
//! crash leaves of it is sound or counts as none.
//!
//! A run is known by all that the manifest says of it and by its number of keys. What the store has
//! no such run for stands for a run that has gone. A guide whose number is beyond that of the
//! manifest is of a later state of the store: an older one was restored beside it, and other runs
//! will get the numbers of those that it knows. So it is removed before the store has new ones.

use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;

use koel::Maplet;
use xxhash_rust::xxh3::xxh3_64;

use super::{Guide, GuideOptions, Name};
use crate::Error;
use crate::kernel::access::{self, read_up_to};
use crate::kernel::bytes::u64_at;
use crate::kernel::files::{File, Folder};
use crate::kernel::manifest::RunEntry;
use crate::kernel::memory;
use crate::kernel::store_files::{GUIDE, GUIDE_KIND, HEADER, NEW_GUIDE};

/// Bytes of what an id stands for: seven words.
const NAME: usize = 7 * 8;
/// The first of the words.
const FREE: u64 = 0;
const RUN: u64 = 1;
const GONE: u64 = 2;

/// A run of the store: its entry in the manifest, and how many keys it has.
pub(in crate::lsm) type KnownRun = (RunEntry, u64);

/// Which store a guide is of: its salt, and the next number of a file in its manifest.
pub(in crate::lsm) type Owner = (u64, u64);

/// The place in a file of the next byte to read or to write.
struct Place {
    file: Arc<dyn File>,
    at: u64,
}

impl Read for Place {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = read_up_to(&*self.file, into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        access::write_all(&*self.file, bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Guide {
    /// Replaces the file of the guide. `runs` are those of the store.
    ///
    /// # Errors
    /// I/O errors. The file that was there is there still, then.
    pub(in crate::lsm) fn save(
        &self,
        folder: &dyn Folder,
        owner: Owner,
        runs: &[KnownRun],
    ) -> Result<(), Error> {
        drop(folder.remove(NEW_GUIDE));
        let written = self.write(folder, owner, runs).map_err(Error::io("write", NEW_GUIDE));
        let renamed = written
            .and_then(|()| folder.rename(NEW_GUIDE, GUIDE).map_err(Error::io("rename", NEW_GUIDE)));
        if renamed.is_err() {
            drop(folder.remove(NEW_GUIDE));
        }
        renamed
    }

    fn write(
        &self,
        folder: &dyn Folder,
        (salt, number): Owner,
        runs: &[KnownRun],
    ) -> io::Result<()> {
        let mut start = GUIDE_KIND.header(salt, number).to_vec();
        for name in &self.names {
            let words = words_of(*name, runs);
            start.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        let checksum = xxh3_64(&start);
        start.extend(checksum.to_le_bytes());
        let mut file = BufWriter::new(Place { file: folder.create(NEW_GUIDE)?, at: 0 });
        file.write_all(&start)?;
        self.maplet.write_to(|part| file.write_all(part))?;
        file.flush()
    }

    /// Reads the guide of a store that has these runs. `None` if there is no file, or none that is
    /// sound and made with these options.
    ///
    /// # Errors
    /// I/O errors, and [`Error::OutOfMemory`].
    pub(in crate::lsm) fn load(
        folder: &dyn Folder,
        owner: Owner,
        runs: &[KnownRun],
        options: GuideOptions,
    ) -> Result<Option<Self>, Error> {
        let Some(file) = access::open(folder, GUIDE)? else { return Ok(None) };
        let ids = 1 << options.id_bits;
        let mut start = Vec::new();
        memory::grow_to(&mut start, HEADER + ids * NAME + 8)?;
        let read = read_up_to(&*file, &mut start, 0).map_err(Error::io("read", GUIDE))?;
        let (named, checksum) = start.split_at(start.len() - 8);
        let is_sound = read == start.len()
            && is_header(&named[..HEADER], owner)
            && u64_at(checksum, 0) == xxh3_64(named);
        if !is_sound {
            return Ok(None);
        }
        let names: Vec<_> =
            named[HEADER..].chunks(NAME).map(|bytes| name_of(bytes, runs)).collect();
        let Ok(maplet) = Maplet::load_from(Place { file, at: start.len() as u64 }) else {
            return Ok(None);
        };
        let guide = Self { maplet, names, options };
        Ok(guide.is_as_built().then_some(guide))
    }

    /// Removes the file if it is not of this state of the store or an earlier one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(in crate::lsm) fn remove_later(folder: &dyn Folder, owner: Owner) -> Result<(), Error> {
        let file = match access::open(folder, GUIDE) {
            Ok(None) => return Ok(()),
            opened => opened.ok().flatten(),
        };
        let mut header = [0; HEADER];
        let read = file.map(|file| read_up_to(&*file, &mut header, 0));
        if matches!(read, Some(Ok(_))) && is_header(&header, owner) {
            return Ok(());
        }
        folder.remove(GUIDE).map_err(Error::io("remove", GUIDE))
    }

    /// Whether it may be one that [`build`](Self::build) made with its options.
    fn is_as_built(&self) -> bool {
        let named: u64 = self.named().map(|(_, pairs)| pairs).sum();
        self.maplet.value_bits() == self.options.id_bits && self.pairs() >= named
    }
}

fn is_header(bytes: &[u8], (salt, next): Owner) -> bool {
    let number = u64_at(bytes, 24);
    bytes == GUIDE_KIND.header(salt, number) && number <= next
}

fn words_of(name: Name, runs: &[KnownRun]) -> [u64; 7] {
    let entry = |number| runs.iter().find(|(entry, _)| entry.number == number);
    match name {
        Name::Free => [FREE, 0, 0, 0, 0, 0, 0],
        Name::Gone => [GONE, 0, 0, 0, 0, 0, 0],
        Name::Run(number, keys) => entry(number).map_or([GONE, 0, 0, 0, 0, 0, 0], |(run, _)| {
            let RunEntry { bytes, entries, first_sequence, last_sequence, .. } = *run;
            [RUN, number, bytes, entries, first_sequence, last_sequence, keys]
        }),
    }
}

fn name_of(bytes: &[u8], runs: &[KnownRun]) -> Name {
    let words: [u64; 7] = std::array::from_fn(|index| u64_at(bytes, index * 8));
    let is_it = |(run, keys): &&KnownRun| words == words_of(Name::Run(run.number, *keys), runs);
    match words[0] {
        FREE => Name::Free,
        _ => runs.iter().find(is_it).map_or(Name::Gone, |(run, keys)| Name::Run(run.number, *keys)),
    }
}
