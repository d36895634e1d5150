//! Runs a command on keys of the server, tells others what it has changed, and answers.

use super::api::RawString;
use super::context::Context;
use super::keyspace::ServerKeys;
use super::totals;
use crate::command::Command;
use crate::command::reply::Reply;
use crate::error::Error;

/// Runs a command now, with the arguments of the running call.
pub(super) fn run_now(
    command: &Command,
    context: Context,
    strings: &[*mut RawString],
    arguments: &[&[u8]],
) {
    // SAFETY: the arguments are those of this command.
    let mut keys = unsafe { ServerKeys::new(context, strings) };
    let outcome = command.call(&mut keys, arguments);
    keys.announce(command);
    totals::count(&outcome);
    match outcome {
        // What was refused on the primary is here too, and a replica must not fail.
        Err(Error::Full(_)) if keys.is_settled() => context.answer(&Ok(Reply::Bool(false))),
        outcome => context.answer(&outcome),
    }
}
