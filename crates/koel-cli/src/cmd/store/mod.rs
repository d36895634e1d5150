//! `koel store`: files and key-value records in a crash-safe, checksummed store.
//!
//! Each verb has its own file. `get`, `put`, `load`, `del` and `keys` work on records. `import`,
//! `export`, `ls`, `rm` and `gc` work on files, which are split into chunks; equal chunks are
//! stored once. Both are in one folder: keys that begin with the byte FF belong to the files. An
//! ordered store has records only, sorted by key.

mod copy;
mod create;
mod database;
mod del;
#[cfg(unix)]
mod export;
mod gc;
mod get;
#[cfg(unix)]
mod import;
mod key;
mod key_range;
mod keys;
mod load;
mod ls;
mod name;
#[cfg(unix)]
mod patterns;
mod put;
mod reserve;
mod rm;
mod salvage;
mod scan;
mod stats;
mod verify;

use clap::Subcommand;

use crate::failure::{Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store import photos --db backups               store a folder; again: a new version
  koel store ls --db backups                          list the stored files
  koel store export photos/a.jpg --db backups -o a.jpg
  koel store export photos --db backups -o restored   the whole folder
  koel store put greeting hello --db notes            store a record
  koel store get greeting --db notes                  print its value
  koel store keys --db notes                          list the keys
  koel store create events --ordered                  create a store sorted by key
  koel store scan --prefix 2026-11 --db events        print its records
  koel store load records.tsv --db notes              store many records

One process can change a store, or several can read it at the same time. Others wait for them, 30
seconds unless --wait says otherwise.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Store files and whole folders, or new versions of them
    #[cfg(unix)]
    Import(import::Args),
    /// Write stored files and folders to disk, every byte checked
    #[cfg(unix)]
    Export(export::Args),
    /// List the stored files and their versions
    Ls(ls::Args),
    /// Remove stored files, or old versions
    Rm(rm::Args),
    /// Create an empty store, ordered or not
    Create(create::Args),
    /// List the keys of records
    Keys(keys::Args),
    /// Print the value of a key, or several keys and their values
    Get(get::Args),
    /// Print the records of an ordered store by key
    Scan(scan::Args),
    /// Store a value under a key
    Put(put::Args),
    /// Store many records, from lines or CSV
    Load(load::Args),
    /// Delete keys
    Del(del::Args),
    /// Free the space of removed files and deleted records
    Gc(gc::Args),
    /// Read and check every record and file
    Verify(verify::Args),
    /// Copy the records of a log store into an ordered store, or back
    Copy(copy::Args),
    /// Copy everything readable from a damaged store into a new one
    Salvage(salvage::Args),
    /// Show the contents and the disk and memory use of a store
    Stats(stats::Args),
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.verb {
        #[cfg(unix)]
        Verb::Import(args) => import::run(args),
        #[cfg(unix)]
        Verb::Export(args) => export::run(args),
        Verb::Ls(args) => ls::run(args),
        Verb::Rm(args) => rm::run(args),
        Verb::Create(args) => create::run(args),
        Verb::Keys(args) => keys::run(args),
        Verb::Get(args) => get::run(args),
        Verb::Scan(args) => scan::run(args),
        Verb::Put(args) => put::run(args),
        Verb::Load(args) => load::run(args),
        Verb::Del(args) => del::run(args),
        Verb::Gc(args) => gc::run(args),
        Verb::Verify(args) => verify::run(args),
        Verb::Copy(args) => copy::run(args),
        Verb::Salvage(args) => salvage::run(args),
        Verb::Stats(args) => stats::run(args),
    }
}
