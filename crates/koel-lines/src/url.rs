//! Parses one URL as browsers do (the WHATWG standard).
//!
//! The crate `url` does it. In JavaScript its own `URL` does, so that the npm package has no tables
//! for international names. Both say the same: `hosts/standard.rs` and
//! the tests of the npm package ask them the test data of the standard.

use alloc::string::String;

/// What is needed of a URL.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// As it is written in the URL: of a special scheme in lower case and punycode.
    pub(crate) host: Option<String>,
    /// Whether browsers know the scheme.
    pub(crate) is_special: bool,
    /// Whether what follows the scheme is no path, as in `mailto:x`.
    pub(crate) is_opaque: bool,
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    let url = url::Url::parse(text).ok()?;
    let host = url.host_str().filter(|host| !host.is_empty()).map(String::from);
    Some(Parsed { host, is_special: url.is_special(), is_opaque: url.cannot_be_a_base() })
}

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(crate) use javascript::parse;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
#[expect(unsafe_code, reason = "a function of JavaScript")]
mod javascript {
    use alloc::string::String;
    use alloc::vec;

    use super::Parsed;

    #[link(wasm_import_module = "koel")]
    unsafe extern "C" {
        /// Parses the UTF-8 text at `text`. Below 0 if it is no URL. Otherwise the two lowest bits
        /// say whether the scheme is special and whether the path is opaque, the others the number
        /// of bytes of the host, which is written to `host` if there is `room`.
        fn url(text: *const u8, len: usize, host: *mut u8, room: usize) -> i32;
    }

    pub(crate) fn parse(text: &str) -> Option<Parsed> {
        let mut host = vec![0; text.len() + 64];
        loop {
            // SAFETY: the function reads so many bytes of the text and writes at most so many of
            // the host, both of which live longer than the call.
            let found = unsafe { url(text.as_ptr(), text.len(), host.as_mut_ptr(), host.len()) };
            let found = usize::try_from(found).ok()?;
            let length = found >> 2;
            if length > host.len() {
                host.resize(length, 0);
                continue;
            }
            host.truncate(length);
            let host = String::from_utf8(host).ok().filter(|host| !host.is_empty());
            return Some(Parsed { host, is_special: found & 1 != 0, is_opaque: found & 2 != 0 });
        }
    }
}
