//! `koel tour`: the main job on a real list, told as a story, every promise checked on the way.
//!
//! Every number printed is measured or counted in that run, except what the text calls computed. A promise that does not hold is marked in
//! the text and makes the exit code 2, so the tour is a test too. Error rates are measured on a million names and may pass the promise by
//! four standard deviations before the tour calls it broken: one run in 30,000 of a filter exactly at its promise; the names are always
//! the same, so a tour that was right stays right.
#![forbid(unsafe_code)]

mod growth;
mod names;
mod rivals;
pub(crate) mod story;

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use koel::{CuckooFilter, FilterView};

use crate::failure::{Failure, Outcome};
use crate::filter_file::FilterFile;
use crate::output;
use crate::quantity::{self, bytes, grouped, rate};
use crate::sizing::refused;
use story::Story;

/// What a sign-up form might ask for: one honest user in a thousand is asked to write to support.
const PROMISE: f64 = 0.001;
const ABSENT: usize = 1_000_000;
const COPIES: u64 = 1_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Takes a few seconds, writes one file into TMPDIR and removes it. Exit codes: 0 every promise held, 2 one did not.")]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args) -> Result<Outcome, Failure> {
    let list = names::listed()
        .map_err(|error| Failure::read(Path::new("the list in this program"), error))?;
    let set: HashSet<String> = list.iter().cloned().collect();
    let absent: Vec<String> = names::absent(&set).take(ABSENT).collect();
    let mut story = Story::default();
    story.chapter(
        "A real list",
        &format!(
            "{} domains that hand out throw-away e-mail addresses (data/README.md says where they \
             come from). A sign-up form wants to know: is this domain on the list?",
            grouped(list.len() as u64)
        ),
    )?;
    let filter = build(&mut story, &list)?;
    let folder =
        tempfile::tempdir().map_err(|error| Failure::write(&std::env::temp_dir(), error))?;
    let path = folder.path().join("domains.koel");
    save(&mut story, &filter, &path)?;
    let opened = Instant::now();
    let file = FilterFile::open(&path)?;
    let view = file.view()?;
    story.say(&format!("Opened again, mapped into memory, in {}.", story::time(opened)))?;
    ask(&mut story, &view, &list, &absent)?;
    rivals::compare(&mut story, &view, &set, &absent)?;
    repeat(&mut story, filter.clone(), &list)?;
    forget(&mut story, filter.clone(), &list)?;
    overfill(&mut story, &list, &absent)?;
    growth::grow(&mut story, &set, &absent)?;
    story.end(
        "Now with a list of your own:\n\n   koel build LIST -o list.koel && koel check list.koel NAMES",
    )
}

fn build(story: &mut Story, list: &[String]) -> Result<CuckooFilter, Failure> {
    story.chapter(
        "A filter of it",
        &format!(
            "Built for {} keys and an error rate of at most {}.",
            grouped(list.len() as u64),
            rate(PROMISE)
        ),
    )?;
    let started = Instant::now();
    let mut filter = CuckooFilter::builder(list.len() as u64, PROMISE)
        .build()
        .map_err(|error| refused(&error))?;
    let room = filter.try_extend(list);
    story.say(&format!(
        "All of them went in, in {}. The filter takes {}: {:.2} bits for each domain, whatever its length.",
        story::time(started),
        bytes(filter.size_in_bytes() as u64),
        filter.bits_per_key()
    ))?;
    story.promise(room.is_ok(), "a filter built for n keys takes n keys")?;
    Ok(filter)
}

fn save(story: &mut Story, filter: &CuckooFilter, path: &Path) -> Result<(), Failure> {
    output::write_filter(path, filter)?;
    let on_disk = std::fs::metadata(path).map_err(|error| Failure::read(path, error))?.len();
    story.say(&format!("Saved to a file of {}.", bytes(on_disk)))?;
    story.promise(
        on_disk == filter.size_in_bytes() as u64,
        "the file is as large as the filter says",
    )
}

fn ask(
    story: &mut Story,
    view: &FilterView<'_>,
    list: &[String],
    absent: &[String],
) -> Result<(), Failure> {
    story.chapter(
        "Questions",
        "Now ask the opened file for every domain, and for a million others.",
    )?;
    let missed = list.iter().filter(|name| !view.contains(name.as_str())).count();
    story.say(&format!("Of {} members, {missed} were missed.", grouped(list.len() as u64)))?;
    story.promise(missed == 0, "a member is never missed")?;
    let wrong = absent.iter().filter(|name| view.contains(name.as_str())).count();
    story.say(&format!(
        "Of {} names that are not on the list, {} were taken for members: {}, where {} was promised and {} expected.",
        grouped(absent.len() as u64),
        grouped(wrong as u64),
        rate(wrong as f64 / absent.len() as f64),
        rate(PROMISE),
        rate(view.false_positive_rate())
    ))?;
    story.promise(within(wrong, absent.len()), "the error rate is at most the promised one")
}

/// Whether a count of errors goes together with the promised rate: at most four standard deviations above.
fn within(wrong: usize, asked: usize) -> bool {
    let expected = PROMISE * asked as f64;
    wrong as f64 <= expected + 4.0 * expected.sqrt()
}

fn repeat(story: &mut Story, mut filter: CuckooFilter, list: &[String]) -> Result<(), Failure> {
    const KEY: &str = "koel.example";
    story.chapter(
        "The same key again and again",
        &format!("Insert {KEY} {} times, then take it out as often.", grouped(COPIES)),
    )?;
    let (slots, size) = (filter.slots_in_use(), filter.size_in_bytes());
    let strange = filter.count(KEY);
    let all = (0..COPIES).all(|_| filter.insert(KEY).is_ok());
    let counted = filter.count(KEY) - strange;
    story.say(&format!(
        "Counted: {}. Together they took {} and {} more.",
        grouped(counted),
        quantity::counted(filter.slots_in_use() - slots, "slot"),
        bytes((filter.size_in_bytes() - size) as u64)
    ))?;
    story.promise(all && counted == COPIES, "copies are counted, not piled up")?;
    let removed = (0..COPIES).filter(|_| filter.remove(KEY)).count();
    let missed = list.iter().filter(|name| !filter.contains(name.as_str())).count();
    story.say(&format!(
        "Taken out {} times: it is there {} times now, and {missed} domains are missed.",
        grouped(removed as u64),
        filter.count(KEY) - strange
    ))?;
    let as_before = (filter.count(KEY), filter.slots_in_use(), filter.size_in_bytes())
        == (strange, slots, size);
    story.promise(
        as_before && missed == 0,
        "after that the filter is as full and as large as before, and lost nothing",
    )
}

fn forget(story: &mut Story, mut filter: CuckooFilter, list: &[String]) -> Result<(), Failure> {
    let (even, odd): (Vec<_>, Vec<_>) =
        list.iter().enumerate().partition(|(line, _)| line % 2 == 0);
    story.chapter(
        "Forgetting",
        &format!("Remove every second domain, {} of them.", grouped(odd.len() as u64)),
    )?;
    let strangers = odd.iter().filter(|(_, name)| !filter.remove(name.as_str())).count();
    let missed = even.iter().filter(|(_, name)| !filter.contains(name.as_str())).count();
    let expected = filter.false_positive_rate();
    let ghosts = odd.iter().filter(|(_, name)| filter.contains(name.as_str())).count();
    story.say(&format!(
        "Of the {} that stayed, {missed} were missed. Of the {} removed, {ghosts} still look present: {}, where {} is expected of any absent name.",
        grouped(even.len() as u64),
        grouped(odd.len() as u64),
        rate(ghosts as f64 / odd.len() as f64),
        rate(expected)
    ))?;
    story.promise(strangers == 0 && missed == 0, "removing one key loses no other")?;
    story.promise(within(ghosts, odd.len()), "what is removed is gone, up to the error rate")?;
    even.iter().for_each(|(_, name)| {
        filter.remove(name.as_str());
    });
    let empty = CuckooFilter::builder(list.len() as u64, PROMISE)
        .build()
        .map_err(|error| refused(&error))?;
    story.say("Then remove the others too.")?;
    story.promise(
        filter.to_bytes() == empty.to_bytes(),
        "that leaves the empty filter, byte for byte",
    )
}

fn overfill(story: &mut Story, list: &[String], absent: &[String]) -> Result<(), Failure> {
    story.chapter(
        "To the brim and past it",
        "Back to the whole list, and then one new name after the other until one is refused.",
    )?;
    let mut filter = CuckooFilter::builder(list.len() as u64, PROMISE)
        .build()
        .map_err(|error| refused(&error))?;
    let room = filter.try_extend(list);
    let mut before = Vec::new();
    let refusal = absent.iter().enumerate().find_map(|(extra, name)| {
        before = filter.to_bytes();
        filter.insert(name.as_str()).err().map(|full| (extra, full))
    });
    let Some((extra, refusal)) = refusal else {
        return story.promise(false, "a filter says when it is full");
    };
    story.say(&format!(
        "{} more found room, {:.2} % of all slots; the next one was refused with these words:",
        grouped(extra as u64),
        filter.load_factor() * 100.0
    ))?;
    story.say(&format!("\"{refusal}\""))?;
    story.promise(
        room.is_ok() && filter.to_bytes() == before,
        "an insert that fails changes no byte",
    )?;
    let lost =
        list.iter().chain(&absent[..extra]).filter(|name| !filter.contains(name.as_str())).count();
    story.say(&format!(
        "Of the {} that are in it, {lost} were lost.",
        grouped((list.len() + extra) as u64)
    ))?;
    story.promise(lost == 0, "nothing was lost")
}
