//! What the list of operations is narrowed to: the parameters of its address, and the form that makes them.

use magnum_db::read::operations::{KINDS, OPEN_STATES, STATES};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::store::operation_search::Search;

/// In place of a state: all those in which there is still something to do.
const OPEN: &str = "open";

/// Longest value, in characters: as long as a name can be.
const LONGEST: usize = 255;

/// The parameters, all of them valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    search: Option<String>,
    project: Option<String>,
    kind: Option<String>,
    state: Option<String>,
    /// Only operations with lower numbers: the next page.
    before: Option<i64>,
}

/// A parameter that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadParameter {
    name: String,
    why: String,
}

impl BadParameter {
    fn new(name: &str, why: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            why: why.into(),
        }
    }

    /// What the operator is told.
    pub fn content(&self) -> Markup {
        html! {
            h1 { "Operations" }
            p.bad { "The parameter " code { (self.name) } " cannot be used: " (self.why) "." }
            p { a href="/ui/operations" { "All operations" } }
        }
    }
}

impl Filter {
    /// Reads the parameters of an address. One that is empty counts as not given: a form sends all of its fields.
    ///
    /// # Errors
    /// [`BadParameter`]: one is not known, is given twice, or has a value that it cannot have.
    pub fn parse(given: Vec<(String, String)>) -> Result<Self, BadParameter> {
        let mut filter = Self::default();
        for (name, value) in given {
            let place = match name.as_str() {
                "search" => &mut filter.search,
                "project" => &mut filter.project,
                "kind" => &mut filter.kind,
                "state" => &mut filter.state,
                "before" => {
                    filter.before = number(&name, &value)?;
                    continue;
                }
                _ => {
                    let known =
                        "there is none of this name; there are search, project, kind, state and before";
                    return Err(BadParameter::new(&name, known));
                }
            };
            let value = value.trim();
            if value.is_empty() {
                continue;
            }
            if value.chars().count() > LONGEST {
                return Err(BadParameter::new(
                    &name,
                    format!("it has more than {LONGEST} characters"),
                ));
            }
            if value.chars().any(char::is_control) {
                return Err(BadParameter::new(&name, "it has a control character"));
            }
            if place.replace(value.to_owned()).is_some() {
                return Err(BadParameter::new(&name, "it is given twice"));
            }
        }
        one_of("kind", filter.kind.as_deref(), KINDS, None)?;
        one_of("state", filter.state.as_deref(), STATES, Some(OPEN))?;
        Ok(filter)
    }

    /// Operations that this text names.
    pub fn of_text(text: &str) -> Self {
        Self {
            search: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// Operations in this state.
    pub fn of_state(state: &str) -> Self {
        Self {
            state: Some(state.to_owned()),
            ..Self::default()
        }
    }

    /// Operations that have not ended.
    pub fn open() -> Self {
        Self::of_state(OPEN)
    }

    /// The same, of the operations with lower numbers than this one.
    pub fn before(&self, id: i64) -> Self {
        Self {
            before: Some(id),
            ..self.clone()
        }
    }

    /// Whether it begins with the newest operation.
    pub fn is_first_page(&self) -> bool {
        self.before.is_none()
    }

    /// The same from the newest operation on.
    pub fn first_page(&self) -> Self {
        Self {
            before: None,
            ..self.clone()
        }
    }

    /// Whether it leaves anything out.
    pub fn is_narrow(&self) -> bool {
        self.first_page() != Self::default()
    }

    /// The text that is searched for, if it is a name: neither an id nor a request.
    pub fn name(&self) -> Option<&str> {
        let text = self.search.as_deref()?;
        (!text.starts_with("req-") && uuid::Uuid::try_parse(text).is_err()).then_some(text)
    }

    /// What to ask the database for.
    pub fn search(&self) -> Search {
        let states = self.state.as_deref().map(|state| match state {
            OPEN => OPEN_STATES.iter().map(|state| (*state).to_owned()).collect(),
            state => vec![state.to_owned()],
        });
        Search {
            text: self.search.clone(),
            project: self.project.clone(),
            kind: self.kind.clone(),
            states,
            before_id: self.before,
        }
    }

    /// The address of the list with this filter.
    pub fn address(&self) -> String {
        let before = self.before.map(|id| id.to_string());
        let given: Vec<String> = [
            ("search", &self.search),
            ("project", &self.project),
            ("kind", &self.kind),
            ("state", &self.state),
            ("before", &before),
        ]
        .into_iter()
        .filter_map(|(name, value)| {
            let value = utf8_percent_encode(value.as_deref()?, NON_ALPHANUMERIC);
            Some(format!("{name}={value}"))
        })
        .collect();
        if given.is_empty() {
            "/ui/operations".to_owned()
        } else {
            format!("/ui/operations?{}", given.join("&"))
        }
    }

    /// The form, filled in.
    pub fn form(&self) -> Markup {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        html! {
            form.filter method="get" action="/ui/operations" {
                label.grows {
                    "Search"
                    input type="search" name="search" value=(text(&self.search)) maxlength=(LONGEST)
                        placeholder="cluster's name or uuid; id of an operation, a message or a request";
                }
                label { "Project" input type="text" name="project" value=(text(&self.project)) maxlength=(LONGEST); }
                (choice("Kind", "kind", self.kind.as_deref(), &[("", "any")], KINDS))
                (choice("State", "state", self.state.as_deref(), &[("", "any"), (OPEN, "any open")], STATES))
                span.buttons {
                    button type="submit" { "Show" }
                    @if self.is_narrow() { a href="/ui/operations" { "Clear" } }
                }
            }
        }
    }
}

fn choice(label: &str, name: &str, chosen: Option<&str>, first: &[(&str, &str)], rest: &[&str]) -> Markup {
    let chosen = chosen.unwrap_or_default();
    html! {
        label {
            (label)
            select name=(name) {
                @for (value, shown) in first { option value=(value) selected[*value == chosen] { (shown) } }
                @for value in rest { option value=(value) selected[*value == chosen] { (value) } }
            }
        }
    }
}

fn number(name: &str, value: &str) -> Result<Option<i64>, BadParameter> {
    let value = value.trim();
    if value.is_empty() {
        return Ok(None);
    }
    let number = value.parse().ok().filter(|number| *number > 0);
    number
        .map(Some)
        .ok_or_else(|| BadParameter::new(name, "it is not the number of an operation"))
}

fn one_of(name: &str, value: Option<&str>, known: &[&str], also: Option<&str>) -> Result<(), BadParameter> {
    match value {
        Some(value) if !known.contains(&value) && also != Some(value) => {
            let all: Vec<&str> = known.iter().copied().chain(also).collect();
            Err(BadParameter::new(name, format!("it can be {}", all.join(", "))))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: &[(&str, &str)]) -> Result<Filter, BadParameter> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Filter::parse(given.iter().map(owned).collect())
    }

    #[test]
    fn a_parameter_that_cannot_be_used_is_named_with_what_it_could_be() {
        for (given, name, why) in [
            (&[("kind", "create")][..], "kind", "cluster_create"),
            (&[("state", "broken")], "state", "observing"),
            (&[("states", "failed")], "states", "search, project, kind, state"),
            (&[("project", "a"), ("project", "b")], "project", "twice"),
            (&[("search", "a\0b")], "search", "control character"),
            (&[("before", "-1")], "before", "number"),
        ] {
            let bad = parse(given).unwrap_err();
            assert_eq!(bad.name, name);
            assert!(bad.why.contains(why), "{bad:?}");
        }
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(parse(&[("search", &long)]).unwrap_err().name, "search");
    }

    #[test]
    fn what_a_form_leaves_empty_is_not_given() {
        let filter = parse(&[
            ("search", "  "),
            ("project", ""),
            ("kind", ""),
            ("state", ""),
            ("before", ""),
        ]);
        assert_eq!(filter, Ok(Filter::default()));
    }

    #[test]
    fn an_address_leads_to_the_same_filter() {
        let filter = parse(&[
            ("search", " a&b=c d/ä "),
            ("project", "p"),
            ("state", "open"),
            ("before", "7"),
        ])
        .unwrap();
        assert_eq!(
            filter.address(),
            "/ui/operations?search=a%26b%3Dc%20d%2F%C3%A4&project=p&state=open&before=7"
        );
        assert_eq!(Filter::default().address(), "/ui/operations");
    }

    #[test]
    fn open_is_every_state_that_is_no_end() {
        let states = Filter::open().search().states.unwrap();
        assert_eq!(states, ["queued", "running", "retrying", "observing"]);
    }
}
