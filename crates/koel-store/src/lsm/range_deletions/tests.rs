//! Pieces beside the list of deletions that they stand for.

use testkit::storage::Random;

use super::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The deletions, as they were made.
type Deleted = Vec<(KeyRange, u64)>;

fn key(random: &mut Random) -> Vec<u8> {
    let len = random.below(4);
    random.bytes(len).iter().map(|byte| byte % 3).collect()
}

fn bound(random: &mut Random) -> Bound<Vec<u8>> {
    let key = key(random);
    [Bound::Included(key.clone()), Bound::Excluded(key), Bound::Unbounded][random.below(3)].clone()
}

fn as_bytes(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Returns the sequence number of the newest deletion of `key` up to `sequence`.
fn newest(deleted: &Deleted, key: &[u8], sequence: u64) -> u64 {
    let of_key = deleted.iter().filter(|(keys, at)| *at <= sequence && keys.contains(key));
    of_key.map(|(_, at)| *at).max().unwrap_or(0)
}

/// Numbers at which reads happen, ascending.
fn boundaries(random: &mut Random, end: u64) -> Vec<u64> {
    let mut boundaries: Vec<u64> =
        (0..random.below(4)).map(|_| random.next_u64() % (end + 1)).collect();
    boundaries.sort_unstable();
    boundaries
}

/// Checks what each read of each key finds, and that the pieces are as they are to be.
fn check(pieces: &RangeDeletions, deleted: &Deleted, reads: &[u64]) {
    for number in 0..121 {
        let key: Vec<u8> = testkey(number);
        for &at in reads.iter().chain([&u64::MAX]) {
            assert_eq!(pieces.newest(&key, at), newest(deleted, &key, at), "{key:?} at {at}");
        }
    }
    for pair in pieces.pieces.windows(2) {
        assert!(pair[0].keys.ends_by(&pair[1].keys.from) && !pair[0].continues_in(&pair[1]));
    }
    for piece in &pieces.pieces {
        assert!(!piece.keys.ends_by(&piece.keys.from));
        assert!(piece.sequences.is_sorted_by(|one, other| one > other));
        // One that no read sees is dropped.
        assert!((1..=reads.len() + 1).contains(&piece.sequences.len()), "{pieces:?}");
    }
}

/// All keys of up to four bytes below 3: the first 121.
fn testkey(mut number: usize) -> Vec<u8> {
    let mut key = Vec::new();
    while number > 0 {
        number -= 1;
        key.push(u8::try_from(number % 3).unwrap_or_default());
        number /= 3;
    }
    key
}

#[test]
fn pieces_hide_what_the_deletions_hide() -> Outcome {
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let (mut lists, mut deleted) = (Vec::new(), Deleted::new());
        let mut sequence = 0;
        let count = 1 + random.below(14);
        let last = 3 * count as u64;
        // The last read sees everything.
        let reads = boundaries(&mut random, last);
        for _ in 0..count {
            sequence += 1 + random.next_u64() % 3;
            if lists.is_empty() || random.chance(20) {
                lists.push(RangeDeletions::default());
            }
            let (from, to) = (bound(&mut random), bound(&mut random));
            let keys = KeyRange::between(as_bytes(&from), as_bytes(&to))?;
            let is_within =
                |key: &Vec<u8>| std::ops::RangeBounds::contains(&(from.clone(), to.clone()), key);
            for number in 0..121 {
                let key = testkey(number);
                let found = keys.as_ref().is_some_and(|keys| keys.contains(&key));
                assert_eq!(found, is_within(&key), "{key:?} in {from:?}, {to:?}");
            }
            let (Some(keys), Some(list)) = (keys, lists.last_mut()) else { continue };
            list.add(keys.clone(), sequence, &reads);
            deleted.push((keys, sequence));
        }
        let all = RangeDeletions::of(lists.iter(), &reads);
        check(&all, &deleted, &reads);
        let mut bytes = Vec::new();
        all.encode(&mut bytes)?;
        assert_eq!(RangeDeletions::decode(&bytes)?.as_ref(), Some(&all));
        let numbers = || all.iter().map(|(_, at)| at);
        assert_eq!(all.sequences(), numbers().min().zip(numbers().max()));
        check_merged(&all, &deleted, &reads);
    }
    Ok(())
}

/// At the bottom, what the first read sees as deleted is gone.
fn check_merged(all: &RangeDeletions, deleted: &Deleted, reads: &[u64]) {
    assert_eq!(all.merged(reads, false), *all);
    let first = reads.first().copied().unwrap_or(u64::MAX);
    let left = deleted.iter().filter(|(_, at)| *at > first).cloned().collect();
    check(&all.merged(reads, true), &left, reads);
}

#[test]
fn a_deletion_of_a_span_after_a_moment_is_found() -> Outcome {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let (mut all, mut deleted) = (RangeDeletions::default(), Deleted::new());
        for sequence in 1..=1 + random.next_u64() % 6 {
            let (from, to) = (bound(&mut random), bound(&mut random));
            if let Some(keys) = KeyRange::between(as_bytes(&from), as_bytes(&to))? {
                all.add(keys.clone(), sequence, &[]);
                deleted.push((keys, sequence));
            }
        }
        let span = (bound(&mut random), bound(&mut random));
        let sequence = random.next_u64() % 7;
        // A key of both, among those between which no bound lies.
        let mut keys =
            (0..121).map(testkey).filter(|key| std::ops::RangeBounds::contains(&span, key));
        let is_later = keys.any(|key| newest(&deleted, &key, u64::MAX) > sequence);
        let found = all.has_later(&span, sequence);
        assert!(found || !is_later, "{span:?} after {sequence} in {all:?}");
    }
    Ok(())
}

#[test]
fn a_conflict_is_not_seen_where_none_is() -> Outcome {
    let mut all = RangeDeletions::default();
    let keys = KeyRange::between(Bound::Included(b"b"), Bound::Excluded(b"d"))?.ok_or("a range")?;
    all.add(keys, 7, &[]);
    let span =
        |from: &[u8], to: &[u8]| (Bound::Included(from.to_vec()), Bound::Excluded(to.to_vec()));
    assert!(all.has_later(&span(b"a", b"c"), 6) && all.has_later(&span(b"c", b"e"), 6));
    assert!(!all.has_later(&span(b"a", b"b"), 6) && !all.has_later(&span(b"d", b"e"), 6));
    assert!(!all.has_later(&span(b"a", b"e"), 7));
    assert!(all.has_later(&(Bound::Unbounded, Bound::Unbounded), 6));
    Ok(())
}

#[test]
fn a_prefix_ends_where_its_last_key_does() -> Outcome {
    let of = |prefix: &[u8]| KeyRange::prefix(prefix).map(Option::unwrap_or_default);
    let keys = of(b"ab\xff")?;
    assert!(keys.contains(b"ab\xff") && keys.contains(b"ab\xff\xff\xff"));
    assert!(!keys.contains(b"ab\xfe") && !keys.contains(b"ac"));
    assert!(of(b"\xff")?.contains(b"\xff\xff\xff") && of(b"")?.contains(b""));
    Ok(())
}

impl Default for KeyRange {
    fn default() -> Self {
        Self { from: Arc::from(&b"none"[..]), to: Some(Arc::from(&b"none"[..])) }
    }
}

/// The longest key has no key behind it that starts with it.
#[test]
fn bounds_of_the_longest_keys_are_keys() -> Outcome {
    let longest = vec![b'a'; usize_of(MAX_KEY)];
    let keys = KeyRange::between(Bound::Included(&longest), Bound::Included(&longest))?;
    let keys = keys.ok_or("a range")?;
    assert!(keys.contains(&longest) && !keys.contains(b"b"));
    let last = vec![u8::MAX; usize_of(MAX_KEY)];
    assert_eq!(KeyRange::between(Bound::Excluded(&last), Bound::Unbounded)?, None);
    let mut bytes = Vec::new();
    let mut all = RangeDeletions::default();
    all.add(keys, 1, &[]);
    all.encode(&mut bytes)?;
    assert_eq!(RangeDeletions::decode(&bytes)?, Some(all));
    let long = vec![0; usize_of(MAX_KEY) + 1];
    let refused = KeyRange::between(Bound::Unbounded, Bound::Excluded(&long));
    assert!(matches!(refused, Err(Error::TooLong { what: "key", .. })));
    Ok(())
}

/// Whatever stands behind the properties, decoding ends, and what it takes has an order.
#[test]
fn other_bytes_are_refused_or_mean_one_list() -> Outcome {
    let mut whole = RangeDeletions::default();
    for (from, to, at) in [(&b"b"[..], &b"d"[..], 4), (b"c", b"f", 6), (b"x", b"", 2)] {
        let keys = KeyRange::of_record(from, to)?.ok_or("a range")?;
        whole.add(keys, at, &[5]);
    }
    let mut bytes = Vec::new();
    whole.encode(&mut bytes)?;
    for end in 1..bytes.len() {
        let decoded = RangeDeletions::decode(&bytes[..end])?;
        assert!(decoded.is_none_or(|decoded| decoded.len() < whole.len()), "{end} bytes");
    }
    let mut random = Random::new(4);
    for _ in 0..20_000 {
        let mut other = bytes.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(other.len());
            other[at] = [0, 1, 2, 255, b'a', b'z'][random.below(6)];
        }
        if let Some(decoded) = RangeDeletions::decode(&other)? {
            let mut again = Vec::new();
            decoded.encode(&mut again)?;
            assert_eq!(again, other);
            let is_behind = |pair: &[Piece]| pair[0].keys.ends_by(&pair[1].keys.from);
            assert!(decoded.pieces.windows(2).all(is_behind));
        }
    }
    Ok(())
}
