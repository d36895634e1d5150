//! Times of files and versions, in UTC as RFC 3339 writes them.
#![forbid(unsafe_code)]

use std::time::{Duration, SystemTime};

use koel_store::content::Time;

/// The last second of the year 9999.
const LAST: u64 = 253_402_300_799;

/// The time in UTC, such as `2026-11-26T14:25:46Z`. Earlier times are shown as 1970, later ones
/// as 9999.
pub(super) fn utc(time: Time) -> String {
    let seconds = u64::try_from(time.seconds).unwrap_or_default().min(LAST);
    humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        .to_string()
}
