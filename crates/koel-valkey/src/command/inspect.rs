//! `INFO key [FULL|field]` and `DEBUG key`

use super::arguments::is;
use super::reply::Reply;
use crate::error::Error;
use crate::filter::{Info, Options};
use crate::keys::Keys;

/// What the reference's INFO returns. Clients that know these fail on more.
const OF_REFERENCE: usize = 8;

pub(super) fn info(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let (info, options) = numbers(keys)?;
    let fields = fields(info, options).into_iter();
    let map =
        |most| Reply::Map(fields.clone().map(|(_, name, it)| (name, it)).take(most).collect());
    match arguments[2..] {
        [] => Ok(map(OF_REFERENCE)),
        [word] if is(word, "FULL") => Ok(map(usize::MAX)),
        [word] => {
            let found = fields.clone().find(|(field, ..)| is(word, field));
            found.map(|(.., reply)| reply).ok_or(Error::UnknownField)
        }
        _ => Err(Error::Arity),
    }
}

/// All fields with their names: those of the reference first, in its order.
fn fields(info: Info, options: Options) -> [(&'static str, &'static str, Reply); 17] {
    let (count, option) = (Reply::count, |option: u16| Reply::Integer(option.into()));
    [
        ("SIZE", "Size", count(info.bytes)),
        ("BUCKETS", "Number of buckets", count(info.buckets)),
        ("FILTERS", "Number of filters", count(info.tables)),
        ("ITEMS", "Number of items inserted", count(info.items)),
        ("DELETED", "Number of items deleted", count(info.deleted)),
        ("BUCKETSIZE", "Bucket size", option(options.bucket_size)),
        ("EXPANSION", "Expansion rate", option(options.expansion)),
        ("MAXITERATIONS", "Max iterations", option(options.max_iterations)),
        ("CAPACITY", "Capacity", count(info.capacity)),
        ("ERROR", "Error rate", Reply::Double(info.error)),
        ("RATE", "Expected error rate", Reply::Double(info.rate)),
        ("LOAD", "Load", Reply::Double(info.load)),
        ("FORMAT", "Format", Reply::Text(info.format)),
        ("CORRECTIONS", "Number of corrections", count(info.corrections)),
        ("WINDOW", "Window", count(info.window)),
        ("EXPIRED", "Number of items expired", count(info.expired)),
        ("EVICTED", "Number of items evicted", count(info.evicted)),
    ]
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
