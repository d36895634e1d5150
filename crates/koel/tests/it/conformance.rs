//! The library runs the scenarios of docs/conformance.

use std::collections::HashMap;

use koel::{
    BuildError, Comparison, CuckooFilter, FilterView, FullError, ImageError, Key, KeyData, Merge,
    MergeError, PatchError, Prefer, RefuteError,
};
use serde_json::{Value, json};
use testkit::conformance::{Door, Step, bytes_of, hex, run};

use crate::remote;

#[test]
fn the_library_does_what_the_scenarios_say() {
    run("rust", Library::default);
}

/// Filters and patches by their names.
#[derive(Default)]
struct Library {
    filters: HashMap<String, CuckooFilter>,
    patches: HashMap<String, Vec<u8>>,
}

/// An error of the library, as a code.
struct Code(&'static str);

macro_rules! codes {
    ($($error:ty: $($pattern:pat => $code:expr),+;)+) => {$(
        impl From<$error> for Code {
            fn from(error: $error) -> Self {
                match error {
                    $($pattern => Self($code),)+
                    other => panic!("an error without a code: {other}"),
                }
            }
        }
    )+};
}

codes! {
    FullError: FullError::Overflow => "range", FullError::Slots { .. } => "full",
        FullError::Counters { .. } | FullError::Corrections { .. } => "full";
    RefuteError: RefuteError::Members { .. } => "members",
        RefuteError::Full(full) => Self::from(full).0;
    BuildError: BuildError::Rate { .. } | BuildError::TooPrecise { .. } => "settings",
        BuildError::TooLarge { .. } => "settings";
    ImageError: ImageError::NotAFilter | ImageError::Length { .. } => "bytes",
        ImageError::Checksum { .. } | ImageError::Kind { .. } | ImageError::Field { .. } => "bytes",
        ImageError::Older { .. } | ImageError::Newer { .. } => "bytes";
    MergeError: MergeError::Incompatible { .. } | MergeError::Sizes { .. } => "different",
        MergeError::Full(full) => Self::from(full).0;
    PatchError: PatchError::Incompatible { .. } | PatchError::Sizes { .. } => "different",
        PatchError::OtherSettings | PatchError::WrongBase { .. } | PatchError::Applied => "base",
        PatchError::Message(_) | PatchError::Forged => "bytes",
        PatchError::Full(full) => Self::from(full).0;
}

impl Door for Library {
    fn run(&mut self, step: &Step) -> Result<Value, String> {
        self.answer(step).map_err(|Code(code)| code.to_owned())
    }
}

impl Library {
    fn answer(&mut self, step: &Step) -> Result<Value, Code> {
        let made = match step.verb() {
            "build" => built(step)?,
            "open" => CuckooFilter::from_bytes(&self.image(step))?,
            "copy" => self.named(step, "of").clone(),
            "reopen" => reopened(self.named(step, "filter"))?,
            "patched" => {
                let patch = step.edited(self.patches[step.text("patch")].clone());
                self.named(step, "of").patched(&patch)?
            }
            "patch" => {
                let patch = self.named(step, "from").patch_to(self.named(step, "to"))?;
                let digits = hex(&patch);
                self.patches.insert(step.text("patch").to_owned(), patch);
                return Ok(json!(digits));
            }
            verb => return self.asked_or_changed(verb, step),
        };
        self.filters.insert(step.filter().to_owned(), made);
        Ok(Value::Null)
    }

    fn named(&self, step: &Step, field: &str) -> &CuckooFilter {
        let name = if field == "filter" { step.filter() } else { step.text(field) };
        self.filters.get(name).unwrap_or_else(|| panic!("no filter {name:?}"))
    }

    fn image(&self, step: &Step) -> Vec<u8> {
        let image = step.hex("image");
        step.edited(image.unwrap_or_else(|| self.named(step, "of").to_bytes()))
    }

    fn asked_or_changed(&mut self, verb: &str, step: &Step) -> Result<Value, Code> {
        let keys = keys(step);
        let with = self.filters.get(step.text("with")).cloned();
        let filter = self.filters.get_mut(step.filter()).expect("a filter of this name");
        let (mut flags, mut numbers) = (vec![false; keys.len()], vec![0; keys.len()]);
        Ok(match verb {
            "add" if step.flag("copies") => json!(filter.insert(&keys[0]).map(|()| true)?),
            "add" => json!(filter.insert_unique(&keys[0])?),
            "add_many" if step.flag("copies") => {
                let before = filter.len();
                filter.insert_many(&keys)?;
                json!(filter.len() - before)
            }
            "add_many" => {
                filter.insert_unique_many(&keys, &mut flags)?;
                json!(flags)
            }
            "remove" => json!(filter.remove(&keys[0])),
            "remove_many" => {
                filter.remove_many(&keys, &mut flags);
                json!(flags)
            }
            "contains" => json!(remote::contains(filter, &keys[0])),
            "contains_many" => {
                filter.contains_many(&keys, &mut flags);
                json!(remote::both(filter, &keys, flags))
            }
            "count" => json!(filter.count(&keys[0])),
            "count_many" => {
                filter.count_many(&keys, &mut numbers);
                json!(numbers)
            }
            "refute" => json!(filter.refute(&keys[0])?),
            "refute_many" if step.flag("force") => json!(filter.force_refute_many(&keys)?),
            "refute_many" => json!(filter.refute_many(&keys)?),
            "clear" => {
                filter.clear();
                Value::Null
            }
            "merge" => {
                let counts = if step.text("counts") == "sum" { Merge::Sum } else { Merge::Max };
                filter.merge(&with.expect("another filter"), counts)?;
                Value::Null
            }
            "same" => json!(filter.holds_the_same(&with.expect("another filter"))?),
            "bytes" => json!(filter.to_bytes() == with.expect("another filter").to_bytes()),
            "common" => {
                json!(whole(filter.compare(&with.expect("another filter"))?.common().value))
            }
            "diff" => {
                let found: Comparison = filter.compare(&with.expect("another filter"))?;
                json!([
                    found.surplus_first(),
                    found.surplus_second(),
                    found.corrections_first(),
                    found.corrections_second()
                ])
            }
            verb => told(filter, verb),
        })
    }
}

/// What a filter tells of itself.
fn told(filter: &CuckooFilter, verb: &str) -> Value {
    match verb {
        "header" => json!(hex(&filter.to_bytes()[..192])),
        "len" => json!(filter.len()),
        "capacity" => json!(filter.capacity()),
        "rate" => json!(filter.requested_false_positive_rate()),
        "corrections" => json!(filter.corrections()),
        "growable" => json!(filter.is_growable()),
        "grown" => json!(filter.has_grown()),
        other => panic!("no verb {other}"),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "small numbers of keys")]
fn whole(estimate: f64) -> i64 {
    estimate.round() as i64
}

fn built(step: &Step) -> Result<CuckooFilter, Code> {
    let capacity = step.number("capacity").expect("a capacity");
    let rate = step.0["rate"].as_f64().unwrap_or(0.001);
    let mut builder = CuckooFilter::builder(capacity, rate);
    if step.flag("grow") {
        builder = builder.growable();
    }
    if let Some(few) = step.number("grow_from") {
        builder = builder.grow_from(few);
    }
    if step.text("prefer") == "fast" {
        builder = builder.prefer(Prefer::Fast);
    }
    if let Some(seed) = step.big("seed") {
        builder = builder.seed(seed);
    }
    if let Some(secret) = step.hex("secret") {
        builder = builder.sip_key(secret.try_into().unwrap());
    }
    Ok(builder.build()?)
}

/// Through a file, which is opened in place first.
fn reopened(filter: &CuckooFilter) -> Result<CuckooFilter, Code> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.koel");
    filter.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(FilterView::open(&bytes)?.len(), filter.len());
    Ok(CuckooFilter::load(&path).unwrap())
}

/// A key of any kind.
enum AnyKey {
    Bytes(Vec<u8>),
    Integer(u64),
    Wide(u128),
    Tuple(Vec<Vec<u8>>),
}

impl Key for AnyKey {
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        match self {
            Self::Bytes(bytes) => bytes.with(read),
            Self::Integer(number) => number.with(read),
            Self::Wide(number) => number.with(read),
            Self::Tuple(parts) => match &parts[..] {
                [a] => (a,).with(read),
                [a, b] => (a, b).with(read),
                [a, b, c] => (a, b, c).with(read),
                more => panic!("a tuple of {}", more.len()),
            },
        }
    }
}

fn keys(step: &Step) -> Vec<AnyKey> {
    step.keys().iter().map(key).collect()
}

fn key(key: &Value) -> AnyKey {
    if let Some(text) = key.as_str() {
        return AnyKey::Bytes(text.as_bytes().to_vec());
    }
    if let Some(number) = key.as_u64().or_else(|| Some(key.as_i64()?.cast_unsigned())) {
        return AnyKey::Integer(number);
    }
    if let Some(digits) = key["u64"].as_str() {
        return AnyKey::Integer(digits.parse().unwrap());
    }
    if let Some(digits) = key["wide"].as_str() {
        let number =
            digits.parse().unwrap_or_else(|_| digits.parse::<i128>().unwrap().cast_unsigned());
        return AnyKey::Wide(number);
    }
    if let Some(digits) = key["hex"].as_str() {
        return AnyKey::Bytes(bytes_of(digits));
    }
    let parts = key["tuple"].as_array().expect("a kind of key");
    AnyKey::Tuple(parts.iter().map(|part| bytes(&self::key(part))).collect())
}

/// The bytes of a key.
fn bytes(key: &AnyKey) -> Vec<u8> {
    key.with(|data| match data {
        KeyData::Bytes(bytes) => bytes.to_vec(),
        KeyData::Parts(parts) => {
            let mut bytes = Vec::new();
            parts.for_each(|part| bytes.extend(part));
            bytes
        }
        KeyData::Hash(_) => panic!("a hash has no bytes"),
    })
}
