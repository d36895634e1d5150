//! Tables in Markdown, aligned for a terminal: the first column to the left, the others to the
//! right.
//!
//! What a measurement found is an object of JSON, whose first field is its name.

use serde_json::Value;

/// Fields of objects, each with the heading of its column.
pub(crate) type Columns = [(&'static str, &'static str)];

/// Prints the objects, one in each line, or a table of them.
pub(crate) fn print(rows: &[Value], json: bool) {
    if json {
        rows.iter().for_each(|row| println!("{row}"));
    } else {
        print!("{}", Table::of_all(rows).markdown());
    }
}

/// The same with these columns in the table.
pub(crate) fn print_columns(rows: &[Value], columns: &Columns, json: bool) {
    if json {
        print(rows, true);
    } else {
        print!("{}", Table::of(rows, columns).markdown());
    }
}

/// Rows of cells under a heading. All rows have as many cells as the heading.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(ToString::to_string).collect()] }
    }

    /// A row for each object.
    pub(crate) fn of(rows: &[Value], columns: &Columns) -> Self {
        let mut table = Self::new(&columns.iter().map(|column| column.1).collect::<Vec<_>>());
        for row in rows {
            table.push(columns.iter().map(|column| cell(&row[column.0])).collect());
        }
        table
    }

    /// All fields: a row for each object or, if there are more fields, for each field.
    fn of_all(rows: &[Value]) -> Self {
        let mut cells: Vec<Vec<String>> = Vec::new();
        if let Some(Value::Object(fields)) = rows.first() {
            cells.push(fields.keys().cloned().collect());
            cells.extend(rows.iter().map(|row| fields.keys().map(|it| cell(&row[it])).collect()));
            if fields.len() > cells.len() {
                let turned = |column: usize| cells.iter().map(|row| row[column].clone()).collect();
                cells = (0..fields.len()).map(turned).collect();
            }
        }
        Self { rows: cells }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| self.rows.iter().map(|row| row[column].len()).max();
        (0..columns).map(|column| width(column).unwrap_or(0)).collect()
    }

    /// The table in Markdown, with aligned columns.
    pub(crate) fn markdown(&self) -> String {
        let widths = self.widths();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rules = widths.iter().enumerate().map(|(column, width)| {
            if column == 0 { "-".repeat(width + 2) } else { "-".repeat(width + 1) + ":" }
        });
        let rule = rules.collect::<Vec<_>>().join("|");
        let rows: String = self.rows[1..].iter().map(line).collect();
        format!("{}|{rule}|\n{rows}", line(&self.rows[0]))
    }
}

/// A text, a count or a figure, or `-`.
fn cell(value: &Value) -> String {
    match (value, value.as_u64()) {
        (Value::String(text), _) => text.clone(),
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

/// A power of two of bytes, with its unit.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{} KiB", count >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", count >> 20),
        _ => format!("{} GiB", count >> 30),
    }
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

        let row = json!({ "a": "x", "b": 1234, "c": 0.00123, "d": null, "e": 5 });
        let table = Table::of(&[row], &[("a", ""), ("b", "b"), ("c", "c"), ("d", "d")]);
        assert_eq!(table.markdown().lines().last(), Some("| x | 1,234 | 0.00123 | - |"));
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
        assert_eq!([64, 65_536, 1 << 20].map(bytes), ["64 B", "64 KiB", "1 MiB"]);
        assert_eq!(bytes(1 << 30), "1 GiB");
    }
}
