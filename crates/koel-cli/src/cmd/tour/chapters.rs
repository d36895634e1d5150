//! The chapters of the tour: the commonest uses as they are typed, then the figures of the library.
//!
//! The lists of the first chapters are made of the real list, so every answer is known. A measured
//! false-positive rate may exceed the promise by four standard deviations: a filter whose true rate
//! is exactly the promised one fails the check once in 30,000 runs.

use std::time::Instant;

use fastbloom::BloomFilter;
use koel::file::Readers;
use koel::{CuckooFilter, ExpiringFilter, Store};

use super::{ABSENT, PROMISED_RATE, Tour, empty_filter, names};
use crate::failure::Failure;
use crate::filter::file::FilterFile;
use crate::filter::sizing::build_failure;
use crate::output;
use crate::quantity::{bytes, counted, grouped, rate, three_digits};

pub(super) type Shown = Result<(), Failure>;

/// A chapter: its title, what it is about, and what it shows.
type Chapter = (&'static str, &'static str, fn(&mut Tour) -> Shown);

pub(super) const CHAPTERS: [Chapter; 14] = [
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
        "Every domain on the list is looked up in the opened file, and so are a million absent \
         names.",
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
        "The key koel.example is inserted 1,000 times, then removed as often.",
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
        let list = [&tour.list[60 * night..], &tour.absent[..60 * night]].concat();
        tour.write("list.txt", &list)?;
        tour.run(&format!("build list.txt --like {old} -o new.koel > report.txt"))?;
        tour.run(&format!("diff {old} new.koel --patch {night}.patch > report.txt"))?;
        tour.run(&format!("patch {old} {night}.patch -o {patched} > report.txt"))?;
        is_new &= tour.run(&format!("diff {patched} new.koel"))?.1 == Some(0);
        let patch = tour.size(&format!("{night}.patch"))?;
        is_small &= patch < 600;
        tour.say(&format!(
            "120 domains changed. The patch has {}, the filter {} and the list {}.",
            bytes(patch),
            bytes(tour.size(&patched)?),
            bytes(tour.size("list.txt")?)
        ))?;
    }
    tour.promise(is_new, "a patched filter does not differ from a new one")?;
    tour.promise(is_small, "a patch of 120 changes takes less than 600 bytes")
}

/// The file of the filter that [`build`] builds.
const FILTER: &str = "domains.koel";

fn build(tour: &mut Tour) -> Shown {
    let started = Instant::now();
    let room = tour.filter.try_extend(&tour.list);
    let (took, size) = (time(started), tour.filter.size_in_bytes() as u64);
    tour.say(&format!(
        "All domains were inserted in {took}. The filter takes {}, which is {:.2} bits per key, \
         whatever the length of the keys.",
        bytes(size),
        tour.filter.bits_per_key()
    ))?;
    tour.promise(room.is_ok(), "a filter built for n keys takes n keys")?;
    output::write_filter(&tour.path(FILTER), &tour.filter, Readers::Usual)?;
    let on_disk = tour.size(FILTER)?;
    tour.say(&format!("Saved to a file of {}.", bytes(on_disk)))?;
    tour.promise(on_disk == size, "the file has the size that the filter reports")?;
    let opened = Instant::now();
    FilterFile::open(&tour.path(FILTER))?.view()?;
    tour.say(&format!("Opened again as a memory map in {}.", time(opened)))
}

fn look_up(tour: &mut Tour) -> Shown {
    let file = FilterFile::open(&tour.path(FILTER))?;
    let view = file.view()?;
    let missed = missed(&view, &tour.list);
    tour.say(&format!("Of {} members, {missed} were missed.", count(tour.list.len())))?;
    tour.promise(missed == 0, "a member is never missed")?;
    let wrong = found(&view, &tour.absent);
    tour.say(&format!(
        "Of {} absent names, {} were false positives: a rate of {}. At most {} was promised, and \
         {} was expected.",
        count(ABSENT),
        count(wrong),
        rate(wrong as f64 / ABSENT as f64),
        rate(PROMISED_RATE),
        rate(view.false_positive_rate())
    ))?;
    tour.promise(is_within(wrong, ABSENT), "the false-positive rate is at most the promised one")
}

/// A million allowed names beside the list.
fn refute(tour: &mut Tour) -> Shown {
    let mut filter = tour.filter.clone();
    let (size, wrong) = (filter.size_in_bytes(), found(&filter, &tour.absent) as u64);
    let refuted = filter.refute_many(&tour.absent);
    let more = (filter.size_in_bytes() - size) as u64;
    tour.say(&format!(
        "{} names need {}, which take {}.",
        count(ABSENT),
        counted(filter.corrections(), "correction"),
        bytes(more)
    ))?;
    let is_exact = refuted == Ok(wrong) && more == 8 * wrong;
    let is_right = found(&filter, &tour.absent) == 0 && missed(&filter, &tour.list) == 0;
    tour.promise(
        is_exact && is_right,
        "none of them is reported any more, no member is missed, and each takes 8 bytes",
    )
}

/// The list in a `HashSet` and in a Bloom filter. The table of the set has 8/7 as many buckets as
/// its capacity, each with a `String` and a control byte, and the text of each name is on the heap.
/// The overhead of the allocator is not included, so the real figure is higher.
fn compare(tour: &mut Tour) -> Shown {
    let file = FilterFile::open(&tour.path(FILTER))?;
    let (koel, set) = (file.view()?, &tour.set);
    let mut bloom = BloomFilter::with_false_pos(PROMISED_RATE).seed(&0).expected_items(set.len());
    bloom.insert_all(set);
    let missed = set.iter().filter(|name| !bloom.contains(name.as_str())).count();
    let buckets = set.capacity() / 7 * 8 * (size_of::<String>() + 1);
    let of_set = buckets + set.iter().map(String::capacity).sum::<usize>();
    type Row<'a> = (&'a str, usize, &'a str, &'a dyn Fn(&str) -> bool);
    let rows: [Row<'_>; 3] = [
        ("HashSet<String>", of_set, "yes", &|name| set.contains(name)),
        ("Bloom filter", bloom.num_bits() / 8, "no", &|name| bloom.contains(name)),
        ("Koel", koel.size_in_bytes(), "yes", &|name| koel.contains(name)),
    ];
    let mut table = format!(
        "\n   {:16} {:>10}  {:>15}  {:>12}  {}\n",
        "", "memory", "false positives", "lookup time", "removals"
    );
    for (name, size, removals, contains) in rows {
        let started = Instant::now();
        let wrong = count(tour.absent.iter().filter(|name| contains(name)).count());
        let time = started.elapsed().as_secs_f64() * 1e9 / ABSENT as f64;
        let (size, time) = (bytes(size as u64), format!("{time:.0} ns"));
        table += &format!("   {name:16} {size:>10}  {wrong:>15}  {time:>12}  {removals}\n");
    }
    output::print(&(table + "\n"))?;
    let is_smaller = of_set > 10 * koel.size_in_bytes();
    tour.promise(
        is_smaller && missed == 0,
        "a filter takes less than a tenth of a HashSet's memory",
    )
}

fn count_copies(tour: &mut Tour) -> Shown {
    const KEY: &str = "koel.example";
    const COPIES: u64 = 1_000;
    let mut filter = tour.filter.clone();
    let state =
        |filter: &CuckooFilter| (filter.count(KEY), filter.slots_in_use(), filter.size_in_bytes());
    let before = state(&filter);
    let all = (0..COPIES).all(|_| filter.insert(KEY).is_ok());
    let (copies, slots, size) = state(&filter);
    tour.say(&format!(
        "The count is {}. Together the copies took {} and {} more.",
        grouped(copies - before.0),
        counted(slots - before.1, "slot"),
        bytes((size - before.2) as u64)
    ))?;
    let is_counted = all && copies - before.0 == COPIES;
    tour.promise(is_counted, "copies are counted and take almost no memory")?;
    let removed = (0..COPIES).filter(|_| filter.remove(KEY)).count();
    let missed = missed(&filter, &tour.list);
    tour.say(&format!(
        "It was removed {} times. Its count is now {}, and {missed} domains are missed.",
        count(removed),
        filter.count(KEY) - before.0
    ))?;
    tour.promise(
        state(&filter) == before && missed == 0,
        "then the filter is as full and as large as before, and nothing is lost",
    )
}

fn remove(tour: &mut Tour) -> Shown {
    let mut filter = tour.filter.clone();
    let half = |rest| tour.list.iter().skip(rest).step_by(2).cloned().collect::<Vec<_>>();
    let (even, odd) = (half(0), half(1));
    let not_found = odd.iter().filter(|name| !filter.remove(name.as_str())).count();
    let (missed, still_found) = (missed(&filter, &even), found(&filter, &odd));
    tour.say(&format!(
        "Of the {} domains left, {missed} were missed. Of the {} removed, {still_found} are still \
         reported as present: a rate of {}, where {} is expected for any absent name.",
        count(even.len()),
        count(odd.len()),
        rate(still_found as f64 / odd.len() as f64),
        rate(filter.false_positive_rate())
    ))?;
    tour.promise(not_found == 0 && missed == 0, "removing a key loses no other key")?;
    let is_absent = is_within(still_found, odd.len());
    tour.promise(is_absent, "a removed key is absent, up to the false-positive rate")?;
    let all = even.iter().filter(|name| filter.remove(name.as_str())).count();
    tour.say("Then the other domains are removed, too.")?;
    let is_empty = all == even.len() && filter.to_bytes() == empty_filter(&tour.list)?.to_bytes();
    tour.promise(is_empty, "the result is the empty filter, byte for byte")
}

fn overfill(tour: &mut Tour) -> Shown {
    let mut filter = empty_filter(&tour.list)?;
    let room = filter.try_extend(&tour.list);
    let mut before = Vec::new();
    let refusal = tour.absent.iter().enumerate().find_map(|(extra, name)| {
        before = filter.to_bytes();
        filter.insert(name.as_str()).err().map(|full| (extra, full))
    });
    let Some((extra, refusal)) = refusal else {
        return tour.promise(false, "a full filter refuses keys");
    };
    tour.say(&format!(
        "{} new names were inserted, which filled {:.2} % of all slots. The next one was refused:",
        count(extra),
        filter.load_factor() * 100.0
    ))?;
    tour.say(&format!("\"{refusal}\""))?;
    let is_same = room.is_ok() && filter.to_bytes() == before;
    tour.promise(is_same, "an insert that fails changes no byte")?;
    let missed = missed(&filter, &tour.list) + missed(&filter, &tour.absent[..extra]);
    let all = count(tour.list.len() + extra);
    tour.say(&format!("Of the {all} inserted names, {missed} were missed."))?;
    tour.promise(missed == 0, "a full filter misses no member")
}

/// The filter is built for a false-positive rate at the last size.
fn grow(tour: &mut Tour) -> Shown {
    const FIRST: u64 = 1000;
    const DOUBLINGS: u32 = 10;
    let last = FIRST << DOUBLINGS;
    let filter = CuckooFilter::builder(last, PROMISED_RATE).grow_from(FIRST).build();
    let mut filter = filter.map_err(|error| build_failure(&error))?;
    let mut table = format!(
        "\n   {:>10} {:>11} {:>13} {:>12} {:>16} {:>10}\n",
        "keys", "memory", "bits per key", "load factor", "false positives", "promised"
    );
    let mut names = names::absent(&tour.set).skip(ABSENT);
    let mut inserted: Vec<String> = Vec::new();
    let (mut room, mut kept, mut full_enough) = (true, true, true);
    for doubling in 0..=DOUBLINGS {
        let before = inserted.len();
        inserted.extend(names.by_ref().take((1000 << doubling) - before));
        room &= filter.insert_many(&inserted[before..]).is_ok();
        let (wrong, size) = (found(&filter, &tour.absent), filter.size_in_bytes());
        kept &= is_within(wrong, ABSENT);
        full_enough &= doubling < 2 || filter.load_factor() >= 0.85;
        table += &format!(
            "   {:>10} {:>11} {:>13.2} {:>12.3} {:>16} {:>10}\n",
            grouped(filter.len()),
            bytes(size as u64),
            size as f64 * 8.0 / filter.len() as f64,
            filter.load_factor(),
            rate(wrong as f64 / ABSENT as f64),
            rate(PROMISED_RATE)
        );
    }
    drop(names);
    let missed = missed(&filter, &inserted);
    output::print(&(table + "\n"))?;
    tour.say(&format!("Of the {} inserted names, {missed} were missed.", grouped(last)))?;
    let fixed = CuckooFilter::builder(last, PROMISED_RATE).plan();
    tour.say(&format!(
        "Growth has a price: a filter built for {} names would take {:.2} bits per key \
         (computed), and an insert in it is faster.",
        grouped(last),
        fixed.map_err(|error| build_failure(&error))?.bits_per_key
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
    tour.promise(room, "a filter for n keys in a window takes n keys in every window")?;
    let now = tick(tour.list.len().saturating_sub(1));
    let (mut young, mut kept, mut old, mut left) = (0, 0, 0, 0);
    for (number, name) in tour.list.iter().enumerate() {
        let is_in = usize::from(seen.contains(name));
        if now - tick(number) <= WINDOW {
            (young, kept) = (young + 1, kept + is_in);
        } else {
            (old, left) = (old + 1, left + is_in);
        }
    }
    tour.say(&format!(
        "Of {} domains of the last window, {} are in; of {} older ones, {} (false positives). That \
         takes {:.1} bits per key of a window.",
        count(young),
        count(kept),
        count(old),
        count(left),
        seen.bits_per_key()
    ))?;
    tour.promise(kept == young, "a key is in for its whole window")?;
    tour.promise(is_within(left, old), "then it is forgotten")
}

/// Whether a number of false positives is consistent with the promised rate.
fn is_within(wrong: usize, lookups: usize) -> bool {
    let expected = PROMISED_RATE * lookups as f64;
    wrong as f64 <= expected + 4.0 * expected.sqrt()
}

/// How many of these names the filter reports.
fn found(filter: &CuckooFilter<impl Store>, names: &[String]) -> usize {
    let mut found = vec![false; names.len()];
    filter.contains_many(names, &mut found);
    found.iter().filter(|&&found| found).count()
}

fn missed(filter: &CuckooFilter<impl Store>, names: &[String]) -> usize {
    names.len() - found(filter, names)
}

fn count(number: usize) -> String {
    grouped(number as u64)
}

/// The time since `started`, in us, ms or s.
fn time(started: Instant) -> String {
    let seconds = started.elapsed().as_secs_f64();
    match seconds {
        _ if seconds < 1e-3 => format!("{} us", three_digits(seconds * 1e6)),
        _ if seconds < 1.0 => format!("{} ms", three_digits(seconds * 1e3)),
        _ => format!("{} s", three_digits(seconds)),
    }
}
