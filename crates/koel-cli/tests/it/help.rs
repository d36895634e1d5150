//! Help, manual pages and shell completions.

use testkit::claims::{Claims, Sources};
use testkit::workspace::{root, sources};

use crate::support::Shell;

const VERBS: &str = "build check add grow refute remove count dedup merge similar diff patch info \
                     plan push pull store tour man completions";

const OF_STORES: &str =
    "import export ls rm get put del gc verify salvage stats load create scan keys copy";

/// Every verb, as it is typed.
fn verbs() -> impl Iterator<Item = String> {
    let of_stores = OF_STORES.split(' ').map(|verb| format!("store {verb}"));
    VERBS.split(' ').map(str::to_owned).chain(of_stores)
}

#[test]
fn every_verb_has_help_with_examples_and_lines_of_at_most_100_columns() {
    let shell = Shell::new();
    for verb in verbs() {
        let help = shell.ok(&format!("{verb} --help"));
        assert!(help.text().contains("Usage: koel"), "{verb}");
        let long = help.text().lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{verb}");
        assert!(help.text().contains("Examples:"), "{verb}");
    }
    let all = shell.ok("--help");
    assert!(VERBS.split(' ').all(|verb| all.text().contains(verb)));
}

/// The sentences of a help text, without its examples, lists of codes and defaults, which the code
/// itself prints.
fn sentences(help: &str) -> String {
    let lines = help.lines().filter(|line| {
        let is_example = line.trim_start().split("| ").any(|part| part.starts_with("koel "));
        !(is_example || line.starts_with("Exit codes:"))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut parts = text.split("[default: ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once(']').map_or("", |(_, rest)| rest))
}

/// A number in a help text is proven, as in the pages.
#[test]
fn what_help_says_with_numbers_is_proven() {
    let shell = Shell::new();
    let mut all = sentences(shell.ok("--help").text());
    for verb in verbs() {
        all += "\n";
        all += &sentences(shell.ok(&format!("{verb} --help")).text());
    }
    let claims = Claims::parse(include_str!("../../../../docs/claims/help.toml")).unwrap();
    let (root, ends) = (root(), [".rs", ".py", ".mjs"]);
    let files = sources(&root, |path| ends.iter().any(|end| path.ends_with(end)));
    let mut complaints = claims.uncovered(&all, &[]);
    complaints.extend(claims.unproven(&all, &Sources::new(&root, &files)));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn the_manual_has_a_page_per_verb() {
    let shell = Shell::new();
    assert!(shell.ok("man").text().contains(".TH koel 1"));
    shell.ok("man -o pages");
    for verb in verbs() {
        let page = format!("pages/koel-{}.1", verb.replace(' ', "-"));
        assert!(!shell.read(&page).is_empty(), "{verb}");
    }
}

#[test]
fn every_shell_has_completions() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(shell.ok(&format!("completions {name}")).text().contains("dedup"), "{name}");
    }
}

#[test]
fn the_manual_has_a_page_for_each_verb() {
    let shell = Shell::new();
    assert!(
        shell.ok("man build").text().contains("koel\\-build"),
        "{}",
        shell.ok("man build").text()
    );
    assert!(shell.ok("man store import").text().contains("import"));
    assert_ne!(shell.ok("man").text(), shell.ok("man store").text());
    shell.run("man bild").fails("koel has no verb bild; there are build, check");
    shell.run("man build x").fails("has no verb x");
}
