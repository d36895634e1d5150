//! Tables in Markdown, aligned for a terminal: the first column to the left, the others to the
//! right.
//!
//! What a measurement found is an object of JSON, whose first field is its name.

use serde::Deserialize;
use serde_json::Value;

/// Fields of objects, each with the heading of its column.
pub(crate) type Columns = [(&'static str, &'static str)];

/// Prints the objects, one in each line, or a table of all their fields.
pub(crate) fn print(rows: &[Value], json: bool) {
    print_as(rows, &Table::of_all(rows), json);
}

/// The same with another table of them.
pub(crate) fn print_as(rows: &[Value], table: &Table, json: bool) {
    if json {
        rows.iter().for_each(|row| println!("{row}"));
    } else {
        print!("{}", table.markdown());
    }
}

/// Rows of cells under a heading. All rows have as many cells as the heading.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { columns: heading.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// A row for each object.
    pub(crate) fn of(rows: &[Value], columns: &[(&str, &str)]) -> Self {
        let mut table = Self::new(&columns.iter().map(|column| column.1).collect::<Vec<_>>());
        for row in rows {
            table.push(columns.iter().map(|column| cell(&row[column.0])).collect());
        }
        table
    }

    /// All fields: a row for each object or, if there are more fields, for each field.
    fn of_all(rows: &[Value]) -> Self {
        let Some(Value::Object(fields)) = rows.first() else { return Self::new(&[]) };
        let names: Vec<_> = fields.keys().map(String::as_str).collect();
        if names.len() <= rows.len() + 1 {
            return Self::of(rows, &names.iter().map(|name| (*name, *name)).collect::<Vec<_>>());
        }
        let line = |name: &str| rows.iter().map(|row| cell(&row[name])).collect::<Vec<_>>();
        let mut turned = Self::new(&[]);
        turned.columns = [vec![names[0].to_owned()], line(names[0])].concat();
        for name in &names[1..] {
            turned.push([vec![(*name).to_owned()], line(name)].concat());
        }
        turned
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        [&self.columns].into_iter().chain(&self.rows)
    }

    /// The table in Markdown, with aligned columns.
    pub(crate) fn markdown(&self) -> String {
        let width = |column: usize| self.lines().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: Vec<_> = (0..self.columns.len()).map(width).collect();
        self.drawn(&widths)
    }

    /// The table in Markdown, as short as possible.
    pub(crate) fn compact(&self) -> String {
        self.drawn(&vec![0; self.columns.len()])
    }

    fn drawn(&self, widths: &[usize]) -> String {
        let mut text = String::new();
        for (number, row) in self.lines().enumerate() {
            let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, &width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text += &format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
            if number == 0 {
                let rules = widths.iter().enumerate().map(|(column, width)| {
                    let rule = "-".repeat((width + 1).max(2));
                    rule + if column == 0 { "-" } else { ":" }
                });
                text += &format!("|{}|\n", rules.collect::<Vec<_>>().join("|"));
            }
        }
        text
    }

    /// All tables of a text, in order. Rows that have another number of cells than the heading end
    /// a table. A bar within a cell keeps its backslash.
    pub(crate) fn all_in(text: &str) -> Vec<Self> {
        let mut tables = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(columns) = cells(line) else { continue };
            if !lines.peek().is_some_and(|next| is_rule(next)) {
                continue;
            }
            lines.next();
            let mut rows = Vec::new();
            while let Some(row) = lines.peek().and_then(|next| cells(next)) {
                if row.len() != columns.len() {
                    break;
                }
                rows.push(row);
                lines.next();
            }
            tables.push(Self { columns, rows });
        }
        tables
    }
}

/// The cells of a line that begins and ends with a bar.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut is_escaped = false;
    let cells = inner.split(|char| {
        let ends = char == '|' && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        ends
    });
    Some(cells.map(|cell| cell.trim().to_owned()).collect())
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("|-") && line.chars().all(|char| "|-: ".contains(char))
}

/// A text, a count or a figure, several of them, or `-`.
fn cell(value: &Value) -> String {
    match (value, value.as_u64()) {
        (Value::String(text), _) => text.clone(),
        (Value::Array(values), _) => values.iter().map(cell).collect::<Vec<_>>().join(", "),
        (_, Some(count)) => grouped(count),
        _ => figure(value.as_f64()),
    }
}

/// Three significant digits, or `-`.
pub(crate) fn figure(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) if value > 0.0 && value < 0.1 => format!("{value:.5}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// A count with commas.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let first = digits.len() % 3;
    let mut groups = vec![&digits[..first]];
    groups.extend((first..digits.len()).step_by(3).map(|at| &digits[at..at + 3]));
    groups.retain(|group| !group.is_empty());
    groups.join(",")
}

/// A false-positive rate, or `-`.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.4} %", share * 100.0))
}

/// A share of slots, or `-`.
pub(crate) fn share(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{share:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_are_markdown_with_aligned_columns() {
        let mut table = Table::new(&["filter", "mops"]);
        table.push(vec!["a".into(), "12".into()]);
        assert_eq!(table.markdown(), "| filter | mops |\n|--------|-----:|\n| a      |   12 |\n");

        let row = json!({ "a": "x", "b": 1234, "c": 0.00123, "d": null, "e": [5, 1.25] });
        let table = Table::of(&[row], &["a", "b", "c", "d", "e"].map(|name| (name, name)));
        assert_eq!(table.markdown().lines().last(), Some("| x | 1,234 | 0.00123 | - | 5, 1.25 |"));
        let rows = [json!({ "a": "x", "b": 1 }), json!({ "a": "y", "b": 2 })];
        assert!(Table::of_all(&rows).markdown().ends_with("|---|--:|\n| x | 1 |\n| y | 2 |\n"));
        let wide = json!({ "a": "x", "b": 1, "c": 2 });
        let turned = Table::of_all(&[wide]).markdown();
        assert!(turned.ends_with("| b | 1 |\n| c | 2 |\n"), "{turned}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            ["-", "123", "12.3", "1.23"],
            [None, Some(123.4), Some(12.34), Some(1.234)].map(figure)[..]
        );
        assert_eq!([grouped(7), grouped(1234), grouped(123_456)], ["7", "1,234", "123,456"]);
        assert_eq!(
            [percent(Some(0.001)), share(Some(0.95)), share(None)],
            ["0.1000 %", "0.950", "-"]
        );
    }

    #[test]
    fn tables_are_found_between_other_lines() {
        let text = "words\n| a | b |\n|---|--:|\n| x \\| y | 1,234 |\n|  | - |\nmore | words\n\
            | no | table |\n\n| one |\n|---|\n";
        let found = Table::all_in(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].columns, ["a", "b"]);
        assert_eq!(found[0].rows, [["x \\| y", "1,234"], ["", "-"]]);
        assert_eq!(found[0].compact(), "| a | b |\n|---|--:|\n| x \\| y | 1,234 |\n|  | - |\n");
        assert!(found[1].rows.is_empty());
    }

    #[test]
    fn aligned_tables_are_the_same_tables() {
        let aligned = "| a    |  b |\n|------|---:|\n| long | 12 |\n";
        assert_eq!(Table::all_in(aligned)[0].rows, [["long", "12"]]);
    }
}
