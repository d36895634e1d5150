//! What the `koel` command does, one module for each behaviour; every test runs the real program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

mod build_check;
mod compressed;
mod dedup;
mod edit;
mod grow;
mod help;
mod info;
mod merge;
mod plan;
mod same_file;
mod similar;
mod store;
mod support;
mod tour;
mod url;
mod wrong_use;
