//! Reads ad-block lists: the host of each rule that blocks all of one.
//!
//! A rule for a whole host is `||host^`, with or without `$options` that leave it whole. A filter
//! cannot hold the rest, which is counted by reason: exceptions, cosmetic rules, rules for a part
//! of a host, for some requests or pages, rules that change what is loaded without blocking it, and
//! rules that another one switches off (`$badfilter`). An option that is not known narrows a rule.
//! `!` begins a comment.
//!
//! Sources: the filter syntax of Adblock Plus, of uBlock Origin and of AdGuard.

use std::collections::HashSet;

use super::Skip;
use super::hosts::listed;

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

/// How many rules may be switched off: so many need some MB of memory.
const MOST_DISABLED: usize = 100_000;

/// The rules that `$badfilter` switches off.
pub(crate) type Disabled = HashSet<String>;

/// Passes the host of an ad-block rule to `take`, and the kind of another rule to `skip`.
pub(crate) fn adblock(
    line: &[u8],
    disabled: &Disabled,
    mut take: impl FnMut(&[u8]),
    mut skip: impl FnMut(Skip),
) {
    let text = String::from_utf8_lossy(line);
    match whole_host(text.trim(), disabled) {
        Ok(host) => take(host.as_bytes()),
        Err(reason) => skip(reason),
    }
}

/// The host of a rule that blocks all of a host, or the reason why it does not.
fn whole_host(rule: &str, disabled: &Disabled) -> Result<String, Skip> {
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
    if rule.starts_with("@@") {
        return Err(Skip::Exception);
    }
    let (pattern, options) = split(rule);
    if options.iter().any(|option| option == BADFILTER) {
        return Err(Skip::Exception);
    }
    let host = host_of(pattern).ok_or(Skip::Partial)?;
    if !disabled.is_empty() && disabled.contains(&identity(pattern, &options)) {
        return Err(Skip::Disabled);
    }
    narrowed(&options).map_or(Ok(host), Err)
}

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

/// Adds the rule that a line switches off. The error is that there are too many.
pub(crate) fn note_disabled(line: &[u8], disabled: &mut Disabled) -> Result<(), &'static str> {
    let text = String::from_utf8_lossy(line);
    let (pattern, options) = split(text.trim());
    if options.iter().any(|option| option == BADFILTER) && host_of(pattern).is_some() {
        disabled.insert(identity(pattern, &options));
    }
    if disabled.len() > MOST_DISABLED {
        return Err("it has more than 100,000 rules with $badfilter; divide the list");
    }
    Ok(())
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

    fn read(line: &str, disabled: &Disabled) -> (Vec<String>, Vec<Skip>) {
        let (mut keys, mut skipped) = (Vec::new(), Vec::new());
        let take = |key: &[u8]| keys.push(String::from_utf8(key.to_vec()).unwrap());
        adblock(line.as_bytes(), disabled, take, |skip| skipped.push(skip));
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
            ("@@||ads.example^", &[], &[Skip::Exception]),
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
            ("||ads.example^$script,badfilter", &[], &[Skip::Exception]),
            ("||^", &[], &[Skip::Partial]),
            ("||", &[], &[Skip::Partial]),
            ("/banner/*", &[], &[Skip::Partial]),
            ("|https://ads.example/", &[], &[Skip::Partial]),
        ] {
            let expected = (hosts.iter().map(ToString::to_string).collect(), skipped.to_vec());
            assert_eq!(read(line, &Disabled::new()), expected, "{line}");
        }
    }
    #[test]
    fn a_rule_that_another_one_switches_off_blocks_nothing() {
        let mut disabled = Disabled::new();
        for line in ["||A.example^$badfilter", "||b.example^$badfilter,important,third-party"] {
            note_disabled(line.as_bytes(), &mut disabled).unwrap();
        }
        note_disabled(b"||c.example^$important", &mut disabled).unwrap();
        for (line, is_off) in [
            ("||a.example^", true),
            ("||a.example^$important", false),
            ("||b.example^$third-party,important", true),
            ("||b.example^", false),
            ("||c.example^$important", false),
        ] {
            let (keys, skipped) = read(line, &disabled);
            assert_eq!((keys.is_empty(), skipped == [Skip::Disabled]), (is_off, is_off), "{line}");
        }
    }
}
