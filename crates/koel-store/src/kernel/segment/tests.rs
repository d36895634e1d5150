//! The size of the first read of a record, and the effect of a failed sync.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::kernel::files::File;
use crate::kernel::store_files::SEGMENT;

/// A file whose first sync fails and whose later syncs succeed, as on some systems.
#[derive(Debug, Default)]
struct LosesBytes {
    failed: AtomicBool,
}

impl File for LosesBytes {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Ok(0)
    }

    fn write_at(&self, bytes: &[u8], _: u64) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let failed = self.failed.swap(true, Ordering::Relaxed);
        if failed { Ok(()) } else { Err(io::Error::other("lost")) }
    }
}

fn segment(file: Arc<LosesBytes>) -> Segment {
    Segment::of(NumberedFile { file, name: SEGMENT.name(1), number: 1, salt: 1 })
}

/// The average once included large values, so 96 KiB were read for any record beside them.
#[test]
fn the_first_read_is_as_long_as_most_records_without_blocks() {
    let segment = segment(Arc::default());
    assert_eq!(segment.first_read(), 512);
    (0..10).for_each(|_| segment.add_record(4 << 20));
    assert_eq!(segment.first_read(), 512);
    (0..10).for_each(|_| segment.add_record(1000));
    assert_eq!(segment.first_read(), 1536);
    (0..1000).for_each(|_| segment.add_record(MAX_FIRST_READ));
    assert_eq!(segment.first_read() as u64, MAX_FIRST_READ);
}

#[test]
fn a_segment_that_lost_bytes_is_never_durable_again() {
    let file = Arc::new(LosesBytes::default());
    let segment = segment(file.clone());
    for _ in 0..3 {
        assert!(segment.sync().is_err());
    }
    assert!(file.sync().is_ok());
}
