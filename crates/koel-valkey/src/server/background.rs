//! Commands in parts, on a thread, while the server goes on.
//!
//! The client is blocked. The thread does its part and asks for keys under the lock of the server,
//! which then waits. At last the server calls [`reply`], which finishes the command.
//!
//! **Replication.** A server that has paused its writes ends when a module replicates anything: for
//! `CLIENT PAUSE`, a planned failover, a shutdown that waits for replicas, or a slot that is handed
//! over. So the thread waits until none is paused, and [`reply`] asks again, since a pause may
//! begin between the two. It also asks whether the server may still be written and has the slot of
//! the key. If not, the client gets an error, and nothing has changed.
//!
//! Where a client cannot be blocked (transactions, scripts, replicas, files that are read), for
//! small filters, and while another command is on the thread, a command is run as a whole.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::api::{
    CLUSTER, DENY_BLOCKING, FROM_MASTER, LOADING, LUA, MULTI, OK, READ_ONLY, RawBlocked,
    RawContext, RawString, api,
};
use super::context::{self, Context};
use super::keyspace::ServerKeys;
use super::{run, values};
use crate::command::Command;
use crate::command::parts::{Finish, Host, Outcome, Work};
use crate::error::Error;
use crate::keys::Keys;
use crate::totals;

/// Filters of fewer bytes are handled at once: that takes some milliseconds.
const LEAST_BYTES: u64 = 128 << 10;
/// How often the thread asks whether replication is still paused.
const PAUSE: Duration = Duration::from_millis(5);

/// Whether a command is on a thread. One at a time, so that copies take bounded memory.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);
static WATCHES: AtomicU64 = AtomicU64::new(0);

/// What a thread has: the client that waits, and its own way to the keys.
struct Job {
    command: &'static Command,
    blocked: *mut RawBlocked,
    context: Context,
    /// The arguments of the command. The client may go away and drop its own.
    strings: Vec<*mut RawString>,
}

// SAFETY: the server allows any thread to unblock a client, and to use the context and the strings
// under its lock.
unsafe impl Send for Job {}

/// What the thread hands to [`reply`].
struct Done {
    command: &'static Command,
    finish: Result<Finish, String>,
}

/// The lock of the server. As long as a thread has it, the server does nothing. It needs no
/// context, and no server looks at the one that it gets.
struct Lock;

impl Lock {
    fn take() -> Self {
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

impl Host for Job {
    fn with_keys(&self, look: &mut dyn FnMut(&mut dyn Keys)) {
        let _lock = Lock::take();
        // SAFETY: the strings are those of the command, and are held until its end.
        let mut keys = unsafe { ServerKeys::new(self.context, &self.strings) };
        look(&mut keys);
    }
}

/// Begins a command on a thread. False if it has to be run now.
pub(super) fn begin(
    command: &'static Command,
    context: Context,
    strings: &[*mut RawString],
    arguments: &[&[u8]],
) -> bool {
    let cannot_block = MULTI | LUA | DENY_BLOCKING | FROM_MASTER | LOADING;
    let Some(begin) = command.begin().filter(|_| command.takes(arguments.len())) else {
        return false;
    };
    if context.flags() & cannot_block != 0 || IS_RUNNING.swap(true, Ordering::AcqRel) {
        return false;
    }
    // SAFETY: the arguments are those of this command.
    let mut keys = unsafe { ServerKeys::new(context, strings) };
    let watch = WATCHES.fetch_add(1, Ordering::Relaxed) + 1;
    // The command itself reports errors.
    let has_begun = match begin(&mut keys, arguments, LEAST_BYTES, watch) {
        Ok(Some(work)) => start(command, context, strings, work),
        _ => false,
    };
    if !has_begun {
        IS_RUNNING.store(false, Ordering::Release);
    }
    has_begun
}

fn start(
    command: &'static Command,
    context: Context,
    strings: &[*mut RawString],
    work: Work,
) -> bool {
    let block = api().BlockClient;
    // SAFETY: the context is live and its client can be blocked. A timeout of 0 is none.
    let blocked = unsafe { block(context.raw(), Some(reply), None, Some(free), 0) };
    totals::BESIDE.add(1);
    let job = Job::new(command, blocked, strings);
    let started = thread::Builder::new().name("koel".to_owned()).spawn(move || job.run(work));
    if started.is_err() {
        // SAFETY: the client was blocked just now, and nobody else knows it.
        unsafe { (api().AbortBlock)(blocked) };
    }
    started.is_ok()
}

impl Job {
    fn new(
        command: &'static Command,
        blocked: *mut RawBlocked,
        strings: &[*mut RawString],
    ) -> Self {
        // SAFETY: the client was just blocked.
        let raw = unsafe { (api().GetThreadSafeContext)(blocked) };
        // SAFETY: the context lives until the job is dropped.
        let context = unsafe { Context::new(raw) };
        // SAFETY: the strings are live, and are freed when the job is dropped.
        let hold = |&string| unsafe { (api().HoldString)(ptr::null_mut(), string) };
        Self { command, blocked, context, strings: strings.iter().map(hold).collect() }
    }

    /// What the thread does.
    fn run(self, work: Work) {
        let finish = values::guarded(|| work(&self));
        let (command, blocked) = (self.command, self.blocked);
        let done = Box::into_raw(Box::new(Some(Done { command, finish })));
        let lock = loop {
            let lock = Lock::take();
            if !is_paused() {
                break lock;
            }
            drop(lock);
            thread::sleep(PAUSE);
        };
        drop(self);
        // SAFETY: the client was blocked, and is unblocked once. The server passes `done` to
        // `reply`, and then to `free`.
        unsafe { (api().UnblockClient)(blocked, done.cast()) };
        drop(lock);
    }
}

/// Under the lock of the server, or on its thread.
impl Drop for Job {
    fn drop(&mut self) {
        for &string in &self.strings {
            // SAFETY: it was held in `new`, and is freed once.
            unsafe { (api().FreeString)(ptr::null_mut(), string) };
        }
        // SAFETY: `new` got it, and it is freed once.
        unsafe { (api().FreeThreadSafeContext)(self.context.raw()) };
    }
}

/// Whether nothing may be replicated. Under the lock of the server, or on its thread.
fn is_paused() -> bool {
    // SAFETY: it takes nothing.
    unsafe { (api().AvoidReplicaTraffic)() != 0 }
}

/// The server calls this when the thread is done, unless the client went away.
unsafe extern "C" fn reply(raw: *mut RawContext, argv: *mut *mut RawString, argc: c_int) -> c_int {
    // SAFETY: the server passes it to this call.
    let context = unsafe { Context::new(raw) };
    // SAFETY: the server passes both to this call.
    let strings = unsafe { context::strings(argv, argc) };
    // SAFETY: the server passes the context to this call.
    let done = unsafe { (api().GetBlockedClientPrivateData)(raw) };
    // SAFETY: the thread passed a `Done`, which lives until `free`.
    let done = unsafe { done.cast::<Option<Done>>().as_mut() };
    if let Err(problem) = values::guarded(|| end(context, strings, done.and_then(Option::take))) {
        context.error(&format!("ERR {problem}"));
    }
    OK
}

fn end(context: Context, strings: &[*mut RawString], done: Option<Done>) {
    let Some(Done { command, finish }) = done else { return };
    let finish = match finish {
        Ok(finish) => finish,
        Err(problem) => return context.error(&format!("ERR {problem}")),
    };
    // SAFETY: the arguments are those of this command.
    let mut keys = unsafe { ServerKeys::new(context, strings) };
    match may_write(context, strings).and_then(|()| finish(&mut keys)) {
        Ok(Outcome::Done(reply)) => {
            keys.announce(command);
            context.answer(&Ok(reply));
        }
        Ok(Outcome::Value(reply)) => {
            keys.announce_value(1);
            context.answer(&Ok(reply));
        }
        Ok(Outcome::Again) => {
            // SAFETY: the strings are live during this call.
            let arguments = unsafe { context::all_bytes(strings) };
            run::run_now(command, context, strings, &arguments);
        }
        Err(error) => context.answer(&Err(error)),
    }
}

/// What the server checked when the command began may have changed since.
fn may_write(context: Context, strings: &[*mut RawString]) -> Result<(), Error> {
    if is_paused() {
        return Err(Error::Paused);
    }
    let flags = context.flags();
    if flags & READ_ONLY != 0 {
        return Err(Error::ReadOnly);
    }
    if flags & CLUSTER != 0 && !context.owns(strings[1]) {
        return Err(Error::Moved);
    }
    Ok(())
}

/// The server calls this after [`reply`], or instead of it.
unsafe extern "C" fn free(_context: *mut RawContext, done: *mut c_void) {
    // SAFETY: the thread made it, and the server frees it once.
    let done: Box<Option<Done>> = unsafe { Box::from_raw(done.cast()) };
    drop(values::guarded(|| drop(done)));
    IS_RUNNING.store(false, Ordering::Release);
}
