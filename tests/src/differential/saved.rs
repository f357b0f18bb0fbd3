//! Texts that each side makes up by itself (identities, names), under one placeholder for both.

use serde_json::Value;

/// Placeholder `SAVEDnZ`, and what it is at Magnum and here.
#[derive(Debug, Clone, Default)]
pub struct Saved {
    pairs: Vec<(String, String)>,
}

/// Which of the two APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Magnum,
    Ours,
}

impl Saved {
    /// Keeps what both answered at one place, unless it is the same.
    pub fn keep(&mut self, theirs: Option<&Value>, ours: Option<&Value>) {
        if let (Some(Value::String(theirs)), Some(Value::String(ours))) = (theirs, ours)
            && theirs != ours
            && !self.pairs.iter().any(|pair| pair.0 == *theirs)
        {
            self.pairs.push((theirs.clone(), ours.clone()));
        }
    }

    /// How many there are: numbers from 0 to one less.
    pub fn count(&self) -> usize {
        self.pairs.len()
    }

    /// The placeholder of a number.
    pub fn placeholder(number: usize) -> String {
        format!("SAVED{number}Z")
    }

    /// The text as one side gets it.
    pub fn filled(&self, text: &str, side: Side) -> String {
        self.replaced(text, |number, pair| {
            (Self::placeholder(number), of(pair, side).to_owned())
        })
    }

    /// The text as one side sent it, with placeholders again.
    pub fn general(&self, text: &str, side: Side) -> String {
        self.replaced(text, |number, pair| {
            (of(pair, side).to_owned(), Self::placeholder(number))
        })
    }

    fn replaced(&self, text: &str, what: impl Fn(usize, &(String, String)) -> (String, String)) -> String {
        let mut text = text.to_owned();
        for (number, pair) in self.pairs.iter().enumerate() {
            let (from, to) = what(number, pair);
            text = text.replace(&from, &to);
        }
        text
    }
}

fn of(pair: &(String, String), side: Side) -> &str {
    match side {
        Side::Magnum => &pair.0,
        Side::Ours => &pair.1,
    }
}
