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
    assert!(output.status.success() && said.contains("3 passed"), "{output:?}");
}

mod without_memory {
    use koel::{
        CountingFilter, CuckooFilter, FilterView, FullError, ImageError, Maplet, MapletView, Merge,
        MergeError,
    };

    /// No allocation of this size succeeds. All tables below are larger. The working memory
    /// of a search for room is smaller, and has a constant size.
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
        assert_eq!(CuckooFilter::from_bytes(&bytes).err(), Some(ImageError::NoMemory));
        assert_eq!(CountingFilter::from_bytes(&counting_bytes).err(), Some(ImageError::NoMemory));
        assert_eq!(view.to_owned().err(), Some(ImageError::NoMemory));
        assert_eq!(<CuckooFilter>::try_from(view).err(), Some(ImageError::NoMemory));
        let view = FilterView::open(&bytes).unwrap();
        assert_eq!(filter.merge(&view, Merge::Sum), Err(MergeError::NoMemory));
        assert_eq!(filter.merge(&view, Merge::Max), Err(MergeError::NoMemory));
        assert!(CuckooFilter::builder(1_000_000, 0.001).build_from(&keys).is_err());
        // Comparing needs no memory.
        assert!(filter.compare(&view).unwrap().surplus_first() == 0 && filter.verify().is_ok());
        drop(taken);

        assert!(keys.iter().all(|key| filter.count(key) == 1 && counting.count(key) == 1));
        assert!(filter.try_clone().unwrap() == filter && view.to_owned().unwrap() == filter);
        filter.merge(&view, Merge::Sum).unwrap();
        assert!(keys.iter().all(|key| filter.count(key) >= 2));
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
        assert!(matches!(full.reserve(1_000_000), Err(FullError::Slots { .. })));
        let mut written = 0;
        let done = midway.write_to(|piece| {
            let is_expected = expected[written..].starts_with(piece);
            written += piece.len();
            if is_expected { Ok(()) } else { Err(()) }
        });
        assert_eq!((done, written, midway.verify()), (Ok(()), expected.len(), Ok(())));
        drop(taken);

        assert!(matches!(error, FullError::Slots { .. }), "{error}");
        assert!((0..refused).all(|key| full.contains(&key)) && full.verify().is_ok());
        assert!(!full.has_grown() && full.insert(&refused).is_ok() && full.has_grown());
        assert!((0..=last).all(|key| midway.contains(&key)));
        assert!(midway == CuckooFilter::from_bytes(&expected).unwrap());
    }
}
