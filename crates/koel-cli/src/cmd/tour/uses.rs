//! The first chapters of the tour: the commonest uses, as they are typed.
//!
//! Each command line is run by this program in a temporary folder, and printed with what it prints.
//! The lists are made of the real list, so every answer is known.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::story::Story;
use crate::failure::Failure;
use crate::quantity::bytes;

/// A folder with the lists, in which the command runs.
struct Shell<'a> {
    story: &'a mut Story,
    folder: tempfile::TempDir,
}

/// What a command printed, and its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    out: String,
    code: Option<i32>,
}

/// The uses. `listed` are the names of the list, `absent` are others.
pub(super) fn show(story: &mut Story, listed: &[String], absent: &[String]) -> Result<(), Failure> {
    let folder =
        tempfile::tempdir().map_err(|error| Failure::write(&std::env::temp_dir(), error))?;
    let mut shell = Shell { story, folder };
    shell.block_list(listed, absent)?;
    shell.seen_before(listed)?;
    shell.nightly_diff(listed, absent)?;
    shell.nightly_patch(listed, absent)
}

impl Shell<'_> {
    fn block_list(&mut self, listed: &[String], absent: &[String]) -> Result<(), Failure> {
        self.story.chapter(
            "A block list",
            "Build a filter of a list. Then ask which URLs have a host, or a parent domain of it, \
             on the list.",
        )?;
        let bad = format!("https://www.{}/sign-up?from=tour", listed[1000]);
        self.write("list.txt", listed)?;
        let urls = [
            format!("https://{}/", absent[0]),
            bad.clone(),
            format!("http://{}:8080/a/b", absent[1]),
        ];
        self.write("urls.txt", &urls)?;
        let built = self.run("build list.txt -o blocked.koel")?;
        let found = self.run("check --url blocked.koel urls.txt")?;
        self.story.promise(
            built.code == Some(0) && found == Ran { out: format!("{bad}\n"), code: Some(0) },
            "of three URLs, the one with a listed domain is printed",
        )
    }

    fn seen_before(&mut self, listed: &[String]) -> Result<(), Failure> {
        self.story.chapter(
            "Seen before",
            "Print each line of a stream once, as it arrives. Or remember the lines in a filter \
             that grows, and print those that it does not have.",
        )?;
        let [a, b, c] = [&listed[10], &listed[20], &listed[30]].map(String::as_str);
        self.write("events.log", &[a, b, a, a, c, b])?;
        let once = self.run("dedup events.log")?;
        self.write("yesterday.log", &[a, b])?;
        self.run("build yesterday.log --grow -o seen.koel > report.txt")?;
        let new = self.run("check -v seen.koel events.log")?;
        self.story.promise(
            once.out == format!("{a}\n{b}\n{c}\n") && new.out == format!("{c}\n"),
            "every line is printed once, and only what was not seen before",
        )
    }

    fn nightly_diff(&mut self, listed: &[String], absent: &[String]) -> Result<(), Failure> {
        self.story.chapter(
            "A nightly diff",
            "Compare two snapshots of a list, then bring the filter of the first up to date. Both \
             are built with the same --keys.",
        )?;
        let (gone, kept) = listed.split_at(40);
        let new = &absent[..25];
        self.write("tuesday.txt", &[kept, new].concat())?;
        self.write("gone.txt", gone)?;
        self.run("build list.txt --keys 150k -o monday.koel > report.txt")?;
        self.run("build tuesday.txt --keys 150k -o tuesday.koel > report.txt")?;
        let before = self.run("diff monday.koel tuesday.koel")?;
        self.run("check -v monday.koel tuesday.txt > new.txt")?;
        self.run("remove monday.koel gone.txt")?;
        self.run("add monday.koel new.txt")?;
        let after = self.run("diff monday.koel tuesday.koel")?;
        self.story.promise(
            before.code == Some(1) && after.code == Some(0),
            "a filter brought up to date does not differ from a new one",
        )
    }

    fn nightly_patch(&mut self, listed: &[String], absent: &[String]) -> Result<(), Failure> {
        self.story.chapter(
            "A nightly patch",
            "Publish a block list for two nights. Those who have the filter of yesterday get a \
             patch instead of the list.",
        )?;
        self.run("build list.txt --keys 150k -o night-0.koel > report.txt")?;
        let (mut is_new, mut is_small) = (true, true);
        for night in 1..=2 {
            let [old, new, patch] =
                [format!("night-{}.koel", night - 1), "new.koel".into(), format!("{night}.patch")];
            let patched = format!("night-{night}.koel");
            self.write("list.txt", &[&listed[60 * night..], &absent[..60 * night]].concat())?;
            self.run(&format!("build list.txt --like {old} -o {new} > report.txt"))?;
            self.run(&format!("diff {old} {new} --patch {patch} > report.txt"))?;
            self.run(&format!("patch {old} {patch} -o {patched} > report.txt"))?;
            is_new &= self.run(&format!("diff {patched} {new}"))?.code == Some(0);
            let [patch, filter, list] =
                [&*patch, &*patched, "list.txt"].map(|name| self.size(name));
            let [patch, filter, list] = [patch?, filter?, list?];
            is_small &= patch < 600;
            self.story.say(&format!(
                "120 domains changed. The patch has {}, the filter {} and the list {}.",
                bytes(patch),
                bytes(filter),
                bytes(list)
            ))?;
        }
        self.story.promise(is_new, "a patched filter does not differ from a new one")?;
        self.story.promise(is_small, "a patch of 120 changes takes less than 600 bytes")
    }

    /// Bytes of a file.
    fn size(&self, name: &str) -> Result<u64, Failure> {
        let path = self.folder.path().join(name);
        fs::metadata(&path).map(|file| file.len()).map_err(|error| Failure::read(&path, error))
    }

    fn write(&self, name: &str, lines: &[impl AsRef<str>]) -> Result<(), Failure> {
        let text: String = lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect();
        let path = self.folder.path().join(name);
        fs::write(&path, text).map_err(|error| Failure::write(&path, error))
    }

    /// Prints a command line, runs it, and prints what it printed. Output goes into a file after
    /// `>`.
    fn run(&mut self, line: &str) -> Result<Ran, Failure> {
        self.story.lines(&format!("\n   $ koel {line}\n"))?;
        let (ran, report) = run_in(self.folder.path(), line)
            .map_err(|error| Failure::read(Path::new("this program"), error))?;
        let lines = ran.out.lines().chain(report.lines());
        self.story.lines(&lines.map(|line| format!("   {line}\n")).collect::<String>())?;
        Ok(ran)
    }
}

/// Runs this program. Returns also what it printed on standard error.
fn run_in(folder: &Path, line: &str) -> io::Result<(Ran, String)> {
    let (words, target) = match line.split_once(" > ") {
        Some((words, target)) => (words, Some(target)),
        None => (line, None),
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    if let Some(target) = target {
        command.stdout(File::create(folder.join(target))?);
    }
    let ran = command.output()?;
    let [out, report] =
        [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Ok((Ran { out, code: ran.status.code() }, report))
}
