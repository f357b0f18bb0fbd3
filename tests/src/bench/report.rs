//! The result, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A comparison that was set as a goal.
pub(super) struct Goal {
    what: String,
    measured: f64,
    wanted: f64,
    reached: bool,
}

impl Goal {
    pub(super) fn at_most(what: &str, measured: f64, wanted: f64) -> Self {
        Self {
            what: what.to_owned(),
            measured,
            wanted,
            reached: measured <= wanted,
        }
    }

    pub(super) fn at_least(what: &str, measured: f64, wanted: f64) -> Self {
        Self {
            reached: measured >= wanted,
            ..Self::at_most(what, measured, wanted)
        }
    }
}

/// Rows of figures and the goals they are held against.
pub(super) struct Table {
    title: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<(&'static str, Vec<f64>)>,
    goals: Vec<Goal>,
}

impl Table {
    pub(super) fn new(title: &'static str, columns: &[&'static str]) -> Self {
        Self {
            title,
            columns: columns.to_vec(),
            rows: Vec::new(),
            goals: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, name: &'static str, figures: &[f64]) {
        self.rows.push((name, figures.to_vec()));
    }

    pub(super) fn goal(&mut self, goal: Goal) {
        self.goals.push(goal);
    }

    fn text(&self) -> String {
        let mut text = format!("{:<16}", self.title);
        // Writing to a string cannot fail.
        for column in &self.columns {
            let _infallible = write!(text, " {column:>18}");
        }
        for (name, figures) in &self.rows {
            let _infallible = write!(text, "\n{name:<16}");
            for figure in figures {
                let digits = if *figure < 10.0 { 3 } else { 1 };
                let _infallible = write!(text, " {figure:>18.digits$}");
            }
        }
        for goal in &self.goals {
            let verdict = if goal.reached { "reached" } else { "MISSED" };
            let _infallible = write!(
                text,
                "\n{verdict}: {} = {:.3} (goal {})",
                goal.what, goal.measured, goal.wanted
            );
        }
        text
    }

    fn json(&self, setup: &Value) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|(name, figures)| {
                let mut row = json!({ "contestant": name });
                for (column, figure) in self.columns.iter().zip(figures) {
                    row[*column] = json!(figure);
                }
                row
            })
            .collect();
        let goals: Vec<Value> = self
            .goals
            .iter()
            .map(|goal| json!({"what": goal.what, "measured": goal.measured, "goal": goal.wanted, "reached": goal.reached}))
            .collect();
        json!({"bench": self.title, "setup": setup, "results": rows, "goals": goals})
    }

    /// The table, and then one line of JSON.
    #[expect(clippy::print_stdout, reason = "a benchmark's output is its result")]
    pub(super) fn print(&self, setup: &Value) {
        println!("{}\n{}", self.text(), self.json(setup));
    }
}
