//! `koel push`: sends a filter file to a server that has Koel's module.
//!
//! Cost: one pass over the file to check it, then 4 MiB a request. Memory here: a chunk, since the
//! file is mapped; in the server: the filter, twice while it is checked at the end.

use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::server::remote::RemoteArgs;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel build domains.txt -o domains.koel
  koel push domains.koel redis://localhost/domains
  valkey-cli CF.EXISTS domains example.org
  koel push --replace domains.koel redis://localhost/domains    when the list has changed

Needs a server with Koel's module, which has the CF.* commands: Redis 7.0, Valkey 8 or Valkey 9.
In a cluster, name a node on the host that has the key; with --follow, any node will do.

The filter appears in one step, when it is complete, so clients see the old one or the new one.
Meanwhile its parts are in a key {KEY}.koel-part-* (KEY.koel-part-* if KEY has a hash tag), which
expires if koel is interrupted.
The server asks as koel check does: of a filter built with --ignore-case or --format hosts, an item
becomes a key in the same way. Columns (--field) are not read there: an item is the key.

The password may be in the environment variable REDISCLI_AUTH or VALKEYCLI_AUTH instead of the URL.
In KEY, write %2F.. for bytes that a URL cannot have.

Exit codes: 0 done, 2 error.")]
pub(crate) struct Args {
    /// The filter file; `-` is standard input
    filter: PathBuf,

    #[command(flatten)]
    remote: RemoteArgs,

    /// Replace a filter that the key has
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let file = FilterFile::open_or_stdin(&args.filter)?;
    let filter = file.verified_view()?;
    let mut server = args.remote.connect()?;
    let progress = Progress::start("pushing", Some(file.bytes().len() as u64), Stdout::Silent);
    server.push(&filter, file.bytes(), args.replace, |sent| progress.advance(sent))?;
    drop(progress);
    let report = args.remote.report(&server, filter.len(), filter.size_in_bytes());
    output::print_after(&format!("{} was pushed", server.key()), &report)
}
