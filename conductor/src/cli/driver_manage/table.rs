//! A table of texts, drawn as OpenStack's commands draw them.

use std::io::{self, Write};

/// Prints the rows under their heads.
pub(super) fn print(heads: &[&str], rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    let widths: Vec<usize> = heads
        .iter()
        .enumerate()
        .map(|(column, head)| {
            let cells = rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| width(cell));
            cells.chain([width(head)]).max().unwrap_or(0)
        })
        .collect();
    let rule: String = widths
        .iter()
        .map(|width| format!("+{}", "-".repeat(width + 2)))
        .collect();
    writeln!(out, "{rule}+")?;
    line(heads.iter().copied(), &widths, out)?;
    writeln!(out, "{rule}+")?;
    for row in rows {
        line(row.iter().map(String::as_str), &widths, out)?;
    }
    writeln!(out, "{rule}+")
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn line<'a>(cells: impl Iterator<Item = &'a str>, widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
    for (cell, widest) in cells.zip(widths) {
        write!(out, "| {cell}{} ", " ".repeat(widest.saturating_sub(width(cell))))?;
    }
    writeln!(out, "|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut out = Vec::new();
        let rows = vec![vec!["a".to_owned(), "größer".to_owned()]];
        print(&["Name", "B"], &rows, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "+------+--------+\n| Name | B      |\n+------+--------+\n| a    | größer |\n+------+--------+\n"
        );
    }
}
