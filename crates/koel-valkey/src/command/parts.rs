//! Long commands in parts, so that a server goes on meanwhile.
//!
//! ```text
//! begin    on the server's thread: checks the operands, and decides whether it pays
//! work     on any thread; asks for keys a moment at a time
//! finish   on the server's thread: puts the result in its place, unless the keys have changed
//! ```
//!
//! Only `finish` changes what others see, so that a command that is given up has done nothing.

use super::reply::Reply;
use crate::error::Error;
use crate::keys::Keys;

/// Where the keys of a command are, for a thread that does not own them.
pub trait Host {
    /// Passes the keys to `look` while nobody else uses them.
    fn with_keys(&self, look: &mut dyn FnMut(&mut dyn Keys));
}

/// How a command ends.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// As if it had been run now.
    Done(Reply),
    /// The key has the result, but the operands have changed since: replicas need the value.
    Value(Reply),
    /// The key has changed since. Nothing was done: run the command as a whole.
    Again,
}

/// The last part.
pub type Finish = Box<dyn FnOnce(&mut dyn Keys) -> Result<Outcome, Error> + Send>;
/// The part for another thread.
pub type Work = Box<dyn FnOnce(&dyn Host) -> Finish + Send>;

/// Begins a command. `None` if it handles fewer than `least` bytes, or if it has to be run as a
/// whole for another reason. `watch` is a number above 0 that no other command has.
pub type Begin = fn(
    keys: &mut dyn Keys,
    arguments: &[&[u8]],
    least: u64,
    watch: u64,
) -> Result<Option<Work>, Error>;

/// Does `look` with the keys of `host`, and returns what it returned.
pub(super) fn ask<T>(host: &dyn Host, look: impl FnOnce(&mut dyn Keys) -> T) -> Option<T> {
    let (mut look, mut answer) = (Some(look), None);
    host.with_keys(&mut |keys| answer = look.take().map(|look| look(keys)));
    answer
}
