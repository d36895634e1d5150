//! What the module was loaded with.

use std::sync::OnceLock;

/// What the module was loaded with.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// What all commands begin with, such as `CF`.
    pub(super) prefix: String,
    /// The name of the module.
    pub(super) name: String,
    /// The name of the data type: nine letters.
    pub(super) type_name: String,
    /// The most bytes that a filter may take.
    pub(super) limit: u64,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// What the module was loaded with.
pub(super) fn settings() -> &'static Settings {
    SETTINGS.get().expect("set when the module is loaded")
}

/// Remembers the settings, once.
pub(super) fn remember(settings: Settings) {
    SETTINGS.get_or_init(|| settings);
}
