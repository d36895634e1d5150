//! MERGE of large filters on a thread, while the server goes on.
//!
//! The client is blocked. The thread merges copies, and the server then calls [`reply`], which puts
//! the union in its place. Replicas and append-only files get the union, as chunks, because the
//! filters may have changed since they were copied. If the destination has, all is merged again,
//! and the server waits for that.
//!
//! Where a client cannot be blocked (transactions, scripts, replicas, files that are read), for
//! small filters, and while another merge is running, MERGE is a command like any other.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::api::{
    DENY_BLOCKING, FROM_MASTER, LOADING, LUA, MULTI, OK, RawBlocked, RawContext, RawString, api,
};
use super::context::{self, Context};
use super::keyspace::ServerKeys;
use super::{run, values};
use crate::command;
use crate::command::merge::{self, Merging, Watched};
use crate::error::Error;
use crate::filter::native::Native;

/// Filters of fewer bytes are merged at once: that takes some milliseconds.
const LEAST_BYTES: u64 = 128 << 10;

/// Whether a merge is running on a thread. One at a time, so that copies take bounded memory.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);
static WATCHES: AtomicU64 = AtomicU64::new(0);

/// A blocked client, for the thread that unblocks it.
struct Blocked(*mut RawBlocked);

// SAFETY: the server allows any thread to unblock a client.
unsafe impl Send for Blocked {}

/// What the thread hands to [`reply`].
struct Done {
    outcome: Result<Result<Native, Error>, String>,
    destination: Watched,
}

/// Begins to merge on a thread. False if the command has to be run now.
pub(super) fn begin(context: Context, strings: &[*mut RawString], arguments: &[&[u8]]) -> bool {
    let cannot_block = MULTI | LUA | DENY_BLOCKING | FROM_MASTER | LOADING;
    if context.flags() & cannot_block != 0 || IS_RUNNING.swap(true, Ordering::AcqRel) {
        return false;
    }
    // SAFETY: the arguments are those of this command.
    let mut keys = unsafe { ServerKeys::new(context, strings) };
    let watch = WATCHES.fetch_add(1, Ordering::Relaxed) + 1;
    // The command itself reports errors.
    let has_begun = match merge::begin(&mut keys, arguments, LEAST_BYTES, watch) {
        Ok(Some(merging)) => start(context, merging),
        _ => false,
    };
    if !has_begun {
        IS_RUNNING.store(false, Ordering::Release);
    }
    has_begun
}

fn start(context: Context, merging: Merging) -> bool {
    let block = api().BlockClient;
    // SAFETY: the context is live and its client can be blocked. A timeout of 0 is none.
    let blocked = Blocked(unsafe { block(context.raw(), Some(reply), None, Some(free), 0) });
    let raw = blocked.0;
    let work = move || {
        let Blocked(raw) = { blocked };
        let destination = merging.destination();
        let outcome = values::guarded(|| merging.run());
        let done = Box::into_raw(Box::new(Some(Done { outcome, destination })));
        IS_RUNNING.store(false, Ordering::Release);
        // SAFETY: the client was blocked, and is unblocked once. The server passes `done` to
        // `reply`, and then to `free`.
        unsafe { (api().UnblockClient)(raw, done.cast()) };
    };
    let started = thread::Builder::new().name("koel-merge".to_owned()).spawn(work).is_ok();
    if !started {
        // SAFETY: the client was blocked just now, and nobody else knows it.
        unsafe { (api().AbortBlock)(raw) };
    }
    started
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
    if let Err(problem) = values::guarded(|| finish(context, strings, done.and_then(Option::take)))
    {
        context.error(&format!("ERR {problem}"));
    }
    OK
}

fn finish(context: Context, strings: &[*mut RawString], done: Option<Done>) {
    let Some(Done { outcome, destination }) = done else { return };
    let union = match outcome {
        Ok(Ok(union)) => union,
        Ok(Err(error)) => return context.answer(&Err(error)),
        Err(problem) => return context.error(&format!("ERR {problem}")),
    };
    // SAFETY: the arguments are those of this command.
    let mut keys = unsafe { ServerKeys::new(context, strings) };
    match merge::finish(&mut keys, union, destination).transpose() {
        Some(outcome) => {
            keys.announce_value(1);
            context.answer(&outcome);
        }
        // The destination has changed.
        None => run_again(context, strings),
    }
}

fn run_again(context: Context, strings: &[*mut RawString]) {
    // SAFETY: the strings are live during this call.
    let arguments = unsafe { context::all_bytes(strings) };
    if let Some(command) = command::named(b"MERGE") {
        run::run_now(command, context, strings, &arguments);
    }
}

/// The server calls this after [`reply`], or instead of it.
unsafe extern "C" fn free(_context: *mut RawContext, done: *mut c_void) {
    // SAFETY: the thread made it, and the server frees it once.
    let done: Box<Option<Done>> = unsafe { Box::from_raw(done.cast()) };
    drop(values::guarded(|| drop(done)));
}
