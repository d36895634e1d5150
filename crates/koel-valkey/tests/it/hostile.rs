//! Commands that a client sends to make the server wait or to take its memory.

use koel_valkey::command::merge;
use koel_valkey::command::reply::Reply;
use koel_valkey::error::Error;
use koel_valkey::keys::MemoryKeys;

use crate::support::{Database, integers};

/// Refused items after which a command looks for room no more.
const MOST_REFUSED: usize = 64;

fn items(name: &str, count: usize) -> String {
    (0..count).map(|number| format!(" {name}{number}")).collect()
}

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
            let line = format!("INSERTNX f ITEMS{}", items("a", count));
            let answers = integers(database.run(&line).unwrap());
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
        let first = items("a", 100);
        let line = format!("f ITEMS{}{first}", items("b", 5000));
        let answers = integers(database.run(&format!("INSERTNX {line}")).unwrap());
        assert!(answers[5000..] == [0; 100], "{reserve}: {:?}", &answers[5000..]);
        let answers = integers(database.run(&format!("INSERT {line}")).unwrap());
        assert!(answers[5000..] == [1; 100], "{reserve}: {:?}", &answers[5000..]);
        let found = integers(database.run(&format!("MEXISTS f{first}")).unwrap());
        assert_eq!(found, [1; 100], "{reserve}");
    }
}

/// What RedisBloom added must be added here too, where its commands come from it or from its file:
/// otherwise an item would be missing.
#[test]
fn a_filter_of_redisbloom_tries_each_item_as_it_did_there() {
    let mut database = Database::new();
    let numbers: [u64; 4] = [0, 512, 0, 1];
    let mut header: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    header.extend([2, 0, 20, 0, 0, 0]);
    database.load_all("f", &[(1, header), (1025, vec![0; 1024])]);
    let line = format!("INSERT f ITEMS {} another", "same ".repeat(200));
    let answers = integers(database.run(&line).unwrap());
    assert!(answers.iter().filter(|&&answer| answer == 0).count() > 2 * MOST_REFUSED);
    assert_eq!(answers.last(), Some(&1));
    assert_eq!(database.run("EXISTS f another"), Ok(Reply::Bool(true)));
}

/// A filter with a window was built before its size was compared with the limit. Now the limit is
/// exact, and no table of terabytes is asked for.
#[test]
fn a_window_takes_no_memory_before_it_is_within_the_limit() {
    for further in ["", "EXPANSION 0", "WHENFULL EVICT"] {
        let mut database = Database::new();
        let line = format!("RESERVE f 20000 WINDOW 60 {further}");
        database.run(&line).unwrap();
        let Ok(Reply::Integer(bytes)) = database.run("INFO f SIZE") else { panic!("none") };
        for (limit, is_enough) in [(bytes, true), (bytes - 1, false)] {
            let mut limited = Database::new();
            limited.0.limit = limit.try_into().unwrap();
            assert_eq!(limited.run(&line).is_ok(), is_enough, "{line}, {limit} bytes");
        }
    }
    let mut database = Database::new();
    database.0.limit = 1 << 20;
    let refused = database.run("RESERVE f 1000000000000 WINDOW 60 EXPANSION 0").unwrap_err();
    assert!(matches!(refused, Error::Limit { limit: 0x10_0000, .. }), "{refused}");
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

/// A short command that names one large filter a thousand times took a thousand copies of it.
#[test]
fn a_merge_on_a_thread_copies_each_source_once() {
    let mut database = alike();
    let line = format!("MERGE a b{} c", " b".repeat(1000));
    let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let mut keys =
        MemoryKeys { memory: &mut database.0, arguments: &arguments, events: Vec::new() };
    let merging = merge::begin(&mut keys, &arguments, 0, 1).unwrap().unwrap();
    assert!(merging.bytes() < 10_000, "{} bytes", merging.bytes());
    let (destination, union) = (merging.destination(), merging.run().unwrap());
    assert_eq!(merge::finish(&mut keys, union, destination), Ok(Some(Reply::Ok)));
    let counts = integers(database.run("MCOUNT a shared a b c none").unwrap());
    assert_eq!(counts, [1003, 1, 1001, 1, 0]);
}

/// A union is refused as soon as it is beyond the limit, not when it has taken all sources.
#[test]
fn a_union_stops_at_the_limit() {
    let mut database = Database::new();
    let keys: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
    for key in &keys {
        database.run(&format!("RESERVE {key} 1000")).unwrap();
        database.run(&format!("INSERT {key} ITEMS{}", items(key, 1000))).unwrap();
    }
    database.0.limit = 5000;
    let line = format!("MERGE union {}", keys.join(" "));
    let beyond = |outcome: Option<Error>| match outcome {
        Some(Error::Limit { bytes, .. }) => bytes,
        other => panic!("{other:?}"),
    };
    assert!(beyond(database.run(&line).err()) < 10_000);
    let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let mut keys =
        MemoryKeys { memory: &mut database.0, arguments: &arguments, events: Vec::new() };
    let merging = merge::begin(&mut keys, &arguments, 0, 1).unwrap().unwrap();
    assert!(beyond(merging.run().err()) < 10_000);
}
