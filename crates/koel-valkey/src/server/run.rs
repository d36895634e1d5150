//! Runs a command on keys of the server, tells others what it has changed, and answers.

use super::api::RawString;
use super::context::Context;
use super::keyspace::ServerKeys;
use crate::command::Command;
use crate::command::reply::Reply;
use crate::error::Error;
use crate::totals::REFUSED;

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
    count_refused(&outcome);
    match outcome {
        // What was refused on the primary is here too, and a replica must not fail.
        Err(Error::Full(_)) if keys.is_settled() => context.answer(&Ok(Reply::Bool(false))),
        outcome => context.answer(&outcome),
    }
}

/// Counts the items that a command refused.
fn count_refused(outcome: &Result<Reply, Error>) {
    let refused = match outcome {
        Err(Error::Full(_)) => 1,
        Ok(Reply::Added(added)) => added.iter().filter(|&&added| !added).count(),
        Ok(Reply::Array(answers)) => {
            answers.iter().filter(|&answer| *answer == Reply::Integer(-1)).count()
        }
        _ => 0,
    };
    if refused > 0 {
        REFUSED.add(refused as u64);
    }
}
