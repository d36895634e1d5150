//! Filters that are asked where they lie: the same answers as in the whole filter, from few bytes.

use std::ops::Range;

use koel::{
    CountingFilter, CuckooFilter, FilterView, ImageError, Key, KeyHash, Prefer, Remote,
    RemoteError, RemoteOptions,
};
use testkit::addressing::Addressing;
use testkit::keys;

/// The bytes of a range of a file.
fn cut<'a>(file: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    &file[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]
}

fn open(file: &[u8]) -> Remote {
    let header = cut(file, &Remote::HEADER);
    Remote::open(header, cut(file, &Remote::tail(header).unwrap())).unwrap()
}

/// The answers of a filter for these keys, which it also gives if its bytes are elsewhere.
pub(crate) fn both<K: Key>(filter: &CuckooFilter, keys: &[K], answers: Vec<bool>) -> Vec<bool> {
    let (file, mut found) = (filter.to_bytes(), vec![false; keys.len()]);
    let remote = open(&file);
    let batch = remote.ask(keys, RemoteOptions::default()).unwrap();
    let fetched: Vec<_> = batch.ranges().iter().map(|range| cut(&file, range)).collect();
    remote.answer(&batch, &fetched, &mut found).unwrap();
    assert_eq!(found, answers);
    answers
}

/// The same for one key.
pub(crate) fn contains<K: Key>(filter: &CuckooFilter, key: &K) -> bool {
    both(filter, std::slice::from_ref(key), vec![filter.contains(key)])[0]
}

/// The answers for these keys, and the requests and bytes that they took.
fn asked(
    file: &[u8],
    remote: &Remote,
    keys: &[KeyHash],
    options: RemoteOptions,
) -> (Vec<bool>, usize, u64) {
    let batch = remote.ask(keys, options).unwrap();
    let fetched: Vec<_> = batch.ranges().iter().map(|range| cut(file, range)).collect();
    let mut found = vec![false; keys.len()];
    remote.answer(&batch, &fetched, &mut found).unwrap();
    (found, batch.ranges().len(), batch.bytes())
}

/// Keys for one pair of buckets of an empty filter.
fn of_one_pair(filter: &CuckooFilter) -> Vec<KeyHash> {
    let addressing = Addressing::of(&filter.to_bytes());
    let keys = keys::sharing_pair(&addressing, keys::splitmix64(7)).take(20);
    keys.map(keys::at).collect()
}

/// Filters of every layout, of one size and grown, with copies, corrections and a stash.
/// Each with the keys of which some are in its stash.
fn filters() -> Vec<(CuckooFilter, Vec<KeyHash>)> {
    let mut filters = Vec::new();
    for rate in [0.2, 0.03, 0.001, 1e-5, 6e-7] {
        for prefer in [Prefer::Small, Prefer::Fast] {
            let builder = CuckooFilter::builder(3000, rate).prefer(prefer);
            let secret = builder.clone().sip_key([7; 16]);
            for builder in
                [builder.clone(), secret, builder.clone().growable(), builder.grow_from(50)]
            {
                let filter = builder.build().unwrap();
                let keys = of_one_pair(&filter);
                filters.push((filter, keys));
            }
        }
    }
    for (number, (filter, of_one_pair)) in (0..).zip(&mut filters) {
        // More keys than a pair of buckets has slots: some go to the stash.
        of_one_pair.iter().for_each(|key| filter.insert(key).unwrap());
        let fits = if filter.is_growable() { 7000 } else { 2900 };
        let hashes: Vec<_> = keys::hashes(number, fits).map(KeyHash::new).collect();
        for hash in hashes.iter().chain(&hashes[..20]).chain(&hashes[..5]) {
            filter.insert(hash).unwrap();
        }
        for hash in keys::hashes(1000 + number, 2000).map(KeyHash::new) {
            if filter.contains(&hash) {
                filter.refute(&hash).unwrap();
            }
        }
    }
    filters
}

#[test]
fn a_filter_elsewhere_answers_as_the_whole_one_does() {
    let mut stashed = 0;
    for (number, (filter, stashed_keys)) in (0..).zip(filters()) {
        let (file, remote) = (filter.to_bytes(), open(&filter.to_bytes()));
        let mut keys: Vec<_> = keys::hashes(number, 200).map(KeyHash::new).collect();
        keys.extend(keys::hashes(1000 + number, 2000).map(KeyHash::new));
        keys.extend(stashed_keys);
        let expected: Vec<_> = keys.iter().map(|key| filter.contains(key)).collect();
        let mut all = Vec::new();
        for options in [
            RemoteOptions { page: 0, gap: 0, longest: 0 },
            RemoteOptions { page: 1, gap: 40, longest: 100 },
            RemoteOptions { page: 512, gap: 0, longest: 2000 },
            RemoteOptions { page: 4096, gap: 100, longest: u64::MAX },
            RemoteOptions::default(),
            RemoteOptions { page: u64::MAX, gap: u64::MAX, longest: u64::MAX },
        ] {
            let (found, requests, bytes) = asked(&file, &remote, &keys, options);
            assert_eq!(found, expected, "{filter:?} {options:?}");
            assert!(bytes <= remote.size_in_bytes());
            all.push((requests, bytes));
        }
        // Those that read no more than the buckets have the most requests and the fewest bytes.
        assert!(all.iter().all(|&(requests, bytes)| requests <= all[0].0 && bytes >= all[0].1));
        assert_eq!(all.last(), Some(&(1, remote.size_in_bytes())));
        for (key, &expected) in keys.iter().zip(&expected).step_by(7) {
            let fetched = remote.question(key).map(|range| cut(&file, &range));
            assert!(fetched.iter().all(|bytes| bytes.len() <= 16));
            assert_eq!(remote.answer_one(key, fetched), Ok(expected));
        }
        let said = (remote.len(), remote.capacity(), remote.corrections(), remote.size_in_bytes());
        let is = (filter.len(), filter.capacity(), filter.corrections(), file.len() as u64);
        assert_eq!(said, is);
        assert_eq!(remote.false_positive_rate(), filter.false_positive_rate());
        assert!(remote.corrections() > 0 || filter.requested_false_positive_rate() < 0.01);
        stashed += filter.stashed_keys();
    }
    assert!(stashed > 0);
}

#[test]
fn ranges_ascend_and_do_not_overlap() {
    for (filter, _) in filters().iter().step_by(5) {
        let remote = open(&filter.to_bytes());
        let keys: Vec<_> = keys::hashes(3, 500).map(KeyHash::new).collect();
        for page in [1, 7, 64, 4096] {
            for gap in [0, 1, 90] {
                for longest in [0, 200, u64::MAX] {
                    let options = RemoteOptions { page, gap, longest };
                    let batch = remote.ask(&keys, options).unwrap();
                    let ranges = batch.ranges();
                    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
                    for range in ranges {
                        assert!(range.start < range.end && range.end <= remote.size_in_bytes());
                        let is_end = range.end == remote.size_in_bytes();
                        assert!(range.start % page == 0 && (is_end || range.end % page == 0));
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_not_the_bytes_of_the_ranges_is_refused() {
    let mut filter = CuckooFilter::builder(1000, 0.001).build().unwrap();
    let keys: Vec<_> = keys::hashes(1, 900).map(KeyHash::new).collect();
    filter.insert_many(&keys).unwrap();
    let (file, remote) = (filter.to_bytes(), open(&filter.to_bytes()));
    let batch = remote.ask(&keys[..20], RemoteOptions { gap: 0, ..Default::default() }).unwrap();
    let fetched: Vec<_> = batch.ranges().iter().map(|range| cut(&file, range)).collect();
    let mut found = [false; 20];
    assert!(remote.answer(&batch, &fetched, &mut found).is_ok());
    let mut refused = |fetched: &[&[u8]]| remote.answer(&batch, fetched, &mut found).unwrap_err();
    // One answer is missing, is cut, or is that of another range.
    assert!(matches!(refused(&fetched[1..]), RemoteError::Length { .. }));
    let mut cut_short = fetched.clone();
    cut_short[3] = &cut_short[3][1..];
    assert!(matches!(refused(&cut_short), RemoteError::Length { got, .. } if got < 17));
    // A page of text in place of the file, as a portal of a network sends it.
    let text = b"<!doctype html><html><head><title>Sign in</title></head>".repeat(2000);
    let page: Vec<_> = batch.ranges().iter().map(|range| cut(&text, range)).collect();
    let sentence = refused(&page).to_string();
    assert!(sentence.contains("replaced or is damaged; open it again"), "{sentence}");
    let [one, other] = remote.question(&keys[0]).map(|range| cut(&file, &range));
    let short = remote.answer_one(&keys[0], [&one[..3], other]);
    assert!(matches!(short, Err(RemoteError::Missing { .. })));
}

#[test]
fn a_replaced_file_has_another_header() {
    let mut filter = CuckooFilter::builder(1000, 0.001).build().unwrap();
    filter.insert("a").unwrap();
    let remote = open(&filter.to_bytes());
    assert!(remote.is_header(cut(&filter.to_bytes(), &Remote::HEADER)));
    filter.remove("a");
    filter.insert("b").unwrap();
    assert!(!remote.is_header(cut(&filter.to_bytes(), &Remote::HEADER)));
}

#[test]
fn what_is_no_filter_is_not_opened() {
    let mut filter = CuckooFilter::builder(100, 0.1).build().unwrap();
    for key in 0..100_u64 {
        filter.insert(&key).unwrap();
    }
    for key in 1000..9000_u64 {
        filter.refute(&key).unwrap();
    }
    let file = filter.to_bytes();
    let (header, tail) = (&file[..192], Remote::tail(&file[..192]).unwrap());
    let tail = cut(&file, &tail).to_vec();
    assert!(tail.len() > 200);
    assert!(Remote::open(header, &tail).is_ok());
    let cut_short = tail[..tail.len() - 1].to_vec();
    assert!(matches!(Remote::open(header, &cut_short), Err(ImageError::Length { .. })));
    let mut damaged = tail;
    damaged[7] ^= 0xff;
    assert!(matches!(Remote::open(header, &damaged), Err(ImageError::Field { .. })));
    assert_eq!(Remote::tail(b"<!doctype html>"), Err(ImageError::NotAFilter));
    assert!(matches!(Remote::tail(&file[..100]), Err(ImageError::Length { .. })));
    let mut damaged = file.clone();
    damaged[80] ^= 1;
    assert!(matches!(Remote::tail(&damaged), Err(ImageError::Checksum { .. })));
    let counting = CountingFilter::builder(100, 0.01).build().unwrap().to_bytes();
    assert!(matches!(Remote::tail(&counting), Err(ImageError::Kind { .. })));
}

/// Whatever a server sends, nothing is read outside it, and nothing panics.
#[test]
fn any_bytes_give_an_answer_or_an_error() {
    for (filter, _) in filters().iter().step_by(3) {
        let file = filter.to_bytes();
        let remote = open(&file);
        let view = FilterView::open(&file).unwrap();
        let keys: Vec<_> = keys::hashes(5, 100).map(KeyHash::new).collect();
        for seed in 0..20 {
            let mut bytes = file.clone();
            for hash in keys::hashes(seed, 60) {
                let at = 192 + usize::try_from(hash).unwrap() % (bytes.len() - 192);
                bytes[at] ^= u8::try_from(hash >> 56).unwrap();
            }
            for key in &keys {
                let fetched = remote.question(key).map(|range| cut(&bytes, &range));
                let intact = remote.question(key).map(|range| cut(&file, &range)) == fetched;
                match remote.answer_one(key, fetched) {
                    Ok(found) => assert!(!intact || found == view.contains(key)),
                    Err(error) => assert!(!intact && matches!(error, RemoteError::Bucket { .. })),
                }
            }
        }
    }
}

/// What a server learns of a key from the ranges that it is asked for: how many of n equally likely
/// keys ask for the same ones, as a key of the filter sees it on average, n times the probability
/// that two keys do.
#[test]
#[ignore = "a measurement: prints the table of docs/REMOTE.md"]
fn what_a_question_tells() {
    const SAMPLE: u64 = 4_000_000;
    println!(
        "| names in the filter | bytes of it | `--pages` | bytes a name | bits told | names alike |"
    );
    println!("|--:|--:|--:|--:|--:|--:|");
    for keys in [1_000_000, 100_000_000_u64] {
        let filter = CuckooFilter::builder(keys, 0.001).build().unwrap();
        let file = filter.to_bytes();
        let remote = open(&file);
        let pages =
            [("none", 1), ("4K", 4 << 10), ("64K", 64 << 10), ("1M", 1 << 20), ("2M", 2 << 20)];
        for (name, page) in pages {
            let options = RemoteOptions { page, gap: 0, longest: 0 };
            let (mut asked, mut bytes) = (Vec::new(), 0);
            for hash in keys::hashes(7, SAMPLE) {
                let batch = remote.ask(&[KeyHash::new(hash)], options).unwrap();
                let ranges = batch.ranges();
                asked.push([ranges[0].start, ranges[ranges.len() - 1].end]);
                bytes += batch.bytes();
            }
            asked.sort_unstable();
            let alike: u64 =
                asked.chunk_by(|one, other| one == other).map(|of| pairs(of.len())).sum();
            let chance = alike as f64 / pairs(asked.len()) as f64;
            let (bits, alike) = (chance.recip().log2(), keys as f64 * chance);
            let (size, each) = (file.len(), bytes / SAMPLE);
            println!("| {keys} | {size} | {name} | {each} | {bits:.1} | {alike:.1} |");
        }
    }
}

/// How many pairs there are of so many things.
fn pairs(of: usize) -> u64 {
    let of = of as u64;
    of * (of - 1) / 2
}
