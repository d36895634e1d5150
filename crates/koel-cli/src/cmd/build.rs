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
#![forbid(unsafe_code)]

mod like;
mod never;
mod pieces;

use std::path::PathBuf;

use koel::{CuckooFilter, FullError, Key, KeyHash, KeyHasher, Store};
use serde_json::json;

use never::{Never, Refuted};
use pieces::Bounded;

use crate::failure::{Failure, Outcome};
use crate::filter::key_count::KeyCount;
use crate::filter::sizing::{self, ShapeArgs};
use crate::filter::spool::Spool;
use crate::filter::target::OutArgs;
use crate::input::{InputArgs, Inputs};
use crate::lists::keys::Skipped;
use crate::output;
use crate::progress::Stdout;
use crate::quantity::{self, bytes, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel build domains.txt -o domains.koel
  koel build *.gz --fpr 1e-4 --unique -o all.koel
  zcat huge.gz | koel build -o huge.koel                as small as from a file
  zcat huge.gz | koel build --grow -o huge.koel         to add any number of keys later
  find / -print0 | koel build -0 -o paths.koel
  koel build --format hosts blocked.txt -o blocked.koel             a hosts file, or URLs
  koel build --format hosts list.txt --never allowed.txt -o b.koel  none that is allowed
  koel build --csv --field mail --ignore-case users.csv -o m.koel   a column

Without --keys, koel counts the keys before it builds the filter. It reads files twice. Of a pipe
it keeps 8 bytes per key until the end, above two million keys in an unnamed file in TMPDIR.

With --grow, the filter takes any number of further keys (koel add), but is 1.5 times as large.
Without --keys, it then keeps its false-positive rate up to a billion distinct keys.
A filter cannot grow if --fpr is below about 1e-7.

With --never, no line of ALLOWED is reported unless it is in the list; those that are in it are
conflicts, and named in the report. ALLOWED is read as the list is. For lists of hosts, parent
domains count too, as koel check --url asks them. The list is read once more, and a pipe is copied
to an unnamed file in TMPDIR first. Each false positive that is corrected takes 8 bytes.

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

With --like, the filter is one that `koel diff OLD NEW --patch` makes a patch to. OLD is built with
--keys, with room for the list to grow.

Exit codes: 0 done, 2 error, 3 the filter is full.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    out: OutArgs,

    /// False-positive rate, such as 0.001, 0.1% or 1/1000
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = quantity::parse_rate)]
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

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut inputs =
        if args.like.is_some() { args.input.open()? } else { args.input.open_first()? };
    inputs.refuse_output(args.out.path())?;
    if args.shape.has_secret() {
        inputs.refuse_secrets()?;
    }
    let target = args.out.open()?;
    let like = args.like.as_deref().map(|old| like::empty(old, &mut inputs)).transpose()?;
    let never = Never::open(args, &mut inputs, like.as_ref())?;
    let shape = &args.shape.for_lines(&inputs.recipe());
    if let Some(bounded) = Bounded::new(args, shape, &mut inputs)? {
        let (file, read) = bounded.run(&inputs, &target)?;
        target.report(&report(args, &file.view()?, &read, None))?;
        return Ok(Outcome::Done);
    }
    let empty = match like {
        Some(filter) => Some(filter),
        None => empty(args, shape)?,
    };
    let (mut filter, read) = match empty {
        Some(filter) => fill(args, filter, &inputs)?,
        None => fixed(args, shape, &inputs)?,
    };
    let refuted = never.map(|never| never.refute(&mut filter, &inputs, read.keys)).transpose()?;
    target.write(&filter)?;
    target.report(&report(args, &filter, &read, refuted.as_ref()))?;
    Ok(Outcome::Done)
}

fn report(
    args: &Args,
    filter: &CuckooFilter<impl Store>,
    read: &Read,
    refuted: Option<&Refuted>,
) -> String {
    if args.json {
        json_report(filter, read, refuted)
    } else {
        text_report(args, filter, read, refuted)
    }
}

/// What was read: the number of keys, copies included, and what had no key.
#[derive(Debug)]
struct Read {
    keys: u64,
    skipped: Skipped,
}

/// The empty filter, unless its size depends on the number of keys.
fn empty(args: &Args, shape: &ShapeArgs) -> Result<Option<CuckooFilter>, Failure> {
    match shape.keys {
        Some(keys) if args.grow => shape.build_growable(keys, args.fpr).map(Some),
        Some(keys) => shape.build(keys, args.fpr).map(Some),
        None if args.grow => shape.build_unbounded(args.fpr).map(Some),
        None => Ok(None),
    }
}

/// Inserts every key.
fn fill(
    args: &Args,
    mut filter: CuckooFilter,
    inputs: &Inputs,
) -> Result<(CuckooFilter, Read), Failure> {
    let mut number = 0;
    let skipped = inputs.each("building", Stdout::Silent, |keys| {
        number += keys.len() as u64;
        insert(args, &mut filter, keys)
    })?;
    Ok((filter, Read { keys: number, skipped }))
}

/// Builds a fixed filter of the size that the keys of the inputs need.
fn fixed(args: &Args, shape: &ShapeArgs, inputs: &Inputs) -> Result<(CuckooFilter, Read), Failure> {
    // A filter of any size has this hasher. A wrong rate fails before anything is read.
    let hasher = shape.build(1, args.fpr)?.hasher();
    if inputs.has_stream() {
        from_pipe(args, shape, inputs, hasher)
    } else {
        from_files(args, shape, inputs, hasher)
    }
}

/// Keeps the hashes of all keys until their number is known.
fn from_pipe(
    args: &Args,
    shape: &ShapeArgs,
    inputs: &Inputs,
    hasher: KeyHasher,
) -> Result<(CuckooFilter, Read), Failure> {
    let (mut count, mut spool) = (KeyCount::new(), Spool::new());
    let skipped = inputs.each("reading", Stdout::Silent, |keys| {
        let hashes = hash_each(hasher, keys);
        count.add(&hashes);
        spool.push(&hashes)
    })?;
    let filter = from_hashes(args, shape, &count, |take| spool.each("building", take))?;
    Ok((filter, Read { keys: count.keys(), skipped }))
}

/// Counts the lines, then builds the filter. If lines turn out to repeat, builds a smaller one.
fn from_files(
    args: &Args,
    shape: &ShapeArgs,
    inputs: &Inputs,
    hasher: KeyHasher,
) -> Result<(CuckooFilter, Read), Failure> {
    let mut filter = Some(shape.build(inputs.count()?, args.fpr)?);
    let mut count = KeyCount::new();
    let skipped = inputs.each("building", Stdout::Silent, |keys| {
        let hashes = hash_each(hasher, keys);
        count.add(&hashes);
        filter.take_if(|_| count.repeats(args.unique));
        filter.as_mut().map_or(Ok(()), |filter| insert(args, filter, &hashes))
    })?;
    let filter = match filter {
        Some(filter) if filter.capacity() == count.capacity(args.unique).max(1) => filter,
        _ => from_hashes(args, shape, &count, |take| {
            let each = |keys: &[&[u8]]| take(&hash_each(hasher, keys));
            inputs.each("building", Stdout::Silent, each).map(|_| ())
        })?,
    };
    Ok((filter, Read { keys: count.keys(), skipped }))
}

/// Builds a filter of counted keys, whose hashes `each` passes to a function.
fn from_hashes(
    args: &Args,
    shape: &ShapeArgs,
    count: &KeyCount,
    mut each: impl FnMut(&mut dyn FnMut(&[KeyHash]) -> Result<(), Failure>) -> Result<(), Failure>,
) -> Result<CuckooFilter, Failure> {
    let mut build = |capacity| {
        let mut filter = shape.build(capacity, args.fpr)?;
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

fn hash_each(hasher: KeyHasher, keys: &[&[u8]]) -> Vec<KeyHash> {
    keys.iter().map(|key| hasher.hash(key)).collect()
}

fn insert<K: Key>(args: &Args, filter: &mut CuckooFilter, keys: &[K]) -> Result<(), Failure> {
    sizing::insert(filter, keys, args.unique).map_err(|full| too_small(full, filter))
}

fn too_small(full: FullError, filter: &CuckooFilter) -> Failure {
    let remedy = match full {
        FullError::Counters { .. } => "nothing was written; use --unique or a larger --keys",
        FullError::NoMemory => "nothing was written; free some memory",
        _ => "nothing was written; use --grow or a larger --keys",
    };
    Failure::Full { full, keys: filter.len(), remedy: remedy.to_owned() }
}

fn json_report(
    filter: &CuckooFilter<impl Store>,
    read: &Read,
    refuted: Option<&Refuted>,
) -> String {
    output::json(&json!({
        "lines": read.keys,
        "skipped": read.skipped.json(),
        "keys": filter.len(),
        "distinct_estimate": sizing::distinct(filter),
        "capacity": filter.capacity(),
        "size_in_bytes": filter.size_in_bytes(),
        "bits_per_key": filter.bits_per_key(),
        "growable": filter.is_growable(),
        "fpr_requested": filter.requested_false_positive_rate(),
        "fpr_expected": filter.false_positive_rate(),
        "never": refuted.map(Refuted::json),
        "warning": warning(filter),
    }))
}

/// What is wrong with a filter that was built.
fn warning(filter: &CuckooFilter<impl Store>) -> Option<String> {
    let nothing = || "the filter is empty, because the input has no keys".to_owned();
    filter.is_empty().then(nothing).or_else(|| sizing::rate_warning(filter))
}

fn text_report(
    args: &Args,
    filter: &CuckooFilter<impl Store>,
    read: &Read,
    refuted: Option<&Refuted>,
) -> String {
    let mut rows = vec![
        ("keys", grouped(filter.len())),
        ("distinct keys", format!("about {}", grouped(sizing::distinct(filter)))),
        ("size", bytes(filter.size_in_bytes() as u64)),
        (
            "bits per key",
            format!(
                "{} for {}",
                sizing::bits_per_key(filter.bits_per_key(), filter.len(), filter.has_grown()),
                quantity::counted(sizing::keys_of_size(filter), "distinct key")
            ),
        ),
        (
            "false-positive rate",
            sizing::rates(filter.false_positive_rate(), filter.requested_false_positive_rate()),
        ),
    ];
    rows.extend(read.skipped.row());
    rows.extend(refuted.map(Refuted::rows).unwrap_or_default());
    rows.extend(warning(filter).map(|warning| ("warning", warning)));
    if let Some(hint) = size_hint(args, filter) {
        rows.push(("hint", hint));
    }
    output::table(&rows)
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
