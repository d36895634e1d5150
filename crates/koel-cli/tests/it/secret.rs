//! `--secret`: filters for keys that an adversary chooses.

use crate::support::{Shell, keys, lines};

/// A folder with a list and files of two secrets.
fn with_secrets() -> Shell {
    let shell = Shell::with("list", lines(&keys("key", 3_000)));
    shell.write("raw", [0x5a; 16]);
    shell.write("digits", "5A".repeat(16) + "\n");
    shell
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_secret_is_bytes_digits_or_random_for_every_way_to_make_a_filter() {
    let shell = with_secrets();
    let list = shell.read("list");
    for option in ["--secret=raw", "--secret=digits", "--secret"] {
        shell.ok(&format!("build list -o set --grow {option}"));
        shell.ok("grow set --keys 10k");
        assert!(shell.ok("check set list").out == list, "{option}");
        shell.ok_with(&format!("build -o piped {option}"), &list);
        assert!(shell.ok("check piped list").out == list, "{option}");
        let dedup = shell.ok(&format!("dedup list list --fpr 1e-9 {option}"));
        assert!(dedup.out == list, "{option}");
    }
}

#[test]
fn two_forms_of_a_secret_are_one_and_two_random_ones_are_two() {
    let shell = with_secrets();
    for (name, option) in [
        ("raw.koel", "--secret=raw"),
        ("digits.koel", "--secret=digits"),
        ("random", "--secret"),
        ("again", "--secret"),
        ("open", ""),
    ] {
        shell.ok(&format!("build list --grow -o {name} {option}"));
    }
    shell.ok("merge raw.koel digits.koel -o both");
    shell.ok("diff raw.koel digits.koel");
    for (one, two) in [("random", "again"), ("raw.koel", "open"), ("open", "raw.koel")] {
        for words in ["merge -o new", "diff", "similar"] {
            shell.run(&format!("{words} {one} {two}")).fails("--secret");
        }
    }
}

#[test]
fn the_secret_is_stored_but_never_printed() {
    let shell = with_secrets();
    shell.write("odd", (0x61..0x71).collect::<Vec<u8>>());
    shell.ok("build list -o set --secret=odd");
    let (key, stored) = (shell.read("odd"), shell.read("set"));
    assert!(stored.windows(16).any(|bytes| bytes == key));
    for words in ["info set", "info --json set", "check -v set absent", "merge set list -o new"] {
        let ran = shell.run(words);
        let printed = [&ran.out[..], ran.err.as_bytes()].concat().to_ascii_lowercase();
        for form in [key.clone(), hex(&key).into_bytes()] {
            assert!(!printed.windows(form.len()).any(|bytes| bytes == form), "{words}");
        }
    }
    assert!(shell.ok("info set").text().contains("siphash-1-3 (keyed)"));
}

#[test]
fn a_wrong_secret_is_an_error_of_one_line() {
    let shell = with_secrets();
    for (words, says) in [
        ("build list -o new --secret=absent", "no such file"),
        ("build -o new --secret=list", "neither 16 bytes nor 32 hexadecimal digits"),
        ("build --secret raw list -o new", "give --secret=raw"),
        ("dedup --secret digits", "give --secret=digits"),
        ("build list -o new --secret=raw --seed 7", "cannot be used with"),
        ("build list -o new --secret=", "--secret"),
    ] {
        shell.run(words).fails(says);
    }
    assert!(!shell.path("new").exists());
}

#[cfg(unix)]
#[test]
fn a_filter_with_a_secret_is_for_its_owner_until_the_owner_decides() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    let shell = with_secrets();
    let mode = |name: &str| fs::metadata(shell.path(name)).unwrap().permissions().mode() & 0o777;
    shell.ok("build list -o set");
    shell.ok("build list -o set --secret=raw");
    assert_eq!(mode("set"), 0o600);
    shell.ok("merge set set -o both");
    assert_eq!(mode("both"), 0o600);
    shell.write("both", "");
    fs::set_permissions(shell.path("both"), Permissions::from_mode(0o666)).unwrap();
    shell.ok("merge set set -o both");
    assert_eq!(mode("both"), 0o600);
    fs::set_permissions(shell.path("set"), Permissions::from_mode(0o640)).unwrap();
    for words in ["add set list", "grow set", "build list -o set --secret"] {
        shell.ok(words);
        assert_eq!(mode("set"), 0o640, "{words}");
    }
}
