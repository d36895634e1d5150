//! A filter with more keys than it was built for: every verb says that its rate is too high.

use serde_json::Value;

use crate::support::{Shell, keys, lines};

/// A filter `small` built for 5 keys, another one `other`, and lists of 150 keys each.
fn small_filters() -> Shell {
    let shell = Shell::new();
    for name in ["list", "more"] {
        shell.write(name, lines(&keys(name, 150)));
    }
    shell.build("small", &keys("few", 5), "--keys 5 --fpr 0.6%");
    shell.build("other", &keys("list", 150), "--keys 5 --fpr 0.6%");
    shell
}

/// Runs `words` with and without `--json`. Returns both reports.
fn reports(words: &str) -> (String, Value) {
    let [text, json] = ["", " --json"].map(|json| {
        let ran = small_filters().ok(&format!("{words}{json}"));
        // Lines or a filter went to standard output.
        let is_on_stderr = words.starts_with("dedup") || words.contains("-o -");
        if is_on_stderr { ran.err } else { ran.text().to_owned() }
    });
    (text, serde_json::from_str(&json).unwrap())
}

#[test]
fn every_verb_that_fills_a_filter_beyond_its_capacity_warns_and_names_both_rates() {
    for words in [
        "build list -o set --keys 5 --fpr 0.6%",
        "build list -o - --keys 5 --fpr 0.6%",
        "build list -o set --keys 5 --fpr 0.6% --unique",
        "add small list",
        "merge other small -o set",
        "grow other",
        "dedup list --keys 5 --fpr 0.6%",
    ] {
        let (text, json) = reports(words);
        let warning = json["warning"].as_str().unwrap();
        assert!(text.contains("warning") && text.contains(warning), "{words}: {text}");
        assert!(warning.contains("not 0.6 %"), "{words}: {warning}");
        assert!(warning.contains("built for 5 keys and holds about 1"), "{words}: {warning}");
    }
}

#[test]
fn a_filter_within_its_capacity_gives_no_warning() {
    for words in [
        "build list -o set --keys 150",
        "build list more -o set",
        "build list -o set --grow",
        "merge small small -o set",
        "grow small",
        "dedup list --keys 150",
        "dedup list more",
    ] {
        let (text, json) = reports(words);
        assert!(json["warning"].is_null() && !text.contains("warning"), "{words}: {text}");
    }
}

#[test]
fn no_size_or_rate_gives_a_warning_when_exactly_full() {
    let shell = Shell::new();
    for count in [1, 10, 100, 1_000, 30_000] {
        let input = lines(&keys("key", count));
        for options in ["--fpr 0.4", "--fpr 0.03", "", "--fpr 1e-5 --prefer fast"] {
            let built = shell.run_with(&format!("build -o set --json {options}"), &input).json();
            assert!(built["warning"].is_null(), "{count} {options}: {built}");
        }
    }
}
