//! The result, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Logs progress on standard error. Not part of the result.
pub(super) fn say(text: &str) {
    eprintln!("bench: {text}");
}

/// A comparison that was set as a goal.
#[derive(Debug)]
pub struct Goal {
    what: String,
    measured: f64,
    wanted: f64,
    at_most: bool,
}

impl Goal {
    pub(super) fn at_most(what: &str, measured: f64, wanted: f64) -> Self {
        Self {
            what: what.to_owned(),
            measured,
            wanted,
            at_most: true,
        }
    }

    pub(super) fn at_least(what: &str, measured: f64, wanted: f64) -> Self {
        Self {
            at_most: false,
            ..Self::at_most(what, measured, wanted)
        }
    }

    fn reached(&self) -> bool {
        if self.at_most {
            self.measured <= self.wanted
        } else {
            self.measured >= self.wanted
        }
    }

    fn verdict(&self) -> &'static str {
        if self.reached() { "reached" } else { "MISSED" }
    }

    fn sense(&self) -> &'static str {
        if self.at_most { "at most" } else { "at least" }
    }
}

/// One contestant's figures, one per column; none where a column does not apply.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) figures: Vec<Option<f64>>,
}

/// Rows of figures and the goals they are held against.
#[derive(Debug)]
pub struct Report {
    title: &'static str,
    columns: &'static [&'static str],
    setup: Value,
    rows: Vec<Row>,
    goals: Vec<Goal>,
}

impl Report {
    pub(super) fn new(title: &'static str, columns: &'static [&'static str], setup: Value) -> Self {
        Self {
            title,
            columns,
            setup,
            rows: Vec::new(),
            goals: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(super) fn goal(&mut self, goal: Goal) {
        self.goals.push(goal);
    }

    /// The table, and below it the goals.
    pub fn text(&self) -> String {
        let widths = self.columns.iter().map(|column| column.len().max(8));
        let mut text = format!("{:<16}", self.title);
        // Writing to a string cannot fail.
        for (column, width) in self.columns.iter().zip(widths.clone()) {
            let _infallible = write!(text, "  {column:>width$}");
        }
        for row in &self.rows {
            let _infallible = write!(text, "\n{:<16}", row.name);
            for (figure, width) in row.figures.iter().zip(widths.clone()) {
                let _infallible = write!(text, "  {:>width$}", shown(*figure));
            }
        }
        for goal in &self.goals {
            let _infallible = write!(
                text,
                "\n{:<8} {:.3} ({} {}) {}",
                goal.verdict(),
                goal.measured,
                goal.sense(),
                goal.wanted,
                goal.what,
            );
        }
        text
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let mut object = json!({ "contestant": row.name });
                for (column, figure) in self.columns.iter().zip(&row.figures) {
                    object[*column] = json!(figure);
                }
                object
            })
            .collect();
        let goals: Vec<Value> = self
            .goals
            .iter()
            .map(|goal| {
                json!({
                    "what": goal.what, "measured": goal.measured, "goal": goal.wanted,
                    "sense": goal.sense(), "reached": goal.reached(),
                })
            })
            .collect();
        json!({"bench": self.title, "setup": self.setup, "results": rows, "goals": goals})
    }

    /// The table, and then one line of JSON.
    #[expect(clippy::print_stdout, reason = "a benchmark's output is its result")]
    pub(super) fn print(&self) {
        println!("{}\n{}", self.text(), self.json());
    }
}

/// Three digits where they can mean something.
fn shown(figure: Option<f64>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(whole) if whole >= 1000.0 => format!("{whole:.0}"),
        Some(tens) if tens >= 10.0 => format!("{tens:.1}"),
        Some(small) => format!("{small:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_show_whether_they_were_reached_in_both_forms() {
        let mut report = Report::new("casts", &["casts", "p50 ms"], json!({}));
        report.row(Row {
            name: "ours",
            figures: vec![Some(2000.0), None],
        });
        report.goal(Goal::at_most("cpu", 0.05, 0.1));
        report.goal(Goal::at_least("rate", 5.0, 10.0));
        let text = report.text();
        assert!(text.contains("reached  0.050 (at most 0.1) cpu"), "{text}");
        assert!(text.contains("MISSED   5.000 (at least 10) rate"), "{text}");
        assert!(
            text.contains("2000") && text.lines().nth(1).unwrap().ends_with('-'),
            "{text}"
        );
        let json = report.json();
        assert_eq!(
            json["results"][0],
            json!({"contestant": "ours", "casts": 2000.0, "p50 ms": null})
        );
        assert_eq!(json["goals"][1]["reached"], json!(false));
    }
}
