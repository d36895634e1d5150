//! `koel patch`: makes the filter of today of the filter of yesterday and a patch.
//!
//! Cost: a copy of the filter, and a sort of its entries. Memory: the filter. OLD stays as it is,
//! unless it is OUT too: then it is replaced in one step.

use std::path::PathBuf;

use koel::PatchSummary;

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::filter::target::OutArgs;
use crate::filter::{compare, sizing};
use crate::quantity::{bytes, grouped};
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel patch monday.koel tuesday.patch -o tuesday.koel
  curl -s https://example.org/tuesday.patch | koel patch list.koel - -o list.koel

`koel diff OLD NEW --patch PATCH` makes the patch. It fits only the filter that it was made for, so
apply patches in order. A wrong filter and a damaged patch are refused.

The same patch on the same filter always gives the same bytes. Nothing in a patch says who made it:
get it over HTTPS, or check a signature first.

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
    let patch = compare::read_patch(&args.patch)?;
    let view = file.view()?;
    let failure = |error| compare::patch_failure(&file, &view, &args.patch, error);
    let summary = PatchSummary::of(&patch).map_err(failure)?;
    let patched = view.patched(&patch).map_err(failure)?;
    target.write(&patched)?;
    let PatchSummary { added, removed, .. } = summary;
    let size = patched.size_in_bytes();
    let mut report = Report::default();
    report
        .add("keys", patched.len(), "keys", sizing::keys_and_capacity(&patched))
        .add("entries_added", added, "entries added", grouped(added))
        .add("entries_removed", removed, "entries removed", grouped(removed))
        .json("corrections", patched.corrections())
        .add("size_in_bytes", size, "size", bytes(size as u64))
        .add("patch_bytes", patch.len(), "patch", bytes(patch.len() as u64));
    target.report(&report.text(args.json))
}
