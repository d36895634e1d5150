//! Commands that a client sends to make the server wait or to take its memory.

use std::cell::RefCell;

use koel_valkey::command::parts::{Host, Made};
use koel_valkey::command::reply::Reply;
use koel_valkey::command::transfer;
use koel_valkey::error::Error;
use koel_valkey::filter::Filter;
use koel_valkey::filter::header::Origin;
use koel_valkey::filter::sending::Sending;
use koel_valkey::keys::{Keys, Memory, MemoryKeys};

use crate::support::{Database, compat_header, items};

/// Refused items after which a command looks for room no more.
const MOST_REFUSED: usize = 64;

/// A search for room that finds none takes some tenths of a millisecond. With a search for each
/// item, a command of 20,000 items stopped the server for seconds.
#[test]
fn a_command_on_a_full_filter_does_not_look_for_room_for_each_item() {
    let reserves = [
        "RESERVE f 1000 EXPANSION 0",
        "RESERVE f 1000 EXPANSION 0 PREFER FAST",
        "RESERVE f 1000 WINDOW 60 EXPANSION 0",
    ];
    for reserve in reserves {
        let filled = |count| {
            let mut database = Database::new();
            database.run(reserve).unwrap();
            let line = format!("INSERTNX f ITEMS {}", items("a", 0..count));
            let answers = database.numbers(&line);
            (database, answers)
        };
        let (mut database, answers) = filled(5000);
        let refused = (0..5000).filter(|&at| answers[at] == -1);
        let last = refused.clone().nth(MOST_REFUSED - 1).unwrap();
        assert!(last > 900 && refused.count() > 2000, "{reserve}: {last}");
        // After that one, the command changed nothing.
        assert!(answers[last..].iter().all(|&answer| answer < 1), "{reserve}");
        assert!(database.dump("f") == filled(last + 1).0.dump("f"), "{reserve}");

        // Items that are in are told from those that are not, however many were refused before.
        let first = items("a", 0..100);
        let line = format!("f ITEMS {} {first}", items("b", 0..5000));
        let answers = database.numbers(&format!("INSERTNX {line}"));
        assert!(answers[5000..] == [0; 100], "{reserve}: {:?}", &answers[5000..]);
        let answers = database.numbers(&format!("INSERT {line}"));
        assert!(answers[5000..] == [1; 100], "{reserve}: {:?}", &answers[5000..]);
        let found = database.numbers(&format!("MEXISTS f {first}"));
        assert_eq!(found, [1; 100], "{reserve}");
    }
}

/// What RedisBloom added must be added here too, where its commands come from it or from its file:
/// otherwise an item would be missing.
#[test]
fn a_filter_of_redisbloom_tries_each_item_as_it_did_there() {
    let mut database = Database::new();
    let header = compat_header([0, 512, 0, 1], [2, 20, 0]);
    database.load_all("f", &[(1, header), (1025, vec![0; 1024])]);
    let line = format!("INSERT f ITEMS {} another", "same ".repeat(200));
    let answers = database.numbers(&line);
    assert!(answers.iter().filter(|&&answer| answer == 0).count() > 2 * MOST_REFUSED);
    assert_eq!(answers.last(), Some(&1));
    assert_eq!(database.run("EXISTS f another"), Ok(Reply::Bool(true)));
}

/// Three equal filters.
fn alike() -> Database {
    let mut database = Database::new();
    for key in ["a", "b", "c"] {
        database.run(&format!("RESERVE {key} 1000 EXPANSION 0")).unwrap();
        database.run(&format!("INSERT {key} ITEMS shared {key}")).unwrap();
    }
    database
}

/// A short command that names one large filter a thousand times took a thousand copies of it, and
/// then a thousand unions.
#[test]
fn a_source_that_is_named_a_thousand_times_counts_once() {
    let line = format!("MERGE a b{} c", " b".repeat(1000));
    let mut databases = [alike(), alike()];
    assert_eq!(databases[0].run(&line), Ok(Reply::Ok));
    let mut parts = databases[1].parts(&line);
    // The operands, and for each of three copies its size and its bytes.
    assert_eq!(parts.steps, 7);
    assert_eq!(parts.finish(), Ok(()));
    for database in &mut databases {
        let counts = database.numbers("MCOUNT a shared a b c none");
        assert_eq!(counts, [3, 1, 1, 1, 0]);
    }
}

/// A MERGE copied all of its operands at once, and the server evicted other keys for them. Then it
/// asked for room for two filters, and took three and what the library works with.
#[test]
fn a_merge_takes_room_for_three_filters_and_refuses_without() {
    let mut database = Database::new();
    for key in ["a", "b", "c", "d"] {
        database.run(&format!("RESERVE {key} 1000000")).unwrap();
    }
    let bytes = database.number("INFO a SIZE");
    let bytes = u64::try_from(bytes).unwrap();
    let (three, two) = (3 * bytes + (21 << 20), 2 * bytes + (21 << 20));
    for (line, room, fits, fits_at_once) in [
        ("MERGE a b c d", three, true, true),
        ("MERGE a b c d", three - 1, false, true),
        ("MERGE a b c d", two, false, true),
        ("MERGE a b c d", two - 1, false, false),
        ("MERGE new b c d", two - 1, false, false),
    ] {
        database.0.room = Some(room);
        let before = database.dump("a");
        assert_eq!(database.parts(line).finish().is_ok(), fits, "{line} {room}");
        let outcome = database.run(line);
        assert_eq!(outcome.is_ok(), fits_at_once, "{line} {room}");
        if let Err(error) = outcome {
            assert!(error.to_string().starts_with("OOM the filter would take"), "{error}");
            assert!(database.dump("a") == before);
        }
    }
}

/// A union is refused as soon as it is beyond the limit, not when it has taken all sources.
#[test]
fn a_union_stops_at_the_limit() {
    let mut database = Database::new();
    let keys: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
    for key in &keys {
        database.run(&format!("RESERVE {key} 1000")).unwrap();
        database.run(&format!("INSERT {key} ITEMS {}", items(key, 0..1000))).unwrap();
    }
    database.0.limit = 5000;
    let line = format!("MERGE union {}", keys.join(" "));
    let beyond = |outcome: Option<Error>| match outcome {
        Some(Error::Limit { bytes, .. }) => bytes,
        other => panic!("{other:?}"),
    };
    assert!(beyond(database.run(&line).err()) < 10_000);
    assert!(beyond(database.parts(&line).finish().err()) < 10_000);
}

/// `CF.RESERVE x 10000000000` under a `maxmemory` of 1 GB took 17 GB, and then all other keys went.
/// A filter with a window was built before its size was compared with the limit of a key.
#[test]
fn a_reservation_is_refused_beyond_the_room_of_the_server() {
    for line in [
        "RESERVE a 10000000",
        "RESERVE a 10000000 EXPANSION 0",
        "RESERVE a 10000000 WINDOW 60",
        "RESERVE a 10000000 WINDOW 60 EXPANSION 0",
        "RESERVE a 10000000 WINDOW 60 WHENFULL EVICT",
        "INSERT a CAPACITY 10000000 ITEMS x",
    ] {
        let mut database = Database::new();
        database.run(line).unwrap();
        let bytes: u64 = database.number("INFO a SIZE").try_into().unwrap();
        for (most, fits) in [(bytes, true), (bytes - 1, false)] {
            let [mut roomy, mut limited] = [Database::new(), Database::new()];
            (roomy.0.room, limited.0.limit) = (Some(most), most);
            let [in_room, in_limit] = [&mut roomy, &mut limited].map(|database| database.run(line));
            assert_eq!([in_room.is_ok(), in_limit.is_ok()], [fits; 2], "{line}");
            assert!(fits || matches!(in_room, Err(Error::Room { .. })), "{line}: {in_room:?}");
            assert!(fits || matches!(in_limit, Err(Error::Limit { .. })), "{line}: {in_limit:?}");
            assert!(fits || roomy.0.values.is_empty() && limited.0.values.is_empty(), "{line}");
        }
    }
    // No table of terabytes is asked for.
    let mut database = Database::new();
    database.0.limit = 1 << 20;
    let refused = database.run("RESERVE f 1000000000000 WINDOW 60 EXPANSION 0").unwrap_err();
    assert!(matches!(refused, Error::Limit { limit: 0x10_0000, .. }), "{refused}");
    // Of a header, too. Few bytes are not asked for.
    let mut database = Database::new();
    database.run("RESERVE a 10000000").unwrap();
    let chunks = database.dump("a");
    database.0.room = Some(1 << 20);
    assert!(matches!(database.load("b", &chunks[0]), Err(Error::Room { .. })));
    database.run("RESERVE small 1000").unwrap();
}

/// A header of 65,536 tables of one bucket with 255 slots made one EXISTS read 33 million slots.
#[test]
fn shapes_of_redisbloom_whose_lookups_read_many_slots_are_refused() {
    // Bucket size, most iterations, tables.
    for (bucket_size, iterations, tables, is_few) in [
        (255_u16, 20_u16, 65_536_u64, false),
        (255, 20, 9, false),
        (255, 20, 8, true),
        (2, 20, 1025, false),
        (2, 20, 1024, true),
        (4, 500, 32, true),
        (255, 258, 1, false),
        (255, 257, 1, true),
        (1, 65_535, 1, true),
        (2, 65_535, 1, false),
        (2, 20, u64::MAX, false),
    ] {
        let header = compat_header([0, 1, 0, tables], [bucket_size, iterations, 1]);
        let outcome = Database::new().load("a", &(1, header));
        let expected = if is_few { Ok(Reply::Ok) } else { Err(Error::Create) };
        assert_eq!(outcome, expected, "{bucket_size} {iterations} {tables}");
    }
    // Nor does a filter grow to one.
    let mut database = Database::new();
    let header = compat_header([0, 1, 0, 1], [255, 1, 1]);
    database.load_all("a", &[(1, header), (256, vec![0; 255])]);
    while database.run("ADD a x").is_ok() {}
    assert_eq!(database.run("INFO a FILTERS"), Ok(Reply::Integer(8)));
}

/// A client that gets no answer in time sends the last chunk again. It was refused, although the
/// filter was complete.
#[test]
fn a_chunk_may_come_again() {
    let mut database = Database::new();
    database.run("RESERVE a 50000").unwrap();
    database.run("INSERT a ITEMS x y").unwrap();
    let whole = database.dump("a").pop().unwrap().1;
    let header = database.dump("a")[0].clone();
    let chunks: Vec<_> = [0..1000, 1000..40_000, 40_000..whole.len()]
        .map(|range| (i64::try_from(range.end + 1).unwrap(), whole[range].to_vec()))
        .into();
    assert_eq!(database.load("b", &header), Ok(Reply::Ok));
    for (number, chunk) in chunks.iter().enumerate() {
        for again in &chunks[..=number] {
            let expected = if again == chunk || chunks[..number].contains(again) {
                Ok(Reply::Ok)
            } else {
                Err(Error::Chunk)
            };
            assert_eq!(database.load("b", again), expected);
        }
        assert_eq!(database.load("b", chunk), Ok(Reply::Ok));
        // Other bytes in its place are refused.
        let other = (chunk.0, chunk.1.iter().map(|byte| !byte).collect());
        assert_eq!(database.load("b", &other), Err(Error::Chunk));
    }
    assert!(database.dump("a") == database.dump("b"));
}

/// The last chunk is checked with all others, which takes seconds for a large filter. Meanwhile the
/// value is what it was without it.
#[test]
fn the_last_chunk_counts_when_it_is_checked() {
    let mut database = Database::new();
    database.run("RESERVE a 50000").unwrap();
    database.run("INSERT a ITEMS x").unwrap();
    let chunks = database.dump("a");
    let (end, mut whole) = chunks[1].clone();
    let half = (40_001, whole[..40_000].to_vec());
    let change = |database: &mut Database, command: &str| match command {
        "DEL" => drop(database.0.values.remove(&b"b"[..])),
        "" => {}
        other => drop(database.run(other)),
    };
    for (damaged, command, expected) in [
        (false, "", Ok(())),
        (false, "MEXISTS b x", Ok(())),
        (false, "LOADCHUNK b 40004 abc", Ok(())),
        (false, "DEL", Err(Error::NotFound)),
        (true, "", Err(Error::Chunk)),
    ] {
        if damaged {
            whole[41_000] ^= 1;
        }
        database.0.values.remove(&b"b"[..]);
        database.load_all("b", &[chunks[0].clone(), half.clone()]);
        let before = database.dump("b");
        let end = end.to_string();
        let last = [&b"LOADCHUNK"[..], b"b", end.as_bytes(), &whole[40_000..]];
        let host = Loaded { memory: RefCell::new(&mut database.0), last: &last };
        let made = transfer::work(&host, &last, 1);
        assert!(database.dump("b") == before);
        change(&mut database, command);
        let memory = &mut database.0;
        let mut keys = MemoryKeys { memory, arguments: &last, events: Vec::new() };
        let is_done = expected.is_ok();
        let outcome = made.and_then(|made| match made {
            Made::Rest(rest) => rest(&mut keys, &last),
            Made::Value(_) => panic!("no chunk"),
        });
        assert_eq!(keys.events.len(), usize::from(is_done), "{command}");
        if damaged {
            assert!(matches!(outcome, Err(Error::Image(_))), "{outcome:?}");
            assert!(database.dump("b") == before);
        } else {
            assert_eq!(outcome, expected, "{command}");
        }
        assert!(!is_done || database.dump("a") == database.dump("b"), "{command}");
    }
}

/// A replica took seconds to verify what its primary had verified.
#[test]
fn chunks_of_the_data_set_are_trusted_but_for_damage() {
    let mut database = Database::new();
    database.run("RESERVE a 50000").unwrap();
    database.run("INSERT a ITEMS x x x").unwrap();
    let mut chunks = database.dump("a");
    let (end, whole) = chunks.pop().unwrap();
    chunks.push((30_001, whole[..30_000].to_vec()));
    database.0.origin = Origin::DataSet;
    for damaged in [None, Some(40_000), Some(100)] {
        database.load_all("b", &chunks);
        let mut last = whole[30_000..].to_vec();
        if let Some(at) = damaged {
            last[at % 20_000] ^= 1;
            assert!(matches!(database.load("b", &(end, last)), Err(Error::Image(_))));
            assert!(database.run("EXISTS b x").is_err());
        }
        assert_eq!(database.load("b", &(end, whole[30_000..].to_vec())), Ok(Reply::Ok));
        assert!(database.dump("a") == database.dump("b"));
        database.0.values.remove(&b"b"[..]);
    }
}

/// A server has what its replicas have of a filter that it sends, whatever is done with it.
#[test]
fn a_filter_that_is_sent_is_what_was_sent() {
    let (mut database, mut replica) = (Database::new(), Database::new());
    database.run("RESERVE a 50000").unwrap();
    database.run("INSERT a ITEMS x x x").unwrap();
    let whole = database.dump("a");
    let Some(Filter::Native(filter)) = database.0.values.remove(&b"a"[..]).unwrap() else {
        panic!("no filter of ours")
    };
    let mut value = Filter::Sending(Sending::new(filter));
    replica.load("a", &whole[0]).unwrap();
    while let Filter::Sending(sending) = &value {
        let (filter, offset) = sending.next();
        let chunk = filter.body(offset..offset + 10_007).unwrap();
        database.0.values.insert(b"a".to_vec(), Some(value.try_clone().unwrap()));
        assert!(database.dump("a") == replica.dump("a"));
        database.0.values.insert(b"a".to_vec(), Some(value));
        assert!(database.dump("a") == replica.dump("a"));
        assert!(matches!(database.run("ADD a y"), Err(Error::Incomplete { .. })));
        value = database.0.values.remove(&b"a"[..]).flatten().unwrap();
        value.note_sent(chunk.len()).unwrap();
        let next = i64::try_from(1 + offset + chunk.len()).unwrap();
        assert_eq!(replica.load("a", &(next, chunk)), Ok(Reply::Ok));
    }
    database.0.values.insert(b"a".to_vec(), Some(value));
    assert!(database.dump("a") == whole && replica.dump("a") == whole);
}

/// The keys of a command of bytes.
struct Loaded<'a> {
    memory: RefCell<&'a mut Memory>,
    last: &'a [&'a [u8]],
}

impl Host for Loaded<'_> {
    fn with_keys(&self, look: &mut dyn FnMut(&mut dyn Keys)) -> Result<(), Error> {
        let memory = &mut *self.memory.borrow_mut();
        look(&mut MemoryKeys { memory, arguments: self.last, events: Vec::new() });
        Ok(())
    }
}
