//! The arguments of the bench, and how it reads numbers: `1e6`, `16e6`, `996147`, `1_000_000`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// 95 % of 2^20 and of 2^24: the most that `qfilter` takes without doubling its table, and a load
/// that every cuckoo filter with a power of two of slots reaches. A million keys would leave
/// `qfilter` half empty: twice the memory, and faster.
const KEYS: &str = "996147,15938355";

#[derive(Debug, Parser)]
#[command(name = "koel-bench", about = "Measures Koel and its rivals")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Inserts, lookups and deletes of every filter, with the same keys
    Filters(FiltersArgs),
    /// The exact map compared with hashbrown's: throughput, and the slowest lookups; hashbrown's is
    /// fullest at 7/8 of a power of two, such as 14680064
    Map(SizesArgs),
    /// The maplet with run ids and with locations: throughput, wrong values, and the cost of
    /// counting
    Maplet(SizesArgs),
    /// Merges, comparisons, patches and checks of whole filters, beside inserting their keys
    Whole(SizesArgs),
    /// Filters that forget keys after a window: memory, inserts, pauses, keys forgotten early
    Expiring(ExpiringArgs),
    /// Koel's stores compared with others: loading, single gets, opening, and bytes used
    Stores(StoresArgs),
    /// Absent keys in stores with many unmerged runs
    Runs(RunsArgs),
    /// The workloads A to F of the Yahoo! Cloud Serving Benchmark
    Ycsb(StoresArgs),
    /// The log store under overwrites: its share of dead bytes, and what compaction writes
    Overwrites(OverwritesArgs),
    /// The longest puts and gets of stores that are loaded, overwritten, and opened after a kill;
    /// `scripts/rocksdb` has RocksDB among them
    Waits(WaitsArgs),
    /// Writes into a store until `waits` kills it
    #[command(hide = true)]
    WriteUntilKilled(WriteUntilKilledArgs),
    /// Lookups and a mix of operations by several threads on one filter
    Threads(ThreadsArgs),
    /// Growable filters: their cost from a thousand keys on, and their pauses
    Growth(GrowthArgs),
    /// Prints the tables of the pages on filters
    Report(ReportArgs),
    /// Keeps what a measurement printed in docs/figures, and writes it into the pages
    Figures(FiguresArgs),
}

/// How often to measure, and how to print.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Output {
    /// Number of repetitions; medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) reps: u32,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FiltersArgs {
    /// Numbers of keys, one table for each
    #[arg(long, value_delimiter = ',', value_parser = whole_number, default_value = KEYS)]
    pub(crate) keys: Vec<u64>,
    /// Target false-positive rate, for filters that take one
    #[arg(long, default_value_t = 0.002, value_parser = small_rate)]
    pub(crate) fpr: f64,
    /// Only these filters
    #[arg(long, num_args = 1.., value_name = "NAME")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Huge pages for all tables, if glibc can provide them
    #[arg(long)]
    pub(crate) huge: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SizesArgs {
    /// Numbers of keys, one table for each
    #[arg(long, value_delimiter = ',', value_parser = whole_number, default_value = "1e6,1e7")]
    pub(crate) keys: Vec<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ExpiringArgs {
    /// Number of keys in each window
    #[arg(long, default_value = "1e6", value_parser = whole_number)]
    pub(crate) keys: u64,
    /// Measure only this filter, in this process, and print JSON
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StoresArgs {
    /// Number of entries
    #[arg(long, value_parser = whole_number, default_value = "1e6")]
    pub(crate) keys: u64,
    /// Bytes per value; keys have 16
    #[arg(long, value_parser = whole_number, default_value = "100")]
    pub(crate) value_bytes: u64,
    /// Only these stores
    #[arg(long, num_args = 1.., value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Number of gets in each measurement
    #[arg(long, value_parser = whole_number, default_value = "1e6")]
    pub(crate) queries: u64,
    /// Where to make each store's temporary folder; the system's default unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunsArgs {
    /// Numbers of runs, one store for each
    #[arg(long, value_delimiter = ',', value_parser = whole_number, default_value = "1,2,4,8,16,28")]
    pub(crate) runs: Vec<u64>,
    #[command(flatten)]
    pub(crate) stores: StoresArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OverwritesArgs {
    /// Number of entries
    #[arg(long, value_parser = whole_number, default_value = "2e6")]
    pub(crate) keys: u64,
    /// Bytes per value; keys have 16
    #[arg(long, value_parser = whole_number, default_value = "100")]
    pub(crate) value_bytes: u64,
    /// Number of measured rounds, each with as many overwrites as there are keys; three more run
    /// first
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) rounds: u64,
    /// Bytes per segment
    #[arg(long, value_parser = whole_number, default_value = "16777216")]
    pub(crate) segment_bytes: u64,
    /// Where to make the stores' temporary folders; the system's default unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WaitsArgs {
    #[command(flatten)]
    pub(crate) stores: StoresArgs,
    /// Number of overwrites; as many as there are entries unless given
    #[arg(long, value_parser = whole_number)]
    pub(crate) overwrites: Option<u64>,
    /// Bytes of keys and values that a process writes before it is killed
    #[arg(long, value_parser = whole_number, default_value = "1e8")]
    pub(crate) kill_bytes: u64,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WriteUntilKilledArgs {
    pub(crate) store: String,
    pub(crate) folder: PathBuf,
    /// Number of entries after which it may be killed
    #[arg(value_parser = whole_number)]
    pub(crate) keys: u64,
    #[arg(value_parser = whole_number)]
    pub(crate) value_bytes: u64,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ThreadsArgs {
    /// Numbers of keys, one table for each
    #[arg(long, value_delimiter = ',', value_parser = whole_number, default_value = "1e5,1e7")]
    pub(crate) keys: Vec<u64>,
    /// Target false-positive rate
    #[arg(long, default_value_t = 0.002, value_parser = rate)]
    pub(crate) fpr: f64,
    /// Numbers of threads, one column for each
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_parser = thread_count)]
    pub(crate) threads: Vec<usize>,
    /// Number of operations of each thread in each measurement
    #[arg(long, default_value = "4e6", value_parser = whole_number)]
    pub(crate) ops: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GrowthArgs {
    /// Number of keys to grow to
    #[arg(long, default_value = "16e6", value_parser = whole_number)]
    pub(crate) keys: u64,
    /// Target false-positive rate
    #[arg(long, default_value_t = 0.001, value_parser = rate)]
    pub(crate) fpr: f64,
    /// Only filters whose names contain one of these words
    #[arg(long, num_args = 1.., value_name = "WORDS")]
    pub(crate) only: Vec<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure only single inserts and memory, as JSON; run for each filter in a process of its own
    #[arg(long)]
    pub(crate) pauses: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// What to measure
    #[arg(value_enum)]
    pub(crate) section: Section,
    /// The largest of the tables by size, in bytes; keys in memory take five times as much
    #[arg(long, default_value = "268435456", value_parser = whole_number)]
    pub(crate) max_bytes: u64,
    /// Small tables and one repetition, to check that the report works
    #[arg(long)]
    pub(crate) quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Section {
    /// All filters at two sizes
    Filters,
    /// Throughput by size of the table
    Sizes,
    /// Bits per key by false-positive rate, and at three numbers of keys
    Space,
    /// Inserts as a filter fills, and replaced keys at a steady load
    Load,
    /// Growable filters
    Growth,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FiguresArgs {
    #[command(subcommand)]
    pub(crate) command: FiguresCommand,
    /// The root of the repository
    #[arg(long, global = true, default_value = ".")]
    pub(crate) root: PathBuf,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum FiguresCommand {
    /// Reads what a measurement printed, and keeps its tables as docs/figures/NAME.json
    Record {
        name: String,
        /// The command that printed it
        #[arg(long)]
        command: String,
        /// Folders and files whose change makes the figures old
        #[arg(long, num_args = 1.., value_name = "PATH")]
        code: Vec<String>,
    },
    /// Writes the tables of docs/figures into the pages
    Write,
    /// Fails if a page differs from its figures, and names figures older than the code
    Check,
}

/// A false-positive rate that every filter of the bench can be built for, including growable and
/// shared ones.
fn rate(text: &str) -> Result<f64, String> {
    rate_from(0.000_2, text)
}

/// A false-positive rate that every fixed filter of one thread can be built for.
fn small_rate(text: &str) -> Result<f64, String> {
    rate_from(1e-8, text)
}

fn rate_from(least: f64, text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (least..1.0).contains(rate));
    rate.ok_or_else(|| format!("give a rate from {least} to below 1"))
}

/// A number of threads from 1 to 1024.
fn thread_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1024).contains(count));
    count.ok_or_else(|| "give a number of threads from 1 to 1024".into())
}

/// A whole number above 0, as digits or with an exponent.
fn whole_number(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    if let Ok(number) = plain.parse::<u64>() {
        return if number > 0 { Ok(number) } else { Err("give a number above 0".into()) };
    }
    let number: f64 = plain.parse().map_err(|_| "give a number such as 1e6".to_string())?;
    if !(1.0..=1e15).contains(&number) || number.fract() != 0.0 {
        return Err("give a whole number from 1 to 1e15, such as 16e6".into());
    }
    Ok(truncated(number))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the caller has a whole number from 1 to 1e15"
)]
fn truncated(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_or_have_an_exponent() {
        assert_eq!(whole_number("996147"), Ok(996_147));
        assert_eq!(whole_number("1_000"), Ok(1000));
        assert_eq!(whole_number("1.6e7"), Ok(16_000_000));
        for wrong in ["0", "-3", "1.5", "1e16", "x", "nan", "inf", ""] {
            assert!(whole_number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_error_rate_that_no_filter_can_be_built_for_is_refused() {
        for right in ["0.002", "1e-8", "0.999"] {
            assert!(small_rate(right).is_ok(), "{right}");
        }
        for wrong in ["0", "1", "1e-9", "1e-30", "-0.1", "nan", "inf", "often", ""] {
            assert!(small_rate(wrong).is_err(), "{wrong}");
        }
        assert!(rate("0.0001").is_err());
    }
}
