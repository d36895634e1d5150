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
fn a_patched_filter_is_the_new_one_and_equal_for_everybody() {
    let shell = two_nights("--keys 3000");
    let report = shell.ok("diff old new --patch patch");
    assert!(report.text().contains("patch"), "{}", report.text());
    assert!(shell.read("patch").len() < 500, "{}", shell.read("patch").len());
    let old = shell.read("old");
    shell.ok("patch old patch -o patched");
    assert_eq!(shell.run("diff patched new").code, 0);
    assert_eq!(shell.ok("check patched list.txt --count").text().trim(), "1980");
    assert_eq!(shell.read("old"), old);
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
