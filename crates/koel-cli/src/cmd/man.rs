//! `koel man`: the manual, generated from the same declarations as `--help`.
//!
//! Without a folder, the page of `koel` or of a verb goes to standard output (`koel man build`). A
//! release writes all pages into a folder.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

use crate::failure::{Failure, Outcome};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel man | man -l -
  koel man store import | man -l -
  koel man -o ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The verb whose page is printed, such as build or store import
    #[arg(conflicts_with = "out")]
    verb: Vec<String>,

    /// Write koel.1, koel-build.1 and all other pages into this folder
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints or writes the pages of `command`, the declaration of the whole program.
pub(crate) fn run(args: &Args, command: Command) -> Result<Outcome, Failure> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.out else {
        output::print(&page(verb_of(&command, &args.verb)?))?;
        return Ok(Outcome::Done);
    };
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
    write_pages(&command, folder)?;
    Ok(Outcome::Done)
}

/// The declaration of a verb.
fn verb_of<'a>(command: &'a Command, words: &[String]) -> Result<&'a Command, Failure> {
    words.iter().try_fold(command, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let verbs: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
            let name = command.get_name();
            let advice = match &verbs[..] {
                [] => "it has no verbs".to_owned(),
                verbs => format!("there are {}", verbs.join(", ")),
            };
            Failure::Usage(format!("{name} has no verb {word}; {advice}"))
        })
    })
}

/// Writes the page of a verb and the pages of its subcommands.
fn write_pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(Man::new(command.clone()).get_filename());
    output::write_file(&path, |sink| sink.write_all(page(command).as_bytes()))
        .map_err(|error| Failure::write(&path, error))?;
    command.get_subcommands().try_for_each(|verb| write_pages(verb, folder))
}

/// Renders one page. Examples keep their line breaks, which `clap_mangen` would reflow.
fn page(command: &Command) -> String {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page).expect("a vector takes every byte");
    String::from_utf8_lossy(&page)
        .replace("\n.SH EXTRA\n", "\n.SH NOTES\n.nf\n")
        .replace("\n.SH VERSION\n", "\n.fi\n.SH VERSION\n")
}
