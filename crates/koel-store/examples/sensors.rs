//! Readings of sensors, in the order of sensor and time: loaded at once, added to, read by ranges,
//! thinned out by a filter, and copied.
//!
//! A key is the name of the sensor and the time in big-endian bytes, so keys sort by sensor and then
//! by time. A range of keys is a range of time.

#![expect(clippy::big_endian_bytes, reason = "big-endian numbers sort as bytes")]

use std::ops::Bound;

use koel_store::{Durability, Error, LsmOptions, LsmStore};

const SENSORS: [&str; 3] = ["boiler", "hall", "roof"];
/// A reading each minute.
const MINUTE: u64 = 60;
const DAY: u64 = 24 * 60 * MINUTE;

fn key(sensor: &str, time: u64) -> Vec<u8> {
    [sensor.as_bytes(), b"/", &time.to_be_bytes()].concat()
}

/// Returns the time in a key.
fn time_of(key: &[u8]) -> u64 {
    let time = key.last_chunk::<8>().copied().unwrap_or_default();
    u64::from_be_bytes(time)
}

/// Returns a temperature in millidegrees, which a real sensor would measure.
fn measure(sensor: usize, time: u64) -> i32 {
    let minute = i32::try_from(time / MINUTE % 1440).unwrap_or(0);
    let base = [60_000, 21_000, 8_000][sensor];
    base - (minute - 720).abs() * 5
}

/// Returns the mean temperature of a sensor between two times.
fn mean(store: &LsmStore, sensor: &str, from: u64, to: u64) -> Result<Option<f64>, Error> {
    let (mut sum, mut count) = (0_i64, 0_u32);
    for reading in store.range(key(sensor, from)..key(sensor, to))? {
        let (_, value) = reading?;
        let value = value.first_chunk::<4>().copied().unwrap_or_default();
        sum += i64::from(i32::from_le_bytes(value));
        count += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "a sum of readings is far below 2^53")]
    Ok((count > 0).then(|| sum as f64 / f64::from(count) / 1000.0))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folders = tempfile::tempdir()?;
    // Merges drop what is older than the first five days, once it is rewritten.
    let oldest = 5 * DAY;
    let options = LsmOptions::default()
        .memtable_bytes(1 << 20)
        .compaction_filter(move |key, _| time_of(key) >= oldest);
    let store = options.open(folders.path().join("readings"))?;

    // Ten days of history: sorted by sensor and time, so they become one table without the log.
    let minutes = 0..10 * DAY / MINUTE;
    let history = SENSORS.iter().enumerate().flat_map(|(number, sensor)| {
        let reading =
            move |minute| (key(sensor, minute * MINUTE), measure(number, minute * MINUTE));
        minutes.clone().map(reading).map(|(key, value)| (key, value.to_le_bytes()))
    });
    println!("{} readings loaded", store.ingest(history)?);

    // The eleventh day comes in one by one. A crash of the machine loses at most the last seconds.
    for time in (10 * DAY..11 * DAY).step_by(60) {
        for (number, sensor) in SENSORS.iter().enumerate() {
            let value = measure(number, time).to_le_bytes();
            store.put(&key(sensor, time), &value, Durability::None)?;
        }
        if time % 3600 == 0 {
            store.sync()?;
        }
    }

    for sensor in SENSORS {
        let noon = 10 * DAY + DAY / 2;
        let around_noon = mean(&store, sensor, noon - 3600, noon + 3600)?;
        let last = store.prefix(format!("{sensor}/").as_bytes())?.next_back().transpose()?;
        let last = last.map(|(key, _)| time_of(&key));
        println!("{sensor}: {around_noon:.1?} degrees around noon, last reading at {last:?}");
        assert_eq!(last, Some(11 * DAY - MINUTE));
    }

    // A report reads one moment, whatever is written or merged meanwhile.
    let snapshot = store.snapshot();
    store.compact()?;
    let from = (Bound::Included(key("hall", 0)), Bound::Excluded(key("hall", DAY)));
    assert_eq!(snapshot.range(from)?.count(), 1440);
    drop(snapshot);
    store.compact()?;
    assert_eq!(mean(&store, "hall", 0, DAY)?, None, "the first days have expired");

    store.checkpoint(folders.path().join("backup"))?;
    let backup = LsmStore::open(folders.path().join("backup"))?;
    println!("{} readings in the backup", backup.iter()?.count());
    assert_eq!(backup.iter()?.count(), 3 * 6 * 1440);
    assert!(backup.verify(|_, _| ())?.damages.is_empty());
    Ok(())
}
