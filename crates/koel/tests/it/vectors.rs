//! Builds the filters of docs/vectors.json, which the tests of Python and of Node build too. A case
//! has the first 192 bytes of the image: they contain the checksum of all others.
//!
//! To write the images of new cases:
//! `KOEL_WRITE_VECTORS=1 cargo test -p koel --test it vectors -- --ignored`

use std::fs;
use std::path::{Path, PathBuf};

use koel::{CuckooFilter, Prefer};
use serde_json::{Value, json};

const HEADER: usize = 192;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vectors.json")
}

fn page() -> Value {
    serde_json::from_str(&fs::read_to_string(path()).unwrap()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Adds the key or keys of a step, or removes them.
fn make(filter: &mut CuckooFilter, step: &Value) {
    let adds = step["do"] == "add";
    assert!(adds || step["do"] == "remove", "{step}");
    let mut one = |key: &[u8]| {
        if adds {
            filter.insert(key).unwrap();
        } else {
            assert!(filter.remove(key), "{step}");
        }
    };
    if let Some(text) = step["text"].as_str() {
        one(text.as_bytes());
    } else if let Some(integer) = step["integer"].as_str() {
        one(&integer.parse::<u64>().unwrap().to_le_bytes());
    } else if let Some(bytes) = step["bytes"].as_str() {
        one(&bytes_of(bytes));
    } else {
        (0..step["keys"].as_u64().unwrap()).for_each(|i| one(format!("key {i}").as_bytes()));
    }
}

fn built(case: &Value) -> CuckooFilter {
    built_of(case, "steps")
}

/// The filter of these steps of a case.
fn built_of(case: &Value, steps: &str) -> CuckooFilter {
    let (capacity, rate) = (case["capacity"].as_u64().unwrap(), case["error_rate"].as_f64());
    let prefer = match case["prefer"].as_str() {
        Some("small") => Prefer::Small,
        Some("fast") => Prefer::Fast,
        other => panic!("{other:?}"),
    };
    let builder = CuckooFilter::builder(capacity, rate.unwrap()).prefer(prefer);
    let builder = builder.seed(case["seed"].as_str().unwrap().parse().unwrap());
    let grows = case["growable"].as_bool().unwrap();
    let mut filter = if grows { builder.growable() } else { builder }.build().unwrap();
    case[steps].as_array().unwrap().iter().for_each(|step| make(&mut filter, step));
    filter
}

#[test]
fn the_cases_have_these_images() {
    let cases = page()["cases"].as_array().unwrap().clone();
    assert!(cases.len() >= 6 && cases.iter().any(|case| built(case).has_grown()));
    for case in cases {
        let image = built(&case).to_bytes();
        assert_eq!(case["length"], image.len(), "{}", case["name"]);
        assert_eq!(case["header"], hex(&image[..HEADER]), "{}", case["name"]);
    }
}

/// The patch of a case, and the filter that it makes.
fn patched(case: &Value) -> (Vec<u8>, CuckooFilter) {
    let [old, new] = ["steps", "new_steps"].map(|steps| built_of(case, steps));
    let patch = old.patch_to(&new).unwrap();
    let patched = old.patched(&patch).unwrap();
    assert_eq!(patched.len(), new.len());
    (patch, patched)
}

#[test]
fn the_patches_are_these_and_make_these_images() {
    let patches = page()["patches"].as_array().unwrap().clone();
    assert!(patches.len() >= 3);
    for case in patches {
        let (patch, filter) = patched(&case);
        let image = filter.to_bytes();
        assert_eq!(case["patch"], hex(&patch), "{}", case["name"]);
        assert_eq!(case["length"], image.len(), "{}", case["name"]);
        assert_eq!(case["header"], hex(&image[..HEADER]), "{}", case["name"]);
    }
}

#[test]
#[ignore = "writes docs/vectors.json"]
fn write_the_images() {
    assert!(std::env::var_os("KOEL_WRITE_VECTORS").is_some(), "see the top of the file");
    let mut page = page();
    for case in page["cases"].as_array_mut().unwrap() {
        let image = built(case).to_bytes();
        (case["length"], case["header"]) = (json!(image.len()), json!(hex(&image[..HEADER])));
    }
    for case in page["patches"].as_array_mut().unwrap() {
        let (patch, filter) = patched(case);
        let image = filter.to_bytes();
        (case["length"], case["header"]) = (json!(image.len()), json!(hex(&image[..HEADER])));
        case["patch"] = json!(hex(&patch));
    }
    fs::write(path(), format!("{page:#}\n")).unwrap();
}
