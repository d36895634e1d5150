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

#[test]
fn the_page_of_the_tour_has_its_text_and_charts() {
    let shell = Shell::new();
    let ran = shell.ok("tour --html tour.html");
    let page = String::from_utf8(shell.read("tour.html")).unwrap();
    assert!(ran.text().contains("[kept]") && page.starts_with("<!doctype html>"));
    assert_eq!(page.matches("[kept]").count(), ran.text().matches("[kept]").count());
    assert_eq!(page.matches("<h2>").count(), 12, "{page}");
    assert_eq!(page.matches("<div data-figure=").count(), 4);
    // One script, of which nothing is imported.
    assert!(page.contains("function drawFigure(") && !page.contains("\nimport "));
    assert!(!page.contains("\nexport ") && !page.contains("src="));
    assert!(page.contains("default-src 'none'"));

    let refused = shell.run("tour --html -");
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("give --html the name of a file"), "{}", refused.err);
}
