//! `AT milliseconds command key argument..`: runs a command as of a time.
//!
//! What a command does to a filter with a window depends on the time. So replicas and append-only
//! files get it in this form, with the time of the primary, and end with the same bytes. `ADVANCE`
//! as the command only sets the time.

use super::arguments::{is, number};
use super::reply::Reply;
use super::{Access, named};
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::header::Origin;
use crate::filter::native::Key;
use crate::keys::{Event, Keys, Value};

/// Arguments before the command.
const BEFORE: usize = 2;

/// What stands for a command of which only the time is left, as the server has refused its items.
pub(crate) const ADVANCE: &str = "ADVANCE";

pub(super) fn at(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let time = number(arguments[1]).ok_or(Error::BadTime)?;
    let arguments = &arguments[BEFORE..];
    if let [word, _] = arguments
        && is(word, ADVANCE)
    {
        keys.write(BEFORE + 1).or(Error::NotFound)?.complete_mut()?.advance(time);
        keys.changed(BEFORE + 1, Event::Advance);
        return Ok(Reply::Ok);
    }
    // The server has checked the access to this one key.
    let is_fit = |access, last_key| access != Access::Replays && last_key == 1;
    let command = named(arguments[0])
        .filter(|command| is_fit(command.access, command.last_key))
        .ok_or(Error::BadTimedCommand)?;
    match command.call(&mut KeysAt { keys, time }, arguments) {
        // What was refused on the primary is here too, and a replica must not fail.
        Err(Error::Full(_)) => Ok(Reply::Bool(false)),
        outcome => outcome,
    }
}

/// The keys of a command whose arguments begin later.
struct KeysAt<'a> {
    keys: &'a mut dyn Keys,
    time: u64,
}

impl Keys for KeysAt<'_> {
    fn read(&mut self, argument: usize) -> Value<&Filter> {
        self.keys.read(BEFORE + argument)
    }

    fn write(&mut self, argument: usize) -> Value<&mut Filter> {
        self.keys.write(BEFORE + argument)
    }

    fn put(&mut self, argument: usize, filter: Filter) {
        self.keys.put(BEFORE + argument, filter);
    }

    fn changed(&mut self, argument: usize, event: Event) {
        self.keys.changed(BEFORE + argument, event);
    }

    fn refused(&mut self, items: Vec<usize>) {
        self.keys.refused(items.into_iter().map(|item| BEFORE + item).collect());
    }

    fn refused_all(&mut self) {
        self.keys.refused_all();
    }

    fn limit(&self, bytes: u64) -> u64 {
        self.keys.limit(bytes)
    }

    fn origin(&self) -> Origin {
        self.keys.origin()
    }

    fn now(&mut self) -> u64 {
        self.time
    }

    fn room(&mut self) -> u64 {
        self.keys.room()
    }

    /// None: what is replayed has its secret with it.
    fn secret(&mut self) -> Option<Key> {
        None
    }

    fn created(&mut self, capacity: u64, secret: Key) {
        self.keys.created(capacity, secret);
    }
}
