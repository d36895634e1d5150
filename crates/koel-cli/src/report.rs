//! The report of a verb: each figure once, for programs (`--json`) and for people.
//!
//! Both have their figures in the order in which they were added. What has no name in JSON, or no
//! text for people, is left out there.

use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome};
use crate::output;

/// The figures of a report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    json: Map<String, Value>,
    rows: Vec<(&'static str, String)>,
}

impl Report {
    /// Adds a figure: its name and value in JSON, and for people.
    pub(crate) fn add(
        &mut self,
        name: &str,
        value: impl Into<Value>,
        label: &'static str,
        text: impl Into<String>,
    ) -> &mut Self {
        self.json(name, value).row(label, text)
    }

    /// Adds a figure for programs.
    pub(crate) fn json(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.json.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a row for people, unless it has no text.
    pub(crate) fn row(&mut self, label: &'static str, text: impl Into<String>) -> &mut Self {
        let text = text.into();
        self.rows.extend((!text.is_empty()).then_some((label, text)));
        self
    }

    /// Adds what is wrong, if anything is.
    pub(crate) fn warning(&mut self, warning: Option<String>) -> &mut Self {
        self.add("warning", warning.clone(), "warning", warning.unwrap_or_default())
    }

    /// Prints the report, with which a verb ends.
    pub(crate) fn print(&self, as_json: bool) -> Result<Outcome, Failure> {
        output::print(&self.text(as_json)).map(|()| Outcome::Done)
    }

    /// The report as JSON, or as rows with the values in one column.
    pub(crate) fn text(&self, as_json: bool) -> String {
        if as_json {
            return format!("{:#}\n", Value::Object(self.json.clone()));
        }
        let width = self.rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        self.rows.iter().map(|(label, text)| format!("{label:width$}  {text}\n")).collect()
    }
}
