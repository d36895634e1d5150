//! Reads ad-block lists: the host of each rule that blocks all of one.
//!
//! A rule for a whole host is `||host^`, with or without `$options` that leave it whole. Two kinds
//! of rules take others out, wherever they stand, so a list is read once before: `$badfilter` that
//! rule, and an exception for a whole host, `@@||host^`, those for the host and the hosts below it.
//! Only another `$important` one takes out a rule that is `$important`.
//!
//! A filter cannot hold the rest, which is counted by reason: other exceptions, cosmetic rules,
//! rules for a part of a host, for some requests or pages, and rules that change what is loaded
//! without blocking it. An option that is not known narrows a rule. `!` begins a comment.
//!
//! Sources: the filter syntax of Adblock Plus, of uBlock Origin and of AdGuard.

#[cfg(not(feature = "std"))]
use alloc::collections::{BTreeMap as HashMap, BTreeSet as HashSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
#[cfg(feature = "std")]
use std::collections::{HashMap, HashSet};

use crate::Skip;
use crate::hosts::{domain_and_parents, listed};

/// Options with which a rule still blocks all of a host. Requests from other sites only are all
/// that matter for hosts of advertisers.
const WHOLE: &str = "\
    3p all doc document empty important match-case mp4 redirect strict3p third-party";

/// Options for the page itself. Beside them, other types of requests only add to the rule.
const PAGES: &str = "all doc document";
const TYPES: &str = "\
    beacon css font frame image media object object-subrequest other ping popunder popup script \
    stylesheet subdocument webrtc websocket xhr xmlhttprequest inline-font inline-script \
    background";

/// Options that change what is shown or sent, and block nothing.
const MODIFIERS: &str = "\
    content cookie cname csp dnsrewrite ehide elemhide extension generichide genericblock ghide \
    hls inline-font inline-script jsinject jsonprune permissions queryprune redirect-rule \
    referrerpolicy removeheader removeparam replace rewrite shide specifichide stealth \
    uritransform urlblock urlskip urltransform xmlprune";

/// How many rules may take out others: so many need some MB of memory.
const MOST_TAKING_OUT: usize = 100_000;

/// What rules of a list say about its other rules.
#[derive(Clone, Debug, Default)]
pub struct TakenOut {
    /// The rules that `$badfilter` switches off.
    disabled: HashSet<String>,
    /// The exceptions for each host.
    allowed: HashMap<String, Vec<Exception>>,
    /// How many rules all of these are.
    rules: usize,
}

#[derive(Clone, Debug)]
struct Exception {
    identity: String,
    is_important: bool,
}

impl TakenOut {
    /// Notes a line that takes out others. Other lines change nothing.
    ///
    /// # Errors
    /// If there are too many.
    pub fn note(&mut self, line: &[u8]) -> Result<(), TooManyExceptions> {
        // Most lines are neither.
        if !line.contains(&b'@') && memchr::memmem::find(line, BADFILTER.as_bytes()).is_none() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(line);
        let rule = text.trim();
        let (pattern, options) = split(rule);
        if let Some(host) = exception(rule) {
            let is_important = has_option(&options, IMPORTANT);
            let exception = Exception { identity: identity(pattern, &options), is_important };
            self.allowed.entry(host).or_default().push(exception);
            self.rules += 1;
        } else if has_option(&options, BADFILTER) && host_of(without_mark(pattern)).is_some() {
            self.disabled.insert(identity(pattern, &options));
            self.rules += 1;
        }
        if self.rules > MOST_TAKING_OUT { Err(TooManyExceptions) } else { Ok(()) }
    }

    fn disables(&self, pattern: &str, options: &[String]) -> bool {
        !self.disabled.is_empty() && self.disabled.contains(&identity(pattern, options))
    }

    fn allows(&self, host: &str, options: &[String]) -> bool {
        let needs_important = has_option(options, IMPORTANT);
        let is_in_force = |exception: &Exception| {
            (exception.is_important || !needs_important)
                && !self.disabled.contains(&exception.identity)
        };
        !self.allowed.is_empty()
            && domain_and_parents(host)
                .any(|name| self.allowed.get(name).is_some_and(|all| all.iter().any(is_in_force)))
    }
}

/// A list has more rules that take out others than memory is set aside for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyExceptions;

impl fmt::Display for TooManyExceptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "it has more than 100,000 rules with @@ for a host or with $badfilter; divide the list",
        )
    }
}

impl Error for TooManyExceptions {}

/// Passes the host of an ad-block rule to `take`, and the kind of another rule to `skip`.
pub(crate) fn adblock(
    line: &[u8],
    taken_out: &TakenOut,
    mut take: impl FnMut(&[u8]),
    mut skip: impl FnMut(Skip),
) {
    let text = String::from_utf8_lossy(line);
    match whole_host(text.trim(), taken_out) {
        Ok(host) => take(host.as_bytes()),
        Err(reason) => skip(reason),
    }
}

/// Whether a line is a rule for a host, or an exception.
pub(crate) fn is_host_rule(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let rule = text.trim();
    let rule = rule.strip_prefix("@@").unwrap_or(rule);
    rule.starts_with("||") && rule.contains('^')
}

/// The host of a rule that allows all of it, and that no other switches off.
pub(crate) fn allowed(line: &[u8], taken_out: &TakenOut) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let (pattern, options) = split(text.trim());
    exception(text.trim()).filter(|_| !taken_out.disables(pattern, &options))
}

/// The host of a rule that blocks all of a host, or the reason why it does not.
fn whole_host(rule: &str, taken_out: &TakenOut) -> Result<String, Skip> {
    if is_cosmetic(rule) {
        return Err(Skip::Cosmetic);
    }
    if rule.is_empty() {
        return Err(Skip::Empty);
    }
    if rule.starts_with(['!', '#', '[']) {
        // A comment, or the head of the list.
        return Err(Skip::Comment);
    }
    let (pattern, options) = split(rule);
    let host = host_of(without_mark(pattern));
    if has_option(&options, BADFILTER) && host.is_some() {
        return Err(Skip::Applied);
    }
    if taken_out.disables(pattern, &options) {
        return Err(Skip::Disabled);
    }
    if rule.starts_with(EXCEPTION) {
        return Err(if exception(rule).is_some() { Skip::Applied } else { Skip::Exception });
    }
    let host = host.ok_or(Skip::Partial)?;
    if let Some(reason) = narrowed(&options) {
        return Err(reason);
    }
    if taken_out.allows(&host, &options) { Err(Skip::Allowed) } else { Ok(host) }
}

/// What begins an exception.
const EXCEPTION: &str = "@@";

fn without_mark(pattern: &str) -> &str {
    pattern.strip_prefix(EXCEPTION).unwrap_or(pattern)
}

/// The host of an exception for all of it.
fn exception(rule: &str) -> Option<String> {
    let (pattern, options) = split(rule.strip_prefix(EXCEPTION)?);
    host_of(pattern).filter(|_| narrowed(&options).is_none())
}

const IMPORTANT: &str = "important";
const BADFILTER: &str = "badfilter";

/// The pattern of a rule, and its options.
fn split(rule: &str) -> (&str, Vec<String>) {
    let (pattern, options) = rule.split_once('$').unwrap_or((rule, ""));
    let options = options.split(',').map(|option| option.trim().to_ascii_lowercase());
    (pattern, options.filter(|option| !option.is_empty()).collect())
}

/// What tells two rules apart: the order of options does not.
fn identity(pattern: &str, options: &[String]) -> String {
    let mut options: Vec<_> =
        options.iter().filter(|&it| it != BADFILTER).map(|it| &**it).collect();
    options.sort_unstable();
    format!("{}${}", pattern.to_lowercase(), options.join(","))
}

fn has_option(options: &[String], name: &str) -> bool {
    options.iter().any(|option| option == name)
}

/// Why options leave a rule that does not block all of a host.
fn narrowed(options: &[String]) -> Option<Skip> {
    let has = |words: &str, name: &str| words.split(' ').any(|word| word == name);
    let blocks_pages = options.iter().any(|option| has(PAGES, option));
    let reason = |option: &String| {
        let name = option.split('=').next().unwrap_or_default();
        let is_whole = has(WHOLE, name) || name.bytes().all(|byte| byte == b'_');
        if is_whole || blocks_pages && has(TYPES, name) {
            None
        } else if has(MODIFIERS, name) {
            Some(Skip::Modifier)
        } else {
            Some(Skip::Narrow)
        }
    };
    options.iter().find_map(reason)
}

/// Whether a rule hides or changes parts of pages: `##`, `#@#`, `#?#`, `#$#`, `#%#`, `$$`.
fn is_cosmetic(rule: &str) -> bool {
    let after = rule.split_once('#').map_or("", |(_, after)| after);
    let mark = after.trim_start_matches(['@', '?', '$', '%']);
    mark.starts_with('#') || rule.contains("$$")
}

/// The host of a pattern for all of a host: `||host^`.
fn host_of(pattern: &str) -> Option<String> {
    let pattern = pattern.strip_prefix("||")?;
    let end = pattern.find(['^', '/', '*', '|']).unwrap_or(pattern.len());
    let (name, rest) = pattern.split_at(end);
    let is_whole = ["", "^", "^|", "^*", "/", "/*"].contains(&rest);
    // A port or a user name would make it less than a host.
    (is_whole && !name.contains([':', '@'])).then(|| listed(name)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, taken_out: &TakenOut) -> (Vec<String>, Vec<Skip>) {
        let (mut keys, mut skipped) = (Vec::new(), Vec::new());
        let take = |key: &[u8]| keys.push(String::from_utf8(key.to_vec()).unwrap());
        adblock(line.as_bytes(), taken_out, take, |skip| skipped.push(skip));
        (keys, skipped)
    }

    #[test]
    fn an_adblock_rule_gives_its_host_if_it_blocks_all_of_it() {
        for (line, hosts, skipped) in [
            ("||ads.example^", &["ads.example"][..], &[][..]),
            ("||ADS.example^$third-party,important", &["ads.example"], &[]),
            ("||ads.example^$document,script,popup,_", &["ads.example"], &[]),
            ("||ads.example^$all", &["ads.example"], &[]),
            ("||ads.example^$", &["ads.example"], &[]),
            ("||ads.example", &["ads.example"], &[]),
            ("||ads.example/", &["ads.example"], &[]),
            ("||ads.example$popup", &[], &[Skip::Narrow]),
            ("||ads.example^$script", &[], &[Skip::Narrow]),
            ("||ads.example^$third-party,script", &[], &[Skip::Narrow]),
            ("||ads.example^$~third-party", &[], &[Skip::Narrow]),
            ("||ads.example^$method=post", &[], &[Skip::Narrow]),
            ("||ads.example^$header=via:x", &[], &[Skip::Narrow]),
            ("||ads.example^$an-option-of-tomorrow", &[], &[Skip::Narrow]),
            ("||ads.example^$cookie", &[], &[Skip::Modifier]),
            ("||ads.example^$removeheader=x", &[], &[Skip::Modifier]),
            ("||ads.example^$jsonprune=x", &[], &[Skip::Modifier]),
            ("||ads.example^$urlskip=?u", &[], &[Skip::Modifier]),
            ("||ads.example^$uritransform=/a/b/", &[], &[Skip::Modifier]),
            ("||ads.example^$hls=/x/", &[], &[Skip::Modifier]),
            ("||ads.example^$referrerpolicy=origin", &[], &[Skip::Modifier]),
            ("||ads.example^$inline-script", &[], &[Skip::Modifier]),
            ("||ads.example^$elemhide", &[], &[Skip::Modifier]),
            ("||ads.example^$csp=x,document", &[], &[Skip::Modifier]),
            ("||b\u{fc}cher.example^", &["xn--bcher-kva.example"], &[]),
            ("||192.0.2.1^", &["192.0.2.1"], &[]),
            ("! comment", &[], &[Skip::Comment]),
            ("#comment", &[], &[Skip::Comment]),
            ("[Adblock Plus 2.0]", &[], &[Skip::Comment]),
            ("", &[], &[Skip::Empty]),
            ("@@||ads.example^", &[], &[Skip::Applied]),
            ("@@||ads.example^$script", &[], &[Skip::Exception]),
            ("@@||ads.example/x", &[], &[Skip::Exception]),
            ("@@||ads.example^$domain=a.example", &[], &[Skip::Exception]),
            ("##.banner", &[], &[Skip::Cosmetic]),
            ("example.com##.banner", &[], &[Skip::Cosmetic]),
            ("example.com#@#.banner", &[], &[Skip::Cosmetic]),
            ("example.com#?#.banner", &[], &[Skip::Cosmetic]),
            ("example.com#@?#.banner", &[], &[Skip::Cosmetic]),
            ("example.com$$script[x]", &[], &[Skip::Cosmetic]),
            ("||ads.example/banner/", &[], &[Skip::Partial]),
            ("||ads.example:8080^", &[], &[Skip::Partial]),
            ("||ads.*^", &[], &[Skip::Partial]),
            ("||*.ads.example^", &[], &[Skip::Partial]),
            ("||ads.example^$domain=a.example|b.example", &[], &[Skip::Narrow]),
            ("||ads.example^$script,badfilter", &[], &[Skip::Applied]),
            ("||^", &[], &[Skip::Partial]),
            ("||", &[], &[Skip::Partial]),
            ("/banner/*", &[], &[Skip::Partial]),
            ("|https://ads.example/", &[], &[Skip::Partial]),
        ] {
            let expected = (hosts.iter().map(ToString::to_string).collect(), skipped.to_vec());
            assert_eq!(read(line, &TakenOut::default()), expected, "{line}");
        }
    }

    #[test]
    fn a_rule_that_another_one_takes_out_blocks_nothing() {
        let mut taken_out = TakenOut::default();
        for line in [
            "||A.example^$badfilter",
            "||b.example^$badfilter,important,third-party",
            "||c.example^$important",
            "@@||D.example^",
            "@@||e.example^$important",
            "@@||f.example^$script",
            "@@||g.example^",
            "@@||g.example^$badfilter",
        ] {
            taken_out.note(line.as_bytes()).unwrap();
        }
        for (line, reason) in [
            ("||a.example^", Some(Skip::Disabled)),
            ("||a.example^$important", None),
            ("||b.example^$third-party,important", Some(Skip::Disabled)),
            ("||b.example^", None),
            ("||c.example^$important", None),
            ("||d.example^", Some(Skip::Allowed)),
            ("||ads.d.example^", Some(Skip::Allowed)),
            ("||d.example^$important", None),
            ("||example^", None),
            ("||e.example^$important", Some(Skip::Allowed)),
            ("||f.example^", None),
            ("||g.example^", None),
            ("@@||g.example^", Some(Skip::Disabled)),
            ("@@||g.example^$badfilter", Some(Skip::Applied)),
        ] {
            let (keys, skipped) = read(line, &taken_out);
            assert_eq!(
                (keys.is_empty(), skipped.first().copied()),
                (reason.is_some(), reason),
                "{line}"
            );
        }
        let allowed = |line: &[u8]| allowed(line, &taken_out);
        assert_eq!(allowed(b"@@||d.example^|").as_deref(), Some("d.example"));
        assert_eq!(allowed(b"@@||g.example^"), None);
    }
}
