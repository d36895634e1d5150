//! `koel store ls`: lists the files of a store, or their versions.
//!
//! Names are listed in the order of their last import, folders before what is in them. Files with
//! damaged records are missing from the list; an error at the end reports them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use koel_store::content::{Archive, ArchiveError, Attributes, Entry, Kind, Time, Version};
use serde_json::{Value, json};

use super::database::{Access, Database};
use super::name;
use crate::escape::escape;
use crate::failure::{Failure, Outcome};
use crate::output::Lines;
use crate::quantity::grouped;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store ls --db backups
  koel store ls photos/2024 --db backups
  koel store ls --versions --db backups         all versions with their dates
  koel store ls --version 3 --db backups        the files of version 3
  koel store ls --json --db backups | jq -r .escaped

Each line has the length in bytes, or `folder` or `link`, the time of the last change, and the name.
A ~ after the length says that the file changed while it was imported.
What is not printable in a name is escaped: \\n, \\x1b, and \\\\ for a backslash. Every name is accepted
as it is printed.
With --json, each line is an object; `escaped` is the printed name.")]
pub(crate) struct Args {
    /// Only these files and folders
    names: Vec<OsString>,

    #[command(flatten)]
    database: Database,

    /// List the versions of each name
    #[arg(long, conflicts_with = "version")]
    versions: bool,

    /// List the files of an older version
    #[arg(long, value_name = "NUMBER")]
    version: Option<u64>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Print only names, as they are, each with a zero byte at its end
    #[arg(short = '0', long, conflicts_with_all = ["json", "versions"])]
    null: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let archive = Archive::new(db.log(Access::Read)?);
    let names = name::names(&args.names)?;
    let mut list = List { args, archive: &archive, out: Lines::new(), failure: None };
    let listed = if args.versions { list.versions(&names) } else { list.files(names) };
    list.out.finish()?;
    listed?;
    list.failure.map_or(Ok(Outcome::Done), Err)
}

/// A list that is printed.
struct List<'a> {
    args: &'a Args,
    archive: &'a Archive,
    out: Lines,
    /// The last damage.
    failure: Option<Failure>,
}

impl List<'_> {
    fn stop(&self, error: ArchiveError) -> Failure {
        self.args.database.archive_failure(error)
    }

    fn versions(&mut self, names: &[Vec<u8>]) -> Result<(), Failure> {
        let mut missing: BTreeSet<_> = names.iter().collect();
        for version in self.archive.versions().map_err(|error| self.stop(error))? {
            match version {
                Ok(version) if names.is_empty() || names.contains(&version.name) => {
                    missing.remove(&version.name);
                    self.print(&version_line(&version, self.args.json))?;
                }
                Ok(_) => {}
                Err(error) => self.failure = Some(self.stop(error)),
            }
        }
        match names.iter().find(|name| missing.contains(name)) {
            Some(name) => Err(self.stop(ArchiveError::NoSuchName { name: name.clone() })),
            None => Ok(()),
        }
    }

    fn files(&mut self, names: Vec<Vec<u8>>) -> Result<(), Failure> {
        let lists_all = names.is_empty();
        let entries = name::entries(self.archive, names, self.args.version);
        for found in entries.map_err(|error| self.stop(error))? {
            match found {
                Ok((name, entry)) => self.tree(&name, &entry)?,
                Err(error) if lists_all => self.failure = Some(self.stop(error)),
                Err(error) => return Err(self.stop(error)),
            }
        }
        Ok(())
    }

    /// Prints an entry and all below it. Damage is kept for the end.
    fn tree(&mut self, name: &[u8], entry: &Entry) -> Result<(), Failure> {
        let (archive, mut printed) = (self.archive, Ok(()));
        let walked = archive.walk(name, entry, &mut |path, entry| {
            printed = self.print_entry(path, entry);
            Ok(printed.is_ok())
        });
        if let Err(error) = walked {
            self.failure = Some(self.stop(error));
        }
        printed
    }

    fn print_entry(&mut self, path: &[u8], entry: &Entry) -> Result<(), Failure> {
        if self.args.null {
            return self.out.line(path, 0);
        }
        self.print(&line(path, entry, self.args.json))
    }

    fn print(&mut self, line: &str) -> Result<(), Failure> {
        self.out.line(line.as_bytes(), b'\n')
    }
}

fn version_line(version: &Version, json: bool) -> String {
    let time = utc(version.time);
    if json {
        let mut object = json!({ "version": version.number, "time": time });
        extend(&mut object, name::json_of(&version.name));
        return object.to_string();
    }
    format!("{:>7}  {time}  {}", version.number, escape(&version.name))
}

fn line(path: &[u8], entry: &Entry, json: bool) -> String {
    if json {
        return object(path, entry).to_string();
    }
    let (size, mark) = match &entry.kind {
        Kind::File(file) if file.changed_while_read => (grouped(file.content.length), '~'),
        Kind::File(file) => (grouped(file.content.length), ' '),
        kind => (kind_of(kind).to_owned(), ' '),
    };
    let modified = entry.attributes.map_or_else(|| "-".to_owned(), |it| utc(it.modified));
    format!("{size:>17}{mark} {modified:<20}  {}", escape(path))
}

fn object(path: &[u8], entry: &Entry) -> Value {
    let mut object = name::json_of(path);
    object["kind"] = kind_of(&entry.kind).into();
    match &entry.kind {
        Kind::File(file) => {
            object["length"] = file.content.length.into();
            object["blake3"] = hexadecimal(&file.content.hash).into();
            if file.changed_while_read {
                object["changed_while_read"] = true.into();
            }
        }
        Kind::Link(target) => object["target"] = escape(target).into(),
        _ => {}
    }
    if let Some(Attributes { mode, uid, gid, modified, .. }) = entry.attributes {
        let modified = utc(modified);
        let mode = format!("{mode:04o}");
        extend(&mut object, json!({ "mode": mode, "uid": uid, "gid": gid, "modified": modified }));
    }
    object
}

/// Adds the fields of another object.
fn extend(object: &mut Value, fields: Value) {
    if let (Value::Object(object), Value::Object(fields)) = (object, fields) {
        object.extend(fields);
    }
}

fn kind_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::File(_) => "file",
        Kind::Folder(_) => "folder",
        _ => "link",
    }
}

fn hexadecimal(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The time in UTC, such as `2026-11-26T14:25:46Z`. Earlier times are shown as 1970, later ones
/// as 9999.
fn utc(time: Time) -> String {
    let last = 253_402_300_799;
    let seconds = u64::try_from(time.seconds).unwrap_or_default().min(last);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    humantime::format_rfc3339_seconds(time).to_string()
}
