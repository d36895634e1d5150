//! What no compiler checks: rules of the sources, links of the pages, messages of the compiler.

mod bounds;
mod claims;
mod conformance;
mod lints;
mod messages;
mod pages;
mod rules;
