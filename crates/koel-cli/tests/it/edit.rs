//! Adding, counting and removing: reports, and edits at once. The scenarios have the rest.

use std::collections::HashMap;

use testkit::storage::Random;

use crate::support::{Shell, keys, lines};

#[test]
fn counts_are_the_exact_number_of_copies() {
    let shell = Shell::new();
    let names = keys("key", 500);
    let mut random = Random::new(1);
    let mut pick = || random.below(500);
    let input: Vec<String> = (0..20_000).map(|_| names[pick().min(pick())].clone()).collect();
    let mut exact = HashMap::new();
    for name in &input {
        *exact.entry(name).or_insert(0_u64) += 1;
    }
    shell.build("set", &input, "--fpr 1e-9 --keys 600");
    let counted = shell.run_with("count set", &lines(&names));
    let expected: String =
        names.iter().map(|name| format!("{}\t{name}\n", exact.get(name).unwrap_or(&0))).collect();
    assert_eq!(counted.text(), expected);
}

#[test]
fn removing_absent_keys_gives_exit_code_1_and_removes_the_others() {
    let shell = Shell::with_filter("set", &keys("key", 100), "--fpr 1e-9");
    let mut half = keys("key", 50);
    half.extend(keys("absent", 20));
    let ran = shell.run_with("remove set", &lines(&half));
    assert_eq!((ran.code, ran.text()), (1, "removed    50\nnot found  20\nkeys       50 left\n"));
    let again = shell.run_with("remove set", &lines(&half));
    assert_eq!(
        (again.code, again.text()),
        (1, "removed    0\nnot found  70\nkeys       50 left\n")
    );
}

#[test]
fn an_add_to_a_full_filter_changes_nothing_and_gives_exit_code_3() {
    let shell = Shell::with_filter("set", &keys("old", 1_000), "--keys 1k");
    let before = shell.read("set");
    let ran = shell.run_with("add set", &lines(&keys("new", 10_000)));
    assert_eq!(ran.code, 3);
    ran.says("full").says("unchanged").says("koel grow set");
    assert!(ran.out.is_empty());
    assert!(shell.read("set") == before);
}

#[test]
fn concurrent_edits_are_all_kept() {
    let shell = Shell::with_filter("set", &[], "--keys 10k");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let shell = &shell;
            scope.spawn(move || {
                for round in 0..5 {
                    let keys = keys(&format!("{writer}-{round}"), 10);
                    shell.ok_with("add set", &lines(&keys));
                }
            });
        }
    });
    assert_eq!(shell.ok("info --json set").json()["keys"], 400);
}
