//! Which row of `docs/differences.md` a difference is of, by rule.

mod clusters;
mod conductors;
mod node_groups;
mod order;
mod paths;
mod quotas;
mod templates;
mod values;

use wildmatch::WildMatch;

use super::compare::Finding;
use super::request::Request;

/// A rule: all of its patterns have to match. `*` stands for any text.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The row's first cell.
    pub row: &'static str,
    /// Method and route, such as `PATCH /v1/clusters/{ident}`.
    pub request: &'static str,
    /// `status`, `error`, `header NAME`, or a JSON pointer into the body.
    pub place: &'static str,
    /// What Magnum has there.
    pub theirs: &'static str,
    /// What we have there.
    pub ours: &'static str,
    /// What else has to be true of the request.
    pub also: fn(&Request) -> bool,
    /// What has to be true of one of the requests before it, whose effect this one shows.
    pub after: Option<fn(&Request) -> bool>,
}

/// All of them; the first one that matches counts.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let all = [
        paths::RULES,
        values::RULES,
        quotas::RULES,
        clusters::RULES,
        node_groups::RULES,
        conductors::RULES,
        templates::RULES,
        order::RULES,
    ];
    all.into_iter().flatten()
}

/// The row of a difference in the answer to the last request of a sequence, if it is of one.
pub fn row_of(sequence: &[Request], finding: &Finding) -> Option<&'static str> {
    let (request, before) = sequence.split_last()?;
    let matches = |pattern: &str, text: &str| WildMatch::new(pattern).matches(text);
    let found = rules().find(|rule| {
        matches(rule.request, &request.kind())
            && matches(rule.place, &finding.place)
            && matches(rule.theirs, &finding.theirs)
            && matches(rule.ours, &finding.ours)
            && (rule.also)(request)
            && rule.after.is_none_or(|after| before.iter().any(after))
    });
    found.map(|rule| rule.row)
}

const SEVERAL: &str = "which of several mistakes is told";

const OF_ROUTE: &str = "an argument of the route in the query or the body, too (`?project_id=`)";

const TEMPLATE_PATCH: &str = "PATCH /v1/clustertemplates/{ident}";

const CLUSTER_PATCH: &str = "PATCH /v1/clusters/{ident}";

const OTHER_PROJECT: &str =
    "an administrator changes node groups, resizes, or has certificates and credentials of another project";

const fn rule(
    row: &'static str,
    request: &'static str,
    place: &'static str,
    theirs: &'static str,
    ours: &'static str,
) -> Rule {
    Rule {
        row,
        request,
        place,
        theirs,
        ours,
        also: |_| true,
        after: None,
    }
}

const fn when(rule: Rule, also: fn(&Request) -> bool) -> Rule {
    Rule { also, ..rule }
}

const fn after(rule: Rule, before: fn(&Request) -> bool) -> Rule {
    Rule {
        after: Some(before),
        ..rule
    }
}

/// Whether the body has this text.
pub fn body_has(request: &Request, text: &str) -> bool {
    request
        .body
        .as_ref()
        .is_some_and(|body| body.text().contains(text))
}

fn of_administrator(request: &Request) -> bool {
    request.user == "chief"
}
