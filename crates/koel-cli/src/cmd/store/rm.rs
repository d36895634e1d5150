//! `koel store rm`: removes files and folders with all their versions, or some versions.
//!
//! Their chunks stay until `koel store gc`, because other files may share them.

use std::collections::BTreeSet;
use std::ffi::OsString;

use koel_store::content::{Archive, ArchiveError};

use super::database::{Access, Database};
use super::name;
use crate::escape::escape;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::counted;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store rm old.iso --db backups              a name with all its versions
  koel store rm photos --version 3 --db backups   one version
  koel store rm --inside photos/2019 --db backups a part of a folder, from all its versions
  koel store rm --keep 7 --db backups             all versions but the newest 7 of every name

Run koel store gc afterwards to free the space.

Exit codes: 0 all names were found, 1 one was not (the others are removed), 2 error.")]
pub(crate) struct Args {
    /// Names that were imported, as koel store ls --versions prints them
    #[arg(required_unless_present = "keep")]
    names: Vec<OsString>,

    #[command(flatten)]
    database: Database,

    /// Keep the newest N versions; without NAMES, of every name
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,

    /// Remove only this version
    #[arg(long, value_name = "NUMBER", conflicts_with = "keep")]
    version: Option<u64>,

    /// Remove parts of imported folders, too, from all their versions
    #[arg(long, conflicts_with_all = ["keep", "version"])]
    inside: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let mut names: BTreeSet<_> = name::names(&args.names)?.into_iter().collect();
    let archive = Archive::new(db.log(Access::Change)?);
    if names.is_empty() {
        names = all_names(&archive).map_err(|error| db.archive_failure(error))?;
    }
    if !args.inside {
        refuse_parts(&archive, &names)?;
    }
    let mut all = true;
    for name in &names {
        let removed = match (args.keep, args.version) {
            (Some(keep), _) => archive.keep_newest(name, keep).map(|_| true),
            (_, Some(number)) => archive.remove_version(name, number),
            _ => archive.remove(name),
        };
        let found = match removed {
            Err(ArchiveError::NoSuchName { .. }) => false,
            // A part may be in older versions only.
            Err(ArchiveError::Inside { .. }) | Ok(false) if args.inside => {
                remove_part(&archive, name, db)?
            }
            removed => removed.map_err(|error| db.archive_failure(error))?,
        };
        if !found {
            db.report_not_found(name)?;
        }
        all &= found;
    }
    db.close_changed(archive.into_store())?;
    Ok(Outcome::some_if(all))
}

/// Fails before anything is removed, if a name is a part of an imported folder.
fn refuse_parts(archive: &Archive, names: &BTreeSet<Vec<u8>>) -> Result<(), Failure> {
    for name in names {
        // What is not found, or damaged, is reported later.
        if let Ok((version, _)) = archive.find(name)
            && version.name != *name
        {
            let (name, top) = (escape(name), escape(&version.name));
            return Err(Failure::Usage(format!(
                "\"{name}\" is a part of the imported \"{top}\"; --inside removes it from all \
                 versions of that"
            )));
        }
    }
    Ok(())
}

/// Removes a part of a folder, and says from how many versions. Returns whether it was in one.
fn remove_part(archive: &Archive, name: &[u8], db: &Database) -> Result<bool, Failure> {
    let versions = archive.remove_inside(name).map_err(|error| db.archive_failure(error))?;
    if versions == 0 {
        return Ok(false);
    }
    let (name, from) = (escape(name), counted(versions, "version"));
    output::say_of(db.folder(), &format!("\"{name}\" removed from {from}"))?;
    Ok(true)
}

fn all_names(archive: &Archive) -> Result<BTreeSet<Vec<u8>>, ArchiveError> {
    archive.versions()?.map(|version| Ok(version?.name)).collect()
}
