//! What only the page asks, with the feature `page`: a table small enough to draw, where a key is,
//! sizes of filters, and what kind of list was given. The page reads slots from the file image.
//! Outputs are JSON.

use koel::CuckooFilter;
use koel_lines::Likeness;
use koel_plan::{Question, Row};
use xxhash_rust::xxh3::xxh3_64;

use crate::failure::Failure;
use crate::host::{Host, Settings};

/// Bytes of the header of a file, and where some of its fields are (docs/FORMAT.md).
const HEADER: usize = 192;
const FINGERPRINT_BITS: usize = 17;
const FRACTION_BITS: [usize; 2] = [19, 20];
const SEGMENT_BUCKETS: usize = 24;
const CHECKSUMS: [usize; 2] = [176, 184];

impl Host {
    /// Builds an empty filter with this many buckets, which are fewer than the builder ever makes:
    /// a picture of a real table has no room for more. Its fingerprints have this many bits, of
    /// which the builder offers every fourth number only. Returns its handle.
    ///
    /// # Errors
    /// If the library refuses the settings, or fingerprints of this length.
    pub fn build_small(
        &mut self,
        settings: &Settings,
        buckets: u32,
        bits: u8,
    ) -> Result<u32, Failure> {
        let handle = self.build(settings)?;
        let mut image = self.filter(handle)?.try_to_bytes()?;
        self.free(handle);
        // Zeros: empty buckets up to a multiple of 8 bytes, and 16 bytes more.
        let words = (4 * buckets * u32::from(bits)).div_ceil(64) as usize;
        image.resize(HEADER + 8 * words + 16, 0);
        image[FINGERPRINT_BITS] = bits;
        for at in FRACTION_BITS {
            // All but the 6 bits of the core.
            image[at] = bits.saturating_sub(6);
        }
        image[SEGMENT_BUCKETS..SEGMENT_BUCKETS + 4].copy_from_slice(&buckets.to_le_bytes());
        let [of_body, of_header] = CHECKSUMS;
        let sum = xxh3_64(&image[HEADER..]).to_le_bytes();
        image[of_body..of_header].copy_from_slice(&sum);
        let sum = xxh3_64(&image[..of_header]).to_le_bytes();
        image[of_header..HEADER].copy_from_slice(&sum);
        self.keep(CuckooFilter::from_bytes(&image)?)
    }

    /// Outputs the two buckets of the key in the first `len` bytes of the input buffer, each with
    /// the slot that stands for the key there.
    ///
    /// # Errors
    /// If there is no such filter.
    pub fn locate(&mut self, handle: u32, len: usize) -> Result<(), Failure> {
        let (filter, input) = self.change(handle)?;
        let [home, other] = filter.locate(input.get(..len).unwrap_or(input));
        self.put_text(format!("[[{},{}],[{},{}]]", home.0, home.1, other.0, other.1));
        Ok(())
    }

    /// Outputs what the list in the first `len` bytes of the input buffer looks like, if its lines
    /// are hardly keys, as a text and the `--format` of the command; otherwise `null`.
    ///
    /// # Errors
    /// If the input buffer has fewer bytes.
    pub fn likeness(&mut self, len: usize) -> Result<(), Failure> {
        let mut likeness = Likeness::default();
        likeness.look_at(self.given(len)?.split(|&byte| byte == b'\n'));
        let text =
            likeness.format().map(|(format, what)| format!("[{what:?},{:?}]", format.name()));
        self.put_text(text.unwrap_or("null".to_owned()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_table_is_a_sound_filter_of_a_dozen_buckets() {
        for (growable, bits) in [false, true]
            .into_iter()
            .flat_map(|growable| [8, 10, 12, 14, 16].map(|bits| (growable, bits)))
        {
            let mut host = Host::default();
            let (capacity, error_rate, grow_from, fast, seed) = (24, 0.03, 0, true, 42);
            let secret = None;
            let settings =
                Settings { capacity, error_rate, grow_from, growable, fast, seed, secret };
            let small = host.build_small(&settings, 12, bits).unwrap();
            assert_eq!(host.filter(small).unwrap().buckets(), 12);
            assert_eq!(host.filter(small).unwrap().layout().fingerprint_bits(), bits.into());
            for i in 0..100 {
                let key = format!("key {i}");
                host.input(key.len()).unwrap()[..key.len()].copy_from_slice(key.as_bytes());
                let _full = host.add(small, key.len());
                let filter = host.filter(small).unwrap();
                filter.verify().unwrap();
                // In a table that grows, an entry may have fewer bits.
                let is_located = growable || is_located(filter, &key);
                assert_eq!(filter.contains(key.as_str()), is_located, "{key}");
            }
            let filter = host.filter(small).unwrap();
            assert!(filter.len() > 44, "{}", filter.len());
            assert_eq!(growable, filter.len() == 100);
        }
    }

    /// Whether an entry is where the filter says that the key would be.
    fn is_located(filter: &CuckooFilter, key: &str) -> bool {
        let [(home, slot), (other, _)] = filter.locate(key);
        let mut entries = filter.entries().map(|entry| (entry.bucket, entry.fingerprint));
        entries.any(|entry| entry == (home.min(other), slot))
    }

    #[test]
    fn a_list_says_what_it_looks_like() {
        let mut host = Host::default();
        for (list, expected) in [
            ("0.0.0.0 ads.example\n0.0.0.0 b.example\n", r#"["a hosts file","hosts"]"#),
            ("! title\n||ads.example^\n||b.example^", r#"["ad-block rules","adblock"]"#),
            ("ads.example\nb.example", "null"),
            ("", "null"),
        ] {
            host.input(list.len()).unwrap()[..list.len()].copy_from_slice(list.as_bytes());
            host.likeness(list.len()).unwrap();
            assert_eq!(host.output(), expected.as_bytes(), "{list}");
        }
        assert!(host.likeness(usize::MAX).is_err());
    }

    #[test]
    fn a_plan_has_the_rows_of_the_crate() {
        let mut host = Host::default();
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
