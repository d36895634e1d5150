//! The tour as one HTML file, with its tables as charts.
//!
//! The charts are drawn in the browser by the code of the page in `web/`, which is linked into
//! `data/page/`. The file requests nothing, and a table beside each chart has the figures.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output;

const STYLE: &str = include_str!("../../../data/page/style.css");
/// In the order in which they import each other.
const MODULES: [&str; 3] = [
    include_str!("../../../data/page/format.js"),
    include_str!("../../../data/page/chart.js"),
    include_str!("../../../data/page/figures.js"),
];

/// A chart: points of bars, or of lines if the points have an `x`.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) summary: String,
    /// What `x` is.
    pub(super) x: Option<&'static str>,
    pub(super) points: Vec<Point>,
}

/// A bar, or a point of the line with this name.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) name: &'static str,
    pub(super) x: u64,
    pub(super) value: f64,
}

/// The page so far, and the file that it goes to.
#[derive(Debug)]
pub(super) struct Page {
    path: PathBuf,
    body: String,
}

impl Page {
    pub(super) fn new(path: PathBuf) -> Result<Self, Failure> {
        if output::is_stdout(&path) {
            return Err(Failure::Usage(
                "the tour itself goes to standard output; give --html the name of a file"
                    .to_owned(),
            ));
        }
        output::before_replacing(&path)?;
        Ok(Self { path, body: String::new() })
    }

    pub(super) fn chapter(&mut self, number: u32, title: &str) {
        self.body += &format!("<h2>{number}. {}</h2>\n", escaped(title));
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        let parts = escaped(text);
        let parts = parts.split("\n\n").map(|part| {
            let is_code = part.starts_with("  ");
            if is_code {
                format!("<pre tabindex=\"0\">{part}</pre>\n")
            } else {
                format!("<p>{part}</p>\n")
            }
        });
        self.body.extend(parts);
    }

    /// Lines of a terminal.
    pub(super) fn terminal(&mut self, text: &str) {
        let text = text.trim_matches('\n');
        if !text.is_empty() {
            self.body += &format!("<pre tabindex=\"0\">{}</pre>\n", escaped(text));
        }
    }

    pub(super) fn promise(&mut self, held: bool, promise: &str) {
        let mark = if held { "kept" } else { "BROKEN" };
        self.body += &format!("<p class=\"key\">[{mark}] {}</p>\n", escaped(promise));
    }

    pub(super) fn figure(&mut self, figure: &Figure) {
        let data = escaped(&value_of(figure).to_string());
        self.body += &format!("<div data-figure=\"{data}\"></div>\n");
    }

    /// Writes the file.
    pub(super) fn write(&self) -> Result<(), Failure> {
        output::write_file(&self.path, |sink| self.write_to(sink))
            .map_err(|error| Failure::write(&self.path, error))
    }

    fn write_to(&self, sink: &mut dyn Write) -> io::Result<()> {
        let body = &self.body;
        let script: String = MODULES.into_iter().map(without_imports).collect();
        write!(sink, "{HEAD}<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Koel</h1>\n")?;
        write!(sink, "{body}</main>\n<script>\n\"use strict\";\n{script}{DRAW}</script>\n")?;
        sink.write_all(b"</body>\n</html>\n")
    }
}

/// The browser refuses every request of the page.
const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'\">
<title>A tour of Koel</title>
";

const DRAW: &str = "
for (const place of document.querySelectorAll(\"[data-figure]\")) {
  place.replaceWith(drawFigure(JSON.parse(place.dataset.figure)));
}
";

fn value_of(figure: &Figure) -> Value {
    let points: Vec<Value> = figure
        .points
        .iter()
        .map(|point| json!({ "name": point.name, "x": point.x, "value": point.value }))
        .collect();
    json!({
        "title": figure.title,
        "unit": figure.unit,
        "summary": figure.summary,
        "x": figure.x,
        "points": points,
    })
}

/// The code of a module for a script in which all modules are one: no two have equal names.
fn without_imports(module: &str) -> String {
    let lines = module.lines().filter(|line| !line.starts_with("import "));
    lines.map(|line| line.strip_prefix("export ").unwrap_or(line).to_owned() + "\n").collect()
}

/// The text for HTML, also in quotes.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}
