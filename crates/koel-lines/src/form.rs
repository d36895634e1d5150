//! From the text that a program asks for to the bytes of its key.
//!
//! Two of the application bytes say what a key is: a text or a host, trimmed, in lower case. The
//! others only say where it is in a line. Cost: a look at each byte, or one parse of a URL.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use crate::Format;
use crate::hosts;
use crate::options::LineOptions;
use crate::recipe::{ApplicationBytes, Recipe, UnknownRecipe};

/// What a key of a filter is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyForm {
    /// What becomes of the letters and the white space of a text.
    pub options: LineOptions,
    /// Whether a key is a host.
    pub is_host: bool,
}

impl KeyForm {
    /// The form of the keys of a filter with these application bytes.
    ///
    /// # Errors
    /// If this version does not know them.
    pub fn of(application: ApplicationBytes) -> Result<Self, UnknownRecipe> {
        if application == [0; 8] {
            return Ok(Self::default());
        }
        let recipe = Recipe::from_bytes(application).ok_or(UnknownRecipe)?;
        Ok(Self { options: recipe.options, is_host: recipe.format != Format::Lines })
    }

    /// The options of the command without which a text is another key; empty if there are none.
    #[must_use]
    pub fn words(self) -> String {
        let host = self.is_host.then_some("--format hosts");
        host.into_iter().chain(self.options.words()).collect::<Vec<_>>().join(" ")
    }

    /// Whether every text is its own key.
    #[must_use]
    pub fn is_exact(self) -> bool {
        !self.is_host && self.options.keep_text()
    }

    /// The key of a text. Of a URL, an e-mail address or a host in another form, where keys are
    /// hosts, that is the host.
    ///
    /// # Errors
    /// If keys are hosts and the text has none: nothing can be said about it.
    pub fn key(self, text: &[u8]) -> Result<Cow<'_, [u8]>, NoHost<'_>> {
        if !self.is_host {
            return Ok(self.options.key(text));
        }
        let host = core::str::from_utf8(text).ok().and_then(hosts::host).ok_or(NoHost(text))?;
        Ok(Cow::Owned(self.options.key(host.as_bytes()).into_owned()))
    }

    /// Whether `contains` is true for a URL: its host or one of its parent domains, or, where keys
    /// are texts, the text as it is.
    ///
    /// # Errors
    /// If the text has no host, and is not found as it is.
    pub fn finds_url(
        self,
        text: &[u8],
        mut contains: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, NoHost<'_>> {
        let key = self.options.key(text);
        if !self.is_host && contains(&key) {
            return Ok(true);
        }
        hosts::host_or_parent(&key, !self.is_host, contains).ok_or(NoHost(text))
    }

    /// The keys that [`finds_url`](Self::finds_url) asks for if none is in: to ask a filter
    /// elsewhere for all of them at once.
    #[must_use]
    pub fn keys_of_url(self, text: &[u8]) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        let asked = self.finds_url(text, |key| {
            keys.push(key.to_vec());
            false
        });
        debug_assert!(asked != Ok(true), "no key is in");
        keys
    }
}

/// This text has no host, and keys are hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoHost<'a>(pub &'a [u8]);

impl fmt::Display for NoHost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `{:?}` would add 4 KB to each page: it knows which characters of Unicode are printed.
        let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let text: String = String::from_utf8_lossy(self.0).chars().take(100).map(shown).collect();
        write!(f, "the keys of this filter are hosts, and \"{text}\" has none")
    }
}

impl Error for NoHost<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: KeyForm = KeyForm {
        options: LineOptions { ignores_case: false, trims: false, keeps_cr: false },
        is_host: true,
    };

    #[test]
    fn a_text_is_asked_for_as_the_key_that_its_line_became() {
        let lower = LineOptions { ignores_case: true, trims: true, keeps_cr: false };
        let lower = KeyForm { options: lower, is_host: false };
        assert_eq!(lower.key(b" Ada ").unwrap(), &b"ada"[..]);
        assert_eq!(KeyForm::default().key(b" Ada ").unwrap(), &b" Ada "[..]);
        assert_eq!(HOSTS.key(b"http://A.Example:80/x").unwrap(), &b"a.example"[..]);
        assert_eq!(HOSTS.key(b"two words"), Err(NoHost(b"two words")));
        let error = HOSTS.key(b"two\n\xff").unwrap_err();
        let said = "the keys of this filter are hosts, and \"two\u{fffd}\u{fffd}\" has none";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn a_url_is_found_by_its_parents_and_a_text_also_as_it_is() {
        fn finds<'a>(form: KeyForm, text: &'a str, member: &str) -> Result<bool, NoHost<'a>> {
            form.finds_url(text.as_bytes(), |name| name == member.as_bytes())
        }
        let none = Err(NoHost(b"data:text/html,x"));
        assert_eq!(finds(HOSTS, "http://a.b.example/", "b.example"), Ok(true));
        assert_eq!(finds(HOSTS, "http://a.b.example/", "c.example"), Ok(false));
        assert_eq!(finds(HOSTS, "data:text/html,x", "x"), none);
        assert_eq!(finds(KeyForm::default(), "data:text/html,x", "data:text/html,x"), Ok(true));
        assert_eq!(finds(KeyForm::default(), "data:text/html,x", "x"), none);
    }

    #[test]
    fn application_bytes_that_are_not_known_are_refused() {
        assert_eq!(KeyForm::of([0; 8]), Ok(KeyForm::default()));
        assert_eq!(KeyForm::of([8, 0, 0, 0, 0, 0, 0, 0]), Err(UnknownRecipe));
        assert_eq!(KeyForm::of([1, 2, 3, 4, 5, 6, 7, 8]), Err(UnknownRecipe));
    }
}
