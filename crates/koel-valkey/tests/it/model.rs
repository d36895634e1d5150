//! Random programs of commands beside an exact multiset.

use std::collections::BTreeMap;

use koel_valkey::command::reply::Reply;
use koel_valkey::error::Error;
use testkit::storage::Random;

use crate::support::{Database, fill, items};

type Model = BTreeMap<String, i64>;

/// Runs a command of a few items, and keeps the model in step.
fn step(database: &mut Database, model: &mut Model, random: &mut Random) {
    let count = 1 + random.below(6);
    let items: Vec<String> = (0..count).map(|_| format!("item{}", random.below(400))).collect();
    let line = items.join(" ");
    match random.below(4) {
        0 | 1 => {
            let added = database.numbers(&format!("INSERT f ITEMS {line}"));
            assert_eq!(added, vec![1; count]);
            items.into_iter().for_each(|item| *model.entry(item).or_default() += 1);
        }
        2 => {
            let added = database.numbers(&format!("INSERTNX f ITEMS {line}"));
            for (item, added) in items.into_iter().zip(added) {
                let known = model.entry(item).or_default();
                // An item that is in is not added; one that is not may be taken for one.
                assert!(added == 0 || *known == 0);
                *known += added;
            }
        }
        _ => {
            // Only what is in: deleting anything else may remove another item.
            let held: Vec<&String> =
                model.iter().filter(|(_, n)| **n > 0).map(|(i, _)| i).collect();
            let Some(&item) = held.get(random.below(held.len().max(1))) else { return };
            let item = item.clone();
            let removed = database.numbers(&format!("MDEL f {item}"));
            assert_eq!(removed, [1], "{item}");
            *model.entry(item).or_default() -= 1;
        }
    }
}

/// Nothing is missing, no count is too small, and few are too large.
fn check(database: &mut Database, model: &Model) {
    let items: Vec<&str> = model.keys().map(String::as_str).collect();
    if items.is_empty() {
        return;
    }
    let line = items.join(" ");
    let counts = database.numbers(&format!("MCOUNT f {line}"));
    let found = database.numbers(&format!("MEXISTS f {line}"));
    let mut surplus = 0;
    for ((&known, &count), found) in model.values().zip(&counts).zip(found) {
        assert!(count >= known && found == i64::from(count > 0));
        surplus += i64::from(count > known);
    }
    assert!(surplus <= 5, "{surplus} counts are too large");
    let total: i64 = model.values().sum();
    assert_eq!(database.run("INFO f ITEMS"), Ok(Reply::Integer(total)));
}

#[test]
fn filters_agree_with_an_exact_multiset() {
    for (seed, reserve) in ["16", "1000 PREFER FAST", "400 EXPANSION 0"].iter().enumerate() {
        let mut random = Random::new(seed as u64);
        let (mut database, mut model) = (Database::new(), Model::new());
        database.run(&format!("RESERVE f {reserve}")).unwrap();
        for round in 0..3000 {
            step(&mut database, &mut model, &mut random);
            if round % 100 == 0 {
                check(&mut database, &model);
            }
            if round % 1000 == 999 {
                database.run("COMPACT f").unwrap();
            }
        }
        check(&mut database, &model);
    }
}

/// From 1,024 items to a hundred times as many, the rate stays what was asked for.
#[test]
fn a_filter_that_grows_keeps_its_error_rate() {
    for error in ["0.01", "0.001"] {
        let mut database = Database::new();
        database.run(&format!("RESERVE f 1024 ERROR {error}")).unwrap();
        for start in (0..100_000).step_by(500) {
            let line = format!("INSERT f ITEMS {}", items("in", start..start + 500));
            assert_eq!(database.numbers(&line), vec![1; 500]);
        }
        let mut found = 0;
        for start in (0..200_000).step_by(1000) {
            let line = format!("MEXISTS f {}", items("out", start..start + 1000));
            found += database.numbers(&line).into_iter().sum::<i64>();
        }
        let error: f64 = error.parse().unwrap();
        let expected = 200_000.0 * error;
        // Five standard deviations above.
        assert!((found as f64) < expected + 5.0 * expected.sqrt(), "{found} of 200,000");
        assert!(database.filter("f").bytes() < 100_000 * 3);
    }
}

#[test]
fn a_fixed_filter_takes_its_capacity_and_says_when_it_is_full() {
    let mut database = Database::new();
    database.run("RESERVE f 500 EXPANSION 0").unwrap();
    let refused = fill(&mut database, 500, "Filter is full");
    let text = database.run(&format!("ADD f i{refused}")).unwrap_err().to_string();
    assert_eq!(text, "Filter is full");
}

#[test]
fn a_merge_is_the_sum_and_a_failed_one_changes_nothing() {
    let mut database = Database::new();
    for (key, item) in [("a", "x"), ("b", "x"), ("c", "y")] {
        database.run(&format!("RESERVE {key} 5000")).unwrap();
        database.run(&format!("INSERT {key} ITEMS {item} only-{key}")).unwrap();
    }
    assert_eq!(database.run("MERGE union a b c"), Ok(Reply::Ok));
    let counts = database.numbers("MCOUNT union x y only-a only-b only-c none");
    assert_eq!(counts, [2, 1, 1, 1, 1, 0]);
    assert_eq!(database.run("MERGE a a"), Ok(Reply::Ok));
    assert_eq!(database.run("COUNT a x"), Ok(Reply::Integer(2)));
    database.run("RESERVE other 100000 ERROR 0.01").unwrap();
    let text = database.run("MERGE union a other").unwrap_err().to_string();
    assert!(text.contains("the filters differ"), "{text}");
    let counts = database.numbers("MCOUNT union x y only-a only-b only-c none");
    assert_eq!(counts, [2, 1, 1, 1, 1, 0]);
}

#[test]
fn equal_commands_give_equal_bytes() {
    let run = || {
        let (mut database, mut model, mut random) = (Database::new(), Model::new(), Random::new(9));
        (0..2000).for_each(|_| step(&mut database, &mut model, &mut random));
        database.dump("f")
    };
    assert!(run() == run());
}

#[test]
fn a_command_that_changes_nothing_is_not_replicated() {
    let mut database = Database::new();
    let mut events = |line: &str| database.with_events(line).1;
    assert_eq!(events("ADD f a"), ["add"]);
    assert_eq!(events("ADDNX f a"), [""; 0]);
    assert_eq!(events("INSERTNX f ITEMS a b"), ["add"]);
    assert_eq!(events("DEL f none"), [""; 0]);
    assert_eq!(events("DEL f a"), ["del"]);
    assert_eq!(events("EXISTS f a"), [""; 0]);
    assert_eq!(events("COMPACT f"), ["compact"]);
    assert_eq!(events("MERGE g f"), ["merge"]);
    assert_eq!(events("RESERVE h 9"), ["reserve"]);
}

/// In parts, as on a thread, with commands between them. What they do to the destination is in the
/// union too, as if it had been done after the merge; what they do to a source comes too late.
#[test]
fn a_merge_in_parts_loses_no_change_of_the_destination() {
    let changes: [(&[&str], Option<[i64; 5]>); _] = [
        (&[], Some([0, 0, 0, 0, 0])),
        (&["EXISTS a x", "ADDNX a x", "DEL a none", "ADD b new"], Some([0, 0, 0, 0, 0])),
        (&["ADD a x", "ADDNX a new", "DEL c x"], Some([1, 0, 0, 0, 1])),
        (&["INSERT a ITEMS x new new only-b", "MDEL a only-a new"], Some([1, -1, 1, 0, 1])),
        (&["DEL a x", "ADD a x", "DEL a x", "INSERTNX a ITEMS only-b new"], Some([-1, 0, 1, 0, 1])),
        (&["MERGE a c"], None),
        (&["COMPACT a"], None),
        (&["RESERVE z 5000", "MERGE z c", "ADD a x", "MERGE a z"], None),
    ];
    for (line, copies) in [("MERGE a a b c b", [4, 2, 1, 1]), ("MERGE a b c", [3, 1, 1, 1])] {
        for (between, expected) in &changes {
            let mut database = Database::new();
            for key in ["a", "b", "c"] {
                database.run(&format!("RESERVE {key} 5000")).unwrap();
                database.run(&format!("INSERT {key} ITEMS x only-{key}")).unwrap();
            }
            let mut parts = database.parts(line);
            for change in *between {
                parts.database.run(change).unwrap();
            }
            let outcome = parts.finish();
            let Some(more) = expected else {
                assert_eq!(outcome, Err(Error::Changed), "{line}; {between:?}");
                continue;
            };
            assert_eq!(outcome, Ok(()), "{line}; {between:?}");
            let copies = [copies[0], copies[1], copies[2], copies[3], 0];
            let counts = database.numbers("MCOUNT a x only-a only-b only-c new");
            let sums = copies.iter().zip(more).map(|(copies, more)| copies + more);
            assert_eq!(counts, sums.collect::<Vec<_>>(), "{line}; {between:?}");
        }
    }
}

/// A destination that was missing and is there at the end was not part of the union.
#[test]
fn a_destination_that_appears_during_a_merge_is_not_replaced() {
    let mut database = Database::new();
    database.run("INSERT a ITEMS x").unwrap();
    let mut parts = database.parts("MERGE new a");
    parts.database.run("ADD new y").unwrap();
    assert_eq!(parts.finish(), Err(Error::Changed));
    assert_eq!(database.numbers("MCOUNT new x y"), [0, 1]);
    assert_eq!(database.parts("MERGE other a").finish(), Ok(()));
    assert_eq!(database.numbers("MCOUNT other x y"), [1, 0]);
}

/// A union of one size that is full cannot follow: there is none then.
#[test]
fn a_union_that_cannot_follow_its_destination_is_refused() {
    let mut database = Database::new();
    for key in ["a", "b"] {
        database.run(&format!("RESERVE {key} 500 EXPANSION 0")).unwrap();
    }
    database.run(&format!("INSERT b ITEMS {}", items("b", 0..500))).unwrap();
    let mut parts = database.parts("MERGE a b");
    parts.database.run(&format!("INSERT a ITEMS {}", items("a", 0..400))).unwrap();
    assert!(matches!(parts.finish(), Err(Error::Full(_))));
    assert_eq!(database.number("INFO a ITEMS"), 400);
}

#[test]
fn a_filter_is_compacted_in_parts_as_at_once() {
    let mut databases = [Database::new(), Database::new()];
    for database in &mut databases {
        database.run("RESERVE f 50000").unwrap();
        database.run("INSERT f ITEMS 1 2 2 3 3 3").unwrap();
    }
    let [database, other] = &mut databases;
    let mut parts = database.parts("COMPACT f");
    parts.database.run("EXISTS f 1").unwrap();
    assert_eq!(parts.finish(), Ok(()));
    other.run("COMPACT f").unwrap();
    assert!(database.dump("f") == other.dump("f"));
    let mut parts = database.parts("COMPACT f");
    parts.database.run("MDEL f 1 3").unwrap();
    assert_eq!(parts.finish(), Ok(()));
    assert_eq!(database.numbers("MCOUNT f 1 2 3"), [0, 2, 2]);
}
