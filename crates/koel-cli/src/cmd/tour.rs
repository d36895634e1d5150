//! `koel tour`: a demonstration on a real list that checks every promise.
//!
//! The commonest uses come first, as a new user types them. Then the library shows its figures.
//! Every number is measured or counted in the same run, except where the text says computed. A
//! broken promise is marked in the text and makes the exit code 2, so the tour is also a test.
//!
//! The lists of the first chapters are made of the real list, and no name ends with `.example`, as
//! all absent names do: so every answer is known, and is the same in each run. A measured
//! false-positive rate may exceed the promise by four standard deviations: a filter whose true rate
//! is exactly the promised one fails the check once in 30,000 runs.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use fastbloom::BloomFilter;
use koel::file::Readers;
use koel::{Builder, CuckooFilter, ExpiringFilter};

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::filter::sizing::build_failure;
use crate::output;
use crate::quantity::{bytes, counted, grouped, rate};

/// The real list; data/README.md describes its origin.
const LIST: &[u8] = include_bytes!("../../data/disposable-email-domains.txt.zst");
/// The number of absent names.
const ABSENT: usize = 1_000_000;
/// At this rate a sign-up form asks one honest user in a thousand to write to support.
const PROMISED_RATE: f64 = 0.001;
/// Columns of the text.
const WIDTH: usize = 88;
/// The file of the filter that [`build`] builds.
const FILTER: &str = "domains.koel";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel tour

The tour takes a few seconds. It writes some files to TMPDIR and removes them.

Exit codes: 0 every promise was kept, 2 one was broken.")]
pub(crate) struct Args;

type Shown = Result<(), Failure>;

/// A chapter: its title, what it is about, and what it shows.
type Chapter = (&'static str, &'static str, fn(&mut Tour) -> Shown);

const CHAPTERS: [Chapter; 14] = [
    (
        "A real list",
        "This program contains a list of 121,570 domains that offer disposable e-mail addresses \
         (data/README.md describes its origin). A sign-up form asks: is this domain on it?",
        |_| Ok(()),
    ),
    (
        "A block list",
        "Build a filter of a list. Then ask which URLs have a host, or a parent domain of it, on \
         the list.",
        block_list,
    ),
    (
        "Seen before",
        "Print each line of a stream once, as it arrives. Or remember the lines in a filter that \
         grows, and print those that it does not have.",
        seen_before,
    ),
    (
        "A nightly diff",
        "Compare two snapshots of a list, then bring the filter of the first up to date. Both are \
         built with the same --keys.",
        nightly_diff,
    ),
    (
        "A nightly patch",
        "Publish a block list for two nights. Those who have the filter of yesterday get a patch \
         instead of the list.",
        nightly_patch,
    ),
    (
        "Building a filter",
        "The filter is built for 121,570 keys and a false-positive rate of at most 0.1 %.",
        build,
    ),
    (
        "Lookups",
        "Every domain on the list is looked up in the filter, and so are a million absent names.",
        look_up,
    ),
    (
        "Known mistakes",
        "The million absent names are names that must never be reported. The filter is told so: \
         those that it reports get a correction each (koel build --never, koel refute).",
        refute,
    ),
    (
        "Alternatives",
        "The same list is in a HashSet and in a Bloom filter (crate fastbloom) for the same keys \
         and false-positive rate. The same million absent names are looked up in each. The memory \
         of the HashSet is computed.",
        compare,
    ),
    (
        "Copies of a key",
        "The key koel.test is inserted 1,000 times, then removed as often.",
        count_copies,
    ),
    ("Removal", "Every second domain is removed, 60,785 in total.", remove),
    (
        "A full filter",
        "The whole list is inserted again, and then new names until one is refused.",
        overfill,
    ),
    (
        "Growing",
        "A filter with room for 1,000 keys grows while 1,024,000 new names are inserted. It does \
         not need the earlier keys to do so. At each doubling, the million absent names are looked \
         up.",
        grow,
    ),
    (
        "Forgetting on time",
        "A filter may also forget each key after a time: \"was it seen within the last ten \
         minutes?\" The list comes as a stream that lasts for two windows.",
        expire,
    ),
];

pub(crate) fn run(_: &Args) -> Result<Outcome, Failure> {
    let mut tour = Tour::new()?;
    for (number, (title, about, show)) in (1..).zip(CHAPTERS) {
        let space = if number > 1 { "\n" } else { "" };
        output::print(&format!("{space}{number}. {title}\n"))?;
        tour.say(about)?;
        show(&mut tour)?;
    }
    if !tour.broken.is_empty() {
        return Err(Failure::Broken(format!(
            "these promises of the tour were broken: {}; please report this output",
            tour.broken.join("; ")
        )));
    }
    output::print(&format!(
        "\nAll {} promises were kept. Try it with your own list:\n\n   \
         koel build LIST -o list.koel && koel check list.koel NAMES\n",
        tour.kept
    ))?;
    Ok(Outcome::Done)
}

/// What the chapters share, and the promises so far.
struct Tour {
    list: Vec<String>,
    /// Names that are not on the list.
    absent: Vec<String>,
    /// A filter of the list, empty until the chapter that builds it.
    filter: CuckooFilter,
    folder: tempfile::TempDir,
    kept: u32,
    broken: Vec<&'static str>,
}

impl Tour {
    fn new() -> Result<Self, Failure> {
        let text = zstd::decode_all(LIST)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(|error| Failure::read(Path::new("the list in this program"), error))?;
        let list: Vec<String> = text.lines().map(str::to_owned).collect();
        let absent = (0..ABSENT).map(|number| format!("name{number}.example")).collect();
        let folder =
            tempfile::tempdir().map_err(|error| Failure::write(&std::env::temp_dir(), error))?;
        let filter = built(&CuckooFilter::builder(list.len() as u64, PROMISED_RATE))?;
        Ok(Self { list, absent, filter, folder, kept: 0, broken: Vec::new() })
    }

    /// Prints a paragraph.
    fn say(&self, text: &str) -> Shown {
        let mut lines = vec![String::from("  ")];
        for word in text.split_whitespace() {
            if lines.last().is_some_and(|line| line.len() + 1 + word.len() > WIDTH) {
                lines.push(String::from("  "));
            }
            lines.last_mut().into_iter().for_each(|line| *line += &format!(" {word}"));
        }
        output::print(&(lines.join("\n") + "\n"))
    }

    /// Prints and records whether a promise was kept.
    fn promise(&mut self, held: bool, promise: &'static str) -> Shown {
        self.kept += u32::from(held);
        self.broken.extend((!held).then_some(promise));
        let mark = if held { "kept" } else { "BROKEN" };
        output::print(&format!("   [{mark}] {promise}\n"))
    }

    /// The path of a file of the tour.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Bytes of a file.
    fn size(&self, name: &str) -> Result<u64, Failure> {
        let path = self.path(name);
        fs::metadata(&path).map(|file| file.len()).map_err(|error| Failure::read(&path, error))
    }

    fn write(&self, name: &str, lines: &[impl AsRef<str>]) -> Shown {
        let text: String = lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect();
        let path = self.path(name);
        fs::write(&path, text).map_err(|error| Failure::write(&path, error))
    }

    /// Prints a command line, runs it with this program, and prints what it printed. Output goes
    /// into a file after `>`. Returns the output and the exit code.
    fn run(&self, line: &str) -> Result<(String, Option<i32>), Failure> {
        output::print(&format!("\n   $ koel {line}\n"))?;
        let (words, target) = line.split_once(" > ").unwrap_or((line, ""));
        let ran = std::env::current_exe().and_then(|program| {
            let mut command = Command::new(program);
            command.args(words.split_whitespace()).current_dir(&self.folder).stdin(Stdio::null());
            if !target.is_empty() {
                command.stdout(File::create(self.path(target))?);
            }
            command.output()
        });
        let ran = ran.map_err(|error| Failure::read(Path::new("this program"), error))?;
        let [out, report] =
            [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let lines = out.lines().chain(report.lines()).map(|line| format!("   {line}\n"));
        output::print(&lines.collect::<String>())?;
        Ok((out, ran.status.code()))
    }
}

fn block_list(tour: &mut Tour) -> Shown {
    let bad = format!("https://www.{}/sign-up?from=tour", tour.list[1000]);
    let [a, b] = [&tour.absent[0], &tour.absent[1]];
    let urls = [format!("https://{a}/"), bad.clone(), format!("http://{b}:8080/a/b")];
    tour.write("list.txt", &tour.list)?;
    tour.write("urls.txt", &urls)?;
    let (_, code) = tour.run("build list.txt -o blocked.koel")?;
    let found = tour.run("check --url blocked.koel urls.txt")?;
    let is_right = code == Some(0) && found == (format!("{bad}\n"), Some(0));
    tour.promise(is_right, "of three URLs, the one with a listed domain is printed")
}

fn seen_before(tour: &mut Tour) -> Shown {
    let [a, b, c] = [10, 20, 30].map(|line| &tour.list[line]);
    tour.write("events.log", &[a, b, a, a, c, b])?;
    let (once, _) = tour.run("dedup events.log")?;
    tour.write("yesterday.log", &[a, b])?;
    tour.run("build yesterday.log --grow -o seen.koel > report.txt")?;
    let (new, _) = tour.run("check -v seen.koel events.log")?;
    let is_right = once == format!("{a}\n{b}\n{c}\n") && new == format!("{c}\n");
    tour.promise(is_right, "every line is printed once, and only what was not seen before")
}

fn nightly_diff(tour: &mut Tour) -> Shown {
    let (gone, kept) = tour.list.split_at(40);
    tour.write("tuesday.txt", &[kept, &tour.absent[..25]].concat())?;
    tour.write("gone.txt", gone)?;
    tour.run("build list.txt --keys 150k -o monday.koel > report.txt")?;
    tour.run("build tuesday.txt --keys 150k -o tuesday.koel > report.txt")?;
    let (_, before) = tour.run("diff monday.koel tuesday.koel")?;
    tour.run("check -v monday.koel tuesday.txt > new.txt")?;
    tour.run("remove monday.koel gone.txt")?;
    tour.run("add monday.koel new.txt")?;
    let (_, after) = tour.run("diff monday.koel tuesday.koel")?;
    let is_right = (before, after) == (Some(1), Some(0));
    tour.promise(is_right, "a filter brought up to date does not differ from a new one")
}

fn nightly_patch(tour: &mut Tour) -> Shown {
    tour.run("build list.txt --keys 150k -o night-0.koel > report.txt")?;
    let (mut is_new, mut is_small) = (true, true);
    for night in 1..=2 {
        let (old, patched) = (format!("night-{}.koel", night - 1), format!("night-{night}.koel"));
        tour.write("list.txt", &[&tour.list[60 * night..], &tour.absent[..60 * night]].concat())?;
        tour.run(&format!("build list.txt --like {old} -o new.koel > report.txt"))?;
        tour.run(&format!("diff {old} new.koel --patch {night}.patch > report.txt"))?;
        tour.run(&format!("patch {old} {night}.patch -o {patched} > report.txt"))?;
        is_new &= tour.run(&format!("diff {patched} new.koel"))?.1 == Some(0);
        let patch = tour.size(&format!("{night}.patch"))?;
        is_small &= patch < 600;
        let [patch, filter, list] =
            [patch, tour.size(&patched)?, tour.size("list.txt")?].map(bytes);
        tour.say(&format!(
            "120 domains changed. The patch has {patch}, the filter {filter} and the list {list}."
        ))?;
    }
    tour.promise(is_new, "a patched filter does not differ from a new one")?;
    tour.promise(is_small, "a patch of 120 changes takes less than 600 bytes")
}

fn build(tour: &mut Tour) -> Shown {
    let started = Instant::now();
    let room = tour.filter.try_extend(&tour.list);
    let (took, size) = (time(started), tour.filter.size_in_bytes() as u64);
    output::write_filter(&tour.path(FILTER), Readers::Usual, |sink| {
        tour.filter.write_to(|bytes| sink.write_all(bytes))
    })?;
    let started = Instant::now();
    let file = FilterFile::open(&tour.path(FILTER))?;
    let is_same = file.verified_view().is_ok() && file.bytes() == tour.filter.to_bytes();
    tour.say(&format!(
        "All domains were inserted in {took}. The filter takes {}, which is {:.2} bits per key, \
         whatever the length of the keys. Its file was mapped into memory and compared in {}.",
        bytes(size),
        tour.filter.bits_per_key(),
        time(started)
    ))?;
    tour.promise(room.is_ok(), "a filter built for n keys takes n keys")?;
    let is_sound = is_same && tour.size(FILTER)? == size;
    tour.promise(is_sound, "its file is the same filter, and has the size that the filter reports")
}

fn look_up(tour: &mut Tour) -> Shown {
    let (missed, wrong) = (missed(&tour.filter, &tour.list), found(&tour.filter, &tour.absent));
    tour.say(&format!(
        "Of {} members, {missed} were missed. Of {} absent names, {} were false positives: a rate \
         of {}. At most {} was promised, and {} was expected.",
        count(tour.list.len()),
        count(ABSENT),
        count(wrong),
        rate(wrong as f64 / ABSENT as f64),
        rate(PROMISED_RATE),
        rate(tour.filter.false_positive_rate())
    ))?;
    tour.promise(missed == 0, "a member is never missed")?;
    tour.promise(is_within(wrong, ABSENT), "the false-positive rate is at most the promised one")
}

/// A million allowed names beside the list.
fn refute(tour: &mut Tour) -> Shown {
    let mut filter = tour.filter.clone();
    let (size, wrong) = (filter.size_in_bytes(), found(&filter, &tour.absent) as u64);
    let refuted = filter.refute_many(&tour.absent);
    let more = (filter.size_in_bytes() - size) as u64;
    let corrections = counted(filter.corrections(), "correction");
    let text = format!("{} names need {corrections}, which take {}.", count(ABSENT), bytes(more));
    tour.say(&text)?;
    let is_exact = refuted == Ok(wrong) && more == 8 * wrong;
    let is_right = found(&filter, &tour.absent) == 0 && missed(&filter, &tour.list) == 0;
    let promise = "none of them is reported any more, no member is missed, and each takes 8 bytes";
    tour.promise(is_exact && is_right, promise)
}

/// The list in a `HashSet` and in a Bloom filter. The table of the set has 8/7 as many buckets as
/// its capacity, each with a `String` and a control byte, and the text of each name is on the heap.
/// The overhead of the allocator is not included, so the real figure is higher.
fn compare(tour: &mut Tour) -> Shown {
    let (koel, set) = (&tour.filter, tour.list.iter().cloned().collect::<HashSet<_>>());
    let mut bloom = BloomFilter::with_false_pos(PROMISED_RATE).seed(&0).expected_items(set.len());
    bloom.insert_all(&set);
    let missed = set.iter().filter(|name| !bloom.contains(name.as_str())).count();
    let buckets = set.capacity() / 7 * 8 * (size_of::<String>() + 1);
    let of_set = buckets + set.iter().map(String::capacity).sum::<usize>();
    type Row<'a> = (&'a str, usize, &'a str, &'a dyn Fn(&str) -> bool);
    let rows: [Row<'_>; 3] = [
        ("HashSet<String>", of_set, "yes", &|name| set.contains(name)),
        ("Bloom filter", bloom.num_bits() / 8, "no", &|name| bloom.contains(name)),
        ("Koel", koel.size_in_bytes(), "yes", &|name| koel.contains(name)),
    ];
    let line = |[name, size, wrong, time, removals]: [&str; 5]| {
        format!("   {name:16} {size:>10}  {wrong:>15}  {time:>12}  {removals}\n")
    };
    let mut table = line(["", "memory", "false positives", "lookup time", "removals"]);
    for (name, size, removals, contains) in rows {
        let started = Instant::now();
        let wrong = count(tour.absent.iter().filter(|name| contains(name)).count());
        let time = format!("{:.0} ns", started.elapsed().as_secs_f64() * 1e9 / ABSENT as f64);
        table += &line([name, &bytes(size as u64), &wrong, &time, removals]);
    }
    output::print(&format!("\n{table}\n"))?;
    let is_smaller = of_set > 10 * koel.size_in_bytes() && missed == 0;
    tour.promise(is_smaller, "a filter takes less than a tenth of a HashSet's memory")
}

fn count_copies(tour: &mut Tour) -> Shown {
    const KEY: &str = "koel.test";
    let mut filter = tour.filter.clone();
    let state =
        |filter: &CuckooFilter| (filter.count(KEY), filter.slots_in_use(), filter.size_in_bytes());
    let before = state(&filter);
    let all = (0..1000).all(|_| filter.insert(KEY).is_ok());
    let (copies, slots, size) = state(&filter);
    let removed = (0..1000).filter(|_| filter.remove(KEY)).count();
    let missed = missed(&filter, &tour.list);
    tour.say(&format!(
        "The count is {}. Together the copies took {} and {} more. It was removed {} times. Its \
         count is now {}, and {missed} domains are missed.",
        grouped(copies - before.0),
        counted(slots - before.1, "slot"),
        bytes((size - before.2) as u64),
        count(removed),
        filter.count(KEY) - before.0
    ))?;
    let is_counted = all && copies - before.0 == 1000;
    tour.promise(is_counted, "copies are counted and take almost no memory")?;
    let is_as_before = state(&filter) == before && missed == 0;
    tour.promise(is_as_before, "then the filter is as full and as large as before")
}

fn remove(tour: &mut Tour) -> Shown {
    let mut filter = tour.filter.clone();
    let half = |rest| tour.list.iter().skip(rest).step_by(2).cloned().collect::<Vec<_>>();
    let (even, odd) = (half(0), half(1));
    let not_found = odd.iter().filter(|name| !filter.remove(name.as_str())).count();
    let (missed, still_found) = (missed(&filter, &even), found(&filter, &odd));
    let expected = rate(filter.false_positive_rate());
    let all = even.iter().filter(|name| filter.remove(name.as_str())).count();
    tour.say(&format!(
        "Of the {} domains left, {missed} were missed. Of the {} removed, {still_found} are still \
         reported as present: a rate of {}, where {expected} is expected for any absent name. Then \
         the other domains are removed, too.",
        count(even.len()),
        count(odd.len()),
        rate(still_found as f64 / odd.len() as f64)
    ))?;
    tour.promise(not_found == 0 && missed == 0, "removing a key loses no other key")?;
    let is_absent = is_within(still_found, odd.len());
    tour.promise(is_absent, "a removed key is absent, up to the false-positive rate")?;
    let mut empty = tour.filter.clone();
    empty.clear();
    let is_empty = all == even.len() && filter.to_bytes() == empty.to_bytes();
    tour.promise(is_empty, "the result is the empty filter, byte for byte")
}

fn overfill(tour: &mut Tour) -> Shown {
    let (mut filter, mut before) = (tour.filter.clone(), Vec::new());
    let refusal = tour.absent.iter().enumerate().find_map(|(extra, name)| {
        before = filter.to_bytes();
        filter.insert(name.as_str()).err().map(|full| (extra, full))
    });
    let Some((extra, refusal)) = refusal else {
        return tour.promise(false, "a full filter refuses keys");
    };
    let missed = missed(&filter, &tour.list) + missed(&filter, &tour.absent[..extra]);
    tour.say(&format!(
        "{} new names were inserted, which filled {:.2} % of all slots. Of the {} inserted names, \
         {missed} were missed. The next one was refused: \"{refusal}\"",
        count(extra),
        filter.load_factor() * 100.0,
        count(tour.list.len() + extra)
    ))?;
    tour.promise(filter.to_bytes() == before, "an insert that fails changes no byte")?;
    tour.promise(missed == 0, "a full filter misses no member")
}

/// The filter is built for a false-positive rate at the last size.
fn grow(tour: &mut Tour) -> Shown {
    const FIRST: usize = 1000;
    const DOUBLINGS: usize = 10;
    let last = (FIRST << DOUBLINGS) as u64;
    let builder = CuckooFilter::builder(last, PROMISED_RATE);
    let mut filter = built(&builder.clone().grow_from(FIRST as u64))?;
    let line = |[keys, memory, bits, load, wrong, promised]: [&str; 6]| {
        format!("   {keys:>10} {memory:>11} {bits:>13} {load:>12} {wrong:>16} {promised:>10}\n")
    };
    let titles = ["keys", "memory", "bits per key", "load factor", "false positives", "promised"];
    let (mut table, mut inserted) = (line(titles), Vec::new());
    let (mut room, mut kept, mut full_enough) = (true, true, true);
    for doubling in 0..=DOUBLINGS {
        let before = inserted.len();
        inserted.extend((before..FIRST << doubling).map(|number| format!("new{number}.example")));
        room &= filter.insert_many(&inserted[before..]).is_ok();
        let (wrong, size) = (found(&filter, &tour.absent), filter.size_in_bytes());
        kept &= is_within(wrong, ABSENT);
        full_enough &= doubling < 2 || filter.load_factor() >= 0.85;
        table += &line([
            &grouped(filter.len()),
            &bytes(size as u64),
            &format!("{:.2}", size as f64 * 8.0 / filter.len() as f64),
            &format!("{:.3}", filter.load_factor()),
            &rate(wrong as f64 / ABSENT as f64),
            &rate(PROMISED_RATE),
        ]);
    }
    let missed = missed(&filter, &inserted);
    let fixed = builder.plan().map_err(|error| build_failure(&error))?.bits_per_key;
    output::print(&format!("\n{table}\n"))?;
    tour.say(&format!(
        "Of the {0} inserted names, {missed} were missed. Growth has a price: a filter built for \
         {0} names would take {fixed:.2} bits per key (computed), and an insert in it is faster.",
        grouped(last)
    ))?;
    tour.promise(room && missed == 0, "a growable filter takes every key and loses none")?;
    tour.promise(kept, "at every size the false-positive rate is at most the promised one")?;
    tour.promise(full_enough, "from 4,000 keys on, at least 85 % of the slots are in use")
}

/// A filter whose entries expire gets the list in two windows of time.
fn expire(tour: &mut Tour) -> Shown {
    const WINDOW: u64 = 24;
    let keys = tour.list.len() as u64;
    let builder = ExpiringFilter::builder(keys / 2, PROMISED_RATE).window(WINDOW);
    let mut seen = builder.build().map_err(|error| build_failure(&error))?;
    let tick = |number: usize| number as u64 * 2 * WINDOW / keys;
    let room = tour.list.iter().enumerate().all(|(number, name)| {
        seen.advance(tick(number));
        seen.insert(name).is_ok()
    });
    let now = tick(tour.list.len().saturating_sub(1));
    let is_young = |number: usize| now - tick(number) <= WINDOW;
    let first = (0..tour.list.len()).find(|&number| is_young(number)).unwrap_or_default();
    let is_in = |names: &[String]| names.iter().filter(|name| seen.contains(name)).count();
    let (left, kept) = (is_in(&tour.list[..first]), is_in(&tour.list[first..]));
    let young = tour.list.len() - first;
    tour.say(&format!(
        "Of {} domains of the last window, {} are in; of {} older ones, {} (false positives). That \
         takes {:.1} bits per key of a window.",
        count(young),
        count(kept),
        count(first),
        count(left),
        seen.bits_per_key()
    ))?;
    tour.promise(room, "a filter for n keys in a window takes n keys in every window")?;
    tour.promise(kept == young, "a key is in for its whole window")?;
    tour.promise(is_within(left, first), "then it is forgotten")
}

fn built(builder: &Builder<CuckooFilter>) -> Result<CuckooFilter, Failure> {
    builder.build().map_err(|error| build_failure(&error))
}

/// Whether a number of false positives is consistent with the promised rate.
fn is_within(wrong: usize, lookups: usize) -> bool {
    let expected = PROMISED_RATE * lookups as f64;
    wrong as f64 <= expected + 4.0 * expected.sqrt()
}

/// How many of these names the filter reports.
fn found(filter: &CuckooFilter, names: &[String]) -> usize {
    let mut found = vec![false; names.len()];
    filter.contains_many(names, &mut found);
    found.iter().filter(|&&found| found).count()
}

fn missed(filter: &CuckooFilter, names: &[String]) -> usize {
    names.len() - found(filter, names)
}

fn count(number: usize) -> String {
    grouped(number as u64)
}

/// The time since `started`.
fn time(started: Instant) -> String {
    format!("{:.1?}", started.elapsed()).replace('\u{b5}', "u")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_figures_of_its_readme_and_no_absent_name() {
        let Tour { list, .. } = Tour::new().unwrap();
        assert_eq!(list.len(), 121_570);
        assert!(list.is_sorted() && !list.iter().any(|name| name.ends_with(".example")));
        assert_eq!(list.iter().map(|name| name.len() + 1).sum::<usize>(), 1_852_244);
    }
}
