//! Parses and prints numbers for people: `10M` keys, `1.5GiB`, `0.1%`; 121,570 and 183.9 KiB.
//!
//! Parsing:
//! - Numbers of keys take decimal units: `10k`, `10M`, `1G`, `1e7`.
//! - Sizes follow GNU coreutils: `64M` and `64MiB` are 64 * 1024^2 bytes, `64MB` is 64 * 1000^2.
//! - A comma must separate thousands, as in 1,500,000. `1,5M` is refused: it could mean 15 million.
//! - A rate is a fraction, a percentage or `1/1000`.
//!
//! Printing rounds to a few digits. `--json` prints the full numbers instead.

/// The bound of what is parsed: numbers of keys and bytes are below it.
const MOST: f64 = 9e18;

/// Parses a whole number of keys, such as `121570`, `121_570` or `10M`.
pub(crate) fn parse_keys(text: &str) -> Result<u64, String> {
    let factor = |unit: &str| match unit {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        "T" => Some(1e12),
        _ => None,
    };
    let units = "k, M, G or T (1e3, 1e6, 1e9 or 1e12)";
    let advice = "give a whole number of keys, such as 121570 or 10M";
    parse_whole(text, factor, units).map_err(|fault| format!("{fault}; {advice}"))
}

/// Parses a number of bytes, such as `64M` or `1.5GiB`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let factor = |unit: &str| {
        let unit = unit.to_ascii_lowercase();
        let (prefix, base) = match unit.strip_suffix("ib") {
            Some(prefix) => (prefix, 1024_f64),
            None => unit.strip_suffix('b').map_or((&*unit, 1024.0), |prefix| (prefix, 1000.0)),
        };
        let power = ["", "k", "m", "g", "t", "p"].iter().position(|&known| known == prefix)?;
        (unit != "ib").then(|| base.powi(i32::try_from(power).unwrap_or(0)))
    };
    let units = "K, M, G, T or P (units of 1024), or KB, MB, GB, TB or PB (units of 1000)";
    let advice = "give a size, such as 64M or 1.5GiB";
    parse_whole(text, factor, units).map_err(|fault| format!("{fault}; {advice}"))
}

/// Parses a number with a unit, which `factor` knows and `units` names in the error.
fn parse_whole(
    text: &str,
    factor: impl Fn(&str) -> Option<f64>,
    units: &str,
) -> Result<u64, String> {
    let not_a_number = || "it is not a number".to_owned();
    let (number, unit) = split_unit(text).ok_or_else(not_a_number)?;
    if number.is_empty() {
        return Err(not_a_number());
    }
    let factor =
        factor(unit).ok_or_else(|| format!("it ends in {unit}, which is none of {units}"))?;
    let value = number.parse::<f64>().map_err(|_| not_a_number())? * factor;
    let whole = number.parse::<u64>().ok().and_then(|whole| whole.checked_mul(to_u64(factor)));
    match whole.unwrap_or_else(|| to_u64(value)) {
        _ if value >= MOST => Err(format!("at most {MOST:e} is possible")),
        0 => Err("at least 1 is needed".to_owned()),
        whole => Ok(whole),
    }
}

/// The false-positive rate without `--fpr`.
pub(crate) const USUAL_RATE: f64 = 0.001;

/// Parses a false-positive rate, such as `0.001`, `0.1%` or `1/1000`.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = if let Some(percent) = text.strip_suffix('%') {
        // Parsing "0.39e-2" gives exactly 0.0039, which 0.39 / 100 is not.
        format!("{}e-2", percent.trim())
            .parse()
            .or_else(|_| percent.trim().parse().map(|p: f64| p / 100.0))
    } else if let Some(one_in) = text.strip_prefix("1/") {
        one_in.parse().map(|n: f64| 1.0 / n)
    } else {
        text.parse()
    };
    let fault = match rate {
        Ok(rate) if rate > 0.0 && rate < 1.0 => return Ok(rate),
        Ok(rate) if rate <= 0.0 => "it is too small",
        Ok(rate) if rate >= 1.0 => "it is too large",
        _ => "it is not a number",
    };
    Err(format!("{fault}; give a rate above 0 and below 1, such as 0.001, 0.1% or 1/1000"))
}

/// Splits a number, without its separators, from its unit. `None` if a comma is misplaced.
fn split_unit(text: &str) -> Option<(String, &str)> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let number = number.trim();
    let (first, thousands) = number.split_once(',').unwrap_or((number, ""));
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|c| c.is_ascii_digit());
    let whole = thousands.split('.').next().unwrap_or("");
    if first.len() < number.len() && !whole.split(',').all(is_group) {
        return None;
    }
    Some((number.replace(['_', ','], ""), unit))
}

/// The nearest whole number, at least 0 and at most `u64::MAX`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "`as` from a float saturates, which is what the name promises"
)]
pub(crate) fn to_u64(value: f64) -> u64 {
    value.round() as u64
}

/// Prints `121570` as `121,570`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// [`grouped`], or nothing for 0: a row that is left out.
pub(crate) fn unless_zero(number: u64) -> String {
    if number == 0 { String::new() } else { grouped(number) }
}

/// Prints `188342` as `183.9 KiB`.
pub(crate) fn bytes(count: u64) -> String {
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = "KiB";
    for larger in ["MiB", "GiB", "TiB", "PiB", "EiB"] {
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// Prints `0.000979` as `0.0979 %`, and rates below 0.001 % with an exponent.
pub(crate) fn rate(rate: f64) -> String {
    if rate <= 0.0 {
        "0 %".to_owned()
    } else if rate < 1e-5 {
        format!("{rate:.2e}")
    } else {
        format!("{} %", three_digits(rate * 100.0))
    }
}

/// Prints three significant digits: `12.3`, `0.0123`; below 0.0001 with an exponent: `1.2e-11`.
///
/// Numbers from 1000 on keep all digits before the point.
pub(crate) fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if value.abs() < 1e-4 {
        let text = format!("{value:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", without_zeros(digits));
    }
    let mut decimals: usize = 2;
    let mut scaled = value.abs();
    while scaled >= 9.995 && decimals > 0 {
        scaled /= 10.0;
        decimals -= 1;
    }
    while scaled < 0.9995 {
        scaled *= 10.0;
        decimals += 1;
    }
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

/// A decimal number without zeros at its end.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Prints `1 key`, `2 keys`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_as_people_write_them() {
        assert_eq!(parse_keys("121_570"), Ok(121_570));
        assert_eq!(parse_keys("10M"), Ok(10_000_000));
        assert_eq!(parse_keys("1.5k"), Ok(1500));
        assert_eq!(parse_keys("1,234,567"), Ok(1_234_567));
        assert_eq!(parse_keys("1,500.5k"), Ok(1_500_500));
        assert_eq!(parse_keys("1e6"), Ok(1_000_000));
        assert_eq!(parse_keys("100T"), Ok(100_000_000_000_000));
        assert_eq!(parse_keys("8e18"), Ok(8_000_000_000_000_000_000));
        assert_eq!(parse_size("1e9"), Ok(1_000_000_000));
        assert_eq!(parse_size("1.5e3KiB"), Ok(1_536_000));
        assert_eq!(parse_size("64M"), Ok(64 << 20));
        assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_size("64MB"), Ok(64_000_000));
        assert_eq!(parse_size("10 kb"), Ok(10_000));
        assert_eq!(parse_size("77B"), Ok(77));
        assert_eq!(parse_size("1P"), Ok(1 << 50));
        assert_eq!(parse_rate("0.1%"), Ok(0.001));
        assert_eq!(parse_rate("0.39%"), Ok(0.0039));
        assert_eq!(parse_rate("1e-1 %"), Ok(0.001));
        assert_eq!(parse_rate("1/1000"), Ok(0.001));
    }

    #[test]
    fn invalid_numbers_are_refused() {
        let commas = ["1,5M", "1,50", ",5", "1,,000", "1,0000", "5,"];
        let texts = ["", "0", "-1", "many", "10Q", "1e400", "99999999999999999999", "inf", "1e"];
        for text in texts.into_iter().chain(commas) {
            assert!(parse_keys(text).is_err(), "{text}");
            assert!(parse_size(text).is_err(), "{text}");
        }
        for text in ["", "0", "1", "2", "-0.1", "nan", "100%", "1/0"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert!(parse_size("5ib").is_err());
    }

    /// Each fault has its own message, which names the limit or the units.
    #[test]
    fn the_error_says_what_is_wrong_with_a_number() {
        let keys = |text| parse_keys(text).unwrap_err();
        let size = |text| parse_size(text).unwrap_err();
        let rate = |text| parse_rate(text).unwrap_err();
        for text in ["0", "-1", "0.2", "-5M"] {
            assert!(keys(text).contains("at least 1 is needed"), "{}", keys(text));
            assert!(size(text).contains("at least 1 is needed"), "{}", size(text));
        }
        for text in ["1e30", "99999999999999999999", "9e9G"] {
            assert!(keys(text).contains("at most 9e18"), "{}", keys(text));
            assert!(size(text).contains("at most 9e18"), "{}", size(text));
        }
        for text in ["", "many", "1,5M", "nan", "inf", "-", "M"] {
            assert!(keys(text).contains("not a number"), "{}", keys(text));
            assert!(size(text).contains("not a number"), "{}", size(text));
        }
        assert!(keys("10m").contains("ends in m, which is none of k, M, G or T"));
        assert!(keys("10Q").contains("none of k, M, G or T") && size("5X").contains("K, M, G, T"));
        for (texts, fault) in [
            (["0", "-1", "-0.1%", "1e-400"], "too small"),
            (["1", "100%", "1/0", "inf"], "too large"),
            (["nan", "often", "", "%"], "not a number"),
        ] {
            for text in texts {
                let said = rate(text);
                assert!(said.contains(fault) && said.contains("above 0 and below 1"), "{said}");
            }
        }
    }

    #[test]
    fn numbers_are_printed_as_people_read_them() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(188_342), "183.9 KiB");
        assert_eq!(bytes(1 << 20), "1.0 MiB");
        assert_eq!(rate(0.000_979), "0.0979 %");
        assert_eq!(rate(0.001), "0.1 %");
        assert_eq!(rate(1e-6), "1.00e-6");
        assert_eq!(three_digits(999.7), "1000");
        assert_eq!(three_digits(12.345), "12.3");
        assert_eq!(three_digits(0.000_123_4), "0.000123");
        assert_eq!(three_digits(1.2e-11), "1.2e-11");
        assert_eq!(three_digits(-9.999e-5), "-1e-4");
        assert_eq!(counted(1, "key"), "1 key");
    }
}
