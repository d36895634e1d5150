//! `koel completions`: what a shell needs to complete verbs and options, made from the same declarations as `--help`.
#![forbid(unsafe_code)]

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cmd::Cli;
use crate::failure::{Failure, Outcome};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel completions bash > ~/.local/share/bash-completion/completions/koel
  koel completions zsh > ~/.zfunc/_koel
  koel completions fish > ~/.config/fish/completions/koel.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    // Into memory first: the generator panics where a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "koel", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
