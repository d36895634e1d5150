//! The `koel` command: cuckoo filters from the shell.
//!
//! ```text
//! main.rs        parse, run one verb, turn the end of it into an exit code
//! cmd/<verb>.rs  one verb each: its arguments and `run`; cmd/store/ the verbs of stores
//! input, lines   keys from files, pipes, gzip, zstd      output   atomic files, standard output
//! filter_file    filters mapped or loaded for editing    sizing   from arguments to an empty filter
//! hosts          domains of URLs                         families formulas of other filters
//! quantity       numbers for people                      progress the bar
//! identity       whether two names are one file          room     growing ahead of the keys
//! failure        exit codes and one-line errors          gzip     members and padding
//! ```

mod cmd;
mod failure;
mod families;
mod filter_file;
mod gzip;
mod hosts;
mod identity;
mod input;
mod lines;
mod output;
mod progress;
mod quantity;
mod room;
mod sizing;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use failure::Failure;

fn main() -> ExitCode {
    let outcome = match cmd::Cli::try_parse() {
        Ok(cli) => cmd::run(cli),
        Err(error) => return wrong_arguments(&error),
    };
    match outcome {
        Ok(outcome) => outcome.exit_code(),
        Err(failure) => {
            if !matches!(failure, Failure::BrokenPipe) {
                complain(&failure.to_string());
            }
            failure.exit_code()
        }
    }
}

/// An error, in one line; where standard error is closed too, the exit code has to do.
fn complain(error: &str) {
    drop(output::print_aside(&format!("{}\n", output::in_one_line(error))));
}

/// Help and version go to standard output as they are; an error becomes one line, hints included.
fn wrong_arguments(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;

    let text = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            match output::print(&text.to_string()) {
                Ok(()) | Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
                Err(failure) => failure.exit_code(),
            }
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            drop(output::print_aside(&text.to_string()));
            ExitCode::from(2)
        }
        _ => {
            complain(&format!("koel: {}", one_line(&text.to_string())));
            ExitCode::from(2)
        }
    }
}

/// What clap says in paragraphs, as one line: the error, its tips, and the help to ask for.
fn one_line(text: &str) -> String {
    let error = text.split("\n\nUsage: ").next().unwrap_or(text);
    let error = error.split("\n\nFor more information").next().unwrap_or(error);
    let words: Vec<&str> = error.split_whitespace().collect();
    let sentence = words.join(" ").replace(" tip: ", "; ");
    let sentence = sentence.strip_prefix("error: ").unwrap_or(&sentence);
    format!("{sentence}; see `koel {}--help`", verbs())
}

/// The verb, and that of a store, as far as there are such.
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
