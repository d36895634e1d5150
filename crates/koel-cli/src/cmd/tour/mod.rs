//! `koel tour`: a demonstration on a real list that checks every promise.
//!
//! The commonest uses come first, as a new user types them. Then the library shows its figures.
//! Every number is measured or counted in the same run, except where the text says computed. A
//! broken promise is marked in the text and makes the exit code 2, so the tour is also a test. The
//! absent names are the same in every run, so the results do not vary.
#![forbid(unsafe_code)]

mod allowed;
mod expiry;
mod growth;
mod names;
mod rate;
mod rivals;
mod story;
mod uses;

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use koel::{CuckooFilter, FilterView};
use koel_store::content::replace::Readers;

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::filter::sizing::build_failure;
use crate::output;
use crate::quantity::{self, bytes, grouped};
use rate::{PROMISED_RATE, is_within};
use story::Story;

const ABSENT: usize = 1_000_000;
const COPIES: u64 = 1_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel tour

The tour takes a few seconds. It writes some files to TMPDIR and removes them.

Exit codes: 0 every promise was kept, 2 one was broken.")]
pub(crate) struct Args;

pub(crate) fn run(_: &Args) -> Result<Outcome, Failure> {
    let list = names::listed()
        .map_err(|error| Failure::read(Path::new("the list in this program"), error))?;
    let set: HashSet<String> = list.iter().cloned().collect();
    let absent: Vec<String> = names::absent(&set).take(ABSENT).collect();
    let mut story = Story::default();
    story.chapter(
        "A real list",
        &format!(
            "This program contains a list of {} domains that offer disposable e-mail addresses \
             (data/README.md describes its origin). A sign-up form asks: is this domain on it?",
            grouped(list.len() as u64)
        ),
    )?;
    uses::show(&mut story, &list, &absent)?;
    let filter = build(&mut story, &list)?;
    let folder =
        tempfile::tempdir().map_err(|error| Failure::write(&std::env::temp_dir(), error))?;
    let path = folder.path().join("domains.koel");
    save(&mut story, &filter, &path)?;
    let opened = Instant::now();
    let file = FilterFile::open(&path)?;
    let view = file.view()?;
    story.say(&format!("Opened again as a memory map in {}.", story::time(opened)))?;
    look_up(&mut story, &view, &list, &absent)?;
    allowed::refute(&mut story, filter.clone(), &list, &absent)?;
    rivals::compare(&mut story, &view, &set, &absent)?;
    count_copies(&mut story, filter.clone(), &list)?;
    remove(&mut story, filter.clone(), &list)?;
    overfill(&mut story, &list, &absent)?;
    growth::grow(&mut story, &set, &absent)?;
    expiry::expire(&mut story, &list)?;
    story.end(
        "Try it with your own list:\n\n   \
         koel build LIST -o list.koel && koel check list.koel NAMES",
    )
}

fn build(story: &mut Story, list: &[String]) -> Result<CuckooFilter, Failure> {
    story.chapter(
        "Building a filter",
        &format!(
            "The filter is built for {} keys and a false-positive rate of at most {}.",
            grouped(list.len() as u64),
            quantity::rate(PROMISED_RATE)
        ),
    )?;
    let started = Instant::now();
    let mut filter = empty_filter(list)?;
    let room = filter.try_extend(list);
    story.say(&format!(
        "All domains were inserted in {}. The filter takes {}, which is {:.2} bits per key, \
         whatever the length of the keys.",
        story::time(started),
        bytes(filter.size_in_bytes() as u64),
        filter.bits_per_key()
    ))?;
    story.promise(room.is_ok(), "a filter built for n keys takes n keys")?;
    Ok(filter)
}

/// An empty filter with room for the list.
fn empty_filter(list: &[String]) -> Result<CuckooFilter, Failure> {
    let filter = CuckooFilter::builder(list.len() as u64, PROMISED_RATE).build();
    filter.map_err(|error| build_failure(&error))
}

fn save(story: &mut Story, filter: &CuckooFilter, path: &Path) -> Result<(), Failure> {
    output::write_filter(path, filter, Readers::Usual)?;
    let on_disk = std::fs::metadata(path).map_err(|error| Failure::read(path, error))?.len();
    story.say(&format!("Saved to a file of {}.", bytes(on_disk)))?;
    story.promise(
        on_disk == filter.size_in_bytes() as u64,
        "the file has the size that the filter reports",
    )
}

fn look_up(
    story: &mut Story,
    view: &FilterView<'_>,
    list: &[String],
    absent: &[String],
) -> Result<(), Failure> {
    story.chapter(
        "Lookups",
        "Every domain on the list is looked up in the opened file, and so are a million absent \
         names.",
    )?;
    let missed = list.iter().filter(|name| !view.contains(name.as_str())).count();
    story.say(&format!("Of {} members, {missed} were missed.", grouped(list.len() as u64)))?;
    story.promise(missed == 0, "a member is never missed")?;
    let wrong = absent.iter().filter(|name| view.contains(name.as_str())).count();
    story.say(&format!(
        "Of {} absent names, {} were false positives: a rate of {}. At most {} was promised, and \
         {} was expected.",
        grouped(absent.len() as u64),
        grouped(wrong as u64),
        quantity::rate(wrong as f64 / absent.len() as f64),
        quantity::rate(PROMISED_RATE),
        quantity::rate(view.false_positive_rate())
    ))?;
    story.promise(
        is_within(wrong, absent.len()),
        "the false-positive rate is at most the promised one",
    )
}

fn count_copies(
    story: &mut Story,
    mut filter: CuckooFilter,
    list: &[String],
) -> Result<(), Failure> {
    const KEY: &str = "koel.example";
    story.chapter(
        "Copies of a key",
        &format!("The key {KEY} is inserted {} times, then removed as often.", grouped(COPIES)),
    )?;
    let (slots, size) = (filter.slots_in_use(), filter.size_in_bytes());
    let false_count = filter.count(KEY);
    let all = (0..COPIES).all(|_| filter.insert(KEY).is_ok());
    let counted = filter.count(KEY) - false_count;
    story.say(&format!(
        "The count is {}. Together the copies took {} and {} more.",
        grouped(counted),
        quantity::counted(filter.slots_in_use() - slots, "slot"),
        bytes((filter.size_in_bytes() - size) as u64)
    ))?;
    story.promise(all && counted == COPIES, "copies are counted and take almost no memory")?;
    let removed = (0..COPIES).filter(|_| filter.remove(KEY)).count();
    let missed = list.iter().filter(|name| !filter.contains(name.as_str())).count();
    story.say(&format!(
        "It was removed {} times. Its count is now {}, and {missed} domains are missed.",
        grouped(removed as u64),
        filter.count(KEY) - false_count
    ))?;
    let as_before = (filter.count(KEY), filter.slots_in_use(), filter.size_in_bytes())
        == (false_count, slots, size);
    story.promise(
        as_before && missed == 0,
        "then the filter is as full and as large as before, and nothing is lost",
    )
}

fn remove(story: &mut Story, mut filter: CuckooFilter, list: &[String]) -> Result<(), Failure> {
    let (even, odd): (Vec<_>, Vec<_>) =
        list.iter().enumerate().partition(|(line, _)| line % 2 == 0);
    story.chapter(
        "Removal",
        &format!("Every second domain is removed, {} in total.", grouped(odd.len() as u64)),
    )?;
    let not_found = odd.iter().filter(|(_, name)| !filter.remove(name.as_str())).count();
    let missed = even.iter().filter(|(_, name)| !filter.contains(name.as_str())).count();
    let expected = filter.false_positive_rate();
    let still_found = odd.iter().filter(|(_, name)| filter.contains(name.as_str())).count();
    story.say(&format!(
        "Of the {} domains left, {missed} were missed. Of the {} removed, {still_found} are still \
         reported as present: a rate of {}, where {} is expected for any absent name.",
        grouped(even.len() as u64),
        grouped(odd.len() as u64),
        quantity::rate(still_found as f64 / odd.len() as f64),
        quantity::rate(expected)
    ))?;
    story.promise(not_found == 0 && missed == 0, "removing a key loses no other key")?;
    story.promise(
        is_within(still_found, odd.len()),
        "a removed key is absent, up to the false-positive rate",
    )?;
    even.iter().for_each(|(_, name)| {
        filter.remove(name.as_str());
    });
    story.say("Then the other domains are removed, too.")?;
    story.promise(
        filter.to_bytes() == empty_filter(list)?.to_bytes(),
        "the result is the empty filter, byte for byte",
    )
}

fn overfill(story: &mut Story, list: &[String], absent: &[String]) -> Result<(), Failure> {
    story.chapter(
        "A full filter",
        "The whole list is inserted again, and then new names until one is refused.",
    )?;
    let mut filter = empty_filter(list)?;
    let room = filter.try_extend(list);
    let mut before = Vec::new();
    let refusal = absent.iter().enumerate().find_map(|(extra, name)| {
        before = filter.to_bytes();
        filter.insert(name.as_str()).err().map(|full| (extra, full))
    });
    let Some((extra, refusal)) = refusal else {
        return story.promise(false, "a full filter refuses keys");
    };
    story.say(&format!(
        "{} new names were inserted, which filled {:.2} % of all slots. The next one was refused:",
        grouped(extra as u64),
        filter.load_factor() * 100.0
    ))?;
    story.say(&format!("\"{refusal}\""))?;
    story.promise(
        room.is_ok() && filter.to_bytes() == before,
        "an insert that fails changes no byte",
    )?;
    let missed =
        list.iter().chain(&absent[..extra]).filter(|name| !filter.contains(name.as_str())).count();
    story.say(&format!(
        "Of the {} inserted names, {missed} were missed.",
        grouped((list.len() + extra) as u64)
    ))?;
    story.promise(missed == 0, "a full filter misses no member")
}
