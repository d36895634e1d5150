//! `koel store load`: stores many records, from lines or CSV.
//!
//! Records are written in batches, and become durable together at the end. Memory: a batch and the
//! longest line. An input that is wrong in the middle is an error. The records before it are
//! stored, and loading the corrected input again does no harm.

use std::io::Read;
use std::path::PathBuf;

use koel_lines::Records as CsvRecords;
use koel_store::Batch;
use koel_store::content::Archive;

use super::database::{Access, Database, Records};
use super::key::{self, KeyForm};
use crate::escape::unescape;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::lines::text::Content;
use crate::lines::{LineEnd, Lines, decode};
use crate::progress::{Progress, Stdout};
use crate::quantity::{counted, grouped};
use crate::report::Report;
use crate::streams::Warnings;

/// The longest line: input without line ends does not decide how much memory is taken.
const LONGEST: usize = 64 << 20;

/// Records and bytes of a batch.
const RECORDS: usize = 1000;
const BYTES: usize = 1 << 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store scan --db events | koel store load --db copy
  koel store load --csv --header users.csv --db users       columns: key, value
  koel store load --csv --columns 3,1 log.csv.gz --db mails
  seq 1000000 | sed 's/.*/&\\tvalue &/' | koel store load --db numbers

Each line is a key, a tab and a value, escaped as koel store scan and koel store get print them.
Lines end with LF or CR LF. With -0, keys and values are exact bytes, each with a zero byte at its
end. With --csv, they are the fields of a record, exactly. The last value of a key counts.
The store is created if it does not exist; `koel store create --ordered` makes one sorted by key.
Input may be compressed with gzip or zstd.")]
pub(crate) struct Args {
    /// The file to load; standard input if `-` or none
    #[arg(default_value = "-", hide_default_value = true)]
    file: PathBuf,

    #[command(flatten)]
    database: Database,

    /// Read CSV
    #[arg(long, conflicts_with = "null")]
    csv: bool,

    /// Columns of key and value in CSV, counted from 1
    #[arg(long, value_name = "KEY,VALUE", default_value = "1,2", requires = "csv")]
    #[arg(value_parser = parse_columns)]
    columns: (usize, usize),

    /// Skip the first record of CSV, which has the names of the columns
    #[arg(long, requires = "csv")]
    header: bool,

    #[command(flatten)]
    form: KeyForm,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let (source, size) = input::open_stream(&args.file)?;
    let store = db.open(Access::Create)?;
    let progress = Progress::start("loading", size, Stdout::Silent);
    let mut load = Load {
        args,
        store: &store,
        csv: CsvRecords::new(b','),
        read: 0,
        key: None,
        batch: Batch::new(),
        bytes: 0,
        stored: 0,
    };
    // The records before a wrong line are stored, too.
    let read = load.all(progress.meter(source));
    let loaded = read.and(load.flush());
    let stored = load.stored;
    drop(progress);
    // What was stored stays, also before an error.
    let closed = db.close_changed(store);
    if loaded.is_err() && stored > 0 {
        db.report_done(&format!("{} stored", counted(stored, "record")))?;
    }
    loaded.and(closed)?;
    let mut report = Report::default();
    report.add("records", stored, "records", format!("{} stored", grouped(stored)));
    report.print(args.json)
}

/// A key and its value.
type Record = (Vec<u8>, Vec<u8>);

/// Records on their way into a store.
struct Load<'a> {
    args: &'a Args,
    store: &'a Records,
    csv: CsvRecords,
    /// Lines, records or items read so far.
    read: u64,
    /// With -0, the key whose value is the next item.
    key: Option<Vec<u8>>,
    batch: Batch,
    /// Bytes of keys and values in the batch.
    bytes: usize,
    stored: u64,
}

impl Load<'_> {
    fn all(&mut self, source: impl Read + 'static) -> Result<(), Failure> {
        let (name, exact) = (input::name_of(&self.args.file), self.args.form.is_exact());
        let failure = |error| Failure::read(name, error);
        let warnings = Warnings::default();
        let content = if exact { Content::Exact } else { Content::Records };
        let text = decode::decoded(source, content, name, &warnings).map_err(failure)?;
        let end = match (self.args.csv, exact) {
            (true, _) => LineEnd::Record(CsvRecords::new(b',')),
            (_, true) => LineEnd::Byte(0),
            _ => LineEnd::Byte(b'\n'),
        };
        let mut lines = Lines::new(text, end, LONGEST, false);
        loop {
            let group = lines.next_group().map_err(failure)?;
            if group.is_empty() {
                break;
            }
            for range in group {
                self.line(&lines.bytes()[range])?;
            }
        }
        if self.key.is_some() {
            return Err(self.incomplete());
        }
        warnings.print();
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.read += 1;
        let line = self.args.form.line(line);
        let record = if self.args.csv {
            if line.is_empty() || (self.args.header && self.read == 1) {
                return Ok(());
            }
            self.csv_record(line)
        } else if !self.args.form.is_exact() {
            split(line)?
        } else if let Some(key) = self.key.take() {
            Some((key, line.to_vec()))
        } else {
            self.key = Some(line.to_vec());
            return Ok(());
        };
        let (key, value) = record.ok_or_else(|| self.incomplete())?;
        if Archive::is_reserved(&key) {
            return Err(key::reserved());
        }
        self.put(&key, &value)
    }

    fn csv_record(&mut self, record: &[u8]) -> Option<Record> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let (key_column, value_column) = self.args.columns;
        let found = self.csv.field(record, key_column, &mut key)
            && self.csv.field(record, value_column, &mut value);
        found.then_some((key, value))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let bytes = key.len() + value.len();
        if self.batch.len() >= RECORDS || self.bytes + bytes > BYTES {
            self.flush()?;
        }
        self.batch.put(key, value).map_err(|error| self.args.database.failure(error))?;
        self.bytes += bytes;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.store.write(&self.batch).map_err(|error| self.args.database.failure(error))?;
        self.stored += self.batch.len() as u64;
        self.batch.clear();
        self.bytes = 0;
        Ok(())
    }

    /// The last line has no key or no value.
    fn incomplete(&self) -> Failure {
        let number = grouped(self.read);
        let what = if self.args.csv {
            let (key, value) = self.args.columns;
            format!("record {number} has no columns {key} and {value}; name others with --columns")
        } else if self.args.form.is_exact() {
            format!("key {number} has no value; with -0, each key is followed by its value")
        } else {
            format!("line {number} has no tab between a key and a value; use --csv for CSV")
        };
        Failure::Usage(format!("cannot load {}: {what}", input::name_of(&self.args.file).display()))
    }
}

/// The key and the value of a line.
fn split(line: &[u8]) -> Result<Option<Record>, Failure> {
    let Some(tab) = memchr::memchr(b'\t', line) else { return Ok(None) };
    Ok(Some((unescape(&line[..tab])?, unescape(&line[tab + 1..])?)))
}

/// Parses the value of `--columns`.
fn parse_columns(text: &str) -> Result<(usize, usize), String> {
    let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
    let columns =
        text.split_once(',').and_then(|(key, value)| Some((number(key)?, number(value)?)));
    columns.ok_or_else(|| "give two numbers, counted from 1, such as 1,2".to_owned())
}
