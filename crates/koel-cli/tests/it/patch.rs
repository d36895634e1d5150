//! `koel diff --patch`, `koel patch` and `koel build --like`.

use crate::support::{Shell, keys, lines};

/// Two nights of a list: `old` is published, `new` is built like it. 60 keys go and 40 come.
fn two_nights(options: &str) -> Shell {
    let shell = Shell::with_filter("old", &keys("key", 2000), options);
    shell.write("list.txt", lines(&[&keys("key", 2000)[60..], &keys("new", 40)[..]].concat()));
    shell.ok("build list.txt --like old -o new");
    shell
}

#[test]
fn a_patch_comes_from_a_file_or_a_pipe_and_changes_a_filter_in_place() {
    let shell = two_nights("--keys 3000");
    let report = shell.ok("diff old new --patch patch");
    assert!(report.text().contains("patch"), "{}", report.text());
    assert!(shell.read("patch").len() < 500, "{}", shell.read("patch").len());
    shell.ok("patch old patch -o patched");
    let report = shell.run_with("patch old - -o other --json", &shell.read("patch")).json();
    assert_eq!(
        (&report["keys"], &report["patch_bytes"]),
        (&1980.into(), &shell.read("patch").len().into())
    );
    assert_eq!(report["entries_removed"], 60);
    assert_eq!(shell.read("other"), shell.read("patched"));
    // In place, and the next night.
    shell.ok("patch old patch -o old");
    assert_eq!(shell.read("old"), shell.read("patched"));
    let piped = shell.ok("diff patched new --patch -");
    assert_eq!(&piped.out[..8], b"koelptch");
    piped.says("added");
}

#[test]
fn a_filter_like_another_has_its_settings_its_secret_and_its_lines() {
    let shell = Shell::with("hosts", "0.0.0.0 Listed.Example\n");
    shell.ok("build --format hosts hosts --keys 1000 --fpr 1e-4 --prefer fast --secret -o old");
    shell.write("more", "0.0.0.0 listed.example\n0.0.0.0 More.Example\n");
    shell.ok("build more --like old -o new");
    let [old, new] = ["old", "new"].map(|name| shell.read(name));
    // The header up to the keys: settings, secret, capacity and rate.
    assert_eq!(old[..80], new[..80]);
    assert_eq!(shell.ok("check new more --count").text().trim(), "2");
    shell.ok("diff old new --patch patch");
    assert!(!shell.read("patch").windows(16).any(|part| *part == old[48..64]));
    for options in ["--keys 5", "--fpr 1%", "--seed 1", "--secret", "--grow", "--prefer small"] {
        shell.run(&format!("build more --like old {options} -o no")).fails("--like");
    }
    shell.build("grown", &keys("key", 3000), "--grow");
    shell.run("build more --like grown -o no").fails("--keys");
}

#[test]
fn what_cannot_be_patched_is_refused_with_what_to_do_and_nothing_is_written() {
    let shell = two_nights("--keys 3000");
    shell.ok("diff old new --patch patch");
    let mut damaged = shell.read("patch");
    damaged[70] ^= 1;
    shell.write("damaged", damaged);
    shell.write("cut", &shell.read("patch")[..90]);
    shell.build("longer", &keys("key", 100), "--keys 4000");
    shell.build("else", &keys("else", 100), "--keys 3000");
    for (words, says) in [
        ("patch old damaged -o no", "damaged"),
        ("patch old cut -o no", "cut short"),
        ("patch old new -o no", "not a patch"),
        ("patch new patch -o no", "already"),
        ("patch else patch -o no", "get the whole new filter"),
        ("patch longer patch -o no", "other settings"),
        ("patch list.txt patch -o no", "not a Koel filter"),
        ("patch old nothing -o no", "nothing"),
        ("diff old longer --patch no", "--like old"),
        ("diff old new --patch list.txt", "not a patch"),
        ("diff old new --patch new", "not a patch"),
    ] {
        let ran = shell.run(words);
        ran.fails(says);
        assert!(ran.err.lines().count() == 1 && !shell.path("no").exists(), "{words}");
    }
}

/// Allowed names were blocked again from the second night on, without a word.
#[test]
fn a_filter_like_another_keeps_its_corrections_but_hides_no_line_of_its_list() {
    let listed = keys("key", 5000);
    let shell = Shell::with("monday", lines(&listed));
    shell.write("allowed", lines(&keys("allowed", 20_000)));
    shell.ok("build monday --keys 9000 --fpr 1% --never allowed -o old");
    let corrections = |name: &str| {
        shell.ok(&format!("info --json {name}")).json()["corrections"].as_u64().unwrap()
    };
    let before = corrections("old");
    assert!(before > 50);
    // Some allowed names are listed on the next night.
    let promoted = keys("allowed", 3000);
    shell.write("tuesday", lines(&[&listed[19..], &promoted].concat()));
    let ran = shell.ok("build tuesday --like old -o new");
    let kept = corrections("new");
    assert!(kept < before && kept > before / 2, "{kept} of {before}");
    let row = format!("{kept} kept from old; new keys may match other allowed names");
    assert!(ran.text().contains(&row) && ran.text().contains("--never again"), "{}", ran.text());
    assert_eq!(shell.ok("check -c new tuesday").text(), "7981\n");
    assert_eq!(shell.ok("build tuesday --like old -o new --json").json()["kept_corrections"], kept);

    let report = shell.ok("build tuesday --like old --never allowed -o new --json").json();
    assert_eq!(report["kept_corrections"], kept);
    assert_eq!(corrections("new"), kept + report["never"]["corrections"].as_u64().unwrap());
    assert_eq!(report["never"]["conflicts"], 3000);
    assert_eq!(shell.ok("check -c new allowed").text(), "3000\n");
    // Without corrections there is nothing to say.
    shell.ok("build monday --keys 9000 --fpr 1% -o plain");
    assert!(!shell.ok("build tuesday --like plain -o new").text().contains("correction"));
}

#[test]
fn a_patch_of_a_list_that_its_reader_has_corrected_says_how_to_do_both() {
    let shell = two_nights("--keys 3000 --fpr 2%");
    shell.ok("diff old new --patch patch");
    shell.write("mine", shell.read("old"));
    shell.write("allowed", lines(&keys("allowed", 5000)));
    shell.ok("refute mine allowed");
    shell.run("patch mine patch -o mine").fails("refute in a copy of that");
    let other = shell.run("patch new patch -o no");
    assert!(other.code == 2 && !other.err.contains("refute"), "{}", other.err);
}
