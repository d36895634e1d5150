//! `koel store`: files and records in a folder that no crash and no flipped bit deceives. One file per verb, as above.
//!
//! Records have keys and values and are reached with `get`, `put` and `del`; files are cut into chunks, kept once each, and are reached with
//! `import`, `export`, `ls`, `rm` and `gc`. Both live in one folder; keys that begin with the byte FF belong to the files.
#![forbid(unsafe_code)]

mod database;
mod del;
mod export;
mod gc;
mod get;
mod import;
mod ls;
mod put;
mod rm;
mod salvage;
mod stats;
mod tour;
mod verify;

use clap::Subcommand;

use crate::failure::{Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store import *.iso --db backups          files in, each chunk stored once
  koel store ls --db backups
  koel store export old.iso --db backups -o old.iso
  koel store put greeting hello --db notes      a record in
  koel store get greeting --db notes
  koel store tour                               all of it, with every promise checked

One process at a time can change a store; several can read it, while none changes it.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Put files, or all files of folders, into a store
    Import(import::Args),
    /// Write a file of a store out again, every byte checked
    Export(export::Args),
    /// List the files of a store
    Ls(ls::Args),
    /// Take files out of a store
    Rm(rm::Args),
    /// Print the value of a key
    Get(get::Args),
    /// Store a value under a key
    Put(put::Args),
    /// Delete keys
    Del(del::Args),
    /// Give back the space of what was removed
    Gc(gc::Args),
    /// Read everything and check it
    Verify(verify::Args),
    /// Copy what can still be read of a damaged store into a new one
    Salvage(salvage::Args),
    /// Show what a store holds and what it costs
    Stats(stats::Args),
    /// See a store do its work on a real file, with every promise checked
    Tour(tour::Args),
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.verb {
        Verb::Import(args) => import::run(args),
        Verb::Export(args) => export::run(args),
        Verb::Ls(args) => ls::run(args),
        Verb::Rm(args) => rm::run(args),
        Verb::Get(args) => get::run(args),
        Verb::Put(args) => put::run(args),
        Verb::Del(args) => del::run(args),
        Verb::Gc(args) => gc::run(args),
        Verb::Verify(args) => verify::run(args),
        Verb::Salvage(args) => salvage::run(args),
        Verb::Stats(args) => stats::run(args),
        Verb::Tour(args) => tour::run(args),
    }
}
