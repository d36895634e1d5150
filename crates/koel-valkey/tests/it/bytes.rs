//! Filters as chunks and as records of RDB files, sound and hostile.

use koel_valkey::command::reply::Reply;
use koel_valkey::error::Error;
use koel_valkey::filter::Filter;
use koel_valkey::filter::header::Origin;
use koel_valkey::filter::record::{self, ENCODING, Sink, Source};
use testkit::storage::Random;

use crate::support::Database;

/// A record in memory.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Number(u64),
    String(Vec<u8>),
}

#[derive(Clone, Default)]
struct Record(Vec<Field>);

impl Sink for Record {
    fn number(&mut self, number: u64) {
        self.0.push(Field::Number(number));
    }

    fn string(&mut self, bytes: &[u8]) {
        self.0.push(Field::String(bytes.to_vec()));
    }
}

struct Reader<'a>(std::slice::Iter<'a, Field>);

impl Source for Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let Some(&Field::Number(number)) = self.0.next() else { return None };
        Some(number)
    }

    fn string<T>(&mut self, use_it: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let Some(Field::String(bytes)) = self.0.next() else { return None };
        Some(use_it(bytes))
    }
}

impl Record {
    fn of(filter: &Filter) -> Self {
        let mut record = Self::default();
        record::save(filter, &mut record);
        record
    }

    fn load(&self, encoding: i32) -> Result<Filter, Error> {
        self.load_of(encoding, Origin::Anywhere)
    }

    fn load_of(&self, encoding: i32, of: Origin) -> Result<Filter, Error> {
        record::load(encoding, of, &mut Reader(self.0.iter()))
    }
}

/// A database with filters of all kinds: empty, small, with copies, grown, growing, half loaded.
fn database() -> (Database, Vec<&'static str>) {
    let mut database = Database::new();
    let lines = [
        "RESERVE empty 100",
        "RESERVE fixed 5000 EXPANSION 0 ERROR 0.01 PREFER FAST",
        "RESERVE small 50 BUCKETSIZE 4 MAXITERATIONS 7 EXPANSION 4",
        "RESERVE grown 1000",
        "RESERVE growing 100000",
        "RESERVE window 300 WINDOW 60 WHENFULL EVICT",
        "RESERVE wide 300 WINDOW 60",
    ];
    lines.iter().for_each(|line| drop(database.run(line).unwrap()));
    for (key, count, copies) in [
        ("fixed", 3000, 1),
        ("small", 40, 9),
        ("grown", 20_000, 1),
        ("growing", 104_000, 1),
        ("window", 500, 1),
        ("wide", 20_000, 1),
    ] {
        for number in 0..count * copies {
            database.run(&format!("ADD {key} item{}", number % count)).unwrap();
        }
    }
    let chunks = database.dump("grown");
    database.load_all("half", &[chunks[0].clone(), (1001, chunks[1].1[..1000].to_vec())]);
    (database, vec!["empty", "fixed", "small", "grown", "growing", "window", "wide", "half"])
}

#[test]
fn every_filter_comes_back_from_a_record_and_from_chunks_of_any_size() {
    let (mut database, keys) = database();
    for key in keys {
        let dump = database.dump(key);
        let loaded = Record::of(database.filter(key)).load(ENCODING).unwrap();
        let copy = database.filter(key).try_clone().unwrap();
        for (name, filter) in [("loaded", loaded), ("copy", copy)] {
            database.0.values.insert(name.into(), Some(filter));
            assert!(database.dump(name) == dump, "{key} {name}");
        }
        let body: Vec<u8> = dump[1..].iter().flat_map(|(_, chunk)| chunk.clone()).collect();
        let size = body.len() / 3 + 1;
        let mut chunks = vec![dump[0].clone()];
        for chunk in body.chunks(size) {
            chunks.push((chunks[chunks.len() - 1].0 + chunk.len() as i64, chunk.to_vec()));
        }
        database.0.values.remove(&b"again"[..]);
        database.load_all("again", &chunks);
        assert!(database.dump("again") == dump, "{key}");
        // It goes on as the first one does.
        if key != "half" {
            for name in [key, "again", "loaded"] {
                database.run(&format!("INSERT {name} ITEMS a b a c d")).unwrap();
                database.run(&format!("DEL {name} b")).unwrap();
            }
            assert!(database.dump("again") == database.dump(key), "{key}");
            assert!(database.dump("loaded") == database.dump(key), "{key}");
        }
    }
}

/// The ranges of a body, from the edges of its parts and at random.
#[test]
fn any_range_of_a_body_is_written_alone() {
    let (mut database, keys) = database();
    let mut random = Random::new(2);
    for key in keys {
        let body: Vec<u8> =
            database.dump(key)[1..].iter().flat_map(|(_, chunk)| chunk.clone()).collect();
        let filter = database.filter(key);
        for round in 0..300 {
            let len = body.len();
            let edges = [0, 1, 191, 192, 193, len / 2, len - 17, len];
            let mut end = || {
                let edge = edges[random.below(edges.len())];
                if round % 2 == 0 { edge.min(len) } else { random.below(len + 1) }
            };
            let (one, other) = (end(), end());
            let range = one.min(other)..one.max(other);
            let mut written = Vec::new();
            let Ok(()) = filter.write_range(range.clone(), |piece| {
                written.extend_from_slice(piece);
                Ok::<(), std::convert::Infallible>(())
            });
            assert!(written == body[range.clone()], "{key}: {range:?}");
        }
    }
}

#[test]
fn a_filter_with_missing_chunks_says_so() {
    let (mut database, _) = database();
    for line in ["ADD half a", "EXISTS half a", "DEL half a", "INFO half", "COMPACT half"] {
        let text = database.run(line).unwrap_err().to_string();
        assert!(text.contains("chunks of the filter are missing: 1000 of"), "{line}: {text}");
    }
    let refused = |database: &mut Database, iterator: i64, chunk: &[u8]| {
        assert_eq!(database.load("half", &(iterator, chunk.to_vec())), Err(Error::Chunk));
    };
    // Again, with a gap, too long, empty, and far away.
    refused(&mut database, 1001, &[0; 1000]);
    refused(&mut database, 1012, &[0; 10]);
    refused(&mut database, 10_001_001, &[0; 10_000_000]);
    refused(&mut database, 1001, &[]);
    refused(&mut database, i64::MIN, &[1]);
    refused(&mut database, i64::MAX, &[1]);
}

/// The last chunk is wrong: the filter is refused, and the right one can follow.
#[test]
fn a_damaged_body_is_refused_as_a_whole() {
    let (mut database, _) = database();
    let mut chunks = database.dump("fixed");
    let (last, at) = (chunks.len() - 1, chunks[1].1.len() / 2);
    let right = chunks[last].clone();
    chunks[last].1[at] ^= 1;
    database.load_all("damaged", &chunks[..last]);
    let text = database.load("damaged", &chunks[last]).unwrap_err().to_string();
    assert!(text.contains("dump the filter again"), "{text}");
    assert_eq!(database.load("damaged", &right), Ok(Reply::Ok));
    assert!(database.dump("damaged") == database.dump("fixed"));
}

/// Records that are cut, shuffled or changed load as a filter that works, or not at all.
#[test]
fn hostile_records_do_no_harm() {
    let (database, keys) = database();
    let mut random = Random::new(1);
    let small = |key: &&str| database.filter(key).bytes() < 10_000;
    let (mut refused, mut loaded) = (0, 0);
    for key in keys.into_iter().filter(small) {
        let sound = Record::of(database.filter(key));
        for _ in 0..2000 {
            let mut record = sound.clone();
            for _ in 0..=random.below(3) {
                damage(&mut record, &mut random);
            }
            match record.load(ENCODING) {
                Ok(filter) => {
                    loaded += 1;
                    use_it(filter);
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 1000 && loaded > 10, "{refused} refused, {loaded} loaded");
}

fn damage(record: &mut Record, random: &mut Random) {
    if record.0.is_empty() {
        return;
    }
    let field = random.below(record.0.len());
    match (&mut record.0[field], random.below(4)) {
        (_, 0) => record.0.truncate(field),
        (Field::Number(number), _) => *number = random.next_u64() >> random.below(64),
        (Field::String(bytes), 1) => bytes.truncate(random.below(bytes.len() + 1)),
        (Field::String(bytes), 2) => bytes.extend(random.bytes(9)),
        (Field::String(bytes), _) => {
            if let Some(byte) = bytes.len().checked_sub(1).map(|most| random.below(most + 1)) {
                bytes[byte] ^= 1 << random.below(8);
            }
        }
    }
}

fn use_it(filter: Filter) {
    let mut database = Database::new();
    database.0.limit = 1 << 20;
    database.0.values.insert(b"f".to_vec(), Some(filter));
    for line in ["INSERT f ITEMS a b a", "MEXISTS f a b c", "MDEL f a", "INFO f", "COMPACT f"] {
        drop(database.run(line));
    }
    drop(database.dump("f"));
}

/// What RedisBloom writes in encoding 4, with the tables of `compat.rs`.
#[test]
fn a_record_of_the_reference_is_read() {
    let numbers = [2, 4, 5, 1, 2, 20, 2].map(Field::Number);
    let mut record = Record(numbers.to_vec());
    for (buckets, slots) in [(4, vec![1, 2, 3, 0, 0, 0, 0, 0]), (8, vec![9; 16])] {
        record.0.push(Field::Number(buckets));
        record.0.push(Field::String(slots));
    }
    let filter = record.load(4).unwrap();
    let mut database = Database::new();
    database.0.values.insert(b"f".to_vec(), Some(filter));
    let text = "bktsize:2 buckets:4 items:5 deletes:1 filters:2 max_iterations:20 expansion:2";
    assert_eq!(database.run("DEBUG f"), Ok(Reply::Bytes(text.into())));
    for len in 0..record.0.len() {
        assert!(Record(record.0[..len].to_vec()).load(4).is_err(), "{len} fields");
    }
    for encoding in [0, 3, 5, 511, 513] {
        // A later version wrote it, and the log should say so.
        let refused = record.load(encoding).unwrap_err().to_string();
        let expected = format!("encoding {encoding} is not known");
        assert!(refused.starts_with(&expected) && refused.ends_with("later version"), "{refused}");
    }
}

/// What a server loads as its own data set is not verified bucket by bucket, which takes minutes
/// for large ones, but damage is noticed.
#[test]
fn a_data_set_is_loaded_as_it_was_and_damage_is_noticed() {
    let (database, keys) = database();
    for key in keys {
        let (record, filter) = (Record::of(database.filter(key)), database.filter(key));
        let loaded = record.load_of(ENCODING, Origin::DataSet).unwrap();
        assert!(Record::of(&loaded).0 == record.0, "{key}");
        if !matches!(filter, Filter::Native(_) | Filter::Expiring(_)) {
            continue;
        }
        let mut damaged = Record(record.0.clone());
        let Some(Field::String(body)) = damaged.0.last_mut() else { panic!("no body") };
        // Behind the header of the image.
        body[200] ^= 1;
        for of in [Origin::DataSet, Origin::Anywhere] {
            let refused = damaged.load_of(ENCODING, of).unwrap_err();
            assert!(refused.to_string().contains("checksum"), "{key}: {refused}");
        }
    }
}
