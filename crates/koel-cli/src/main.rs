//! The `koel` command: cuckoo filters from the shell.
//!
//! ```text
//! main.rs        parses the arguments, runs one verb, returns its exit code
//! cmd/<verb>.rs  one verb each: its arguments and `run`; cmd/store/ has the verbs of stores
//!
//! What the verbs share; each imports only what stands below it:
//! server/        talks to Valkey and Redis: filters sent and received, the URL of one (remote)
//! filter/        filters from arguments: sized, built (sizing, spool), grown ahead of their input
//!                (room), opened (file), asked here or there (asked), compared, patched, and
//!                written (target)
//! web/           a filter on a web server, asked by ranges
//! output         lines and texts, files replaced in one step
//! input          reads keys from files and pipes
//! lists/         from lines to keys with the crate `koel-lines`: the options, what was skipped;
//!                and the secret of a hash
//! lines/         from bytes to lines: decompressed (decode), in UTF-8 (text), split
//! streams        notices a closed standard input or output; what is said after the work
//! progress       shows the progress bar
//! escape         prints and accepts names of any bytes
//! failure        maps errors to exit codes and one-line messages
//! report         the figures of a verb, for people and as JSON
//! quantity       parses and prints numbers for people
//! identity       tells what a path names: the same file, a pipe, a descriptor
//! ```

mod cmd;
mod escape;
mod failure;
mod filter;
mod identity;
mod input;
mod lines;
mod lists;
mod output;
mod progress;
mod quantity;
mod report;
mod server;
mod streams;
mod web;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use failure::{Failure, Outcome};

fn main() -> ExitCode {
    report_a_file_size_limit();
    match cmd::Cli::try_parse() {
        Ok(cli) => ended(cmd::run(cli)),
        Err(error) => wrong_arguments(&suggested(error)),
    }
}

/// Prints a failure. Returns the exit code.
fn ended(outcome: Result<Outcome, Failure>) -> ExitCode {
    let failure = match outcome {
        Ok(outcome) => return outcome.exit_code(),
        Err(failure) => failure,
    };
    if !matches!(failure, Failure::BrokenPipe) {
        print_error(&failure.to_string());
    }
    failure.exit_code()
}

/// Makes a write beyond a limit of the file size (`ulimit -f`) an error, which the verb reports.
/// By default the signal would end the process.
fn report_a_file_size_limit() {
    #[cfg(unix)]
    drop(signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default()));
}

/// Prints an error as one line. If standard error is closed, only the exit code reports it.
fn print_error(error: &str) {
    drop(output::print_to_stderr(&format!("{}\n", output::escape_controls(error))));
}

/// Prints help and version on standard output; prints an error with its hints as one line.
fn wrong_arguments(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;

    let text = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            ended(output::print(&text.to_string()).map(|()| Outcome::Done))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            drop(output::print_to_stderr(&text.to_string()));
            ExitCode::from(2)
        }
        _ => {
            print_error(&format!("koel: {}", one_line(&text.to_string())));
            ExitCode::from(2)
        }
    }
}

/// The error of `koel help BUILD`, which suggests nothing, in the words of `koel BUILD`, which
/// does.
fn suggested(error: clap::Error) -> clap::Error {
    let mut words = std::env::args_os();
    let (program, verb) = (words.next(), words.next());
    if error.kind() != clap::error::ErrorKind::InvalidSubcommand || verb != Some("help".into()) {
        return error;
    }
    cmd::Cli::try_parse_from(program.into_iter().chain(words)).err().unwrap_or(error)
}

/// Joins the paragraphs of a clap error into one line: the error, its tips, the help to read.
fn one_line(text: &str) -> String {
    let error = text.split("\n\nUsage: ").next().unwrap_or(text);
    let error = error.split("\n\nFor more information").next().unwrap_or(error);
    // A tip such as `'build --unique' exists`, for `--quiet`, is about another option.
    let is_of_use = |line: &&str| !(line.contains(" tip: ") && line.ends_with("' exists"));
    let words: Vec<&str> =
        error.lines().filter(is_of_use).flat_map(str::split_whitespace).collect();
    let sentence = words.join(" ").replace(" tip: ", "; ");
    let sentence = sentence.strip_prefix("error: ").unwrap_or(&sentence);
    format!("{sentence}; see `koel {}--help`", verbs())
}

/// The names of the verbs on the command line, such as `store import `.
fn verbs() -> String {
    let mut command = cmd::Cli::command();
    let mut verbs = String::new();
    for verb in std::env::args_os().skip(1) {
        let Some(found) = command.find_subcommand(&verb) else { break };
        command = found.clone();
        verbs += &format!("{} ", command.get_name());
    }
    verbs
}
