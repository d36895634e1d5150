//! Long commands on a thread, one after the other, while the server goes on.
//!
//! The client is blocked, and its command waits for its turn. One thread takes them in the order in
//! which they came, so that copies take bounded memory, and ends when none is left. What a waiting
//! command costs is its arguments. A client that goes away before its turn is passed over; later,
//! the command is done without it. [`beside`](super::beside) has what the thread does.
//!
//! Where a client cannot be blocked (transactions, scripts, replicas, files that are read), and for
//! small filters, a command is run as a whole.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::api::{
    DENY_BLOCKING, FROM_MASTER, LOADING, LUA, MULTI, OK, RawBlocked, RawContext, RawString, api,
};
use super::beside::{self, Beside, Lock};
use super::context::Context;
use super::keyspace::ServerKeys;
use super::values;
use crate::command::Command;
use crate::command::parts::Parts;
use crate::command::reply::Reply;
use crate::error::Error;
use crate::totals;

/// Filters of fewer bytes are handled at once: that takes some milliseconds.
const LEAST_BYTES: u64 = 128 << 10;

static QUEUE: Mutex<Queue> = Mutex::new(Queue { jobs: VecDeque::new(), has_thread: false });

/// The commands that wait, and whether there is a thread, which looks for the next.
struct Queue {
    jobs: VecDeque<Job>,
    has_thread: bool,
}

/// A command that waits for its turn.
struct Job {
    command: &'static Command,
    parts: Parts,
    blocked: *mut RawBlocked,
    /// The arguments, and the name of the new value. The client may go away and drop its own.
    strings: Vec<*mut RawString>,
    is_gone: bool,
}

// SAFETY: the server allows any thread to unblock a client, and to use the strings under its lock.
unsafe impl Send for Job {}

/// What [`reply`] gets: the outcome, or the text of a panic.
type Done = Result<Result<Reply, Error>, String>;

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a command wait for the thread. False if it has to be run now.
pub(super) fn begin(
    command: &'static Command,
    context: Context,
    strings: &[*mut RawString],
    arguments: &[&[u8]],
) -> bool {
    let cannot_block = MULTI | LUA | DENY_BLOCKING | FROM_MASTER | LOADING;
    let Some(parts) = command.parts().filter(|_| command.takes(arguments.len())) else {
        return false;
    };
    if context.flags() & cannot_block != 0 {
        return false;
    }
    // SAFETY: the arguments are those of this command.
    let mut keys = unsafe { ServerKeys::new(context, strings) };
    // The command itself reports errors.
    if !matches!((parts.is_long)(&mut keys, arguments, LEAST_BYTES), Ok(true)) {
        return false;
    }
    let Some(name) = beside::name_beside(arguments[1]) else { return false };
    let (block, free) = (api().BlockClient, Some(free as _));
    // SAFETY: the context is live and its client can be blocked. A timeout of 0 is none.
    let blocked = unsafe { block(context.raw(), Some(reply), None, free, 0) };
    // SAFETY: the client was blocked just now.
    unsafe { (api().SetDisconnectCallback)(blocked, disconnected) };
    // SAFETY: the strings are live, and are freed when the job is done.
    let hold = |&string| unsafe { (api().HoldString)(ptr::null_mut(), string) };
    let name = context.string(name);
    let strings = strings.iter().chain([&name]).map(hold).collect();
    context.free(name);
    enqueue(Job { command, parts, blocked, strings, is_gone: false })
}

/// False if there is no thread, and the command does not wait.
fn enqueue(job: Job) -> bool {
    let mut queue = queue();
    queue.jobs.push_back(job);
    if !queue.has_thread {
        let work = || while next().map(Job::run).is_some() {};
        queue.has_thread = thread::Builder::new().name("koel".to_owned()).spawn(work).is_ok();
    }
    if queue.has_thread {
        totals::BESIDE.add(1);
    } else if let Some(job) = queue.jobs.pop_back() {
        job.free_strings();
        // SAFETY: the client was blocked just now, and nobody else knows it.
        unsafe { (api().AbortBlock)(job.blocked) };
    }
    queue.has_thread
}

fn next() -> Option<Job> {
    let mut queue = queue();
    let job = queue.jobs.pop_front();
    queue.has_thread = job.is_some();
    job
}

impl Job {
    /// What the thread does.
    fn run(self) {
        let begun = Instant::now();
        let done: Done = if self.is_gone {
            Ok(Err(Error::Lost))
        } else {
            values::guarded(|| {
                let beside = Beside::begin(self.command, self.parts, self.blocked, &self.strings);
                beside.run()
            })
        };
        let done = Box::into_raw(Box::new(done));
        let _lock = Lock::take();
        self.free_strings();
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        totals::BESIDE_MICROS.add(micros);
        totals::LONGEST_BESIDE.raise(micros);
        // SAFETY: the client is still blocked. If its time was not measured, that is no harm.
        unsafe { (api().BlockedClientMeasureTimeEnd)(self.blocked) };
        // SAFETY: the client was blocked, and is unblocked once. The server passes `done` to
        // `reply`, and then to `free`.
        unsafe { (api().UnblockClient)(self.blocked, done.cast()) };
    }

    /// Under the lock of the server, or on its thread.
    fn free_strings(&self) {
        for &string in &self.strings {
            // SAFETY: it was held in `begin`, and is freed once.
            unsafe { (api().FreeString)(ptr::null_mut(), string) };
        }
    }
}

/// The server calls this when a client that waits goes away.
unsafe extern "C" fn disconnected(_context: *mut RawContext, blocked: *mut RawBlocked) {
    queue().jobs.iter_mut().filter(|job| job.blocked == blocked).for_each(|job| job.is_gone = true);
}

/// The server calls this when the thread is done, unless the client went away.
unsafe extern "C" fn reply(raw: *mut RawContext, _: *mut *mut RawString, _: c_int) -> c_int {
    // SAFETY: the server passes it to this call.
    let context = unsafe { Context::new(raw) };
    // SAFETY: the server passes the context to this call.
    let done = unsafe { (api().GetBlockedClientPrivateData)(raw) };
    // SAFETY: the thread passed a `Done`, which lives until `free`.
    match unsafe { done.cast::<Done>().as_ref() } {
        Some(Ok(outcome)) => context.answer(outcome),
        Some(Err(problem)) => context.error(&format!("ERR {problem}")),
        None => {}
    }
    OK
}

/// The server calls this after [`reply`], or instead of it.
unsafe extern "C" fn free(_context: *mut RawContext, done: *mut c_void) {
    // SAFETY: the thread made it, and the server frees it once.
    drop(unsafe { Box::<Done>::from_raw(done.cast()) });
}
