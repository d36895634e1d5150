//! Long commands in parts, so that a server goes on meanwhile.
//!
//! ```text
//! is_long  on the server's thread: whether the command is worth a thread
//! work     on a thread, which asks for keys a moment at a time: makes the new value of the key
//! follow   a moment at a time: what has changed in the key meanwhile is done in the new value
//! ```
//!
//! The value takes the place of the key's in the moment in which nothing is left to follow. Before
//! that nobody sees it, so that a command that fails has changed nothing.

use crate::error::Error;
use crate::filter::Filter;
use crate::filter::journal::Run;
use crate::filter::native::Native;
use crate::keys::{Event, Keys, Value};

/// Where the keys of a command are, for a thread that does not own them.
pub trait Host {
    /// Passes the keys to `look` while nobody else uses them.
    ///
    /// # Errors
    /// If the keys can be changed no more.
    fn with_keys(&self, look: &mut dyn FnMut(&mut dyn Keys)) -> Result<(), Error>;
}

impl dyn Host + '_ {
    /// Does `look` with the keys, and returns what it returned.
    ///
    /// # Errors
    /// As [`with_keys`](Host::with_keys), or that of `look`.
    pub(super) fn ask<T>(
        &self,
        look: impl FnOnce(&mut dyn Keys) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (mut look, mut answer) = (Some(look), Err(Error::Lost));
        self.with_keys(&mut |keys| {
            if let Some(look) = look.take() {
                answer = look(keys);
            }
        })?;
        answer
    }
}

/// What a thread has made of the keys.
#[expect(missing_debug_implementations, reason = "a function has none")]
pub enum Made {
    /// What is to be the value of the key.
    Value(NewValue),
    /// The rest of the command, in a moment. Replicas get the command itself.
    Rest(Rest),
}

/// The new value of the first key.
#[derive(Debug)]
pub struct NewValue {
    /// The value.
    pub filter: Box<Native>,
    /// Whether it is made of a copy of the key's value, which has a journal since.
    pub follows: bool,
    /// What listeners hear of it.
    pub event: Event,
}

/// The rest of a command, which gets its arguments once more.
pub type Rest = Box<dyn FnOnce(&mut dyn Keys, &[&[u8]]) -> Result<(), Error>>;

type IsLong = fn(&mut dyn Keys, &[&[u8]], u64) -> Result<bool, Error>;
type Work = fn(&dyn Host, &[&[u8]], u64) -> Result<Made, Error>;

/// The parts of a command.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Whether it handles so many bytes or more, and can be done in parts.
    pub is_long: IsLong,
    /// Does it, but for the last moment. The journal of the key gets this number.
    pub work: Work,
}

/// A copy of a filter. That of the key itself begins a journal of this number.
///
/// The memory is written to before the keys are asked for, so that others wait only as long as it
/// takes to copy bytes.
pub(super) fn copy(host: &dyn Host, argument: usize, number: u64) -> Result<Native, Error> {
    let bytes = host.ask(|keys| native(keys, argument).map(|filter| filter.bytes()))?;
    let mut memory = Vec::new();
    let words = usize::try_from(bytes.div_ceil(8)).unwrap_or(usize::MAX);
    memory.try_reserve_exact(words).map_err(|_| Error::NoMemory)?;
    memory.resize(words, 1);
    host.ask(|keys| {
        let filter = native(keys, argument)?;
        if argument == 1 {
            filter.begin_journal(number);
        }
        filter.try_clone_in(memory)
    })
}

fn native(keys: &mut dyn Keys, argument: usize) -> Result<&mut Native, Error> {
    match keys.write(argument) {
        Value::Filter(Filter::Native(filter)) => Ok(filter),
        // It was a filter of ours a moment ago.
        _ if argument == 1 => Err(Error::Changed),
        _ => Err(Error::NotFound),
    }
}

/// Does in the new value, which is that of the argument `new` by now and has a journal of this
/// number too, what was done in the key's. `None` if nothing is left to do.
///
/// # Errors
/// [`Error::Changed`] if something else was done, [`Error::Lost`] if the new value is not what it
/// was, [`Error::Full`] if it has no room.
pub fn follow(
    keys: &mut dyn Keys,
    new: usize,
    follows: bool,
    number: u64,
) -> Result<Option<Run>, Error> {
    if !is_complete(keys, new, number) {
        return Err(Error::Lost);
    }
    let run = match keys.write(1) {
        Value::Filter(Filter::Native(filter)) if follows => filter.next_run(number)?,
        Value::Missing if !follows => None,
        _ => return Err(Error::Changed),
    };
    let Some(run) = run else { return Ok(None) };
    native(keys, new)?.replay(&run)?;
    Ok(Some(run))
}

fn is_complete(keys: &mut dyn Keys, new: usize, number: u64) -> bool {
    let value = keys.read(new);
    matches!(value, Value::Filter(Filter::Native(it)) if it.is_unchanged_since(number))
}
