//! `koel completions`: a script with which a shell completes verbs and options.
//!
//! It is generated from the same declarations as `--help`.

use clap::Command;
use clap_complete::Shell;

use crate::failure::{Failure, Outcome};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel completions bash > ~/.local/share/bash-completion/completions/koel
  koel completions zsh > ~/.zfunc/_koel
  koel completions fish > ~/.config/fish/completions/koel.fish")]
pub(crate) struct Args {
    /// The shell that runs the script
    shell: Shell,
}

/// Prints the script for `command`, the declaration of the whole program.
pub(crate) fn run(args: &Args, mut command: Command) -> Result<Outcome, Failure> {
    // Generates into memory first: the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "koel", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
