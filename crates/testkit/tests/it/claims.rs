//! What the pages say with numbers, and with words that promise, is proven: see
//! [`testkit::claims`].

use std::collections::BTreeMap;

use testkit::claims::{Claims, Sources};
use testkit::workspace::{root, sources};

/// Words that promise.
const PROMISES: [&str; 4] = ["never", "always", "any", "same"];
/// The pages in which these need a proof, too.
const PROMISING: [&str; 4] = ["README.md", "docs/LISTS.md", "docs/SECURITY.md", "docs/STORES.md"];

/// The documentation of these files, as one page named `rustdoc`, in which these words need a
/// proof: what users of the libraries read.
const RUSTDOC: [&str; 12] = [
    "crates/koel-store/src/log/log_store.rs",
    "crates/koel-store/src/log/options.rs",
    "crates/koel-store/src/lsm/lsm_store.rs",
    "crates/koel-store/src/lsm/options.rs",
    "crates/koel/src/builder.rs",
    "crates/koel/src/concurrent/",
    "crates/koel/src/counting/",
    "crates/koel/src/expiring/",
    "crates/koel/src/face.rs",
    "crates/koel/src/filter/",
    "crates/koel/src/maplet/",
    "crates/koel/src/remote/",
];
const RUSTDOC_PROMISES: [&str; 2] = ["never", "always"];

/// Pages without claims: bytes, whose tests are vectors, and what was measured on a day.
const NO_CLAIMS: [&str; 5] = [
    "docs/FORMAT",
    "docs/VALKEY-BYTES",
    "docs/benchmarks/",
    "docs/decisions/",
    "docs/conformance/",
];

fn all_sources() -> BTreeMap<String, String> {
    let ends = [".rs", ".py", ".mjs", ".md", ".toml"];
    let mut all = sources(&root(), |path| ends.iter().any(|end| path.ends_with(end)));
    all.insert(
        "README.md".into(),
        std::fs::read_to_string(root().join("README.md")).expect("a page"),
    );
    all
}

/// The documentation of the libraries.
fn rustdoc(all: &BTreeMap<String, String>) -> String {
    let files = all.iter().filter(|(path, _)| RUSTDOC.iter().any(|start| path.starts_with(start)));
    let shipped = files.filter(|(path, _)| !testkit::source::is_test(path));
    let lines = shipped.flat_map(|(_, text)| text.lines());
    let docs = lines.filter_map(|line| line.trim_start().strip_prefix("///"));
    docs.collect::<Vec<_>>().join("\n")
}

/// The pages whose numbers need a proof.
fn pages(all: &BTreeMap<String, String>) -> Vec<&str> {
    let is_page = |path: &&str| {
        let is_read =
            path.ends_with("README.md") || path.starts_with("docs/") && path.ends_with(".md");
        is_read
            && !NO_CLAIMS.iter().any(|start| path.starts_with(start))
            && !path.starts_with("fuzz/")
    };
    all.keys().map(String::as_str).filter(is_page).collect()
}

#[test]
fn what_pages_say_is_proven() {
    let all = all_sources();
    let root = root();
    let proofs = Sources::new(&root, &all);
    let mut claims: BTreeMap<String, Claims> = BTreeMap::new();
    let mut complaints = Vec::new();
    for (path, text) in all.iter().filter(|(path, _)| path.starts_with("docs/claims/")) {
        match Claims::parse(text) {
            Ok(of_page) => drop(claims.insert(of_page.page.clone(), of_page)),
            Err(problem) => complaints.push(format!("{path}: {problem}")),
        }
    }
    for path in pages(&all) {
        let Some(of_page) = claims.remove(path) else { continue };
        let words: &[&str] = if PROMISING.contains(&path) { &PROMISES } else { &[] };
        complaints.extend(of_page.uncovered(&all[path], words));
        complaints.extend(of_page.unproven(&all[path], &proofs));
    }
    let docs = claims.remove("rustdoc").expect("claims of the documentation");
    let text = rustdoc(&all);
    complaints.extend(docs.unpromised(&text, &RUSTDOC_PROMISES));
    complaints.extend(docs.unproven(&text, &proofs));
    complaints.extend(claims.into_keys().map(|page| format!("claims of {page}, which is no page")));
    let count = complaints.len();
    assert!(complaints.is_empty(), "{}\n{count} complaints", complaints.join("\n"));
}

#[test]
fn what_is_not_proven_is_found() {
    let files = BTreeMap::from([
        ("docs/A.md".to_owned(), "| 12,345 keys/s |".to_owned()),
        (
            "crates/a/src/lib.rs".to_owned(),
            "const MOST: u64 = 16 << 10;\nfn keeps() {}\n".to_owned(),
        ),
        ("fuzz/fuzz_targets/open.rs".to_owned(), String::new()),
    ]);
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in &files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let proofs = Sources::new(folder.path(), &files);
    let problem = |says: &str, proof: &str| {
        let text = format!("page = \"P\"\n[[claim]]\nsays = \"{says}\"\n{proof}\n");
        let claims = Claims::parse(&text)?;
        claims
            .unproven("A page says 12.4 bits, 16 KiB, and 12,345 keys.", &proofs)
            .pop()
            .map_or(Ok(()), Err)
    };
    let holds = [
        ("12.4 bits", "plan = '1M 0.1%'"),
        ("16 KiB", "constant = 'crates/a/src/lib.rs: const MOST: u64 = 16 << 10;'"),
        ("12,345 keys", "from = 'docs/A.md'"),
        ("A page says", "test = ['keeps', 'open']"),
        ("A page", "because = 'it is an example'"),
    ];
    for (says, proof) in holds {
        assert_eq!(problem(says, proof), Ok(()), "{proof}");
    }
    let fails = [
        ("12.4 bits", "plan = '1M 0.2%'", "bits per key"),
        ("12.4 bits", "plan = '1M'", "no filter is planned"),
        (
            "16 KiB",
            "constant = 'crates/a/src/lib.rs: const MOST: u64 = 17 << 10;'",
            "does not have",
        ),
        (
            "12.4 bits",
            "constant = 'crates/a/src/lib.rs: const MOST: u64 = 16 << 10;'",
            "the value is 16384",
        ),
        ("16 KiB", "from = 'docs/A.md'", "has no 16"),
        ("16 KiB", "figure = 'a'", "no file"),
        ("A page says", "test = 'lost'", "no test lost"),
        ("A page", "because = 'so'", "no reason"),
        ("17 KiB", "because = 'it is an example'", "does not say so"),
        ("16 KiB", "", "one proof"),
        ("16 KiB", "test = 'keeps'\nplan = '1M 0.1%'", "one proof"),
        ("16 KiB", "guess = 'so'", "no kind of proof"),
    ];
    for (says, proof, part) in fails {
        let found = problem(says, proof).unwrap_err();
        assert!(found.contains(part), "{proof}: {found}");
    }
}

#[test]
fn numbers_and_promises_without_a_claim_are_found() {
    let claims =
        Claims::parse("page = 'P'\n[[claim]]\nsays = 'takes 12.4 bits'\nbecause = 'an example'\n");
    let page = "It takes\n12.4 bits, `3` bytes, [0019](a/0019.md) and 2^64.\n1. One\n\n\
        ```\n5\n```\n<!-- figures: a -->\n| 6 |\n<!-- end of figures -->\nx86_64: Never.\n";
    let claims = claims.unwrap();
    assert_eq!(claims.uncovered(page, &[]), Vec::<String>::new());
    assert_eq!(claims.uncovered(page, &["never"]).len(), 1);
    let found = claims.uncovered("12.4 bits; | 7x | (8) a/9", &[]);
    assert_eq!(found.len(), 4, "{found:?}");
}
