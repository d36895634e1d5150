//! What a thread does for a long command: one rule, *replicas get the result*.
//!
//! ```text
//! work     copies filters under the lock of the server, and makes the new value of the key
//! put      the value gets a name of its own beside the key's, in the slot of the key
//! send     LOADCHUNK of a megabyte at a time makes the same value on replicas and in files
//! follow   what has changed in the key since its copy is done in the value too, in commands
//! rename   once nothing is left to follow: RENAME puts the value in its place, everywhere
//! ```
//!
//! A step has the lock for some milliseconds, and a copy for some 12 ms per 100 MB.
//! Between two steps the value is what replicas have of it, so that one that synchronises or takes
//! over then is equal. The value expires an hour later, so that a primary that fails leaves nothing
//! for ever.
//!
//! **Before each step** the thread waits until replication is not paused: a server that has paused
//! its writes ends when a module replicates anything (`CLIENT PAUSE`, a planned failover, a
//! shutdown that waits for replicas, a slot that is handed over). It asks whether the server may
//! still be written and has the slot of the key. If not, or if the value was deleted meanwhile, the
//! client gets an error, and the key is what it was.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::api::{CLUSTER, READ_ONLY, RawBlocked, RawString, api};
use super::context::{self, Context};
use super::keyspace::ServerKeys;
use crate::command::Command;
use crate::command::parts::{self, Host, Made, NewValue, Parts};
use crate::command::reply::Reply;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::sending::Sending;
use crate::keys::{Event, Keys, Value};

/// How often the thread asks whether replication is still paused.
const PAUSE: Duration = Duration::from_millis(5);
/// What is sent at once, and how long the thread waits then: 64 MB a second at most, so that the
/// buffers of replicas stay small.
const CHUNK_BYTES: usize = 1 << 20;
const BETWEEN_CHUNKS: Duration = Duration::from_millis(16);
/// Items that are followed at once, and how long others get the lock then.
const FOLLOWED: usize = 16_384;
const BETWEEN_RUNS: Duration = Duration::from_millis(1);
/// How long a value lives beside its key, in milliseconds.
const LIFE: u64 = 3_600_000;
/// How often a command begins again because its key has changed in another way than by items.
const ATTEMPTS: usize = 4;

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The lock of the server. As long as a thread has it, the server does nothing. It needs no
/// context, and no server looks at the one that it gets.
pub(super) struct Lock;

impl Lock {
    pub(super) fn take() -> Self {
        // SAFETY: the thread does not have the lock.
        unsafe { (api().ThreadSafeContextLock)(ptr::null_mut()) };
        Self
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: this thread has the lock.
        unsafe { (api().ThreadSafeContextUnlock)(ptr::null_mut()) };
    }
}

/// A name in the slot of a key, for the value that is to replace its own. `None` where braces in
/// the name of the key leave none.
pub(super) fn name_beside(key: &[u8]) -> Option<Vec<u8>> {
    let after = |bytes: &[u8], wanted| bytes.iter().position(|&byte| byte == wanted);
    let tag = after(key, b'{').map(|open| &key[open + 1..]);
    let tag = tag.and_then(|rest| after(rest, b'}').map(|close| &rest[..close]));
    let tag = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    if tag.is_empty() || tag.contains(&b'}') {
        return None;
    }
    let mut random = [0; 8];
    // SAFETY: so many bytes are written.
    unsafe { (api().GetRandomBytes)(random.as_mut_ptr(), random.len()) };
    let number = format!("{:016x}", u64::from_le_bytes(random));
    Some([b"{", tag, b"}.koel.", number.as_bytes()].concat())
}

/// A command whose turn it is.
pub(super) struct Beside<'a> {
    command: &'static Command,
    parts: Parts,
    context: Context,
    strings: &'a [*mut RawString],
}

impl<'a> Beside<'a> {
    /// `strings` are the arguments, and the name of the new value.
    pub(super) fn begin(
        command: &'static Command,
        parts: Parts,
        blocked: *mut RawBlocked,
        strings: &'a [*mut RawString],
    ) -> Self {
        let _lock = Lock::take();
        // SAFETY: the client is blocked until the end of the command. What it takes from now on is
        // in the statistics of the server.
        unsafe { (api().BlockedClientMeasureTimeStart)(blocked) };
        // SAFETY: as above.
        let raw = unsafe { (api().GetThreadSafeContext)(blocked) };
        // SAFETY: the context lives until it is dropped.
        let context = unsafe { Context::new(raw) };
        Self { command, parts, context, strings }
    }

    /// The outcome of the command.
    pub(super) fn run(&self) -> Result<Reply, Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.attempt() {
                Err(Error::Changed) if attempts < ATTEMPTS => {}
                outcome => return outcome.map(|()| Reply::Ok),
            }
        }
    }

    fn attempt(&self) -> Result<(), Error> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed) + 1;
        // SAFETY: the strings are live until the end of the command.
        let arguments = unsafe { context::all_bytes(&self.strings[..self.place()]) };
        let outcome = match (self.parts.work)(self, &arguments, number) {
            Ok(Made::Rest(rest)) => self.with(self.place(), |keys| {
                rest(keys, &arguments)?;
                keys.announce(self.command);
                Ok(())
            }),
            Ok(Made::Value(value)) => self.replace(value, number),
            Err(error) => Err(error),
        };
        if outcome.is_err() {
            self.clean_up();
        }
        outcome
    }

    /// The argument that is the name of the new value.
    fn place(&self) -> usize {
        self.strings.len() - 1
    }

    /// Puts a new value in the place of the key's.
    fn replace(&self, value: NewValue, number: u64) -> Result<(), Error> {
        let NewValue { mut filter, follows, event } = value;
        filter.begin_journal(number);
        let total = filter.bytes();
        let value = Filter::Sending(Sending::new(filter));
        // The first chunk has a checksum of all: it is computed here, without the lock.
        let mut first = Some(next_chunk(&value)?);
        self.step(|keys, new| {
            let lives_until = (keys.now() + LIFE).to_string();
            keys.replicate_chunk(new, 1, &value.header().encode());
            keys.put(new, value);
            keys.call(c"PEXPIREAT", new, Some(&lives_until));
            Ok(())
        })?;
        while self.step(|keys, new| send(keys, new, number, first.take()))? < total {
            thread::sleep(BETWEEN_CHUNKS);
        }
        while !self.step(|keys, new| end(keys, new, (follows, number), event))? {
            thread::sleep(BETWEEN_RUNS);
        }
        Ok(())
    }

    /// Nothing follows the key any more, and the new value is gone. Where the server may not be
    /// written any more, that is left to its time to live.
    fn clean_up(&self) {
        let lock = Lock::take();
        if let Value::Filter(Filter::Native(filter)) = self.keys(self.strings).write(1) {
            filter.end_journal();
        }
        drop(lock);
        let _is_deleted = self.step(|keys, new| match keys.read(new) {
            Value::Missing => Ok(true),
            _ => Ok(keys.call(c"DEL", new, None)),
        });
    }

    /// A step with the keys and the argument that is the new value.
    fn step<T>(
        &self,
        work: impl FnOnce(&mut ServerKeys<'_>, usize) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with(self.strings.len(), |keys| work(keys, self.place()))
    }

    /// Works with so many of the strings under the lock, while the server may be written.
    fn with<T>(
        &self,
        strings: usize,
        work: impl FnOnce(&mut ServerKeys<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _lock = loop {
            let lock = Lock::take();
            // SAFETY: it takes nothing.
            if unsafe { (api().AvoidReplicaTraffic)() } == 0 {
                break lock;
            }
            drop(lock);
            thread::sleep(PAUSE);
        };
        let flags = self.context.flags();
        if flags & READ_ONLY != 0 {
            return Err(Error::ReadOnly);
        }
        if flags & CLUSTER != 0 && !self.context.owns(self.strings[1]) {
            return Err(Error::Moved);
        }
        work(&mut self.keys(&self.strings[..strings]))
    }

    /// Whoever calls it has the lock.
    fn keys<'b>(&self, strings: &'b [*mut RawString]) -> ServerKeys<'b> {
        // SAFETY: the strings are live until the end of the command, as is the context.
        unsafe { ServerKeys::beside(self.context, strings) }
    }
}

impl Host for Beside<'_> {
    fn with_keys(&self, look: &mut dyn FnMut(&mut dyn Keys)) -> Result<(), Error> {
        self.with(self.place(), |keys| {
            look(keys);
            Ok(())
        })
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        let _lock = Lock::take();
        // SAFETY: `begin` got it, and it is freed once.
        unsafe { (api().FreeThreadSafeContext)(self.context.raw()) };
    }
}

/// The next chunk of a value that is being sent.
fn next_chunk(value: &Filter) -> Result<Vec<u8>, Error> {
    let Filter::Sending(sending) = value else { return Err(Error::Lost) };
    let (filter, offset) = sending.next();
    filter.body(offset..offset + CHUNK_BYTES)
}

/// Sends the next chunk, which is this one or is taken from the new value. Returns how many bytes
/// were sent in all.
fn send(
    keys: &mut ServerKeys<'_>,
    new: usize,
    number: u64,
    chunk: Option<Vec<u8>>,
) -> Result<u64, Error> {
    let value = keys.write(new).or(Error::Lost)?;
    let sent = match value {
        Filter::Sending(it) if it.next().0.is_unchanged_since(number) => it.next().1,
        _ => return Err(Error::Lost),
    };
    let chunk = chunk.map_or_else(|| next_chunk(value), Ok)?;
    value.note_sent(chunk.len())?;
    let sent = (sent + chunk.len()) as u64;
    keys.replicate_chunk(new, 1 + sent, &chunk);
    Ok(sent)
}

/// Follows some changes of the key. If none is left, the new value takes its place. Whether it has.
fn end(
    keys: &mut ServerKeys<'_>,
    new: usize,
    (follows, number): (bool, u64),
    event: Event,
) -> Result<bool, Error> {
    let mut followed = 0;
    while let Some(run) = parts::follow(keys, new, follows, number)? {
        keys.replicate_run(new, &run);
        followed += run.items().len();
        if followed >= FOLLOWED {
            return Ok(false);
        }
    }
    if let Value::Filter(Filter::Native(filter)) = keys.write(new) {
        filter.end_journal();
    }
    keys.rename(new, event)?;
    Ok(true)
}
