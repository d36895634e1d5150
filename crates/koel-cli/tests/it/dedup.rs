//! `koel dedup`, compared with exact deduplication.

use std::collections::HashSet;

use testkit::storage::Random;

use crate::support::{Shell, keys, lines};

/// 60,000 lines of 10,000 names, in random order.
fn repeated() -> Vec<String> {
    let names = keys("line", 10_000);
    let mut random = Random::new(3);
    (0..60_000).map(|_| names[random.below(names.len())].clone()).collect()
}

fn exact(input: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    input.iter().filter(|line| seen.insert(line.as_str())).cloned().collect()
}

#[test]
fn each_line_is_printed_once_in_order_as_by_an_exact_program() {
    let shell = Shell::new();
    let input = repeated();
    shell.write("input", lines(&input));
    let expected = lines(&exact(&input));
    for words in ["dedup input", "dedup input --keys 10k", "dedup --fpr 1e-9 --prefer small input"]
    {
        assert!(shell.ok(words).out == expected, "{words}");
    }
    assert!(shell.run_with("dedup", &lines(&input)).out == expected, "by pipe");
}

#[test]
fn as_many_lines_are_dropped_wrongly_as_expected_and_none_is_printed_twice() {
    let shell = Shell::new();
    let input = repeated();
    let exact = exact(&input).len() as f64;
    for options in ["--fpr 0.03 --keys 10k", "--fpr 0.05"] {
        let (mut dropped, mut expected) = (0.0, 0.0);
        for seed in 0..20 {
            let words = format!("dedup {options} --seed {seed} --json");
            let ran = shell.run_with(&words, &lines(&input));
            let report: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
            let printed = report["printed"].as_f64().unwrap();
            let distinct = ran.text().lines().collect::<HashSet<_>>().len();
            assert_eq!([ran.text().lines().count() as f64, distinct as f64], [printed; 2]);
            assert_eq!(report["read"], 60_000);
            assert_eq!(report["dropped"].as_f64().unwrap(), 60_000.0 - printed);
            dropped += exact - printed;
            expected += report["expected_wrongly_dropped"].as_f64().unwrap();
        }
        let deviations = (dropped - expected) / expected.sqrt();
        assert!(deviations.abs() < 4.0, "{dropped} dropped, {expected} expected");
    }
}

#[test]
fn a_full_filter_gives_exit_code_3_after_the_processed_lines_are_printed() {
    let shell = Shell::new();
    let input = keys("line", 10_000);
    let ran = shell.run_with("dedup --keys 100", &lines(&input));
    assert_eq!(ran.code, 3);
    ran.says("--keys");
    let printed = ran.text().lines().count();
    ran.says(&format!("first {printed} lines"));
    assert!(ran.text().lines().eq(input.iter().take(printed).map(String::as_str)));
}

#[test]
fn a_filter_that_grows_prefers_speed_unless_told_otherwise_and_a_fixed_one_size() {
    let shell = Shell::with("input", lines(&keys("line", 20_000)));
    // Which lines are dropped wrongly depends on the buckets.
    let printed = |options: &str| shell.ok(&format!("dedup input --fpr 0.05 {options}")).out;
    assert!(printed("") == printed("--prefer fast") && printed("") != printed("--prefer small"));
    let fixed = ["", "--prefer small", "--prefer fast"]
        .map(|prefer| printed(&format!("--keys 20k {prefer}")));
    assert!(fixed[0] == fixed[1] && fixed[0] != fixed[2]);
}

#[test]
fn a_pipe_whose_lines_would_wait_for_its_end_is_refused() {
    let shell = Shell::new();
    let ran = shell.run_with("dedup --fpr 1e-9", b"a\n");
    assert_eq!((ran.code, ran.text(), ran.err.lines().count()), (2, "", 1), "{}", ran.err);
    ran.says("--keys");
    assert_eq!(shell.run_with("dedup --fpr 1e-9 --keys 9", b"a\na\n").text(), "a\n");
    shell.write("list", "a\na\n");
    assert_eq!(shell.ok("dedup --fpr 1e-9 list").text(), "a\n");
}

/// The output was lost, and the exit code 0.
#[cfg(unix)]
#[test]
fn a_closed_standard_output_is_an_error_where_something_is_printed() {
    use crate::support::bash;

    let shell = Shell::with("list", "a\n");
    shell.ok("build list -o set");
    for (line, code) in [
        ("dedup list", 2),
        ("check set list", 2),
        ("check -v set list", 1),
        ("check -q set list", 0),
        ("check -c set list", 2),
        ("count set list", 2),
        ("info set", 2),
        ("build list -o -", 2),
        ("--help", 2),
    ] {
        let ran = bash(&shell, &format!("$K {line} >&-"));
        assert_eq!(ran.code, code, "{line}: {}", ran.err);
        let says = "cannot write standard output: it is closed";
        assert_eq!(ran.err.contains(says), code == 2, "{line}: {}", ran.err);
        let ran = bash(&shell, &format!("$K {line} > /dev/null"));
        assert!(ran.code < 2, "{line}: {}", ran.err);
    }
}
