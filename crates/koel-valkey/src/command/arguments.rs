//! Reads options and numbers, with the checks and the errors of RedisBloom.

use std::ops::RangeInclusive;
use std::str::FromStr;

use koel::{Prefer, WhenFull};

use crate::error::Error;
use crate::filter::Options;
use crate::filter::native::{DEFAULT_ERROR, Key, MOST_SECONDS, Secret, Settings, Window};

/// The capacity of a filter that the first item creates.
const DEFAULT_CAPACITY: u64 = 1024;

/// Reads a number as the server does: no spaces, no `+`, no leading zeros.
pub(super) fn number<T: FromStr>(argument: &[u8]) -> Option<T> {
    let digits = argument.strip_prefix(b"-").unwrap_or(argument);
    let is_short = match digits {
        [b'0'] => digits.len() == argument.len(),
        [first, ..] => (b'1'..=b'9').contains(first),
        [] => false,
    };
    if is_short { parsed(argument) } else { None }
}

fn parsed<T: FromStr>(argument: &[u8]) -> Option<T> {
    std::str::from_utf8(argument).ok()?.parse().ok()
}

/// Whether an argument is this word, in any case.
pub(super) fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// The settings of `RESERVE key capacity [option value]..`, from the capacity on.
///
/// The order of checks is the reference's: capacity as a number, its options in this order, options
/// of ours, and at last whether the capacity is large enough. If an option comes twice, the first
/// one counts.
pub(super) fn settings(arguments: &[&[u8]]) -> Result<Settings, Error> {
    let (capacity, pairs) = arguments.split_first().ok_or(Error::Arity)?;
    let (pairs, []) = pairs.as_chunks::<2>() else { return Err(Error::Arity) };
    let capacity = number(capacity).ok_or(Error::BadCapacity)?;
    let option = |name| pairs.iter().find(|[word, _]| is(word, name)).map(|[_, value]| *value);
    let in_range = |name, range, default| match option(name) {
        Some(value) => checked(name, value, range),
        None => Ok(default),
    };
    let default = Options::default();
    let options = Options {
        max_iterations: in_range("MAXITERATIONS", 1..=65_535, default.max_iterations)?,
        bucket_size: in_range("BUCKETSIZE", 1..=255, default.bucket_size)?,
        expansion: in_range("EXPANSION", 0..=32_768, default.expansion)?,
    };
    let expansion = if options.expansion == 0 { 0 } else { options.expansion.next_power_of_two() };
    let error = option("ERROR").map_or(Ok(DEFAULT_ERROR), error_rate)?;
    let prefer = option("PREFER").map_or(Ok(Prefer::Small), preference)?;
    let window = window(option("WINDOW"), option("WHENFULL"))?;
    let secret = option("SECRET").map_or(Ok(Secret::Server), secret)?;
    let known = [
        "MAXITERATIONS",
        "BUCKETSIZE",
        "EXPANSION",
        "ERROR",
        "PREFER",
        "WINDOW",
        "WHENFULL",
        "SECRET",
    ];
    if pairs.iter().any(|[word, _]| !known.iter().any(|name| is(word, name))) {
        return Err(Error::UnknownOption);
    }
    // Only a filter of one size is ever full.
    let expansion = match (option("WHENFULL"), option("EXPANSION")) {
        (Some(_), None) => 0,
        (Some(_), Some(_)) if expansion > 0 => return Err(Error::GrowsWhenFull),
        _ => expansion,
    };
    let capacity = large_enough(capacity, options)?;
    let options = Options { expansion, ..options };
    Ok(Settings { capacity, error, prefer, window, secret, options })
}

/// The window of `WINDOW seconds [WHENFULL FAIL|EVICT]`.
fn window(seconds: Option<&[u8]>, when_full: Option<&[u8]>) -> Result<Option<Window>, Error> {
    let when_full = match when_full {
        Some(value) if is(value, "EVICT") => Some(WhenFull::EvictOldest),
        Some(value) if is(value, "FAIL") => Some(WhenFull::Fail),
        Some(_) => return Err(Error::BadWhenFull),
        None => None,
    };
    let Some(seconds) = seconds else {
        return if when_full.is_some() { Err(Error::BadWhenFull) } else { Ok(None) };
    };
    let seconds = number(seconds).filter(|seconds| (1..=MOST_SECONDS).contains(seconds));
    let seconds = seconds.ok_or(Error::BadWindow { most: MOST_SECONDS })?;
    Ok(Some(Window { seconds, when_full: when_full.unwrap_or_default() }))
}

/// The settings of a filter that INSERT creates, and which of the arguments are items.
pub(super) struct Insert<'a> {
    pub(super) settings: Settings,
    pub(super) create: bool,
    pub(super) items: &'a [&'a [u8]],
}

/// Reads `[CAPACITY n] [NOCREATE] ITEMS item..`. As in the reference, the first letter of an option
/// is enough.
pub(super) fn insert<'a>(arguments: &'a [&'a [u8]]) -> Result<Insert<'a>, Error> {
    let (mut rest, mut settings, mut create) = (arguments, default(), true);
    loop {
        let (option, after) = rest.split_first().ok_or(Error::Arity)?;
        rest = after;
        match option.first().map(u8::to_ascii_uppercase) {
            Some(b'C') => {
                let (value, after) = rest.split_first().ok_or(Error::Arity)?;
                let capacity = number(value).ok_or(Error::BadCapacity)?;
                settings.capacity = large_enough(capacity, settings.options)?;
                rest = after;
            }
            Some(b'N') => create = false,
            Some(b'I') => break,
            _ => return Err(Error::UnknownOption),
        }
    }
    if rest.is_empty() {
        return Err(Error::Arity);
    }
    Ok(Insert { settings, create, items: rest })
}

/// The settings of a filter that is created without any.
pub(super) fn default() -> Settings {
    Settings {
        capacity: DEFAULT_CAPACITY,
        error: DEFAULT_ERROR,
        prefer: Prefer::Small,
        window: None,
        secret: Secret::Server,
        options: Options::default(),
    }
}

fn checked(name: &'static str, value: &[u8], range: RangeInclusive<u16>) -> Result<u16, Error> {
    let value: i64 = number(value).ok_or(Error::NotANumber(name))?;
    let (least, most) = range.into_inner();
    let value = u16::try_from(value).ok().filter(|value| (least..=most).contains(value));
    value.ok_or(Error::Range { name, least, most })
}

fn large_enough(capacity: i64, options: Options) -> Result<u64, Error> {
    let capacity = u64::try_from(capacity).map_err(|_| Error::SmallCapacity)?;
    let fits = capacity >= 2 * u64::from(options.bucket_size);
    if fits { Ok(capacity) } else { Err(Error::SmallCapacity) }
}

fn error_rate(value: &[u8]) -> Result<f64, Error> {
    let rate = parsed(value).filter(|_| !value.starts_with(b"+"));
    rate.filter(|&rate: &f64| rate > 0.0 && rate < 1.0).ok_or(Error::BadError)
}

fn secret(value: &[u8]) -> Result<Secret, Error> {
    if is(value, "NO") {
        return Ok(Secret::No);
    }
    key(value).map(Secret::Key).ok_or(Error::BadSecret)
}

/// Reads 32 hexadecimal digits.
pub(crate) fn key(digits: &[u8]) -> Option<Key> {
    let mut key = [0; 16];
    if digits.len() != 2 * key.len() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(key)
}

fn preference(value: &[u8]) -> Result<Prefer, Error> {
    match value {
        _ if is(value, "SMALL") => Ok(Prefer::Small),
        _ if is(value, "FAST") => Ok(Prefer::Fast),
        _ => Err(Error::BadPreference),
    }
}
