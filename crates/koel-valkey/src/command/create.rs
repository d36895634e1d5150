//! `RESERVE key capacity [ERROR rate] [PREFER SMALL|FAST] [BUCKETSIZE n] [MAXITERATIONS n]
//! [EXPANSION n] [WINDOW seconds [WHENFULL FAIL|EVICT]]`

use super::arguments;
use super::reply::Reply;
use crate::error::Error;
use crate::filter::Filter;
use crate::keys::{Keys, Value};

pub(super) fn reserve(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let settings = arguments::settings(&arguments[2..])?;
    match keys.write(1) {
        Value::Missing => {}
        Value::Foreign => return Err(Error::WrongType),
        Value::Filter(_) => return Err(Error::Exists),
    }
    let filter = Filter::create(settings, keys.limit(), keys.now())?;
    keys.put(1, filter);
    keys.changed(1, "reserve");
    Ok(Reply::Ok)
}
