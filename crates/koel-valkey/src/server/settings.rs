//! What the module was loaded with, and the secret and the limit, which may change.
//!
//! Each file that is loaded has these once: a server that loads one file twice gets the same ones.
//! So they are set when a load can be refused no more, and a second load of the file is refused.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::context::c_string;
use crate::filter::native::Key;
use crate::keys::Event;

/// The most bytes of a filter, unless another number is set: as of a string of the server.
const DEFAULT_LIMIT: u64 = 512 << 20;

/// What the module was loaded with.
#[derive(Clone)]
pub(super) struct Settings {
    /// What all commands begin with, such as `CF`.
    pub(super) prefix: String,
    /// The name of the module.
    pub(super) name: String,
    /// The name of the data type: nine letters.
    pub(super) type_name: String,
    /// The most bytes that a filter may take.
    pub(super) limit: u64,
    /// Where the secret of new filters comes from.
    pub(super) secret: SecretOf,
    /// The names of [`Event::ALL`] with the prefix.
    events: Vec<CString>,
}

impl Settings {
    /// Everything by default.
    pub(super) fn new() -> Self {
        Self {
            prefix: "CF".to_owned(),
            name: "koel".to_owned(),
            type_name: "MBbloomCF".to_owned(),
            limit: DEFAULT_LIMIT,
            secret: SecretOf::DataSet,
            events: Vec::new(),
        }
    }

    /// The name of an event with the prefix.
    pub(super) fn event(&self, event: Event) -> &CStr {
        &self.events[event as usize]
    }
}

/// Where the secret of new filters comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretOf {
    /// Made at random when the module is loaded; then that of the data set that is loaded.
    DataSet,
    /// An argument of the module.
    Argument(Key),
    /// There is none.
    Nowhere,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
static LIMIT: AtomicU64 = AtomicU64::new(DEFAULT_LIMIT);
static SECRET: Mutex<Option<Key>> = Mutex::new(None);

/// What the module was loaded with.
pub(super) fn settings() -> &'static Settings {
    running().expect("set when the module is loaded")
}

/// The settings of the module, once it is loaded.
pub(super) fn running() -> Option<&'static Settings> {
    SETTINGS.get()
}

/// Keeps the settings, once: the module is loaded, and nothing can refuse it any more. `random` is
/// a new secret.
pub(super) fn publish(settings: Settings, random: Key) {
    set_secret(match settings.secret {
        SecretOf::DataSet => Some(random),
        SecretOf::Argument(key) => Some(key),
        SecretOf::Nowhere => None,
    });
    SETTINGS.get_or_init(|| {
        let prefix = settings.prefix.to_ascii_lowercase();
        let name = |event: &Event| c_string(&format!("{prefix}.{}", event.name()));
        Settings { events: Event::ALL.iter().map(name).collect(), ..settings }
    });
}

/// The most bytes that a filter may take.
pub(super) fn limit() -> u64 {
    LIMIT.load(Ordering::Relaxed)
}

pub(super) fn set_limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// The secret of new filters.
pub(super) fn secret() -> Option<Key> {
    *SECRET.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set_secret(secret: Option<Key>) {
    *SECRET.lock().unwrap_or_else(PoisonError::into_inner) = secret;
}

/// Takes the secret of a data set that the server loads, unless an argument says another thing.
pub(super) fn adopt(key: Key) {
    if settings().secret == SecretOf::DataSet {
        set_secret(Some(key));
    }
}

/// The secret that a data set should be saved with.
pub(super) fn saved_secret() -> Option<Key> {
    if settings().secret == SecretOf::DataSet { secret() } else { None }
}
