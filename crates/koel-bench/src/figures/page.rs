//! The markers in pages, and what stands between them.
//!
//! ```text
//! <!-- figures: NAME -->                     all tables of docs/figures/NAME.json
//! <!-- figures: NAME 2 -->                   the second one
//! <!-- figures: NAME 2 only: koel; sort -->  these rows of it, by their first cells
//! <!-- end of figures -->
//! ```
//!
//! Between them are the tables and a line with the command, the machine, the day and the commit.

use std::collections::BTreeMap;

use super::Figures;
use crate::table::Table;

const START: &str = "<!-- figures: ";
const END: &str = "<!-- end of figures -->";

/// A marker that starts figures.
struct Marker<'a> {
    name: &'a str,
    /// Counted from 1; all of them without a number.
    table: Option<usize>,
    only: Option<Vec<&'a str>>,
}

/// The page with the tables of these figures between its markers.
pub(super) fn filled(page: &str, figures: &BTreeMap<String, Figures>) -> Result<String, String> {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text += line;
        text.push('\n');
        let Some(marker) = Marker::of(line)? else { continue };
        let found = figures
            .get(marker.name)
            .ok_or_else(|| format!("there are no figures of the name {}", marker.name))?;
        text += &marker.shown(found)?;
        lines
            .by_ref()
            .find(|line| *line == END)
            .ok_or_else(|| format!("`{line}` is not closed by `{END}`"))?;
        text += END;
        text.push('\n');
    }
    Ok(text)
}

/// The names of the figures that a page shows.
pub(super) fn names(page: &str) -> Vec<String> {
    let markers = page.lines().filter_map(|line| Marker::of(line).ok().flatten());
    markers.map(|marker| marker.name.to_owned()).collect()
}

impl<'a> Marker<'a> {
    fn of(line: &'a str) -> Result<Option<Self>, String> {
        let Some(rest) = line.strip_prefix(START) else { return Ok(None) };
        let wrong = || format!("`{line}` is no marker of figures");
        let rest = rest.strip_suffix("-->").ok_or_else(wrong)?.trim();
        let (head, only) = match rest.split_once(" only: ") {
            Some((head, rows)) => (head, Some(rows.split(';').map(str::trim).collect())),
            None => (rest, None),
        };
        let (name, table) = match head.split_once(' ') {
            Some((name, number)) => (name, Some(number.trim().parse().map_err(|_| wrong())?)),
            None => (head, None),
        };
        Ok(Some(Self { name, table, only }))
    }

    fn shown(&self, figures: &Figures) -> Result<String, String> {
        let tables = match self.table {
            None => &figures.tables[..],
            Some(number) => {
                let table = number.checked_sub(1).and_then(|at| figures.tables.get(at..=at));
                table.ok_or_else(|| format!("{} has no table {number}", self.name))?
            }
        };
        let tables: Vec<_> = tables
            .iter()
            .map(|table| Ok(self.rows(table)?.compact()))
            .collect::<Result<_, String>>()?;
        Ok(format!(
            "\n{}\n`{}` at `{}`, {}, {}.\n\n",
            tables.join("\n"),
            figures.command,
            figures.commit,
            figures.day,
            figures.machine
        ))
    }

    /// The rows that the marker asks for, in its order.
    fn rows(&self, table: &Table) -> Result<Table, String> {
        let Some(only) = &self.only else { return Ok(table.clone()) };
        let row = |name: &&str| {
            let mut rows = table.rows.iter();
            let found = rows.find(|row| row[0].trim_matches('`') == *name).cloned();
            found.ok_or_else(|| format!("{} has no row `{name}`", self.name))
        };
        let rows = only.iter().map(row).collect::<Result<_, _>>()?;
        Ok(Table { columns: table.columns.clone(), rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> BTreeMap<String, Figures> {
        let text = "| a | b |\n|---|--:|\n| `x` | 1 |\n| y | 2 |\n\n| c |\n|---|\n| z |\n";
        let figures = Figures {
            command: "bench".into(),
            machine: "one core".into(),
            day: "2026-01-02".into(),
            commit: "0123".into(),
            code: Vec::new(),
            tables: Table::all_in(text),
        };
        BTreeMap::from([("speed".to_owned(), figures)])
    }

    #[test]
    fn a_page_gets_its_figures_and_keeps_the_rest() {
        let page =
            "before\n<!-- figures: speed 1 only: y; x -->\nold\n<!-- end of figures -->\nafter\n";
        let filled = filled(page, &figures()).unwrap();
        assert_eq!(
            filled,
            "before\n<!-- figures: speed 1 only: y; x -->\n\n| a | b |\n|---|--:|\n| y | 2 |\n\
             | `x` | 1 |\n\n`bench` at `0123`, 2026-01-02, one core.\n\n\
             <!-- end of figures -->\nafter\n"
        );
        assert_eq!(super::filled(&filled, &figures()).unwrap(), filled);
        assert_eq!(names(page), ["speed"]);
        let all = super::filled("<!-- figures: speed -->\n<!-- end of figures -->\n", &figures());
        assert!(all.unwrap().contains("| z |"));
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        for marker in ["other", "speed 0", "speed 3", "speed x", "speed 1 only: w"] {
            let page = format!("<!-- figures: {marker} -->\n<!-- end of figures -->\n");
            assert!(filled(&page, &figures()).is_err(), "{marker}");
        }
        assert!(filled("<!-- figures: speed -->\n", &figures()).is_err(), "not closed");
        assert_eq!(filled("no marker\n", &figures()).unwrap(), "no marker\n");
    }
}
