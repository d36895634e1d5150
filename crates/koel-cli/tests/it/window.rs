//! `koel dedup --window`: by the time in a line, through real pipes, and across restarts.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::support::{Ran, Shell, keys, lines};

/// A run whose lines are written, and read, one at a time.
struct Stream {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Stream {
    fn start(shell: &Shell, words: &str) -> Self {
        let mut command = shell.command();
        command.args(words.split_whitespace()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// Writes a line that is not printed.
    fn drops(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// Writes a line, and waits until it is printed.
    fn prints(&mut self, line: &str) {
        self.drops(line);
        self.next_is(line);
    }

    fn next_is(&mut self, line: &str) {
        let mut printed = String::new();
        self.output.read_line(&mut printed).unwrap();
        assert_eq!(printed, format!("{line}\n"));
    }

    #[cfg(unix)]
    fn send(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.unwrap().success());
    }

    fn end(self) -> Ran {
        drop(self.input);
        let mut rest = Ran::of(self.child.wait_with_output().unwrap());
        rest.out = self.output.lines().flat_map(|line| line.unwrap().into_bytes()).collect();
        rest
    }
}

fn json(ran: &Ran) -> serde_json::Value {
    serde_json::from_str(&ran.err).unwrap()
}

#[test]
fn a_line_is_printed_again_a_window_after_its_first_time_or_with_refresh_its_last() {
    let shell = Shell::new();
    let times = [0, 20, 40, 59, 70, 130, 200, 280];
    let input: String = times.map(|time| format!("{} disk full\n", 1_700_000_000 + time)).concat();
    let printed = |options: &str| {
        let words =
            format!("dedup --window 1m --time-field 1 --field 2 --delimiter whitespace {options}");
        let ran = shell.ok_with(&words, input.as_bytes());
        let time = |line: &str| line[..10].parse::<u64>().unwrap() - 1_700_000_000;
        ran.text().lines().map(time).collect::<Vec<_>>()
    };
    // 24 steps of 2.5 seconds: a key is in for 60 to 62.5 seconds.
    assert_eq!(printed(""), [0, 70, 200, 280]);
    assert_eq!(printed("--refresh"), [0, 200, 280]);
    assert_eq!(printed("--refresh --steps 1 --max-jump 2m"), [0, 280]);
}

#[test]
fn each_line_of_a_pipe_is_printed_at_once() {
    let shell = Shell::new();
    for (refresh, third) in [("", true), ("--refresh", false)] {
        let words =
            format!("dedup --window 10m --time-key t --field 2 --delimiter ; {refresh} --json");
        let mut stream = Stream::start(&shell, &words);
        stream.prints("t=2026-11-26T10:00:00Z ;failed");
        stream.drops("t=2026-11-26T10:09:00Z ;failed");
        if third {
            stream.prints("t=2026-11-26T10:11:00Z ;failed");
        } else {
            stream.drops("t=2026-11-26T10:11:00Z ;failed");
        }
        stream.prints("t=2026-11-26T10:11:00Z ;recovered");
        let ran = stream.end();
        assert!(ran.code == 0 && ran.out.is_empty(), "{}", ran.err);
        let report = json(&ran);
        let printed = if third { 3 } else { 2 };
        assert_eq!((&report["read"], &report["printed"]), (&4.into(), &printed.into()));
        assert_eq!(report["expired"], u64::from(third));
        assert_eq!((&report["in_window"], &report["evicted"]), (&2.into(), &0.into()));
    }
}

/// By arrival. A line that is dropped is known to be read because the
/// next one is printed.
#[test]
fn lines_of_a_real_stream_are_forgotten_after_the_window() {
    let shell = Shell::new();
    let mut stream = Stream::start(&shell, "dedup --window 1h");
    stream.prints("a");
    stream.drops("a");
    stream.prints("b");
    let ran = stream.end();
    assert!(ran.err.starts_with("koel: 3 lines read, 2 printed, 1 dropped"), "{}", ran.err);
    let mut stream = Stream::start(&shell, "dedup --window 100ms --steps 2");
    stream.prints("a");
    std::thread::sleep(std::time::Duration::from_millis(160));
    stream.prints("a");
    assert_eq!(stream.end().code, 0);
}

#[test]
fn late_lines_are_printed_and_counted_and_lines_out_of_order_keep_their_own_time() {
    let shell = Shell::new();
    let input = "1700001000 a\n1700000990 b\n1700000999 b\n1700000800 c\n1700000800 c\nnone d\n\
                 none d\n1700001051 b\n1700001051 a\n";
    let words = "dedup --window 60s --steps 60 --time-field 1 --field 2 --delimiter whitespace";
    let ran = shell.run_with(words, input.as_bytes());
    let expected = "1700001000 a\n1700000990 b\n1700000800 c\n1700000800 c\nnone d\n1700001051 b\n";
    assert_eq!((ran.text(), ran.code), (expected, 0), "{}", ran.err);
    ran.says("2 lines older than the window: printed");
    ran.says("2 lines without a time");
}

#[test]
fn a_window_with_too_many_lines_evicts_the_oldest_or_fails() {
    let shell = Shell::new();
    let input = lines(&keys("line", 3000));
    let ran = shell.run_with("dedup --window 1h --keys 500 --json", &input);
    assert!(ran.code == 0 && ran.out == input, "{}", ran.err);
    let report = json(&ran);
    assert!(report["evicted"].as_u64().unwrap() > 1000, "{}", ran.err);
    assert!(report["warning"].as_str().unwrap().contains("more than 500 lines"), "{}", ran.err);
    shell.run_with("dedup --window 1h --keys 500", &input).says("use a larger --keys");
    let ran = shell.run_with("dedup --window 1h --keys 500 --when-full fail", &input);
    let printed = ran.text().lines().count();
    assert!(ran.code == 3 && (500..2000).contains(&printed), "{}", ran.err);
    assert!(ran.err.contains(&format!("first {printed} lines")) && ran.err.contains("--keys"));
}

#[test]
fn without_a_number_of_lines_the_filter_grows_and_forgets_none_early() {
    let shell = Shell::new();
    let input = lines(&keys("line", 1_100_000));
    let ran = shell.run_with("dedup --window 1h --fpr 1e-7 --json --state seen.koel", &input);
    assert!(ran.code == 0 && ran.out == input, "{}", ran.err);
    let report = json(&ran);
    assert_eq!((&report["evicted"], &report["warning"]), (&0.into(), &serde_json::Value::Null));
    assert_eq!(report["in_window"], 1_100_000);
    // The state knows them.
    let few = lines(&keys("line", 50_000));
    let ran = shell.run_with("dedup --window 1h --state seen.koel", &few);
    assert!(ran.code == 0 && ran.out.is_empty(), "{}", ran.err);
    shell.run_with("dedup --window 1h --when-full fail", &input).fails("--keys <N>");
    shell.run_with("dedup --window 1h --fpr 1e-12", &input).fails("cannot be reached");
}

#[test]
fn a_restart_with_a_state_forgets_nothing() {
    let shell = Shell::new();
    let words = "dedup --window 1h --state seen.koel";
    assert_eq!(shell.run_with(words, b"a\nb\n").text(), "a\nb\n");
    assert_eq!(shell.run_with(words, b"b\nc\n").text(), "c\n");
    shell.run_with("dedup --window 2h --state seen.koel", b"a\n").fails("has a window of 1h");
    shell
        .run_with("dedup --window 1h --state seen.koel --ignore-case", b"A\n")
        .fails("without --ignore-case");
    shell.write("other", "no filter");
    shell.run_with("dedup --window 1h --state other", b"a\n").fails("");
    assert_eq!(shell.read("other"), b"no filter");
    shell.run_with("dedup --window 1h --state none/seen", b"a\n").fails("");
}

#[cfg(unix)]
#[test]
fn a_signal_saves_the_state_and_reports() {
    use std::os::unix::process::ExitStatusExt;

    let shell = Shell::new();
    let words = "dedup --window 1h --secret --state seen.koel";
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let line = format!("before SIG{name}");
        let mut stream = Stream::start(&shell, words);
        stream.prints(&line);
        stream.send("USR1");
        stream.prints(&format!("after SIGUSR1 {name}"));
        stream.send(name);
        let Stream { child, input, .. } = stream;
        let output = child.wait_with_output().unwrap();
        drop(input);
        assert_eq!(output.status.signal(), Some(number));
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(err.contains("koel: 2 lines read, 2 printed, 0 dropped"), "{err}");
        let mut stream = Stream::start(&shell, words);
        stream.drops(&line);
        stream.prints(&format!("the end of {name}"));
        assert!(stream.end().err.contains("2 lines read, 1 printed, 1 dropped"));
    }
    let mode = std::fs::metadata(shell.path("seen.koel")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
}

#[test]
fn options_of_a_window_are_refused_without_one_or_with_a_wrong_value() {
    let shell = Shell::new();
    for (words, says) in [
        ("dedup --refresh", "--window"),
        ("dedup --state f", "--window"),
        ("dedup --time-field 1", "--window"),
        ("dedup --window 10", "give a time such as"),
        ("dedup --window 0s", "too short"),
        ("dedup --window 10m --steps 300", "200"),
        ("dedup --window 10m --time-field 0", "time-field"),
        ("dedup --window 10m --time-field 1 --time-key t", "cannot be used with"),
        ("dedup --window 10m --prefer fast", "cannot be used with"),
    ] {
        shell.run_with(words, b"a\n").fails(says);
    }
}

/// The whole log had passed as "without a time", and 71 of 72 lines were dropped.
#[test]
fn the_times_of_usual_logs_are_read_and_a_log_without_any_is_an_error() {
    let shell = Shell::new();
    let apache = |day: u32| format!("::1 - - [{day:02}/Nov/2023:22:13:20 +0100] GET");
    let syslog = |day: u32| format!("Nov {day:2} 22:13:20 host app");
    let spaced = |day: u32| format!("2023-11-{day:02} 22:13:20 +0100 app");
    let dates = |day: u32| format!("2023-11-{day:02} app");
    let lines: [(&str, &dyn Fn(u32) -> String); 4] =
        [("4", &apache), ("1", &syslog), ("1", &spaced), ("1", &dates)];
    for (field, line) in lines {
        let input: String =
            (1..=9).flat_map(|day| [line(day), line(day)]).map(|line| line + "\n").collect();
        let words = format!("dedup --window 1h --max-jump 25h --time-field {field} --json");
        let ran = shell.run_with(&words, input.as_bytes());
        assert_eq!((ran.code, ran.text().lines().count()), (0, 9), "{}", ran.err);
        assert_eq!(json(&ran)["without_time"], 0);
        assert_eq!(json(&ran)["in_window"], 1, "{}", ran.err);
    }
    let ran = shell.run_with("dedup --window 1h --time-field 2", b"Nov 14 22:13:20 a\nx y\n");
    assert!(ran.code == 2 && ran.err.contains("none of 2 lines has a time in field 2"));
    ran.says("syslog");
    // Before the end of a stream, too.
    let many: String = (0..5000).map(|number| format!("line {number}\n")).collect();
    let ran = shell.run_with("dedup --window 1h --time-key t", many.as_bytes());
    assert!(ran.code == 2 && ran.text().lines().count() < 5000, "{}", ran.err);
    shell.run_with("dedup --window 1h --time-field ts", b"").fails("--time-key NAME");
}

/// Such a line had switched the window off, for the next run too.
#[test]
fn one_line_of_the_far_future_does_not_set_the_time() {
    let shell = Shell::new();
    let words = "dedup --window 60s --time-field 1 --field 2 --delimiter whitespace --state st";
    let input = "1700000000 a\n9999999999 b\n1700000001 a\n1700000002 c\n1700000003 c\n";
    let ran = shell.run_with(words, input.as_bytes());
    assert_eq!(ran.text(), "1700000000 a\n9999999999 b\n1700000002 c\n");
    ran.says("1 line more than 1m ahead");
    let ran = shell.run_with(words, b"1700000004 a\n9999999999 d\n1700000005 c\n");
    assert_eq!(ran.text(), "9999999999 d\n");
    // After a pause the next line agrees, and both are remembered.
    let ran = shell.run_with(words, b"1700009000 a\n1700009001 a\n1700009002 a\n");
    assert_eq!(ran.text(), "1700009000 a\n", "{}", ran.err);
    assert!(!ran.err.contains("ahead"), "{}", ran.err);
    // So do all lines of a log with long pauses.
    let hours: String = (1..9).map(|hour| format!("{} a\n", 1_700_009_000 + hour * 3600)).collect();
    let ran = shell.run_with(words, hours.as_bytes());
    assert_eq!(ran.text(), hours);
    ran.says("koel: 1 line more than 1m ahead");
    // The first line of all.
    let ran = shell.run_with(
        "dedup --window 60s --time-field 1 --field 2 --delimiter whitespace",
        b"9999999999 d\n1700000004 a\n1700000005 a\n",
    );
    assert_eq!(ran.text(), "9999999999 d\n1700000004 a\n");
}

#[test]
fn a_state_has_one_user_at_a_time() {
    let shell = Shell::new();
    let words = "dedup --window 1h --state st";
    let mut first = Stream::start(&shell, words);
    first.prints("a");
    for _ in 0..2 {
        shell.run_with(words, b"a\n").fails("st is in use by another koel");
        // Saving replaces the file, and its lock goes with it.
        std::thread::sleep(std::time::Duration::from_millis(2300));
        first.prints(if shell.path("second").exists() { "c" } else { "b" });
        shell.write("second", "");
    }
    assert_eq!(first.end().code, 0);
    assert_eq!(shell.run_with(words, b"a\nb\nd\n").text(), "d\n");
}

#[cfg(unix)]
#[test]
fn a_plain_dedup_prints_its_totals_at_a_signal() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::unix::process::ExitStatusExt;

    let shell = Shell::new();
    let mut stream = Stream::start(&shell, "dedup");
    stream.prints("a");
    let mut errors = BufReader::new(stream.child.stderr.take().unwrap());
    let mut err = String::new();
    stream.send("USR1");
    // Of two signals that wait, the one that ends the process may come first.
    errors.read_line(&mut err).unwrap();
    stream.drops("a");
    stream.prints("b");
    stream.send("INT");
    let Stream { mut child, input, .. } = stream;
    errors.read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    drop(input);
    let totals = err.lines().filter(|line| line.starts_with("koel: ")).count();
    assert!(totals == 2 && err.contains("3 lines read, 2 printed, 1 dropped (less than"), "{err}");
}

/// All of the output was written before the totals said so.
#[cfg(unix)]
#[test]
fn at_a_signal_the_lines_that_count_as_printed_have_been_written() {
    let shell = Shell::new();
    let run =
        "(seq 3000000; sleep 5) > fifo & $K dedup fifo > out & sleep 1.5; kill -INT $!; wait $!";
    let ran = crate::support::bash(&shell, &format!("set -m; mkfifo fifo; {run}"));
    let printed = std::fs::read_to_string(shell.path("out")).unwrap().lines().count();
    let totals = format!("read {printed} printed");
    assert!(ran.err.replace(',', "").contains(&totals), "{}", ran.err);
}
