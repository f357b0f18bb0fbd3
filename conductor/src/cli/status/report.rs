//! The findings of all checks, printed as oslo.upgradecheck does.

use std::io::{self, Write};

use serde_json::json;

/// How a check ended. The worst of all is the program's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// 0: nothing to do.
    Success,
    /// 1: to be looked at; the services start.
    Warning,
    /// 2: stops the services, or what users have.
    Failure,
}

impl Code {
    const fn word(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Warning => "Warning",
            Self::Failure => "Failure",
        }
    }

    /// The number in exit codes and JSON.
    pub const fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Warning => 1,
            Self::Failure => 2,
        }
    }
}

/// One check and what it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub check: &'static str,
    /// The worst of what it found.
    pub code: Code,
    /// A sentence for each thing, with what to do.
    pub details: Vec<String>,
}

impl Finding {
    /// A check that has found nothing yet.
    pub const fn of(check: &'static str) -> Self {
        Self {
            check,
            code: Code::Success,
            details: Vec::new(),
        }
    }

    /// Adds something that is good to know, and nothing to be done about.
    pub fn note(&mut self, text: impl Into<String>) {
        self.add(Code::Success, text.into());
    }

    /// Adds something that should be looked at.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.add(Code::Warning, text.into());
    }

    /// Adds something that stops us.
    pub fn fail(&mut self, text: impl Into<String>) {
        self.add(Code::Failure, text.into());
    }

    fn add(&mut self, code: Code, text: String) {
        self.code = self.code.max(code);
        self.details.push(text);
    }
}

const TITLE: &str = "Upgrade Check Results";
/// Details are wrapped at this many characters; only a word that is longer by itself goes beyond.
const WIDTH: usize = 60;

/// The worst of all.
pub fn worst(findings: &[Finding]) -> Code {
    findings
        .iter()
        .map(|finding| finding.code)
        .max()
        .unwrap_or(Code::Success)
}

/// Prints one table with a cell for each check.
///
/// # Errors
/// `out` cannot be written.
pub fn print_table(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    let cells: Vec<Vec<String>> = findings.iter().map(cell).collect();
    let widths = cells.iter().flatten().map(|line| line.chars().count());
    let widest = widths.chain([TITLE.len()]).max().unwrap_or(TITLE.len());
    let rule = format!("+{}+", "-".repeat(widest + 2));
    let row = |lines: &[String], out: &mut dyn Write| {
        for text in lines {
            let rest = widest.saturating_sub(text.chars().count());
            writeln!(out, "| {text}{} |", " ".repeat(rest))?;
        }
        writeln!(out, "{rule}")
    };
    writeln!(out, "{rule}")?;
    row(&[TITLE.to_owned()], out)?;
    cells.iter().try_for_each(|cell| row(cell, out))
}

fn cell(finding: &Finding) -> Vec<String> {
    let mut lines = vec![
        format!("Check: {}", finding.check),
        format!("Result: {}", finding.code.word()),
    ];
    if finding.details.is_empty() {
        lines.push("Details: None".to_owned());
    }
    for (number, detail) in finding.details.iter().enumerate() {
        let wrapped = wrap(detail);
        for (part, text) in wrapped.into_iter().enumerate() {
            lines.push(if number == 0 && part == 0 {
                format!("Details: {text}")
            } else {
                text
            });
        }
    }
    lines
}

/// Lines of at most [`WIDTH`] characters, all but the first indented by two.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let is_empty = line.trim().is_empty();
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            line.push_str(word);
        } else {
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.push(line);
    lines
}

/// Prints the findings as JSON, on one line.
///
/// # Errors
/// `out` cannot be written.
pub fn print_json(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    let checks: Vec<_> = findings
        .iter()
        .map(|finding| {
            let details = (!finding.details.is_empty()).then(|| finding.details.join("\n"));
            json!({"check": finding.check, "result": finding.code.number(), "details": details})
        })
        .collect();
    writeln!(out, "{}", json!({"name": TITLE, "checks": checks}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(findings: &[Finding]) -> String {
        let mut out = Vec::new();
        print_table(findings, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn table_equals_oslos() {
        let mut finding = Finding::of("Database");
        let fine = Finding::of("Broker");
        finding.fail("There is no database at all, and without one nothing can be kept for anybody.");
        finding.warn("Besides, it is late.");
        let text = printed(&[fine.clone(), finding.clone()]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("+--") && lines[2] == lines[0] && lines[6] == lines[0],
            "{text}"
        );
        assert_eq!(lines.last(), lines.first(), "{text}");
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        assert!(text.contains("| Details: None "), "{text}");
        assert!(text.contains("|   kept for anybody. "), "{text}");
        assert!(text.contains("| Besides, it is late."), "{text}");
        assert_eq!(worst(&[fine, finding]), Code::Failure);
        assert_eq!(worst(&[]), Code::Success);
    }
}
