//! When memory is short, calls return an error or do without, and nothing is lost.
//!
//! A memory limit applies to a process, so the test runs this binary again under `ulimit` for the
//! tests in [`without_memory`].

use std::process::Command;

#[test]
fn short_memory_is_an_error_and_nothing_is_lost() {
    // 512 MiB: enough for the tests, and little more.
    let script = "ulimit -v 524288; exec \"$0\" memory::without_memory --ignored --test-threads=1";
    let binary = std::env::current_exe().unwrap();
    let output = Command::new("sh").arg("-c").arg(script).arg(binary).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("6 passed"), "{output:?}");
}

mod without_memory {
    use koel::{
        CountingFilter, CuckooFilter, ExpiringFilter, FilterView, FullError, ImageError, Maplet,
        MapletView, Merge, MergeError, PatchError, Prefer,
    };

    use crate::subject::Subject;

    /// Nothing of this many bytes or more is left. All tables that must not be copied are larger.
    const LEFT: usize = 512 << 10;

    fn take_all_memory() -> Vec<Vec<u8>> {
        let mut taken = Vec::with_capacity(1000);
        for size in [1 << 20, LEFT] {
            let mut piece = Vec::new();
            while taken.len() < taken.capacity() && piece.try_reserve_exact(size).is_ok() {
                taken.push(std::mem::take(&mut piece));
            }
        }
        assert!(taken.len() < taken.capacity());
        taken
    }

    #[test]
    #[ignore = "started by the test above, under a limit"]
    fn copies_and_unions_fail() {
        let keys: Vec<u64> = (0..2000).collect();
        let mut filter = CuckooFilter::builder(1_000_000, 0.001).growable().build().unwrap();
        filter.insert_many(&keys).unwrap();
        let bytes = filter.to_bytes();
        let view = FilterView::open(&bytes).unwrap();
        let mut counting = CountingFilter::builder(1_000_000, 0.001).build().unwrap();
        counting.insert_many(&keys).unwrap();
        let counting_bytes = counting.to_bytes();
        let taken = take_all_memory();

        assert!(filter.try_clone().is_err() && counting.try_clone().is_err());
        assert_eq!(filter.try_to_bytes().unwrap_err().bytes, bytes.len());
        assert_eq!(CuckooFilter::from_bytes(&bytes).err(), Some(ImageError::NoMemory));
        assert_eq!(CountingFilter::from_bytes(&counting_bytes).err(), Some(ImageError::NoMemory));
        assert_eq!(view.to_owned().err(), Some(ImageError::NoMemory));
        assert_eq!(<CuckooFilter>::try_from(view).err(), Some(ImageError::NoMemory));
        let view = FilterView::open(&bytes).unwrap();
        assert_eq!(filter.merge(&view, Merge::Sum), Err(MergeError::NoMemory));
        assert_eq!(filter.merge(&view, Merge::Max), Err(MergeError::NoMemory));
        assert!(CuckooFilter::builder(1_000_000, 0.001).build_from(&keys).is_err());
        assert_eq!(filter.compare(&view).unwrap_err(), MergeError::NoMemory);
        assert_eq!(filter.patch_to(&view).unwrap_err(), PatchError::NoMemory);
        assert_eq!(filter.verify(), Err(ImageError::NoMemory));
        drop(taken);

        assert_eq!(filter.verify(), Ok(()));
        assert!(keys.iter().all(|key| filter.count(key) == 1 && counting.count(key) == 1));
        assert!(filter.try_clone().unwrap() == filter && view.to_owned().unwrap() == filter);
        filter.merge(&view, Merge::Sum).unwrap();
        assert!(keys.iter().all(|key| filter.count(key) >= 2));
    }

    #[test]
    #[ignore = "started by the test above, under a limit"]
    fn a_long_key_needs_no_memory() {
        let mut filter = CuckooFilter::with_capacity(100);
        let text = "x".repeat(4 * LEFT);
        let key = (text.as_str(), (7_u32, text.as_str()), [9_u64; 1000]);
        let taken = take_all_memory();
        filter.insert(&key).unwrap();
        assert!(filter.contains(&key) && filter.contains(&filter.hasher().hash(&key)));
        drop(taken);
    }

    #[test]
    #[ignore = "started by the test above, under a limit"]
    fn a_maplet_keeps_its_size() {
        let mut maplet = Maplet::builder(1_000_000, 1e-5, 38).grow_from(100).build().unwrap();
        maplet.try_extend((0..400_000_u64).map(|key| (key, key))).unwrap();
        assert!((300_000..400_000_u64).all(|key| maplet.remove(&key, key)));
        let (bytes, slots) = (maplet.to_bytes(), maplet.slots());
        let taken = take_all_memory();

        assert!(maplet.try_clone().is_err());
        assert_eq!(<Maplet>::try_from(&*bytes).err(), Some(ImageError::NoMemory));
        assert!(MapletView::try_from(&*bytes).is_ok_and(|view| view.to_owned().is_err()));
        maplet.shrink_to_fit();
        assert_eq!(maplet.slots(), slots);
        drop(taken);

        assert!((0..300_000_u64).all(|key| maplet.get(&key).any(|value| value == key)));
        maplet.shrink_to_fit();
        assert!(maplet.slots() < slots && maplet.verify().is_ok());
    }

    #[test]
    #[ignore = "started by the test above, under a limit"]
    fn a_filter_does_not_grow() {
        let mut full = CuckooFilter::builder(1_000_000, 0.001).growable().build().unwrap();
        full.try_extend(0..1_000_000_u64).unwrap();
        // Its buckets are being widened.
        let mut midway = CuckooFilter::builder(40_000, 0.001).growable().build().unwrap();
        let last = (0_u64..).find(|key| midway.insert(key).is_ok() && midway.has_grown()).unwrap();
        let expected = midway.to_bytes();
        let taken = take_all_memory();

        let refused = (1_000_000_u64..).find(|key| full.insert(key).is_err()).unwrap();
        let error = full.insert(&refused).unwrap_err();
        assert_eq!(full.reserve(1_000_000), Err(FullError::NoMemory));
        let mut written = 0;
        let done = midway.write_to(|piece| {
            let is_expected = expected[written..].starts_with(piece);
            written += piece.len();
            if is_expected { Ok(()) } else { Err(()) }
        });
        assert_eq!((done, written, midway.verify()), (Ok(()), expected.len(), Ok(())));
        drop(taken);

        assert_eq!(error, FullError::NoMemory);
        assert!((0..refused).all(|key| full.contains(&key)) && full.verify().is_ok());
        assert!(!full.has_grown() && full.insert(&refused).is_ok() && full.has_grown());
        assert!((0..=last).all(|key| midway.contains(&key)));
        assert!(midway == CuckooFilter::from_bytes(&expected).unwrap());
    }

    const FIRST: u64 = 20_000;

    #[test]
    #[ignore = "started by the test above, under a limit"]
    fn tables_grow_until_memory_ends() {
        fn of<S: Subject>(mut it: S) {
            (0..FIRST).for_each(|key| it.put(&key, 1).unwrap());
            let taken = take_all_memory();
            let refused = (FIRST..).find_map(|key| it.put(&key, 1).err().map(|full| (key, full)));
            drop(taken);
            let (refused, error) = refused.unwrap();
            assert_eq!(error, FullError::NoMemory);
            assert!(refused > FIRST && it.len() == refused && it.verify().is_ok());
            assert!((0..refused).all(|key| it.has(&key, 1)));
            it.put(&refused, 1).unwrap();
        }
        of(CuckooFilter::builder(1_000_000, 0.001).grow_from(100).build().unwrap());
        of(CountingFilter::builder(1_000_000, 0.001).grow_from(100).build().unwrap());
        of(Maplet::builder(1_000_000, 1e-5, 38).grow_from(100).build().unwrap());
    }

    /// Adds some keys, and more when nothing is left, until thousands were refused. What was taken,
    /// and no more, makes equal bytes where there is memory.
    fn refuses_whole_inserts<S: Subject>(empty: S, first: u64) {
        let (mut it, mut twin) = (empty.clone(), empty);
        (0..first).for_each(|key| {
            it.put(&key, 1).unwrap();
            twin.put(&key, 1).unwrap();
        });
        let (mut kept, mut refused) = (Vec::with_capacity(1 << 20), 0);
        let taken = take_all_memory();
        // Keys that are in already come between: they get a second slot, or are counted.
        for key in (first..).map(|key| if key % 8 == 0 { key / 2 } else { key }) {
            if it.put(&key, 1).is_ok() {
                kept.push(key);
            } else {
                refused += 1;
            }
            if refused == 5000 || kept.len() == kept.capacity() {
                break;
            }
        }
        drop(taken);
        assert!(refused == 5000);
        kept.into_iter().for_each(|key| twin.put(&key, 1).unwrap());
        assert!(it.to_bytes() == twin.to_bytes());
    }

    #[test]
    #[ignore = "started by the test above, under a limit"]
    fn an_insert_without_memory_changes_no_byte() {
        for prefer in [Prefer::Small, Prefer::Fast] {
            let builder = || CuckooFilter::builder(1_000_000, 0.001).prefer(prefer);
            refuses_whole_inserts(builder().grow_from(100).build().unwrap(), FIRST);
            refuses_whole_inserts(builder().growable().build().unwrap(), 1_000_000);
        }
        let counting = CountingFilter::builder(1_000_000, 0.001).grow_from(100);
        refuses_whole_inserts(counting.build().unwrap(), FIRST);
        let expiring = ExpiringFilter::builder(1_000_000, 0.001).window(3600).grow_from(100);
        refuses_whole_inserts(expiring.build().unwrap(), FIRST);
    }
}
