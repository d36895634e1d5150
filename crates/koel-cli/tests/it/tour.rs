//! `koel tour`.

use crate::support::Shell;

#[test]
fn every_promise_of_the_tour_is_kept() {
    let shell = Shell::new();
    let ran = shell.ok("tour");
    assert!(ran.text().matches("[kept]").count() >= 10, "{}", ran.text());
    assert!(!ran.text().contains("BROKEN"), "{}", ran.text());
    let uses = ["check --url blocked", "dedup events.log", "diff monday.koel", "Building a filter"];
    let places = uses.map(|use_| ran.text().find(use_).unwrap());
    assert!(places.is_sorted(), "the commonest uses come first: {places:?}");
    for word in ["121,570", "1,000,000", "HashSet", "Bloom", "1,024,000"] {
        assert!(ran.text().contains(word), "{word}");
    }
    assert!(ran.text().lines().all(|line| line.len() <= 90), "{}", ran.text());
}
