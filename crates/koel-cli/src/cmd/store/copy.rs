//! `koel store copy`: copies the records of a log store into an ordered store, or back.

use std::path::PathBuf;

use koel_store::content::Archive;
use koel_store::{Durability, Error, LsmOptions};

use super::database::{Access, Database, Records, Value};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::quantity::{counted, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store copy notes sorted          a log store into a new ordered store
  koel store copy sorted notes2         an ordered store into a new log store

The new store is of the other kind. Imported files stay behind: only a log store can hold them.
In an ordered store, keys have at most 64 KiB and values at most 256 MiB.

Exit codes: 0 everything was copied, 1 files were left behind, 2 error.")]
pub(crate) struct Args {
    /// Folder of the store to copy
    from: PathBuf,

    /// Folder of the new store
    to: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (old, new) = (Database::at(&args.from), Database::at(&args.to));
    let source = old.open(Access::Read)?;
    new.refuse_if(new.has_any_file() || old.is_in(&args.to))?;
    let target = match source {
        Records::Log(_) => new.ordered(Access::Create, LsmOptions::default())?.into(),
        Records::Ordered(_) => new.open(Access::Create)?,
    };
    let progress = Progress::start("copying records", None, Stdout::Silent);
    let (mut copied, mut left) = (0_u64, 0_u64);
    let mut copy = |entry: Result<(Vec<u8>, Vec<u8>), Error>| -> Result<(), Failure> {
        let (key, value) = entry.map_err(|error| old.failure(error))?;
        if Archive::is_reserved(&key) {
            left += 1;
            return Ok(());
        }
        let put = target.put(&key, Value::Whole(value), Durability::None);
        put.map_err(|error| new.failure(error))?;
        copied += 1;
        progress.advance(1);
        Ok(())
    };
    match &source {
        Records::Log(store) => store.iter().try_for_each(&mut copy)?,
        Records::Ordered(store) => {
            let mut all = store.iter().map_err(|error| old.failure(error))?;
            all.try_for_each(&mut copy)?;
        }
    }
    drop(progress);
    new.close(target)?;
    output::print(&format!("records  {} copied\n", grouped(copied)))?;
    if left > 0 {
        let records = format!("{} of imported files left behind", counted(left, "record"));
        let advice = "use `koel store export` for files";
        output::say_of(&args.from, &format!("{records}; {advice}"))?;
    }
    Ok(Outcome::some_if(left == 0))
}
