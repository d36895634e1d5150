//! `koel build` and `koel check`.

use crate::support::{Shell, copies, keys, lines};

#[test]
fn every_member_is_found_and_absent_keys_at_the_requested_rate() {
    let shell = Shell::new();
    let (members, absent) = (keys("member", 20_000), keys("absent", 100_000));
    shell.write("members", lines(&members));
    shell.write("absent", lines(&absent));
    for options in ["", "--prefer fast", "--fpr 0.01 --seed 7", "--fpr 1e-4 --keys 20k", "--unique"]
    {
        shell.ok(&format!("build members -o set {options}"));
        assert_eq!(shell.ok("check set members").out, lines(&members), "{options}");
        let rate: f64 = if options.contains("0.01") { 0.01 } else { 0.001 };
        let wrong: f64 = shell.run("check -c set absent").text().trim().parse().unwrap();
        let expected = rate * 100_000.0;
        assert!(wrong < expected + 5.0 * expected.sqrt(), "{options}: {wrong}");
    }
}

#[test]
fn inverting_selects_exactly_the_other_lines() {
    let shell = Shell::new();
    let all = keys("all", 30_000);
    let members: Vec<String> = all.iter().step_by(3).cloned().collect();
    shell.build("set", &members, "--fpr 0.02");
    shell.write("all", lines(&all));
    let selected = shell.ok("check set all").out;
    let inverted = shell.ok("check -v set all").out;
    let mut merged: Vec<&[u8]> = selected.split(|&b| b == b'\n').collect();
    merged.extend(inverted.split(|&b| b == b'\n'));
    let mut expected: Vec<&[u8]> = all.iter().map(String::as_bytes).chain([&b""[..]; 2]).collect();
    merged.sort_unstable();
    expected.sort_unstable();
    assert!(merged == expected);
    let count = |words: &str| -> usize { shell.ok(words).text().trim().parse().unwrap() };
    assert_eq!(count("check -c set all") + count("check -vc set all"), all.len());
}

#[test]
fn the_exit_code_tells_whether_a_line_was_selected() {
    let shell = Shell::with_filter("set", &keys("member", 100), "--fpr 1e-9");
    let member = lines(&keys("member", 1));
    for (words, input, code, out) in [
        ("check set", &member[..], 0, &member[..]),
        ("check set", b"absent\n", 1, b""),
        ("check -v set", b"absent\n", 0, b"absent\n"),
        ("check -v set", &member, 1, b""),
        ("check -c set", b"absent\n", 1, b"0\n"),
        ("check -q set", &member, 0, b""),
        ("check -q set", b"absent\n", 1, b""),
        ("check set", b"", 1, b""),
    ] {
        let ran = shell.run_with(words, input);
        assert_eq!((ran.code, &ran.out[..]), (code, out), "{words}");
    }
}

#[test]
fn a_quiet_check_stops_at_the_first_match() {
    let shell = Shell::with_filter("set", &keys("member", 10), "");
    shell.write("first", lines(&keys("member", 1)));
    // The second input cannot be read; it is never opened.
    shell.write("second", [0x1f, 0x8b, 8, 0, 1, 2, 3]);
    assert_eq!(shell.run("check -q set first second").code, 0);
    assert_eq!(shell.run("check set first second").code, 2);
}

#[test]
fn keys_are_the_exact_bytes_of_their_line_if_carriage_returns_are_kept() {
    let shell = Shell::new();
    let input: &[u8] = b"plain\nreturn\r\n\nnot\xffutf8\n last ";
    shell.write("input", input);
    shell.ok("build input -o set --fpr 1e-9 --keep-cr");
    let with_newline = [input, b"\n"].concat();
    assert_eq!(shell.ok("check set input").out, with_newline);
    let others = b"return\nPLAIN\nlast\nplain \nnot\n";
    assert_eq!(shell.run_with("check set", others).code, 1);
}

#[test]
fn equal_keys_make_equal_bytes_from_a_file_a_pipe_or_a_redirection() {
    let shell = Shell::new();
    let keys = keys("key", 5_000);
    shell.write("input", lines(&keys));
    shell.ok("build input -o by-file --keys 5k");
    shell.build("by-dash", &keys, "- --keys 5k");
    let redirected = std::fs::File::open(shell.path("input")).unwrap();
    let status = shell.command().args(["build", "-o", "by-redirection"]).stdin(redirected).output();
    assert!(status.unwrap().status.success());
    let streamed = shell.ok("build input -o -");
    assert!(streamed.err.contains("5,000"), "the report goes to standard error");
    assert!(streamed.out == shell.read("by-file"));
    for name in ["by-dash", "by-redirection"] {
        assert!(shell.read(name) == shell.read("by-file"), "{name}");
    }
}

#[test]
fn an_empty_input_makes_an_empty_filter_and_a_warning() {
    let shell = Shell::new();
    let report = shell.ok("build -o set --json").json();
    assert!(report["keys"] == 0 && report["warning"].is_string(), "{report}");
    let ran = shell.ok("build -o set");
    assert!(ran.text().contains("warning              the filter is empty"), "{}", ran.text());
    assert_eq!(shell.run_with("check set", b"\nanything\n").code, 1);
}

#[test]
fn the_report_counts_copies_and_estimates_distinct_keys() {
    let shell = Shell::with("input", lines(&copies(&keys("key", 20_000), 5)));
    for options in ["", "--keys 20k"] {
        let mut sum = 0.0;
        for seed in 0..10 {
            let words = format!("build input -o set --json --fpr 0.03 --seed {seed} {options}");
            let report = shell.ok(&words).json();
            assert_eq!(report["lines"], 100_000);
            sum += report["distinct_estimate"].as_f64().unwrap() - 20_000.0;
        }
        // Each of 200,000 keys was a false positive with at most 3 %: four standard deviations.
        let bound = 4.0 * (200_000.0_f64 * 0.03).sqrt();
        assert!(sum.abs() < bound, "{options}: {sum}, bound {bound}");
    }
    let unique = shell.ok("build input -o set --unique --json").json();
    // Keys that were taken for others are not inserted, and not estimated either.
    assert_eq!(unique["distinct_estimate"], unique["keys"]);
    let kept = unique["keys"].as_f64().unwrap();
    assert!(kept <= 20_000.0 && kept > 19_900.0, "{kept}");
}

#[test]
fn the_hint_for_repeated_lines_gives_a_smaller_filter_with_all_keys() {
    let shell = Shell::new();
    let input: Vec<String> = copies(&keys("key", 3_000), 4);
    shell.write("input", lines(&input));
    let report = shell.ok("build input -o large");
    let hint = report.text().lines().find(|line| line.starts_with("hint")).unwrap().to_owned();
    let options = hint.split_whitespace().skip(1).take(3).collect::<Vec<_>>().join(" ");
    assert!(options.starts_with("--keys 3") && options.ends_with("--unique"), "{hint}");
    shell.ok(&format!("build input -o small {options}"));
    assert!(shell.read("small").len() * 3 < shell.read("large").len());
    assert_eq!(shell.ok("check set input".replace("set", "small").as_str()).out, lines(&input));
    let quiet = shell.ok(&format!("build input -o small {options}"));
    assert!(!quiet.text().contains("hint"), "{}", quiet.text());
    assert!(!shell.ok("build input --grow -o small").text().contains("hint"));
}

#[test]
fn a_replaced_file_keeps_its_permissions_and_no_temporary_file_is_left() {
    let shell = Shell::with_filter("set", &keys("key", 10), "");
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let mode = |name: &str| shell.path(name).metadata().unwrap().permissions().mode() & 0o777;
        shell.write("ordinary", "");
        assert_eq!(mode("set"), mode("ordinary"), "a new filter is as readable as any new file");
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(shell.path("set"), private).unwrap();
        symlink("set", shell.path("link")).unwrap();
        shell.build("link", &keys("other", 20), "");
        assert_eq!(mode("set"), 0o600);
        assert!(shell.path("link").is_symlink());
        assert_eq!(shell.ok("info --json set").json()["keys"], 20);
    }
    let names = std::fs::read_dir(shell.folder()).unwrap();
    assert!(names.flatten().all(|entry| !entry.file_name().to_string_lossy().starts_with(".koel")));
}

/// Also the first keys of a filter that has grown, which later keys match most often.
#[test]
fn removed_keys_are_found_again_at_the_stated_rate() {
    let shell = Shell::new();
    let all = keys("key", 200_000);
    shell.write("first", lines(&all[..1000]));
    shell.build("set", &all, "--grow");
    shell.ok("remove set first");
    let stated = shell.ok("info --json set").json()["fpr_expected"].as_f64().unwrap();
    let found: f64 = shell.run("check -c set first").text().trim().parse().unwrap();
    assert!(found <= 1000.0 * stated + 4.0 * (1000.0 * stated).sqrt() + 1.0, "{found}, {stated}");
}

/// Damage hides keys, so "absent" needs the checksum, and a found key does not.
#[test]
fn a_large_damaged_filter_gives_no_absent_key() {
    let shell = Shell::with("list", "a\nb\n");
    shell.ok("build list --keys 12M -o set");
    let mut bytes = shell.read("set");
    assert!(bytes.len() > 17 << 20);
    let (table, last) = (192, bytes.len() - 1);
    bytes[last] ^= 1;
    shell.write("damaged", &bytes);
    bytes[table..].fill(0);
    shell.write("zeros", &bytes);
    for name in ["damaged", "zeros"] {
        for words in ["check", "check -v", "check -q", "check -c", "count"] {
            shell.run_with(&format!("{words} {name}"), b"x\n").fails(name);
        }
        assert_eq!(shell.run_with(&format!("check --no-verify {name}"), b"x\n").code, 1);
    }
    for words in ["check -q damaged", "check --verify -q damaged", "count --verify damaged"] {
        let input = if words.contains("--verify") { &b"a\n"[..] } else { b"a\nx\n" };
        assert_eq!(shell.run_with(words, input).code, 2, "{words}");
    }
    assert_eq!(shell.run_with("check damaged", b"a\nb\n").text(), "a\nb\n");
    assert_eq!(shell.run_with("check -q set", b"x\n").code, 1);
}

/// The recipe of `koel help`: of 100,000 new lines, 89 were missing at the usual rate.
#[test]
fn the_lines_that_are_new_are_found_without_one_missing() {
    let shell = Shell::with("monday.txt", lines(&keys("old", 20_000)));
    shell.write(
        "tuesday.txt",
        lines(&[&keys("old", 20_000)[5000..], &keys("new", 60_000)[..]].concat()),
    );
    shell.ok("build monday.txt --never tuesday.txt -o monday.koel");
    let new = shell.ok("check -v monday.koel tuesday.txt");
    assert!(new.text().as_bytes() == lines(&keys("new", 60_000)));
    let help = shell.ok("help");
    for recipe in ["--never tuesday.txt -o monday.koel", "--grow --fpr 1e-6 -o seen.koel"] {
        assert!(help.text().contains(recipe), "{recipe}");
    }
}

#[test]
fn a_check_reports_its_numbers_as_json() {
    let shell = Shell::with_filter("set", &keys("in", 100), "--fpr 1e-9");
    shell.write("list", lines(&[&keys("in", 10)[..], &keys("out", 30)[..]].concat()));
    for (words, selected) in [("check set list --json", 10), ("check -v set list --json", 30)] {
        let report = shell.ok(words).json();
        assert_eq!((&report["lines"], &report["selected"]), (&40.into(), &selected.into()));
        assert_eq!(report["skipped"]["empty"], 0, "{report}");
    }
    shell.run("check set list --json -c").fails("cannot be used with");
    assert_eq!(shell.run_with("check set --json", b"no\n").code, 1);
}
