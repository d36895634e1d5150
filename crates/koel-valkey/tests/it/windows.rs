//! Filters whose items expire, at times that the tests set.

use koel_valkey::command::reply::Reply;
use koel_valkey::error::Error;
use koel_valkey::filter::native::MOST_SECONDS;
use testkit::storage::Random;

use crate::support::{Database, fill, integers, items};

/// A window of 24 seconds has steps of one.
const WINDOW: u64 = 24_000;
const STEP: u64 = 1000;
const START: u64 = 1_700_000_000_000;

/// A database with a filter `f` for `capacity` items in 24 seconds.
fn database(capacity: u64, further: &str) -> Database {
    let mut database = Database::new();
    database.0.now = START;
    database.run(&format!("RESERVE f {capacity} WINDOW 24 {further}")).unwrap();
    database
}

#[test]
fn an_item_is_in_for_its_window_and_adding_renews_it() {
    let mut database = database(1000, "");
    for line in ["ADD f renewed", "ADDNX f first", "ADD f once"] {
        assert_eq!(database.run(line), Ok(Reply::Bool(true)));
    }
    database.0.now += WINDOW / 2;
    assert_eq!(database.run("ADD f renewed"), Ok(Reply::Bool(true)));
    assert_eq!(database.run("ADDNX f first"), Ok(Reply::Bool(false)));
    database.0.now += WINDOW / 2;
    // Nothing was written since: reading looks ahead.
    assert_eq!(
        database.run("MEXISTS f renewed first once none"),
        Ok(Reply::Bools(vec![true, true, true, false]))
    );
    database.0.now += STEP;
    for (item, count) in [("renewed", 1), ("first", 0), ("once", 0)] {
        assert_eq!(database.number(&format!("COUNT f {item}")), count, "{item}");
        assert_eq!(database.number(&format!("EXISTS f {item}")), count, "{item}");
    }
    let info = ["ITEMS", "EXPIRED", "EVICTED", "WINDOW", "CAPACITY"]
        .map(|field| database.number(&format!("INFO f {field}")));
    assert_eq!(info, [1, 2, 0, 24, 1000]);
    // A write makes it so.
    assert_eq!(database.run("DEL f once"), Ok(Reply::Bool(false)));
    assert_eq!(database.run("DEL f renewed"), Ok(Reply::Bool(true)));
    let info =
        ["ITEMS", "EXPIRED", "DELETED"].map(|field| database.number(&format!("INFO f {field}")));
    assert_eq!(info, [0, 2, 1]);
    let Ok(Reply::Map(all)) = database.run("INFO f FULL") else { panic!("no map") };
    let named = |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, reply)| reply);
    assert_eq!(named("Window"), Some(&Reply::Integer(24)));
    assert_eq!(named("Number of items expired"), Some(&Reply::Integer(2)));
}

#[test]
fn a_full_window_refuses_items_or_evicts_the_oldest() {
    let line = format!("INSERT f ITEMS {}", items("i", 0..3000));
    let mut fails = database(1000, "WHENFULL FAIL");
    let refused = fill(&mut fails, 1000, "reserved for 1000; wait until some expire");
    let again = fails.numbers(&line.replace("INSERT", "INSERTNX"));
    assert!(again[..1000].iter().all(|&added| added == 0) && again.contains(&-1));
    fails.0.now += WINDOW + STEP;
    assert_eq!(fails.run(&format!("ADDNX f i{refused}")), Ok(Reply::Bool(true)));

    let mut evicts = database(1000, "WHENFULL EVICT");
    assert_eq!(evicts.numbers(&line), vec![1; 3000]);
    let (evicted, items) = (evicts.number("INFO f EVICTED"), evicts.number("INFO f ITEMS"));
    assert!(evicted > 1500 && evicted + items > 2950, "{evicted} evicted, {items} in");
}

#[test]
fn what_a_window_does_not_have_is_refused() {
    let refused = |line: &str| {
        let mut database = database(100, "");
        database.run("RESERVE g 100").unwrap();
        database.run(line).unwrap_err()
    };
    for seconds in ["0", "-1", "x", "1.5", "3153600001", ""] {
        let words: [&[u8]; 5] = [b"RESERVE", b"a", b"100", b"WINDOW", seconds.as_bytes()];
        assert_eq!(
            Database::new().call(&words),
            Err(Error::BadWindow { most: MOST_SECONDS }),
            "{seconds}"
        );
    }
    assert_eq!(refused("RESERVE a 100 WHENFULL EVICT"), Error::BadWhenFull);
    assert_eq!(refused("RESERVE a 100 WINDOW 9 WHENFULL NEVER"), Error::BadWhenFull);
    for further in ["WINDOW 9 WHENFULL FAIL EXPANSION 2", "WINDOW 9 WHENFULL EVICT EXPANSION 1"] {
        assert_eq!(refused(&format!("RESERVE a 100 {further}")), Error::GrowsWhenFull);
    }
    assert_eq!(refused("RESERVE f 100 WINDOW 9"), Error::Exists);
    assert_eq!(refused("MERGE f f"), Error::MergeWindow);
    assert_eq!(refused("MERGE g f"), Error::MergeWindow);
    for line in ["AT x ADD f a", "AT -1 ADD f a", "AT 1.5 ADD f a"] {
        assert_eq!(refused(line), Error::BadTime, "{line}");
    }
    for line in ["AT 1 NONE f a", "AT 1 AT 2 ADD f a", "AT 1 MERGE f f"] {
        assert_eq!(refused(line), Error::BadTimedCommand, "{line}");
    }
    assert_eq!(refused("AT 1 ADD f"), Error::Arity);
}

/// A command of a replica: the primary's, with its time.
fn at(time: u64, line: &str) -> String {
    format!("AT {time} {line}")
}

/// A primary whose server refused all items of a command has only gone on in time.
#[test]
fn replicas_go_on_in_time_without_items() {
    let [mut primary, mut replica] = [(); 2].map(|()| {
        let mut database = Database::new();
        database.run(&at(1_000_000, "RESERVE f 100 WINDOW 10")).unwrap();
        database.run(&at(1_000_000, "INSERT f ITEMS a b c")).unwrap();
        database
    });
    // What a deletion of an absent item changes is the time alone.
    primary.run(&at(1_020_000, "DEL f absent")).unwrap();
    assert_ne!(replica.dump("f"), primary.dump("f"));
    replica.run(&at(1_020_000, "ADVANCE f")).unwrap();
    assert_eq!(replica.dump("f"), primary.dump("f"));
    assert_eq!(replica.run(&at(1_020_000, "ADVANCE g")), Err(Error::NotFound));
}

/// A replica whose clock is wrong gets what the primary announces, and is equal byte by byte. How
/// long items are in is tested by the models of the library.
#[test]
fn replicas_are_equal_whatever_their_clock_says() {
    for (seed, further) in ["WHENFULL FAIL", "WHENFULL EVICT", ""].into_iter().enumerate() {
        let mut random = Random::new(seed as u64);
        let mut primary = database(300, further);
        let mut replica = Database::new();
        replica.run(&at(START, &format!("RESERVE f 300 WINDOW 24 {further}"))).unwrap();
        for _ in 0..2000 {
            primary.0.now += [0, 1, 300, STEP, 5 * STEP, 7][random.below(6)];
            if random.chance(1) {
                primary.0.now += WINDOW * 3;
            }
            replica.0.now = random.next_u64();
            let line = line(&mut random);
            let (reply, events) = primary.with_events(&line);
            if !events.is_empty() {
                assert_eq!(replica.run(&at(primary.0.now, &line)), reply, "{line}");
            }
            assert!(primary.dump("f") == replica.dump("f"), "{line}");
        }
        let expired = primary.number("INFO f EXPIRED");
        assert!(expired > 500, "{expired} items expired");
    }
}

fn line(random: &mut Random) -> String {
    let item = |random: &mut Random| format!("i{}", random.below(200));
    match random.below(6) {
        0 | 1 => format!("INSERT f ITEMS {} {}", item(random), item(random)),
        2 | 3 => format!("INSERTNX f ITEMS {} {}", item(random), item(random)),
        4 => format!("DEL f {}", item(random)),
        _ => format!("MEXISTS f {}", item(random)),
    }
}

/// Time goes on between dumping and loading. Copies and records are in `bytes`.
#[test]
fn a_dumped_window_goes_on_where_it_is_loaded() {
    let mut database = database(500, "");
    database.run("INSERT f ITEMS a b").unwrap();
    database.0.now += STEP * 20;
    database.run("ADD f b").unwrap();
    let chunks = database.dump("f");
    assert_eq!(&chunks[0].1[..8], b"KOELXF01");
    assert_eq!(chunks[0].1.len(), koel_valkey::filter::header::EXPIRING_BYTES);
    database.load_all("g", &chunks);
    assert!(database.dump("g") == chunks);
    database.0.now += STEP * 6;
    for key in ["f", "g"] {
        let found = database.run(&format!("MEXISTS {key} a b")).unwrap();
        assert_eq!(integers(found), [0, 1], "{key}");
    }
    // Bytes of the other kind under this header, and the other way round, are no filter.
    database.run("RESERVE plain 500").unwrap();
    let plain = database.dump("plain");
    for (header, body) in [(&chunks[0].1, &plain[1].1), (&plain[0].1, &chunks[1].1)] {
        let mut header = header.clone();
        header[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
        database.0.values.remove(&b"h"[..]);
        database.load("h", &(1, header)).unwrap();
        let iterator = 1 + body.len() as i64;
        let refused = database.load("h", &(iterator, body.clone())).unwrap_err();
        assert!(matches!(refused, Error::Image(_)), "{refused}");
    }
}

/// A command that only moves time on is replicated too, and only then.
#[test]
fn a_new_step_is_announced_once() {
    let mut database = database(500, "");
    let mut events = |time: u64, line: &str| {
        database.0.now = START + time;
        database.with_events(line).1
    };
    assert_eq!(events(0, "ADDNX f a"), ["add"]);
    assert_eq!(events(5, "ADDNX f a"), [""; 0]);
    assert_eq!(events(STEP, "EXISTS f a"), [""; 0]);
    assert_eq!(events(STEP, "ADDNX f a"), ["advance"]);
    assert_eq!(events(STEP, "ADDNX f a"), [""; 0]);
    assert_eq!(events(2 * STEP, "DEL f b"), ["advance"]);
    assert_eq!(events(2 * STEP, "DEL f a"), ["del"]);
    assert_eq!(events(0, "ADD f a"), ["add"]);
}

/// A window grows beyond what it was reserved for, keeps its items and its error rate, travels in
/// all forms, and becomes small again.
#[test]
fn a_window_grows_and_comes_back_as_it_was() {
    for further in ["", "EXPANSION 2"] {
        let mut database = database(1000, further);
        let before = database.number("INFO f SIZE");
        for name in ["old", "new"] {
            let line = format!("INSERT f ITEMS {}", items(name, 0..20_000));
            assert_eq!(database.numbers(&line), [1; 20_000]);
            database.0.now += WINDOW / 4;
        }
        let size = database.number("INFO f SIZE");
        assert!(size > 3 * before, "{before} to {size} bytes");
        // Equal fingerprints share an entry.
        let live = database.number("INFO f ITEMS");
        assert!((39_800..=40_000).contains(&live), "{live}");
        let found = |database: &mut Database, name: &str| {
            let line = format!("MEXISTS f {}", items(name, 0..20_000));
            database.numbers(&line).iter().sum::<i64>()
        };
        assert_eq!([found(&mut database, "old"), found(&mut database, "new")], [20_000; 2]);
        let wrong = found(&mut database, "absent");
        assert!(wrong <= 40, "{wrong} of 20,000 absent items are reported");

        let chunks = database.dump("f");
        database.load_all("g", &chunks);
        database.0.now += WINDOW / 2 + STEP;
        for key in ["f", "g"] {
            database.run(&format!("INSERT {key} ITEMS a b c")).unwrap();
            database.run(&format!("COMPACT {key}")).unwrap();
        }
        assert!(database.dump("f") == database.dump("g"));
        assert_eq!(found(&mut database, "new"), 20_000);
        assert!(found(&mut database, "old") <= 40);
        database.0.now += WINDOW + STEP;
        database.run("COMPACT f").unwrap();
        assert_eq!(database.number("INFO f SIZE"), before);
    }
}

/// Beyond its limit a window takes what has room in it, and refuses whole commands otherwise. A
/// replica, which has no limit, is equal.
#[test]
fn a_window_beyond_its_limit_takes_items_again_once_others_expire() {
    let mut primary = database(1000, "");
    let mut replica = Database::new();
    replica.run(&at(START, "RESERVE f 1000 WINDOW 24")).unwrap();
    primary.0.limit = 100_000;
    let mut refused = 0;
    for round in 0..80 {
        let line = format!("INSERT f ITEMS {}", items(&format!("{round}-"), 0..1000));
        let (reply, events) = primary.with_events(&line);
        let answers = integers(reply.unwrap());
        assert!(answers.iter().all(|answer| answer == &answers[0]));
        refused += i64::from(answers[0] == 0);
        if !events.is_empty() {
            replica.run(&at(primary.0.now, &line)).unwrap();
        }
        assert!(primary.dump("f") == replica.dump("f"), "round {round}");
        primary.0.now += STEP / 4;
    }
    assert!((20..60).contains(&refused), "{refused} commands were refused");
    // An item that is in is not refused where it would not be added again.
    primary.0.now += WINDOW / 2;
    assert_eq!(primary.run("ADD f last"), Ok(Reply::Bool(true)));
    primary.0.limit = 10;
    assert_eq!(primary.run("ADDNX f last"), Ok(Reply::Bool(false)));
    let size = primary.number("INFO f SIZE");
    assert!((100_000..150_000).contains(&size), "{size} bytes");
}
