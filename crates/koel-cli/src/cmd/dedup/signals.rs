//! What `koel dedup` does at a signal: prints totals, as dd does, and saves its state.
//!
//! SIGUSR1 prints the report. SIGINT, SIGTERM and SIGHUP print it and end the process. A thread
//! waits for the signals, because the main thread mostly waits for input. It takes the lock of what
//! was seen, so that it reports only lines that have been written.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;
use crate::quantity::{self, grouped};

/// The totals of a run, behind a lock.
pub(super) trait Totals: Send + 'static {
    /// The report on all that was read so far.
    fn report(&mut self, as_json: bool) -> String;

    /// Whether all lines that count as printed have been written. Called at a signal that ends the
    /// process, until it is so.
    #[cfg_attr(not(unix), expect(dead_code, reason = "no signals"))]
    fn is_written(&mut self) -> bool {
        true
    }
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
pub(super) fn handle<T: Totals>(
    _totals: &Arc<Mutex<T>>,
    _as_json: bool,
    _save: impl Fn(&mut T) + Send + 'static,
) -> Result<(), Failure> {
    Ok(())
}

/// Handles the signals from now on. Before the process ends, `save` is called under the lock.
#[cfg(unix)]
pub(super) fn handle<T: Totals>(
    totals: &Arc<Mutex<T>>,
    as_json: bool,
    save: impl Fn(&mut T) + Send + 'static,
) -> Result<(), Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let cannot = |error| Failure::Usage(format!("cannot wait for signals: {error}"));
    let handled = [SIGUSR1, SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&it| !is_ignored(it));
    let mut signals = Signals::new(handled).map_err(cannot)?;
    let totals = Arc::clone(totals);
    std::thread::spawn(move || {
        for signal in &mut signals {
            let ends = signal != SIGUSR1;
            match when_written(&totals, ends) {
                // Holds the lock until the process has ended, so that no line is written that is
                // not in the report.
                Some(mut totals) => {
                    if ends {
                        save(&mut totals);
                    }
                    print(&totals.report(as_json));
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
fn when_written<T: Totals>(totals: &Mutex<T>, ends: bool) -> Option<MutexGuard<'_, T>> {
    use std::sync::TryLockError;
    use std::time::{Duration, Instant};

    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        let locked = match totals.try_lock() {
            Ok(totals) => Some(totals),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut totals) = locked
            && (!ends || totals.is_written())
        {
            return Some(totals);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Prints on standard error. If that is closed, nobody reads it.
pub(super) fn print(text: &str) {
    drop(crate::output::print_to_stderr(text));
}
