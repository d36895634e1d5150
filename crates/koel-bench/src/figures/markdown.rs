//! Tables in Markdown, as measurements print them: a heading, a rule, and rows of as many cells.

/// A table with its cells as texts. A bar within a cell keeps its backslash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// The table in Markdown. The first column is aligned to the left, the others to the right.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = "--:|".repeat(self.columns.len() - 1);
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}|---|{rule}\n{rows}", line(&self.columns))
    }
}

/// All tables of a text, in order. Rows that have another number of cells than the heading end it.
pub(super) fn tables(text: &str) -> Vec<Table> {
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
        tables.push(Table { columns, rows });
    }
    tables
}

/// The cells of a line that begins and ends with a bar.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for char in inner.chars() {
        if char == '|' && !is_escaped {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push(char);
        }
        is_escaped = char == '\\' && !is_escaped;
    }
    Some(cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("|-") && line.chars().all(|char| "|-: ".contains(char))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_between_other_lines() {
        let text = "words\n| a | b |\n|---|--:|\n| x \\| y | 1,234 |\n|  | - |\nmore | words\n\
            | no | table |\n\n| one |\n|---|\n";
        let found = tables(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].columns, ["a", "b"]);
        assert_eq!(found[0].rows, [["x \\| y", "1,234"], ["", "-"]]);
        assert_eq!(found[0].markdown(), "| a | b |\n|---|--:|\n| x \\| y | 1,234 |\n|  | - |\n");
        assert!(found[1].rows.is_empty());
    }

    #[test]
    fn aligned_tables_are_the_same_tables() {
        let aligned = "| a    |  b |\n|------|---:|\n| long | 12 |\n";
        assert_eq!(tables(aligned)[0].rows, [["long", "12"]]);
    }
}
