//! `CF.REFUTE`: items that were not added are not reported any more, and no item is lost.

use koel_valkey::command::reply::Reply;
use koel_valkey::filter::header::Origin;

use crate::support::{Database, compat_header, items};

/// A filter at a rate of 3 %, with 2,000 items.
fn database() -> Database {
    let mut database = Database::new();
    database.run("RESERVE f 5000 ERROR 0.03 EXPANSION 0").unwrap();
    database.run(&format!("INSERT f ITEMS {}", items("in", 0..2000))).unwrap();
    database
}

fn sum(database: &mut Database, line: &str) -> i64 {
    database.numbers(line).into_iter().sum()
}

#[test]
fn refuted_items_are_not_reported_until_they_are_added() {
    let (mut database, absent) = (database(), items("out", 0..3000));
    let reported = sum(&mut database, &format!("MEXISTS f {absent}"));
    assert!(reported > 10, "{reported}");
    assert_eq!(sum(&mut database, &format!("REFUTE f {absent}")), reported);
    assert_eq!(sum(&mut database, &format!("MEXISTS f {absent}")), 0);
    assert_eq!(sum(&mut database, &format!("MCOUNT f {absent}")), 0);
    assert_eq!(sum(&mut database, &format!("REFUTE f {absent}")), 0);
    assert_eq!(sum(&mut database, &format!("MEXISTS f {}", items("in", 0..2000))), 2000);
    assert_eq!(database.run("INFO f CORRECTIONS"), Ok(Reply::Integer(reported)));
    let Ok(Reply::Map(all)) = database.run("INFO f FULL") else { panic!("no map") };
    assert!(all.contains(&("Number of corrections", Reply::Integer(reported))));
    // A dump has them, and adding an item takes its correction back.
    let chunks = database.dump("f");
    database.load_all("copy", &chunks);
    for key in ["f", "copy"] {
        assert_eq!(sum(&mut database, &format!("MEXISTS {key} {absent}")), 0);
        database.run(&format!("INSERT {key} ITEMS {absent}")).unwrap();
        assert_eq!(sum(&mut database, &format!("MEXISTS {key} {absent}")), 3000);
        assert_eq!(database.run(&format!("INFO {key} CORRECTIONS")), Ok(Reply::Integer(0)));
    }
}

#[test]
fn only_what_changed_is_announced_and_others_say_why_they_cannot() {
    let mut database = database();
    let mut events = |line: &str| database.with_events(line);
    assert_eq!(events(&format!("REFUTE f {}", items("out", 0..3000))).1, ["refute"]);
    assert_eq!(events(&format!("REFUTE f {}", items("out", 0..3000))).1, [""; 0]);
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
    let header = compat_header([0, 8, 0, 1], [2, 20, 1]);
    database.load_all("compat", &[(1, header), (17, vec![0; 16])]);
    let refused = database.run("REFUTE compat a").unwrap_err().to_string();
    assert!(refused.contains("RedisBloom's layout has no place"), "{refused}");
    // As many as slots.
    database.run("RESERVE tiny 200 ERROR 0.03 EXPANSION 0").unwrap();
    database.run(&format!("INSERT tiny ITEMS {}", items("in", 0..200))).unwrap();
    let mut refute = |start: usize| {
        let before = database.dump("tiny");
        let outcome = database.run(&format!("REFUTE tiny {}", items("out", start..start + 100)));
        assert!(outcome.is_ok() || database.dump("tiny") == before);
        outcome.err()
    };
    let refused = (0..100_000).step_by(100).find_map(&mut refute).expect("a limit").to_string();
    assert!(refused.contains("more corrections than the"), "{refused}");
}

/// Items that were added are hidden by no slip of the hand. What a primary accepted stays accepted.
#[test]
fn items_that_were_added_are_not_refuted_by_accident() {
    let mut database = database();
    let before = database.dump("f");
    let refused = database.run(&format!("REFUTE f {}", items("in", 0..100))).unwrap_err();
    let said = refused.to_string();
    assert!(said.starts_with("ERR 100 of the 100 items are reported, and chance"), "{said}");
    let events = database.with_events(&format!("REFUTE f {}", items("in", 0..100))).1;
    assert!(events.is_empty() && database.dump("f") == before);
    // A handful, and the same one often.
    assert_eq!(sum(&mut database, &format!("REFUTE f {}", items("in", 0..4))), 4);
    assert_eq!(sum(&mut database, &format!("REFUTE f {}", "in5 ".repeat(20).trim())), 1);
    for item in 6..20 {
        assert_eq!(sum(&mut database, &format!("REFUTE f in{item}")), 1);
    }
    // The command of a primary.
    database.0.origin = Origin::DataSet;
    assert_eq!(sum(&mut database, &format!("REFUTE f {}", items("in", 20..100))), 80);
}
