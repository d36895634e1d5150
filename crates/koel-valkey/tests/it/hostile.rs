//! Commands that a client sends to make the server wait or to take its memory.

use koel_valkey::command::parts::{Host, Outcome};
use koel_valkey::command::reply::Reply;
use koel_valkey::command::{merge, transfer};
use koel_valkey::error::Error;
use koel_valkey::keys::{Keys, MemoryKeys};

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
    let mut parts = databases[1].parts(merge::begin, &line);
    assert_eq!(parts.copies, 3);
    assert_eq!(parts.finish(), Ok(Outcome::Done(Reply::Ok)));
    for database in &mut databases {
        let counts = database.numbers("MCOUNT a shared a b c none");
        assert_eq!(counts, [3, 1, 1, 1, 0]);
    }
}

/// A MERGE copied all of its operands at once, and the server evicted other keys for them.
#[test]
fn a_merge_takes_room_for_two_filters_and_refuses_without() {
    let mut database = Database::new();
    for key in ["a", "b", "c", "d"] {
        database.run(&format!("RESERVE {key} 1000000")).unwrap();
    }
    let bytes = database.number("INFO a SIZE");
    let bytes = u64::try_from(bytes).unwrap();
    for (line, room, fits, fits_at_once) in [
        ("MERGE a b c d", 2 * bytes, true, true),
        ("MERGE a b c d", 2 * bytes - 1, false, true),
        ("MERGE a b c d", bytes - 1, false, false),
        ("MERGE new b c d", bytes - 1, false, false),
    ] {
        database.0.room = Some(room);
        let before = database.dump("a");
        assert_eq!(database.begins(merge::begin, line).is_ok(), fits, "{line} {room}");
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
    assert!(beyond(database.parts(merge::begin, &line).finish().err()) < 10_000);
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
        (false, "", Ok(Outcome::Done(Reply::Ok))),
        (false, "MEXISTS b x", Ok(Outcome::Done(Reply::Ok))),
        (false, "LOADCHUNK b 40004 abc", Ok(Outcome::Done(Reply::Ok))),
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
        let memory = &mut database.0;
        let mut keys = MemoryKeys { memory, arguments: &last, events: Vec::new() };
        let work = transfer::begin(&mut keys, &last, 0, 1).unwrap().expect("the last chunk");
        assert!(database.dump("b") == before);
        let finish = work(&Alone);
        change(&mut database, command);
        let memory = &mut database.0;
        let mut keys = MemoryKeys { memory, arguments: &last, events: Vec::new() };
        let is_done = expected.is_ok();
        let outcome = finish(&mut keys);
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

/// The part of a command that needs no keys.
struct Alone;

impl Host for Alone {
    fn with_keys(&self, _: &mut dyn FnMut(&mut dyn Keys)) {
        panic!("it needs no keys");
    }
}
