//! `CF.REFUTE`: items that were not added are not reported any more, and no item is lost.

use koel_valkey::command::reply::Reply;

use crate::support::{Database, integers};

fn line(prefix: &str, range: std::ops::Range<usize>) -> String {
    let items: Vec<String> = range.map(|number| format!("{prefix}{number}")).collect();
    items.join(" ")
}

/// A filter at a rate of 3 %, with 2,000 items.
fn database() -> Database {
    let mut database = Database::new();
    database.run("RESERVE f 5000 ERROR 0.03 EXPANSION 0").unwrap();
    database.run(&format!("INSERT f ITEMS {}", line("in", 0..2000))).unwrap();
    database
}

#[test]
fn refuted_items_are_not_reported_until_they_are_added() {
    let (mut database, absent) = (database(), line("out", 0..3000));
    let sum = |reply| integers(reply).into_iter().sum::<i64>();
    let reported = sum(database.run(&format!("MEXISTS f {absent}")).unwrap());
    assert!(reported > 10, "{reported}");
    assert_eq!(sum(database.run(&format!("REFUTE f {absent}")).unwrap()), reported);
    assert_eq!(sum(database.run(&format!("MEXISTS f {absent}")).unwrap()), 0);
    assert_eq!(sum(database.run(&format!("MCOUNT f {absent}")).unwrap()), 0);
    assert_eq!(sum(database.run(&format!("REFUTE f {absent}")).unwrap()), 0);
    assert_eq!(sum(database.run(&format!("MEXISTS f {}", line("in", 0..2000))).unwrap()), 2000);
    assert_eq!(database.run("INFO f CORRECTIONS"), Ok(Reply::Integer(reported)));
    let Ok(Reply::Map(all)) = database.run("INFO f") else { panic!("no map") };
    assert!(all.contains(&("Number of corrections", Reply::Integer(reported))));
    // A dump has them, and adding an item takes its correction back.
    let chunks = database.dump("f");
    database.load_all("copy", &chunks);
    for key in ["f", "copy"] {
        assert_eq!(sum(database.run(&format!("MEXISTS {key} {absent}")).unwrap()), 0);
        database.run(&format!("INSERT {key} ITEMS {absent}")).unwrap();
        assert_eq!(sum(database.run(&format!("MEXISTS {key} {absent}")).unwrap()), 3000);
        assert_eq!(database.run(&format!("INFO {key} CORRECTIONS")), Ok(Reply::Integer(0)));
    }
}

#[test]
fn only_what_changed_is_announced_and_others_say_why_they_cannot() {
    let mut database = database();
    let mut events = |line: &str| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        database.with_events(&words)
    };
    assert_eq!(events(&format!("REFUTE f {}", line("out", 0..3000))).1, ["refute"]);
    assert_eq!(events(&format!("REFUTE f {}", line("out", 0..3000))).1, [""; 0]);
    events("RESERVE window 100 WINDOW 9").0.unwrap();
    for (line, expected) in [
        ("REFUTE none a", "ERR not found"),
        ("REFUTE f", "ERR wrong number of arguments"),
        ("REFUTE window a", "ERR a filter with a WINDOW has no corrections"),
    ] {
        let (refused, events) = events(line);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.starts_with(expected) && events.is_empty(), "{line}: {refused}");
    }
    let mut header: Vec<u8> = [0_u64, 8, 0, 1].iter().flat_map(|it| it.to_le_bytes()).collect();
    header.extend([2, 0, 20, 0, 1, 0]);
    database.load_all("compat", &[(1, header), (17, vec![0; 16])]);
    let refused = database.run("REFUTE compat a").unwrap_err().to_string();
    assert!(refused.contains("RedisBloom's layout has no place"), "{refused}");
    // As many as slots.
    database.run("RESERVE tiny 200 ERROR 0.03 EXPANSION 0").unwrap();
    database.run(&format!("INSERT tiny ITEMS {}", line("in", 0..200))).unwrap();
    let mut refute = |start: usize| {
        let before = database.dump("tiny");
        let outcome = database.run(&format!("REFUTE tiny {}", line("out", start..start + 100)));
        assert!(outcome.is_ok() || database.dump("tiny") == before);
        outcome.err()
    };
    let refused = (0..100_000).step_by(100).find_map(&mut refute).expect("a limit").to_string();
    assert!(refused.contains("more corrections than the"), "{refused}");
}
