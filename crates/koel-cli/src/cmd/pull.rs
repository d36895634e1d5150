//! `koel pull`: writes a filter of a server to a filter file.
//!
//! The chunks come one after the other. If the filter is changed meanwhile, they do not belong
//! together, which the checksum in its header tells. With `--snapshot`, the server copies the
//! filter first. Cost: a request a chunk, of up to 16 MiB. Memory: the filter twice.

use koel::{CuckooFilter, ImageError};

use crate::failure::{Failure, Outcome};
use crate::filter::target::OutArgs;
use crate::progress::{Progress, Stdout};
use crate::quantity::parse_size;
use crate::server::remote::RemoteArgs;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel pull redis://localhost/domains -o domains.koel
  koel check domains.koel mail.log
  koel pull --snapshot redis://:PASSWORD@cache:6380/seen?db=2 -o seen.koel

Needs a server with Koel's module. In a cluster, name a node on the host that has the key; with
--follow, any node will do.
The file has the bytes of the filter in the server: `koel push` and `koel pull` change none.
A filter that came from RedisBloom keeps RedisBloom's layout, and so cannot be pulled.

If the filter is changed while it is read, koel fails and writes nothing. With --snapshot, the
server copies it first, which takes its memory once more.

The password may be in the environment variable REDISCLI_AUTH or VALKEYCLI_AUTH instead of the URL.

Exit codes: 0 done, 2 error.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: RemoteArgs,

    #[command(flatten)]
    out: OutArgs,

    /// Let the server copy the filter first, so that it may be changed meanwhile
    #[arg(long)]
    snapshot: bool,

    /// Refuse a larger filter; it takes twice that memory here
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "4G")]
    max_size: u64,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let target = args.out.open()?;
    let mut server = args.remote.connect()?;
    let image = server.pull(args.snapshot, args.max_size, |len| {
        let progress = Progress::start("pulling", Some(len), Stdout::Silent);
        Box::new(move |got| progress.advance(got))
    })?;
    let filter = CuckooFilter::from_bytes(&image).map_err(|error| match error {
        ImageError::Kind { .. } | ImageError::NoMemory | ImageError::Newer { .. } => {
            Failure::Image { path: server.key().into(), error }
        }
        _ => server.changed(),
    })?;
    drop(image);
    target.write(&filter)?;
    let report = args.remote.report(&server, filter.len(), filter.size_in_bytes());
    target.report(&report)
}
