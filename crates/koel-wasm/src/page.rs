//! What only the page asks, with the feature `page`: operations step by step, and sizes of filters.
//!
//! An operation runs on one filter, and leaves its steps here. The page makes them one at a time on
//! a second filter, which it draws. Outputs are JSON. 64-bit numbers that are no counts are
//! hexadecimal strings there, because JavaScript would round them.

use koel::{CuckooFilter, TraceStep};
use koel_plan::{Question, Row};
use xxhash_rust::xxh3::xxh3_64;

use crate::failure::Failure;
use crate::host::{Host, Settings};

/// Bytes of the header of a file, and where some of its fields are (docs/FORMAT.md).
const HEADER: usize = 192;
const SEGMENT_BUCKETS: usize = 20;
const CHECKSUMS: [usize; 2] = [176, 184];

impl Host {
    /// Builds an empty filter with this many buckets, which are fewer than the builder ever makes:
    /// a picture of a real table has no room for more. Returns its handle.
    ///
    /// # Errors
    /// If the library refuses the settings, or has fewer buckets for them.
    pub fn build_small(&mut self, settings: &Settings, buckets: u32) -> Result<u32, Failure> {
        let handle = self.build(settings)?;
        let filter = self.filter(handle)?;
        // Zeros: empty buckets up to a multiple of 8 bytes, and 16 bytes more.
        let words = (buckets * filter.layout().bucket_bits()).div_ceil(64) as usize;
        let mut image = filter.try_to_bytes()?;
        self.free(handle);
        image.truncate(HEADER + 8 * words + 16);
        image[SEGMENT_BUCKETS..SEGMENT_BUCKETS + 4].copy_from_slice(&buckets.to_le_bytes());
        let [of_body, of_header] = CHECKSUMS;
        let sum = xxh3_64(&image[HEADER..]).to_le_bytes();
        image[of_body..of_header].copy_from_slice(&sum);
        let sum = xxh3_64(&image[..of_header]).to_le_bytes();
        image[of_header..HEADER].copy_from_slice(&sum);
        self.keep(CuckooFilter::from_bytes(&image)?)
    }

    /// Adds or removes the key in the first `len` bytes of the input buffer, and outputs the steps.
    /// If it fails, the steps end with the sentence of the error.
    ///
    /// # Errors
    /// If there is no such filter.
    pub fn trace(&mut self, handle: u32, len: usize, adds: bool) -> Result<(), Failure> {
        let (filter, input) = self.change(handle)?;
        let key = input.get(..len).unwrap_or(input);
        let hash = filter.hasher().hash(key).get();
        let location = filter.trace_location(key);
        let [home, other] = location.buckets;
        let [first, second] = location.fingerprints;
        let (error, steps) = if adds {
            let (inserted, steps) = filter.trace_insert(key);
            (inserted.err().map(|full| full.to_string()), steps)
        } else {
            (None, filter.trace_remove(key).1)
        };
        let error = error.map_or("null".to_owned(), |sentence| format!("{sentence:?}"));
        let texts: Vec<String> = steps.iter().map(step).collect();
        let output = format!(
            r#"{{"hash":"{hash:016x}","buckets":[{home},{other}],"fingerprints":["{first:x}","{second:x}"],"error":{error},"steps":[{}]}}"#,
            texts.join(",")
        );
        self.put_trace(steps, output);
        Ok(())
    }

    /// Makes one step of the last operation on another filter. True if it could be made.
    ///
    /// # Errors
    /// If there is no such filter, or no memory.
    pub fn replay(&mut self, handle: u32, number: usize) -> Result<bool, Failure> {
        let step = self.step(number).cloned();
        let (filter, _) = self.change(handle)?;
        step.map_or(Ok(false), |step| Ok(filter.replay(&step)?))
    }

    /// Outputs the slots of all buckets.
    ///
    /// # Errors
    /// If there is no such filter.
    pub fn slots(&mut self, handle: u32) -> Result<(), Failure> {
        let filter = self.filter(handle)?;
        let buckets = (0..filter.buckets()).filter_map(|bucket| filter.trace_bucket(bucket));
        let bucket = |slots: [u64; 4]| slots.map(|slot| format!(r#""{slot:x}""#)).join(",");
        let texts: Vec<String> = buckets.map(|slots| format!("[{}]", bucket(slots))).collect();
        let output = format!("[{}]", texts.join(","));
        self.put_text(output);
        Ok(())
    }

    /// Outputs the rows of `koel plan`. The figure to compute is the one that is not above 0.
    ///
    /// # Errors
    /// If no filter can be built for the figures.
    pub fn plan(&mut self, keys: u64, fpr: f64, memory: u64) -> Result<(), Failure> {
        let question = match (keys, fpr, memory) {
            (keys, fpr, 0) => Question::Memory { keys, fpr },
            (0, fpr, memory) => Question::Keys { fpr, memory },
            (keys, _, memory) => Question::Rate { keys, memory },
        };
        let rows = koel_plan::compare(question)?;
        let build = rows[0].answer.as_ref().map(|answer| {
            let rate = koel_plan::rate_to_build(question, answer);
            format!(r#"{{"keys":{},"fpr":{rate}}}"#, answer.keys)
        });
        let texts: Vec<String> = rows.iter().map(row).collect();
        let build = build.unwrap_or("null".to_owned());
        self.put_text(format!(r#"{{"build":{build},"rows":[{}]}}"#, texts.join(",")));
        Ok(())
    }
}

fn row(row: &Row) -> String {
    let answer = row.answer.as_ref().map(|answer| {
        format!(
            r#"{{"keys":{},"fpr":{:e},"memory":{},"bits":{:e}}}"#,
            answer.keys, answer.fpr, answer.memory, answer.bits_per_key
        )
    });
    format!(
        r#"{{"name":{:?},"add":{},"remove":{},"grow":{},"answer":{}}}"#,
        row.name,
        row.can_add,
        row.can_remove,
        row.can_grow,
        answer.unwrap_or("null".to_owned())
    )
}

fn step(step: &TraceStep) -> String {
    let or_null = |number: Option<u64>| number.map_or("null".to_owned(), |it| it.to_string());
    match *step {
        TraceStep::Searched { slots, moves } => {
            format!(r#"{{"kind":"searched","slots":{slots},"moves":{}}}"#, or_null(moves))
        }
        TraceStep::Written { bucket, old, new, from } => {
            let from = or_null(from);
            format!(
                r#"{{"kind":"written","bucket":{bucket},"old":"{old:x}","new":"{new:x}","from":{from}}}"#
            )
        }
        TraceStep::Widened => r#"{"kind":"widened"}"#.to_owned(),
        TraceStep::Narrow { buckets } => format!(r#"{{"kind":"narrow","left":{buckets}}}"#),
        TraceStep::Split { bucket, into } => {
            format!(r#"{{"kind":"split","bucket":{bucket},"into":{into}}}"#)
        }
        TraceStep::Counted { copies, .. } => format!(r#"{{"kind":"counted","copies":{copies}}}"#),
        TraceStep::Totals { len, entries, .. } => {
            format!(r#"{{"kind":"totals","keys":{len},"slots":{entries}}}"#)
        }
        _ => r#"{"kind":"other"}"#.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_table_is_a_sound_filter_of_a_dozen_buckets() {
        for growable in [false, true] {
            let (mut host, _) = host(growable);
            let (capacity, error_rate, grow_from, fast, seed) = (24, 0.03, 0, true, 42);
            let secret = None;
            let settings =
                Settings { capacity, error_rate, grow_from, growable, fast, seed, secret };
            let small = host.build_small(&settings, 12).unwrap();
            assert_eq!(host.filter(small).unwrap().buckets(), 12);
            let mut kept = 0;
            for i in 0..100 {
                operate(&mut host, small, &format!("key {i}"), true);
                host.filter(small).unwrap().verify().unwrap();
                kept += 1;
            }
            let filter = host.filter(small).unwrap();
            let found = (0..kept).filter(|i| filter.contains(format!("key {i}").as_str())).count();
            assert!(
                found as u64 >= filter.len() && filter.len() > 44,
                "{found} of {}",
                filter.len()
            );
            assert_eq!(growable, filter.len() == 100);
        }
    }

    fn host(growable: bool) -> (Host, u32) {
        let (capacity, error_rate, grow_from, fast, seed) = (20, 0.01, 0, false, 42);
        let secret = None;
        let settings = Settings { capacity, error_rate, grow_from, growable, fast, seed, secret };
        let mut host = Host::default();
        let filter = host.build(&settings).unwrap();
        (host, filter)
    }

    fn operate(host: &mut Host, filter: u32, key: &str, adds: bool) -> String {
        host.input(key.len()).unwrap()[..key.len()].copy_from_slice(key.as_bytes());
        host.trace(filter, key.len(), adds).unwrap();
        String::from_utf8(host.output().to_vec()).unwrap()
    }

    #[test]
    fn steps_of_one_filter_are_made_on_another() {
        for growable in [false, true] {
            let (mut host, filter) = host(growable);
            host.image(filter).unwrap();
            let image = host.output().to_vec();
            host.input(image.len()).unwrap()[..image.len()].copy_from_slice(&image);
            let shown = host.open(image.len()).unwrap();
            let mut seen = String::new();
            for i in 0..300 {
                seen += &operate(&mut host, filter, &format!("key {i}"), i % 7 != 6);
                for number in 0.. {
                    if !host.replay(shown, number).unwrap() {
                        break;
                    }
                }
                host.image(filter).unwrap();
                let expected = host.output().to_vec();
                host.image(shown).unwrap();
                assert!(expected == host.output(), "operation {i}");
            }
            let kinds = if growable { ["widened", "split"] } else { ["searched", "written"] };
            assert!(kinds.iter().all(|kind| seen.contains(kind)));
            host.slots(shown).unwrap();
            assert!(host.output().starts_with(b"[[\""));
        }
    }

    #[test]
    fn a_plan_has_the_rows_of_the_crate() {
        let (mut host, _) = host(false);
        host.plan(10_000_000, 0.001, 0).unwrap();
        let output = String::from_utf8(host.output().to_vec()).unwrap();
        let rows = koel_plan::compare(Question::Memory { keys: 10_000_000, fpr: 0.001 }).unwrap();
        for row in rows {
            let memory = row.answer.unwrap().memory;
            assert!(output.contains(&format!("\"memory\":{memory}")), "{output}");
        }
        assert!(output.starts_with(r#"{"build":{"keys":10000000,"fpr":0.001}"#), "{output}");
        assert!(host.plan(1000, 1e-30, 0).is_err());
    }
}
