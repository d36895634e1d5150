//! `koel patch`: makes the filter of today of the filter of yesterday and a patch.
//!
//! Cost: a copy of the filter, and a sort of its entries. Memory: the filter. OLD stays as it is,
//! unless it is OUT too: then it is replaced in one step.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use koel::PatchSummary;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::filter::patch_file;
use crate::filter::sizing;
use crate::filter::target::OutArgs;
use crate::output;
use crate::quantity::{bytes, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel patch monday.koel tuesday.patch -o tuesday.koel
  curl -s https://example.org/tuesday.patch | koel patch list.koel - -o list.koel

`koel diff OLD NEW --patch PATCH` makes the patch. It fits the filter that it was made for, and no
other: apply patches in their order. A wrong filter and a damaged patch are refused.

Whoever has the same filter and applies the same patch gets the same bytes. Nothing in a patch says
who made it: get it over HTTPS, or check a signature first.

Exit codes: 0 done, 2 error, 3 the filter is full.")]
pub(crate) struct Args {
    /// The filter file that the patch was made for
    old: PathBuf,

    /// The patch; `-` is standard input
    patch: PathBuf,

    #[command(flatten)]
    out: OutArgs,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let target = args.out.open()?;
    let file = FilterFile::open(&args.old)?;
    let patch = patch_file::read(&args.patch)?;
    let view = file.view()?;
    let failure = |error| patch_file::failure(&file, &view, &args.patch, error);
    let summary = PatchSummary::of(&patch).map_err(failure)?;
    let patched = view.patched(&patch).map_err(failure)?;
    target.write(&patched)?;
    let report = if args.json {
        output::json(&json!({
            "keys": patched.len(),
            "entries_added": summary.added,
            "entries_removed": summary.removed,
            "corrections": patched.corrections(),
            "size_in_bytes": patched.size_in_bytes(),
            "patch_bytes": patch.len(),
        }))
    } else {
        output::table(&[
            ("keys", sizing::keys_and_capacity(&patched)),
            ("entries added", grouped(summary.added)),
            ("entries removed", grouped(summary.removed)),
            ("size", bytes(patched.size_in_bytes() as u64)),
            ("patch", bytes(patch.len() as u64)),
        ])
    };
    target.report(&report)?;
    Ok(Outcome::Done)
}
