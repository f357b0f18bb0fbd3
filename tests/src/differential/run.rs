//! The search: sequences until a number of requests or the time is up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::compare::{Finding, compare};
use super::generate::{Dice, Generator};
use super::request::Request;
use super::rows::row_of;
use super::saved::Saved;
use super::shrink::smaller;
use super::stage::{Answer, Behind, Stage};
use anyhow::Result;

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

/// A difference that is in no row, made small.
#[derive(Debug, serde::Serialize)]
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
        for one in self.unlisted.values() {
            let _ = write!(text, "\n{} times:\n", one.times);
            for request in &one.sequence {
                let _ = writeln!(text, "  {}", shortened(&request.to_string()));
            }
            let finding = &one.finding;
            let _ = writeln!(
                text,
                "  {}\n    Magnum: {}\n    ours:   {}",
                finding.place,
                shortened(&finding.theirs),
                shortened(&finding.ours)
            );
        }
        text
    }
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
    while report.requests < limits.requests
        && Instant::now() < until
        && report.unlisted.len() < limits.unlisted
    {
        let (mut sequence, mut saved) = (Vec::new(), Saved::default());
        for _ in 0..=dice.below(5) {
            sequence.push(generator.request(&mut dice, &saved)?);
            let played = one_more(stage, &sequence, saved).await?;
            report.requests += 1;
            let is_alike = !played.findings.iter().any(|finding| finding.place == "status");
            // Drivers end their work at other times.
            let is_at_work = behind == Behind::Conductors && played.last.0.status == 202;
            judge(stage, &sequence, &played, &mut report).await?;
            saved = played.saved;
            // From here on the rows are not the same any more.
            if !is_alike || is_at_work {
                break;
            }
        }
        if sequence.iter().any(|request| request.method != "GET") {
            stage.reset().await?;
        }
    }
    Ok(report)
}

/// Sends the last one of a sequence whose others have been sent.
async fn one_more(stage: &Stage, sequence: &[Request], mut saved: Saved) -> Result<Played> {
    let request = &sequence[sequence.len() - 1];
    let (theirs, ours) = stage.send(request, &saved).await?;
    if request.method != "GET" && ours.status < 300 {
        stage.settle().await?;
    }
    if theirs.status == ours.status && matches!(theirs.status, 201 | 202) {
        for key in ["/uuid", "/name"] {
            saved.keep(theirs.body.pointer(key), ours.body.pointer(key));
        }
    }
    let findings = compare(request, &theirs, &ours, &saved);
    Ok(Played {
        findings,
        last: (theirs, ours),
        saved,
    })
}

/// Counts what was found, and makes what is new small.
async fn judge(stage: &Stage, sequence: &[Request], played: &Played, report: &mut Report) -> Result<()> {
    let request = &sequence[sequence.len() - 1];
    if played.findings.is_empty() {
        report.equal += 1;
    }
    for finding in &played.findings {
        if let Some(row) = row_of(request, finding) {
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
        report.unlisted.insert(alike, unlisted);
    }
    Ok(())
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
                && row_of(request, same).is_none()
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
