//! Tables for a terminal and for Markdown. The first column is aligned to the left, the others to
//! the right.

/// Rows of cells under a heading. All rows have as many cells as the heading.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].len()).max();
        (0..columns).map(|column| width(column).unwrap_or(0)).collect()
    }

    /// The table with aligned columns.
    pub(crate) fn plain(&self) -> String {
        let widths = self.widths();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
        };
        self.rows.iter().map(line).collect()
    }

    /// The table in Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &Vec<String>| format!("| {} |\n", cells.join(" | "));
        let rule = vec!["--:".to_string(); self.rows[0].len() - 1].join("|");
        let rows: String = self.rows[1..].iter().map(line).collect();
        format!("{}|---|{rule}|\n{rows}", line(&self.rows[0]))
    }
}

/// Three significant digits, or `-`.
pub(crate) fn figure(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
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

    #[test]
    fn tables_have_aligned_columns_and_markdown_has_bars() {
        let mut table = Table::new(&["filter", "mops"]);
        table.push(vec!["a".into(), "12".into()]);
        assert_eq!(table.plain(), "filter  mops\na         12\n");
        assert_eq!(table.markdown(), "| filter | mops |\n|---|--:|\n| a | 12 |\n");
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
