//! Tests of the `koel` command, one module per behaviour. Every test runs the real program.

#![expect(clippy::unwrap_used, reason = "a test should stop at the first unexpected error")]

mod block_lists;
mod build_check;
mod compressed;
mod conformance;
mod dedup;
mod edit;
mod grow;
mod help;
mod info;
mod lists;
mod memory;
mod merge;
#[cfg(unix)]
mod misread;
mod patch;
mod pipe;
mod plan;
mod rate;
mod readme;
mod refute;
mod remote;
mod same_file;
mod secret;
mod similar;
mod store;
#[cfg(unix)]
mod store_keys;
mod store_ordered;
#[cfg(unix)]
mod store_shell;
mod support;
mod targets;
mod tour;
#[cfg(unix)]
mod trees;
mod url;
mod web;
mod window;
mod wrong_use;
