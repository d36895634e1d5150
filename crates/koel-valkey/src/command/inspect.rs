//! `INFO key [field]` and `DEBUG key`

use super::arguments::is;
use super::reply::Reply;
use crate::error::Error;
use crate::filter::{Info, Options};
use crate::keys::Keys;

pub(super) fn info(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let (info, options) = numbers(keys)?;
    match arguments[2..] {
        [] => Ok(all(info, options)),
        [name] => field(info, options, name),
        _ => Err(Error::Arity),
    }
}

/// What the reference's INFO returns, in its order. A filter with corrections or a window has more.
fn all(info: Info, options: Options) -> Reply {
    let mut entries = vec![
        ("Size", Reply::count(info.bytes)),
        ("Number of buckets", Reply::count(info.buckets)),
        ("Number of filters", Reply::count(info.tables)),
        ("Number of items inserted", Reply::count(info.items)),
        ("Number of items deleted", Reply::count(info.deleted)),
        ("Bucket size", Reply::Integer(options.bucket_size.into())),
        ("Expansion rate", Reply::Integer(options.expansion.into())),
        ("Max iterations", Reply::Integer(options.max_iterations.into())),
    ];
    if info.corrections > 0 {
        entries.push(("Number of corrections", Reply::count(info.corrections)));
    }
    if info.window > 0 {
        entries.push(("Window", Reply::count(info.window)));
        entries.push(("Number of items expired", Reply::count(info.expired)));
        entries.push(("Number of items evicted", Reply::count(info.evicted)));
    }
    Reply::Map(entries)
}

fn field(info: Info, options: Options, name: &[u8]) -> Result<Reply, Error> {
    let fields = [
        ("CAPACITY", Reply::count(info.capacity)),
        ("SIZE", Reply::count(info.bytes)),
        ("BUCKETS", Reply::count(info.buckets)),
        ("FILTERS", Reply::count(info.tables)),
        ("ITEMS", Reply::count(info.items)),
        ("DELETED", Reply::count(info.deleted)),
        ("BUCKETSIZE", Reply::Integer(options.bucket_size.into())),
        ("EXPANSION", Reply::Integer(options.expansion.into())),
        ("MAXITERATIONS", Reply::Integer(options.max_iterations.into())),
        ("ERROR", Reply::Double(info.error)),
        ("RATE", Reply::Double(info.rate)),
        ("LOAD", Reply::Double(info.load)),
        ("FORMAT", Reply::Text(info.format)),
        ("CORRECTIONS", Reply::count(info.corrections)),
        ("WINDOW", Reply::count(info.window)),
        ("EXPIRED", Reply::count(info.expired)),
        ("EVICTED", Reply::count(info.evicted)),
    ];
    let found = fields.into_iter().find(|(known, _)| is(name, known));
    found.map(|(_, reply)| reply).ok_or(Error::UnknownField)
}

pub(super) fn debug(keys: &mut dyn Keys, _: &[&[u8]]) -> Result<Reply, Error> {
    let (info, options) = numbers(keys)?;
    let text = format!(
        "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
        options.bucket_size,
        info.buckets,
        info.items,
        info.deleted,
        info.tables,
        options.max_iterations,
        options.expansion
    );
    Ok(Reply::Bytes(text.into_bytes()))
}

fn numbers(keys: &mut dyn Keys) -> Result<(Info, Options), Error> {
    let now = keys.now();
    let filter = keys.read(1).or(Error::NotFound)?.complete()?;
    Ok((filter.info(now), filter.options()))
}
