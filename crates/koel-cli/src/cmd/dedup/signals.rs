//! A run of `koel dedup`: what was seen, behind a lock; the lines that are printed; and what is
//! done at a signal: it prints totals, as dd does, and saves its state.
//!
//! SIGUSR1 prints the report. SIGINT, SIGTERM and SIGHUP print it and end the process. A thread
//! waits for the signals, because the main thread mostly waits for input. It takes the lock of what
//! was seen, so that it reports only lines that have been written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;
use crate::input::Inputs;
use crate::lists::keys::Group;
use crate::lists::skipped::Skipped;
use crate::output::Lines;
use crate::progress::Stdout;
use crate::quantity::{self, grouped};
use crate::report::Report;

/// What was seen.
pub(super) trait Totals: Send + 'static {
    /// Takes lines. Returns which are new, and why the rest was not taken.
    fn take(&mut self, group: &Group<'_>, share: Option<f64>) -> Taken;

    /// The report on all that was read so far.
    fn report(&mut self, as_json: bool) -> String;
}

pub(super) type Taken = (Vec<bool>, Result<(), Failure>);

/// What was seen, behind a lock.
pub(super) struct Run<S> {
    pub(super) seen: S,
    /// Whether all lines that count as printed have been written.
    is_written: bool,
    /// Whether a signal is about to end the process.
    is_ending: bool,
}

impl<S> Run<S> {
    pub(super) fn of(seen: S) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { seen, is_written: true, is_ending: false }))
    }
}

/// Prints the lines that are new. The inner result is that of reading. If the outer one is an
/// error, some lines that count as seen were not written.
pub(super) fn print_new<S: Totals>(
    inputs: &Inputs,
    mut out: Lines,
    run: &Mutex<Run<S>>,
    prints_header: bool,
) -> Result<Result<Skipped, Failure>, Failure> {
    let whole = inputs.each_line("deduplicating", Stdout::Busy, |group, share| {
        let mut run = lock(run);
        if let Some(header) = group.header.filter(|_| prints_header) {
            out.line(header, inputs.terminator())?;
        }
        let (new, done) = run.seen.take(group, share);
        for (line, _) in group.lines.iter().zip(&new).filter(|(_, new)| **new) {
            out.line(line, inputs.terminator())?;
        }
        run.is_written = if run.is_ending { out.flush()? } else { out.end_group()? };
        done.map(|()| false)
    });
    out.finish()?;
    Ok(whole)
}

/// The first figures of a report in JSON.
pub(super) fn totals(read: u64, printed: u64, wrong: f64) -> Report {
    let mut report = Report::default();
    report
        .json("read", read)
        .json("printed", printed)
        .json("dropped", read - printed)
        .json("expected_wrongly_dropped", wrong);
    report
}

/// The line of a report that has the numbers of lines.
pub(super) fn totals_line(read: u64, printed: u64, wrong: f64) -> String {
    let wrongly = match wrong {
        0.01.. => format!("about {}", quantity::three_digits(wrong)),
        _ => "less than 0.01".to_owned(),
    };
    format!(
        "koel: {} read, {} printed, {} dropped ({wrongly} of them wrongly)\n",
        quantity::counted(read, "line"),
        grouped(printed),
        grouped(read - printed),
    )
}

/// Locks what was seen. A thread that panicked held it between complete inserts.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(not(unix))]
pub(super) fn handle<S: Totals>(
    _run: &Arc<Mutex<Run<S>>>,
    _as_json: bool,
    _save: impl Fn(&S) + Send + 'static,
) -> Result<(), Failure> {
    Ok(())
}

/// Handles the signals from now on. Before the process ends, `save` is called under the lock.
#[cfg(unix)]
pub(super) fn handle<S: Totals>(
    run: &Arc<Mutex<Run<S>>>,
    as_json: bool,
    save: impl Fn(&S) + Send + 'static,
) -> Result<(), Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let cannot = |error| Failure::Usage(format!("cannot wait for signals: {error}"));
    let handled = [SIGUSR1, SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&it| !is_ignored(it));
    let mut signals = Signals::new(handled).map_err(cannot)?;
    let run = Arc::clone(run);
    std::thread::spawn(move || {
        for signal in &mut signals {
            let ends = signal != SIGUSR1;
            match when_written(&run, ends) {
                // Holds the lock until the process has ended, so that no line is written that is
                // not in the report.
                Some(mut run) => {
                    if ends {
                        save(&run.seen);
                    }
                    print(&run.seen.report(as_json));
                    if ends {
                        drop(emulate_default_handler(signal));
                    }
                }
                None => print("koel: the output is not being read; not reported and not saved\n"),
            }
            if ends {
                drop(emulate_default_handler(signal));
            }
        }
    });
    Ok(())
}

/// Whether a signal is ignored from the start, as `nohup` makes it, so that it stays ignored.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// The totals, once all lines have been written. `None` if that takes long: a reader that has
/// stopped to read must not keep the process from ending.
#[cfg(unix)]
fn when_written<S>(run: &Mutex<Run<S>>, ends: bool) -> Option<MutexGuard<'_, Run<S>>> {
    use std::sync::TryLockError;
    use std::time::{Duration, Instant};

    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        let locked = match run.try_lock() {
            Ok(run) => Some(run),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut run) = locked {
            run.is_ending |= ends;
            if !ends || run.is_written {
                return Some(run);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Prints on standard error. If that is closed, nobody reads it.
pub(super) fn print(text: &str) {
    drop(crate::output::print_to_stderr(text));
}
