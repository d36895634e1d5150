//! The pages lead somewhere: each link to a file of this repository names one that is there, and a
//! heading of it if it names one. Links to other places are not asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use testkit::claims::lines_of_prose;
use testkit::workspace::{root, sources};

/// Pages at the root, where other files are not sources of this repository.
const AT_THE_ROOT: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// All pages, by their paths from the root.
fn pages() -> BTreeMap<String, String> {
    let mut pages = sources(&root(), |path| path.ends_with(".md"));
    for name in AT_THE_ROOT {
        let text = std::fs::read_to_string(root().join(name)).expect("a page of text");
        pages.insert(name.into(), text);
    }
    pages
}

/// Where the links of a page lead, but for those with a scheme.
fn targets(page: &str) -> Vec<String> {
    let prose = lines_of_prose(page).collect::<Vec<_>>().join("\n");
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.filter(|link| !link.contains("://")).map(str::to_owned).collect()
}

/// The names by which links ask for the headings of a page, as GitHub makes them: of equal ones,
/// the second ends with `-1`.
fn anchors(page: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut times = BTreeMap::new();
    for heading in lines_of_prose(page).filter(|line| line.starts_with('#')) {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
        let anchor: String = kept.map(|char| if char == ' ' { '-' } else { char }).collect();
        let before = times.entry(anchor.clone()).or_insert(0);
        anchors.push(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    anchors
}

/// The path without `..`, which may name a folder that is not there.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
        plain
    })
}

/// What is wrong about a link of the page at this path.
fn complaint(pages: &BTreeMap<String, String>, path: &str, link: &str) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let target = if file.is_empty() { PathBuf::from(path) } else { plain(&folder.join(file)) };
    if !root().join(&target).exists() {
        return Some(format!("{path}: the link `{link}` leads to no file"));
    }
    let page = pages.get(target.to_str()?)?;
    let is_there = anchor.is_empty() || anchors(page).iter().any(|it| it == anchor);
    (!is_there).then(|| format!("{path}: the link `{link}` leads to no heading"))
}

#[test]
fn the_first_page_is_short() {
    let lines = std::fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 150, "README.md has {lines} lines");
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages = pages();
    let mut links = 0;
    let mut complaints = Vec::new();
    for (path, page) in &pages {
        for link in targets(page) {
            links += 1;
            complaints.extend(complaint(&pages, path, &link));
        }
    }
    assert!(links > 100, "{links}");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The pages to which links lead from this one, directly or through others.
fn reached(pages: &BTreeMap<String, String>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::from([from.to_owned()]);
    let mut unread = vec![from.to_owned()];
    while let Some(path) = unread.pop() {
        let folder = Path::new(&path).parent().unwrap_or(Path::new("")).to_owned();
        for link in targets(&pages[&path]) {
            let file = link.split('#').next().unwrap_or("");
            let target = plain(&folder.join(file)).to_string_lossy().into_owned();
            if pages.contains_key(&target) && reached.insert(target.clone()) {
                unread.push(target);
            }
        }
    }
    reached
}

#[test]
fn every_page_is_reached_from_the_readme() {
    let pages = pages();
    let reached = reached(&pages, "README.md");
    // What says where data of tests is from stands beside it.
    let read = pages.keys().filter(|path| !path.contains("/data/"));
    let unreached: Vec<_> = read.filter(|path| !reached.contains(*path)).collect();
    assert!(unreached.is_empty(), "no link leads to {unreached:?}");
}

#[test]
fn links_that_lead_nowhere_are_found() {
    assert_eq!(anchors("# A b\n## A b\n"), ["a-b", "a-b-1"]);
    let page = "# One `code`: two\n[a](#one-code-two) [b](#three) [c](other.md) [d](x://y)\n\
        ```\n# no heading\n[e](gone.md)\n```\n";
    let pages = BTreeMap::from([("README.md".to_owned(), page.to_owned())]);
    assert_eq!(targets(page), ["#one-code-two", "#three", "other.md"]);
    assert_eq!(complaint(&pages, "README.md", "#one-code-two"), None);
    assert!(complaint(&pages, "README.md", "#three").unwrap().contains("no heading"));
    assert!(complaint(&pages, "docs/README.md", "../other.md").unwrap().contains("no file"));
    assert_eq!(complaint(&pages, "docs/README.md", "../README.md#one-code-two"), None);
    let pages = ["a.md", "docs/b.md", "docs/c.md", "d.md"].map(str::to_owned);
    let texts = ["[b](docs/b.md)", "[c](c.md#x) [e](e.md)", "[a](../a.md)", ""].map(str::to_owned);
    let pages: BTreeMap<_, _> = pages.into_iter().zip(texts).collect();
    assert_eq!(
        reached(&pages, "a.md").into_iter().collect::<Vec<_>>(),
        ["a.md", "docs/b.md", "docs/c.md"]
    );
}
