//! Growable filters: built with `--grow`, growing when full, and changed by `koel grow`.

use crate::support::{Shell, keys, lines};

/// The number of false positives among a hundred thousand absent keys.
fn false_positives(shell: &Shell, set: &str) -> f64 {
    let ran = shell.run_with(&format!("check -c {set}"), &lines(&keys("absent", 100_000)));
    ran.text().trim().parse().unwrap()
}

fn number(value: &serde_json::Value, field: &str) -> f64 {
    value[field].as_f64().unwrap()
}

#[test]
fn a_pipe_of_any_length_fills_a_growable_filter_at_the_requested_rate() {
    let shell = Shell::new();
    for count in [0, 1, 3_000, 100_000] {
        for options in ["", "--prefer fast", "--fpr 0.01"] {
            let members = keys("member", count);
            shell.build("set", &members, &format!("--grow {options}"));
            let found = shell.run_with("check -c set", &lines(&members));
            assert_eq!(found.text().trim(), count.to_string(), "{options}");
            let promised: f64 = if options.contains("0.01") { 1000.0 } else { 100.0 };
            let wrong = false_positives(&shell, "set");
            assert!(wrong < promised + 5.0 * promised.sqrt(), "{count} {options}: {wrong}");
        }
    }
    let info = shell.ok("info --json set").json();
    assert_eq!((&info["growable"], &info["has_grown"]), (&true.into(), &true.into()));
    assert!(info["counter_limit"].is_null() && number(&info, "bits_per_key") < 20.0, "{info}");
}

#[test]
fn an_empty_growable_filter_has_no_bits_per_key() {
    let shell = Shell::new();
    let built = shell.run_with("build --grow -o set", b"");
    assert!(
        built.text().contains("bits per key         - for 0 distinct keys"),
        "{}",
        built.text()
    );
    let info = shell.ok("info set");
    assert!(info.text().contains("bits per key         -\n"), "{}", info.text());
}

#[test]
fn a_short_pipe_needs_no_temporary_file() {
    let shell = Shell::new();
    for words in ["build -o set", "build --grow -o set", "dedup"] {
        let mut command = shell.command();
        command.args(words.split(' ')).env("TMPDIR", shell.path("absent"));
        let output = command.stdin(std::process::Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_full_fixed_filter_takes_any_number_of_keys_after_koel_grow() {
    let shell = Shell::new();
    let (old, new) = (keys("old", 1_000), keys("new", 50_000));
    shell.build("set", &old, "--keys 1k");
    let before = shell.read("set").len();
    assert_eq!(shell.run_with("add set", &lines(&new)).code, 3);
    assert!(shell.ok("info set").text().contains("koel grow"));
    let ran = shell.ok("grow set --json").json();
    assert_eq!((&ran["keys"], &ran["size_in_bytes"]), (&1_000.into(), &before.into()));
    assert_eq!(shell.run_with("add set --json", &lines(&new)).json()["added"], 50_000);
    let all = lines(&[old, new].concat());
    assert_eq!(shell.run_with("check -vq set", &all).code, 1, "all are found");
    assert!(false_positives(&shell, "set") < 135.0 + 5.0 * 135.0_f64.sqrt());
    assert_eq!(shell.run_with("remove set --json", &all).json()["removed"], 51_000);
    assert_eq!(shell.ok("info --json set").json()["slots_in_use"], 0);
}

#[test]
fn reserved_room_is_available_and_can_be_freed() {
    let shell = Shell::with_filter("set", &keys("key", 1_000), "--keys 1k");
    let roomy = number(&shell.ok("grow set --keys 100k --json").json(), "size_in_bytes");
    let added = shell.run_with("add set", &lines(&keys("new", 99_000)));
    assert_eq!(added.code, 0);
    // The file grows only by the counters of a few keys with equal fingerprints.
    let more = shell.read("set").len() as f64 - roomy;
    assert!((0.0..5_000.0).contains(&more), "{more}");
    assert_eq!(shell.run_with("remove set", &lines(&keys("new", 99_000))).code, 0);
    let small = number(&shell.ok("grow set --shrink --json").json(), "size_in_bytes");
    assert!(small * 50.0 < roomy, "{small} of {roomy}");
    assert_eq!(shell.run_with("check -vq set", &lines(&keys("key", 1_000))).code, 1);
}

#[test]
fn a_filter_that_cannot_grow_at_its_rate_stays_unchanged() {
    let shell = Shell::with_filter("set", &keys("key", 10), "--keys 10 --fpr 1e-9");
    let before = shell.read("set");
    shell.run("grow set").fails("unchanged");
    assert!(shell.read("set") == before);
}

#[test]
fn plan_info_and_add_tell_correctly_which_filters_can_grow() {
    let shell = Shell::with("list", lines(&keys("key", 300)));
    shell.write("more", lines(&keys("more", 3_000)));
    for (row, prefer) in ["small", "fast"].iter().enumerate() {
        for fpr in ["0.1", "1e-6", "3e-7", "1e-7", "3e-8", "5e-9"] {
            let case = format!("{prefer} {fpr}");
            shell.ok(&format!("build list -o set --keys 300 --fpr {fpr} --prefer {prefer}"));
            let planned = shell.ok(&format!("plan --keys 300 --fpr {fpr} --json")).json();
            let said = shell.ok("info set").text().contains("enable with `koel grow`");
            let full = shell.run("add set more").err;
            let grows = shell.run("grow set").code == 0;
            assert_eq!(planned[row]["can_grow"], grows, "{case}");
            assert_eq!(said, grows, "{case}");
            assert_eq!(full.contains("growable with `koel grow set`"), grows, "{case}: {full}");
        }
    }
}

#[test]
fn the_error_for_a_refused_rate_names_a_possible_one() {
    let shell = Shell::new();
    for prefer in ["small", "fast"] {
        for options in ["--keys 300", "--keys 300 --grow", "--keys 7M --grow", "--grow"] {
            let build = format!("build -o set --prefer {prefer} {options}");
            for fpr in ["1e-30", "4e-8"] {
                let ran = shell.run(&format!("{build} --fpr {fpr}"));
                let Some((_, advice)) = ran.err.split_once("; ask for ") else { continue };
                let rate = advice.split_once(" or more").unwrap().0;
                assert!(rate.parse::<f64>().unwrap() > fpr.parse().unwrap(), "{}", ran.err);
                shell.ok(&format!("{build} --fpr {rate}"));
            }
        }
    }
}

#[test]
fn a_grown_filter_merges_into_a_fixed_one_only_after_koel_grow() {
    let shell = Shell::with_filter("fixed", &keys("a", 1_000), "--keys 1k");
    shell.build("grown", &keys("b", 5_000), "--keys 1k --grow");
    shell.run("merge fixed grown -o all").fails("koel grow fixed");
    shell.ok("grow fixed");
    shell.ok("merge fixed grown -o all");
    assert_eq!(shell.ok("info --json all").json()["keys"], 6_000);
}

#[test]
fn a_growable_filter_is_at_most_as_large_as_planned() {
    let shell = Shell::new();
    for count in [1_000, 3_000, 10_000, 14_000, 60_000] {
        for fpr in ["0.01", "0.001"] {
            let plan = shell.ok(&format!("plan --keys {count} --fpr {fpr} --json")).json();
            assert!(plan[2]["filter"].as_str().unwrap().starts_with("Koel, growable"));
            shell.build("set", &keys("key", count), &format!("--grow --fpr {fpr}"));
            let share = shell.read("set").len() as f64 / number(&plan[2], "memory_in_bytes");
            assert!(share <= 1.0 && (share > 0.9 || count == 1_000), "{count} {fpr}: {share}");
        }
    }
}
