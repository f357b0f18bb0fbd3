//! The search: sequences until a number of requests or the time is up.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::compare::{Finding, compare};
use super::generate::{Dice, Generator};
use super::look;
use super::request::Request;
use super::rows::row_of;
use super::saved::Saved;
use super::shrink::smaller;
use super::stage::{Answer, Behind, Stage};

/// What a run may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of the requests.
    pub seed: u64,
    /// Whichever comes first.
    pub requests: usize,
    /// Whichever comes first.
    pub time: Duration,
    /// So many different unlisted differences end the run.
    pub unlisted: usize,
}

/// How many requests are between two lines that tell how far a search is.
const SHOWN_EACH: usize = 2_000;

/// A difference that is in no row, made small.
#[derive(Debug)]
pub struct Unlisted {
    pub sequence: Vec<Request>,
    pub finding: Finding,
    /// How often it was met.
    pub times: usize,
}

/// What a run has found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many were sent, to each.
    pub requests: usize,
    /// How many answers were equal.
    pub equal: usize,
    /// How many differences are of each row.
    pub listed: BTreeMap<&'static str, usize>,
    /// By what is alike about them.
    pub unlisted: BTreeMap<String, Unlisted>,
}

impl Report {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} requests: {} answers are equal, {} differ by {} rows of docs/differences.md, {} differ and are in no row\n",
            self.requests,
            self.equal,
            self.listed.values().sum::<usize>(),
            self.listed.len(),
            self.unlisted.values().map(|one| one.times).sum::<usize>(),
        );
        for (row, times) in &self.listed {
            let _ = writeln!(text, "{times:6}  {row}");
        }
        for one in self.unlisted.values() {
            let _ = write!(text, "\n{} times:\n{}", one.times, one.text());
        }
        text
    }
}

impl Unlisted {
    /// What was sent, and what was answered.
    fn text(&self) -> String {
        let mut text = String::new();
        for request in &self.sequence {
            let _ = writeln!(text, "  {}", shortened(&request.to_string()));
        }
        let finding = &self.finding;
        let _ = writeln!(
            text,
            "  {}\n    Magnum: {}\n    ours:   {}",
            finding.place,
            shortened(&finding.theirs),
            shortened(&finding.ours)
        );
        text
    }
}

/// Shows how far a search is. Not by `eprintln!`, which a test keeps to itself.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn shortened(text: &str) -> String {
    text.chars().take(600).collect()
}

/// What one sequence of requests showed.
struct Played {
    /// Of its last request.
    findings: Vec<Finding>,
    last: (Answer, Answer),
    saved: Saved,
}

/// Searches.
pub async fn run(stage: &Stage, behind: Behind, limits: Limits) -> Result<Report> {
    let generator = Generator::new(&stage.description().await?, behind)?;
    let mut dice = Dice::new(limits.seed);
    let (mut report, until) = (Report::default(), Instant::now() + limits.time);
    let mut shown = 0;
    while report.requests < limits.requests
        && Instant::now() < until
        && report.unlisted.len() < limits.unlisted
    {
        let (mut sequence, mut saved) = (Vec::new(), Saved::default());
        let (mut left, mut looks) = (1 + dice.below(5), VecDeque::new());
        loop {
            let request = match looks.pop_front() {
                Some(look) => look,
                None if left == 0 => break,
                None => {
                    left -= 1;
                    generator.request(&mut dice, &saved)?
                }
            };
            sequence.push(request);
            let played = one_more(stage, &sequence, saved).await?;
            report.requests += 1;
            // What is written otherwise is read otherwise; a list that differs says nothing about what comes next.
            let is_alike = match sequence[sequence.len() - 1].method.as_str() {
                "GET" => !played.findings.iter().any(|finding| finding.place == "status"),
                _ => played.findings.is_empty(),
            };
            let was_reset = judge(stage, &sequence, &played, &mut report).await?;
            saved = played.saved;
            // From here on the rows are not the same any more, or not those that the sequence has made.
            if !is_alike || was_reset {
                break;
            }
            if behind == Behind::Conductors {
                looks.extend(look::after(&sequence[sequence.len() - 1], &played.last.1, &saved));
            }
        }
        if sequence.iter().any(|request| request.method != "GET") {
            stage.reset().await?;
        }
        if report.requests >= shown + SHOWN_EACH {
            shown = report.requests;
            tell(&format!(
                "{shown} requests, {} differences in no row",
                report.unlisted.len()
            ));
        }
    }
    Ok(report)
}

/// Sends the last one of a sequence whose others have been sent.
async fn one_more(stage: &Stage, sequence: &[Request], mut saved: Saved) -> Result<Played> {
    let request = &sequence[sequence.len() - 1];
    let (theirs, ours) = stage.send(request, &saved).await?;
    let mut stuck = Vec::new();
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        stuck = stage.settle(request, &theirs, &ours).await?;
    }
    if theirs.status == ours.status && theirs.status < 300 {
        for place in look::made_up(request, &ours) {
            saved.keep(theirs.body.pointer(&place), ours.body.pointer(&place));
        }
    }
    let mut findings = compare(request, &theirs, &ours, &saved);
    // Where ours has refused, the status says it.
    if ours.status < 300 {
        findings.extend(stuck.into_iter().map(|status| Finding {
            place: "for ever".to_owned(),
            theirs: status,
            ours: ours.status.to_string(),
        }));
    }
    Ok(Played {
        findings,
        last: (theirs, ours),
        saved,
    })
}

/// Counts what was found, and makes what is new small: whether it has, for which it brings the rows back.
async fn judge(stage: &Stage, sequence: &[Request], played: &Played, report: &mut Report) -> Result<bool> {
    let mut has_reset = false;
    let request = &sequence[sequence.len() - 1];
    if played.findings.is_empty() {
        report.equal += 1;
    }
    for finding in &played.findings {
        if let Some(row) = row_of(sequence, finding) {
            *report.listed.entry(row).or_default() += 1;
            continue;
        }
        let alike = alike(request, finding);
        if let Some(known) = report.unlisted.get_mut(&alike) {
            known.times += 1;
            continue;
        }
        let (sequence, finding) = shrunk(stage, sequence.to_vec(), finding.clone()).await?;
        let unlisted = Unlisted {
            sequence,
            finding,
            times: 1,
        };
        tell(&format!("in no row:\n{}", unlisted.text()));
        report.unlisted.insert(alike, unlisted);
        has_reset = true;
    }
    Ok(has_reset)
}

/// What two differences that have one cause mostly share.
fn alike(request: &Request, finding: &Finding) -> String {
    let general = |text: &str| -> String {
        let words = text.split_whitespace().take(6);
        let plain = words.map(|word| {
            word.chars()
                .map(|c| if c.is_ascii_digit() { '0' } else { c })
                .take(20)
                .collect::<String>()
        });
        plain.collect::<Vec<_>>().join(" ")
    };
    format!(
        "{} {} {} {}",
        request.kind(),
        finding.place,
        general(&finding.theirs),
        general(&finding.ours)
    )
}

/// The smallest sequence found whose last request differs alike.
async fn shrunk(
    stage: &Stage,
    mut sequence: Vec<Request>,
    mut finding: Finding,
) -> Result<(Vec<Request>, Finding)> {
    let wanted = alike(&sequence[sequence.len() - 1], &finding);
    let mut attempts = 60;
    'smaller: loop {
        for candidate in smaller(&sequence) {
            if attempts == 0 {
                break 'smaller;
            }
            attempts -= 1;
            let played = play(stage, &candidate).await?;
            let request = &candidate[candidate.len() - 1];
            let same = played
                .findings
                .iter()
                .find(|found| alike(request, found) == wanted);
            if let Some(same) = same
                && row_of(&candidate, same).is_none()
            {
                (finding, sequence) = (same.clone(), candidate);
                continue 'smaller;
            }
        }
        break;
    }
    stage.reset().await?;
    Ok((sequence, finding))
}

/// A whole sequence, from the rows that both begin with.
async fn play(stage: &Stage, sequence: &[Request]) -> Result<Played> {
    stage.reset().await?;
    let mut saved = Saved::default();
    for length in 1..sequence.len() {
        saved = one_more(stage, &sequence[..length], saved).await?.saved;
    }
    one_more(stage, sequence, saved).await
}
