//! `koel build`: builds a filter file from keys.
//!
//! Without `--keys`, the filter gets the size that its keys need: the lines of files are counted
//! first, which reads them once more. A pipe can be read only once: the hashes of its keys are kept
//! until their number is known (`spool.rs`). Both ways give the same bytes.
//!
//! With `--memory`, a filter that is larger is built through temporary files (`build/pieces.rs`).
//!
//! Cost: one hash and one insert per line, for a pipe also 8 bytes of memory or temporary space.
//! Memory: the filter.

mod never;
mod pieces;

use std::path::{Path, PathBuf};

use koel::{CuckooFilter, FullError, Key, KeyHash, KeyHasher, Store};

use never::{Never, Refuted};
use pieces::Bounded;

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::filter::sizing::{self, ShapeArgs};
use crate::filter::spool::{KeyCount, Spool, hash_each};
use crate::filter::target::OutArgs;
use crate::input::{InputArgs, Inputs};
use crate::lists::skipped::Skipped;
use crate::quantity::{self, bytes, counted, grouped};
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel build domains.txt -o domains.koel
  koel build *.gz --fpr 1e-4 --unique -o all.koel
  zcat huge.gz | koel build -o huge.koel                as small as from a file
  zcat huge.gz | koel build --grow -o huge.koel         to add more keys later
  find / -print0 | koel build -0 -o paths.koel
  koel build --format hosts blocked.txt -o blocked.koel             a hosts file, or URLs
  koel build --format hosts list.txt --never allowed.txt -o b.koel  none that is allowed
  koel build --csv --field mail --ignore-case users.csv -o m.koel   a column

Without --keys, koel counts the keys before it builds the filter. It reads files twice. Of a pipe
it keeps 8 bytes per key until the end, above two million keys in an unnamed file in TMPDIR.

With --grow, the filter takes further keys (koel add), up to several billion, but is larger
(koel plan).
Without --keys, it then keeps its false-positive rate up to a billion distinct keys.
If --fpr is too low for a filter that grows, the error names the lowest.

With --never, no line of ALLOWED is reported unless it is in the list; lines in both are conflicts,
which the report names. ALLOWED is read as the list is. For lists of hosts, parent domains count
too, since koel check --url looks them up. The list is read once more, and a pipe is copied to an
unnamed file in TMPDIR first. Each false positive that is corrected takes 8 bytes.

With --memory, a larger filter is built segment by segment through unnamed files in TMPDIR:
8 bytes per key, and the size of the filter. It answers as one that is built in memory.

The options of lines are stored in the filter and hold for all later inputs: how a list is read
(--format, --field, --csv, --delimiter), unless it is said anew for an input, and how a key is made
(--ignore-case, --trim, --keep-cr).

A repeated line is inserted every time, so that each copy can be removed again.
With --unique, each key is inserted only once.

With --secret, nobody who chooses keys can find keys that the filter takes for others. The secret is
in the filter, which only its owner may read. It is random, or with --secret=FILE the 16 bytes or 32
hexadecimal digits in FILE; filters can be merged if they have the same secret.

With --like, the filter has the settings of OLD, so that `koel diff OLD NEW --patch` can make a
patch. Build OLD with --keys, with room for the list to grow. The corrections of OLD are kept,
except for lines in the new list; with --never, those that its new lines need are added.

Exit codes: 0 done, 2 error, 3 the filter is full.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    out: OutArgs,

    /// False-positive rate, such as 0.001, 0.1% or 1/1000
    #[arg(long, value_name = "P", value_parser = quantity::parse_rate)]
    #[arg(default_value_t = quantity::USUAL_RATE)]
    #[arg(allow_negative_numbers = true)]
    fpr: f64,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Build a filter with the settings and the secret of OLD, to patch it
    #[arg(long, value_name = "OLD", conflicts_with_all = LIKE)]
    like: Option<PathBuf>,

    /// Make the filter growable; without --keys it starts with room for 1,000
    #[arg(long)]
    grow: bool,

    /// Insert each key only once, however often it is repeated
    #[arg(long)]
    unique: bool,

    /// Never report the lines of ALLOWED that are not in the list
    #[arg(long, value_name = "ALLOWED", conflicts_with = "memory")]
    never: Vec<PathBuf>,

    /// Take about this much memory (such as 512M), with temporary files if needed
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_size, conflicts_with = "grow")]
    memory: Option<u64>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// What `--like` takes from a filter.
const LIKE: [&str; 7] = ["keys", "fpr", "prefer", "seed", "secret", "grow", "memory"];

/// What was read: the number of keys, copies included, and what had no key.
#[derive(Debug)]
struct ListRead {
    keys: u64,
    skipped: Skipped,
}

pub(crate) fn run(mut args: Args) -> Result<Outcome, Failure> {
    let mut inputs =
        if args.like.is_some() { args.input.open()? } else { args.input.open_first()? };
    inputs.refuse_output(args.out.path())?;
    if args.shape.has_secret() {
        inputs.refuse_secrets()?;
    }
    let target = args.out.open()?;
    let like = args.like.as_deref().map(|old| like_filter(old, &mut inputs)).transpose()?;
    if like.is_none() {
        inputs.look_at_lines();
    }
    let never = Never::open(&args, &mut inputs, like.as_ref())?;
    args.shape.read_lines_by(&inputs.recipe());
    if let Some(bounded) = Bounded::new(&args, &mut inputs)? {
        let (file, read) = bounded.run(&inputs, &target)?;
        return target.report(&report(&args, &file.view()?, &read, None).text(args.json));
    }
    let empty = if like.is_some() { like } else { empty(&args)? };
    let (mut filter, read) = match empty {
        Some(filter) => fill(&args, filter, &inputs)?,
        None => fixed(&args, &inputs)?,
    };
    let refuted = never.map(|never| never.refute(&mut filter, &inputs, read.keys)).transpose()?;
    target.write(&filter)?;
    target.report(&report(&args, &filter, &read, refuted.as_ref()).text(args.json))
}

/// A filter without keys like the one at `path`: of its size, rate, hash and secret, so that a
/// patch makes one of the other, and with its corrections. Inserting a key takes its correction
/// back, so no line of the new list is hidden. The inputs are read as it says.
fn like_filter(path: &Path, inputs: &mut Inputs) -> Result<CuckooFilter, Failure> {
    let mut filter = FilterFile::open(path)?.load()?;
    if filter.has_grown() {
        let sentence = "has grown, so no other filter is like it; build one with --keys first";
        return Err(Failure::about(path, sentence));
    }
    inputs.use_recipe_of(path, filter.application())?;
    filter.clear_keys();
    Ok(filter)
}

/// The empty filter, unless its size depends on the number of keys.
fn empty(args: &Args) -> Result<Option<CuckooFilter>, Failure> {
    if args.grow {
        return args.shape.build_growable(args.fpr).map(Some);
    }
    args.shape.keys.map(|keys| args.shape.build(keys, args.fpr)).transpose()
}

type Built = Result<(CuckooFilter, ListRead), Failure>;

/// Inserts every key.
fn fill(args: &Args, mut filter: CuckooFilter, inputs: &Inputs) -> Built {
    let mut number = 0;
    let skipped = inputs.each("building", |keys| {
        number += keys.len() as u64;
        insert(args, &mut filter, keys)
    })?;
    Ok((filter, ListRead { keys: number, skipped }))
}

/// Builds a fixed filter of the size that the keys of the inputs need.
fn fixed(args: &Args, inputs: &Inputs) -> Built {
    // A filter of any size has this hasher. A wrong rate fails before anything is read.
    let hasher = args.shape.build(1, args.fpr)?.hasher();
    if inputs.has_stream() {
        from_pipe(args, inputs, hasher)
    } else {
        from_files(args, inputs, hasher)
    }
}

/// Keeps the hashes of all keys until their number is known.
fn from_pipe(args: &Args, inputs: &Inputs, hasher: KeyHasher) -> Built {
    let (mut count, mut spool) = (KeyCount::new(), Spool::new());
    let skipped = inputs.each("reading", |keys| {
        let hashes = hash_each(hasher, keys);
        count.add(&hashes);
        spool.push(&hashes)
    })?;
    let filter = from_hashes(args, &count, |take| spool.each("building", take))?;
    Ok((filter, ListRead { keys: count.keys(), skipped }))
}

/// Counts the lines, then builds the filter. If lines turn out to repeat, builds a smaller one.
fn from_files(args: &Args, inputs: &Inputs, hasher: KeyHasher) -> Built {
    let mut filter = Some(args.shape.build(inputs.count()?, args.fpr)?);
    let mut count = KeyCount::new();
    let skipped = inputs.each("building", |keys| {
        let hashes = hash_each(hasher, keys);
        count.add(&hashes);
        filter.take_if(|_| count.repeats(args.unique));
        filter.as_mut().map_or(Ok(()), |filter| insert(args, filter, &hashes))
    })?;
    let filter = match filter {
        Some(filter) if filter.capacity() == count.capacity(args.unique).max(1) => filter,
        _ => from_hashes(args, &count, |take| {
            inputs.each("building", |keys| take(&hash_each(hasher, keys))).map(drop)
        })?,
    };
    Ok((filter, ListRead { keys: count.keys(), skipped }))
}

/// Builds a filter of counted keys, whose hashes `each` passes to a function.
fn from_hashes(
    args: &Args,
    count: &KeyCount,
    mut each: impl FnMut(&mut dyn FnMut(&[KeyHash]) -> Result<(), Failure>) -> Result<(), Failure>,
) -> Result<CuckooFilter, Failure> {
    let mut build = |capacity| {
        let mut filter = args.shape.build(capacity, args.fpr)?;
        each(&mut |hashes| insert(args, &mut filter, hashes))?;
        Ok(filter)
    };
    let capacity = count.capacity(args.unique);
    match build(capacity) {
        // More distinct keys than estimated, by five standard errors or by an adversary.
        Err(Failure::Full { .. }) if capacity < count.keys() => build(count.keys()),
        built => built,
    }
}

fn insert(args: &Args, filter: &mut CuckooFilter, keys: &[impl Key]) -> Result<(), Failure> {
    sizing::insert(filter, keys, args.unique).map_err(|full| {
        let remedy = match full {
            FullError::Counters { .. } => "nothing was written; use --unique or a larger --keys",
            FullError::NoMemory => "nothing was written; free some memory",
            _ => "nothing was written; use --grow or a larger --keys",
        };
        Failure::Full { full, keys: filter.len(), remedy: remedy.to_owned() }
    })
}

fn report(
    args: &Args,
    filter: &CuckooFilter<impl Store>,
    read: &ListRead,
    refuted: Option<&Refuted>,
) -> Report {
    let (size, distinct) = (filter.size_in_bytes(), sizing::distinct(filter));
    let of_size = if filter.has_grown() { distinct } else { filter.capacity() };
    let of_size = counted(of_size, "distinct key");
    let bits = format!("{} for {of_size}", sizing::bits_per_key(filter));
    let nothing = || "the filter is empty, because the input has no keys".to_owned();
    let warning = filter.is_empty().then(nothing).or_else(|| sizing::rate_warning(filter));
    let mut report = Report::default();
    report
        .json("lines", read.keys)
        .json("skipped", read.skipped.json())
        .add("keys", filter.len(), "keys", grouped(filter.len()))
        .add("distinct_estimate", distinct, "distinct keys", format!("about {}", grouped(distinct)))
        .json("capacity", filter.capacity())
        .add("size_in_bytes", size, "size", bytes(size as u64))
        .add("bits_per_key", filter.bits_per_key(), "bits per key", bits)
        .json("growable", filter.is_growable());
    sizing::add_rates(&mut report, filter);
    report.row("skipped", read.skipped.sentence()).json("never", refuted.map(Refuted::json));
    let (kept, sentence) = kept_corrections(args, filter, refuted);
    report.add("kept_corrections", kept, "corrections", sentence);
    refuted.iter().for_each(|refuted| refuted.add_rows(&mut report));
    report.warning(warning).row("hint", size_hint(args, filter).unwrap_or_default());
    report
}

/// The corrections that `--like` took over, and what is to be said of them.
fn kept_corrections(
    args: &Args,
    filter: &CuckooFilter<impl Store>,
    refuted: Option<&Refuted>,
) -> (u64, String) {
    let made = refuted.map_or(0, Refuted::corrections);
    let (kept, Some(old)) = (filter.corrections() - made, &args.like) else {
        return (0, String::new());
    };
    let again = match refuted {
        None => "; new keys may match other allowed names: give --never again",
        Some(_) => "",
    };
    let sentence = format!("{} kept from {}{again}", grouped(kept), old.display());
    (kept, if kept > 0 { sentence } else { String::new() })
}

/// A hint if the filter is larger than needed: lines repeat, or `--keys` is too large.
fn size_hint(args: &Args, filter: &CuckooFilter<impl Store>) -> Option<String> {
    let distinct = sizing::distinct(filter);
    if args.grow || distinct == 0 || distinct as f64 > 0.9 * filter.capacity() as f64 {
        return None;
    }
    // Four standard errors above the estimate, so that all keys fit.
    let error = (distinct as f64 * filter.false_positive_rate() / 2.0).sqrt();
    let enough = distinct + quantity::to_u64(4.0 * error) + 1;
    let plan = args.shape.plan(enough, args.fpr).ok()?;
    if plan.size_in_bytes as f64 > 0.9 * filter.size_in_bytes() as f64 {
        return None;
    }
    let smaller = bytes(plan.size_in_bytes as u64);
    let unique = if args.unique { "" } else { " --unique" };
    let without = if args.unique { "" } else { ", but would not count copies" };
    Some(format!("--keys {enough}{unique} would take {smaller}{without}"))
}
