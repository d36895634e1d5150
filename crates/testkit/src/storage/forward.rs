//! The calls that a wrapper of a folder or of a file leaves as they are.

/// Passes calls of a `Folder` or of a `File` on to the one in a field of the wrapper.
///
/// ```
/// # use koel_store::files::File;
/// # use std::{io, sync::Arc};
/// #[derive(Debug)]
/// struct CannotSync(Arc<dyn File>);
///
/// impl File for CannotSync {
///     testkit::forward!(0: read_at, write_at, len, set_len);
///
///     fn sync(&self) -> io::Result<()> {
///         Err(io::ErrorKind::Other.into())
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward {
    ($field:tt: $($call:ident),+) => { $($crate::forward!(@ $field $call);)+ };
    (@ $field:tt rename) => {
        fn rename(&self, from: &str, to: &str) -> ::std::io::Result<()> {
            self.$field.rename(from, to)
        }
    };
    (@ $field:tt remove) => {
        fn remove(&self, name: &str) -> ::std::io::Result<()> {
            self.$field.remove(name)
        }
    };
    (@ $field:tt list) => {
        fn list(&self) -> ::std::io::Result<Vec<String>> {
            self.$field.list()
        }
    };
    (@ $field:tt lock) => {
        fn lock(&self) -> ::std::io::Result<Box<dyn Send + Sync>> {
            self.$field.lock()
        }
    };
    (@ $field:tt sync) => {
        fn sync(&self) -> ::std::io::Result<()> {
            self.$field.sync()
        }
    };
    (@ $field:tt read_at) => {
        fn read_at(&self, into: &mut [u8], offset: u64) -> ::std::io::Result<usize> {
            self.$field.read_at(into, offset)
        }
    };
    (@ $field:tt write_at) => {
        fn write_at(&self, bytes: &[u8], offset: u64) -> ::std::io::Result<usize> {
            self.$field.write_at(bytes, offset)
        }
    };
    (@ $field:tt len) => {
        fn len(&self) -> ::std::io::Result<u64> {
            self.$field.len()
        }
    };
    (@ $field:tt set_len) => {
        fn set_len(&self, len: u64) -> ::std::io::Result<()> {
            self.$field.set_len(len)
        }
    };
}
