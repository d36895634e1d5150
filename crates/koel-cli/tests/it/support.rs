//! Runs the program in a temporary folder per test, and generates keys.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A temporary folder in which `koel` runs.
#[derive(Debug)]
pub(crate) struct Shell {
    folder: tempfile::TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What was run, for messages.
    words: String,
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With a file.
    pub(crate) fn with(name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let shell = Self::new();
        shell.write(name, bytes);
        shell
    }

    /// With a filter of these keys.
    pub(crate) fn with_filter(name: &str, keys: &[String], options: &str) -> Self {
        let shell = Self::new();
        shell.build(name, keys, options);
        shell
    }

    /// With a list of keys, and a filter of it.
    pub(crate) fn with_list_and_set() -> Self {
        let shell = Self::with("list", lines(&keys("key", 3_000)));
        shell.ok("build list -o set");
        shell
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_koel"))
    }

    /// A program in the folder, without the user's locale and passwords, which change what it does.
    fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        command.env_remove("REDISCLI_AUTH").env_remove("VALKEYCLI_AUTH");
        command
    }

    /// Runs `koel` with these words, split at spaces, and nothing on standard input.
    pub(crate) fn run(&self, words: &str) -> Ran {
        self.run_with(words, b"")
    }

    /// Runs `koel` with this on standard input, which is a pipe.
    pub(crate) fn run_with(&self, words: &str, input: &[u8]) -> Ran {
        let mut child = self
            .command()
            .args(words.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A thread, because the program may write output or end before it has read all input.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran { words: words.to_owned(), ..Ran::of(output) }
    }

    /// Runs `koel` and expects exit code 0.
    pub(crate) fn ok(&self, words: &str) -> Ran {
        self.ok_with(words, b"")
    }

    /// Runs `koel` with this on standard input, and expects exit code 0.
    pub(crate) fn ok_with(&self, words: &str, input: &[u8]) -> Ran {
        let ran = self.run_with(words, input);
        assert_eq!(ran.code, 0, "koel {words}: {}", ran.err);
        ran
    }

    /// Builds `name` from these keys.
    pub(crate) fn build(&self, name: &str, keys: &[String], options: &str) {
        self.ok_with(&format!("build -o {name} {options}"), &lines(keys));
    }
}

/// Runs a line of bash in the folder. `$K` is koel.
#[cfg(unix)]
pub(crate) fn bash(shell: &Shell, line: &str) -> Ran {
    let mut command = shell.command_of("bash");
    command.env("K", env!("CARGO_BIN_EXE_koel"));
    Ran { words: line.to_owned(), ..Ran::of(command.args(["-c", line]).output().unwrap()) }
}

impl Ran {
    pub(crate) fn of(output: std::process::Output) -> Self {
        Self {
            words: String::new(),
            // -1 stands for a signal.
            code: output.status.code().unwrap_or(-1),
            out: output.stdout,
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// It has printed nothing, and ended with exit code 2 and one line of error, which says this.
    #[track_caller]
    pub(crate) fn fails(&self, says: &str) -> &Self {
        assert_eq!(self.out.len(), 0, "{}: {}", self.words, self.err);
        self.fails_late(says)
    }

    /// The same, but it may have printed something before.
    #[track_caller]
    pub(crate) fn fails_late(&self, says: &str) -> &Self {
        let Self { words, code, err, .. } = self;
        assert_eq!((*code, err.lines().count()), (2, 1), "{words}: {err}");
        self.says(says)
    }

    /// Standard error says this.
    #[track_caller]
    pub(crate) fn says(&self, part: &str) -> &Self {
        assert!(self.err.contains(part), "{}: {}", self.words, self.err);
        self
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.out).unwrap()
    }
}

/// `count` distinct keys. Different names give different keys.
pub(crate) fn keys(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{name}/{number:x}/{}", number * number % 997)).collect()
}

/// The whole list, repeated `times` times.
pub(crate) fn copies(keys: &[String], times: usize) -> Vec<String> {
    keys.iter().cycle().take(keys.len() * times).cloned().collect()
}

pub(crate) fn lines(keys: &[String]) -> Vec<u8> {
    keys.iter().flat_map(|key| [key.as_bytes(), b"\n"].concat()).collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
