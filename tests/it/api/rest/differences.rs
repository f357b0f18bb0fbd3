//! Where we answer otherwise on purpose: case by case, each with its row in `docs/differences.md`.

mod clusters;
mod drivers;
mod node_groups;
mod others;
mod templates;

use super::case::Case;
use super::world::Answer;
use clusters::CLUSTERS;
use drivers::DRIVERS;
use node_groups::NODE_GROUPS;
use others::OTHERS;
use templates::TEMPLATES;

/// What the answer must be instead.
pub enum Instead {
    /// This status, and this text in the error's detail.
    Refused(u16, &'static str),
    /// This status, whatever the body says.
    Accepted(u16),
    /// The recorded status, with this text in the error's detail.
    Detail(&'static str),
    /// Only these places of the body may differ (a prefix each).
    Places(&'static [&'static str]),
}

/// A row of the table with its cases.
pub struct Difference {
    /// The row's first column.
    pub row: &'static str,
    pub instead: Instead,
    pub cases: &'static [&'static str],
}

/// One of them.
const fn on(row: &'static str, instead: Instead, cases: &'static [&'static str]) -> Difference {
    Difference { row, instead, cases }
}

/// How an answer compares.
pub enum Verdict {
    /// As recorded.
    Equal,
    /// As the table says.
    Differs,
    /// Neither.
    Wrong(Vec<String>),
}

impl Verdict {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Differs => "differ on purpose",
            Self::Wrong(_) => "wrong",
        }
    }
}

fn all() -> impl Iterator<Item = &'static Difference> {
    let parts = [TEMPLATES, DRIVERS, CLUSTERS, NODE_GROUPS, OTHERS];
    parts.into_iter().flatten()
}

/// Every named case with its row.
pub fn named() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().flat_map(|difference| difference.cases.iter().map(|case| (*case, difference.row)))
}

/// Judges what the comparison found.
pub fn judge(case: &Case, answer: &Answer, findings: &[String]) -> Verdict {
    let difference = all().find(|difference| difference.cases.contains(&case.case.as_str()));
    match difference {
        None if findings.is_empty() => Verdict::Equal,
        None => Verdict::Wrong(findings.to_vec()),
        Some(_) if findings.is_empty() => Verdict::Wrong(vec![
            "named as a difference, but the answer is the recorded one".to_owned(),
        ]),
        Some(difference) => match unmet(difference, case, answer, findings) {
            None => Verdict::Differs,
            Some(why) => Verdict::Wrong([vec![why], findings.to_vec()].concat()),
        },
    }
}

fn unmet(difference: &Difference, case: &Case, answer: &Answer, findings: &[String]) -> Option<String> {
    let refusal = |status: u16, text: &str| {
        let detail = answer
            .body
            .pointer("/errors/0/detail")
            .and_then(|detail| detail.as_str());
        let detail = detail.unwrap_or_default();
        (answer.status != status || !detail.contains(text))
            .then(|| format!("{} {detail:?} instead of {status} with {text:?}", answer.status))
    };
    match difference.instead {
        Instead::Refused(status, text) => refusal(status, text),
        Instead::Detail(text) => refusal(case.response.status, text),
        Instead::Accepted(status) => {
            (answer.status != status).then(|| format!("status {} instead of {status}", answer.status))
        }
        Instead::Places(places) => findings
            .iter()
            .find(|finding| !places.iter().any(|place| finding.starts_with(place)))
            .map(|finding| format!("differs beyond {places:?}: {finding}")),
    }
}
