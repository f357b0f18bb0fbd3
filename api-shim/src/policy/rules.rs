//! The rules that hold: defaults, and what policy files put in their place.
//!
//! [`RuleSet::build`] is pure. Guarantees of a set that was built: every reference ends (no cycles, at most
//! `LONGEST` steps), so that asking it always gives an answer; what is not decided is refused.

use std::collections::{BTreeMap, HashMap};

use magnum_common::context::RequestContext;
use magnum_config::{Place, Problem};
use serde_json::Value;

use super::check::{Check, Rules};
use super::defaults::{BASE, CONTEXT_IS_ADMIN, Deprecated, Rule};
use super::file::Entry;
use super::parse;
use super::target::Target;

/// How many rules may be referred to in a row.
const LONGEST: usize = 64;

/// What besides files decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choices {
    /// The rule that stands in for one that does not exist.
    pub default_rule: String,
    /// Without it the deprecated checks hold as well.
    pub enforce_new_defaults: bool,
    /// Whether the scope of a token counts.
    pub enforce_scope: bool,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            default_rule: "default".to_owned(),
            enforce_new_defaults: true,
            enforce_scope: true,
        }
    }
}

/// All rules, ready to be asked.
#[derive(Debug)]
pub struct RuleSet {
    rules: HashMap<String, Check>,
    default_rule: String,
    enforce_scope: bool,
    files: BTreeMap<String, Place>,
}

impl Rules for RuleSet {
    fn find(&self, name: &str) -> Option<&Check> {
        self.rules
            .get(name)
            .or_else(|| self.rules.get(&self.default_rule))
    }
}

impl RuleSet {
    /// Puts the rules together; of several entries with one name the last one holds. Besides, what looks wrong but is
    /// harmless.
    ///
    /// # Errors
    /// References that never end.
    pub fn build(entries: Vec<Entry>, choices: &Choices) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let mut warnings = Vec::new();
        let mut files: BTreeMap<String, Entry> = BTreeMap::new();
        for entry in entries {
            if let Some(earlier) = files.get(&entry.name) {
                warnings.push(Problem {
                    place: entry.place.clone(),
                    message: format!(
                        "rule \"{}\" takes the place of the one at {}",
                        entry.name, earlier.place
                    ),
                });
            }
            files.insert(entry.name.clone(), entry);
        }
        let mut rules = HashMap::new();
        let mut wrong = Vec::new();
        let mut default = |name: &str, check: Result<Check, String>| match check {
            Ok(check) => drop(rules.insert(name.to_owned(), check)),
            // Ours, and tested to parse.
            Err(why) => wrong.push(Problem {
                place: Place::Default,
                message: format!("rule \"{name}\": {why}"),
            }),
        };
        for base in BASE {
            let check = parse::rule(base.check).and_then(|check| match base.deprecated {
                Some(deprecated) => {
                    with_deprecated(base.name, check, deprecated, &files, choices.enforce_new_defaults)
                }
                None => Ok(check),
            });
            default(base.name, check);
        }
        for rule in Rule::ALL {
            default(rule.name(), parse::rule(rule.default_check()));
        }
        let mut places = BTreeMap::new();
        for (name, entry) in files {
            places.insert(name.clone(), entry.place);
            rules.insert(name, entry.check);
        }
        let set = Self {
            rules,
            default_rule: choices.default_rule.clone(),
            enforce_scope: choices.enforce_scope,
            files: places,
        };
        wrong.extend(set.endless());
        if !wrong.is_empty() {
            return Err(wrong);
        }
        warnings.extend(set.doubtful());
        Ok((set, warnings))
    }

    /// The rules as they are without any file.
    pub fn defaults() -> Self {
        match Self::build(Vec::new(), &Choices::default()) {
            Ok((set, _)) => set,
            // The defaults do build, by a test; should they not, nobody may do anything.
            Err(_) => Self {
                rules: HashMap::new(),
                default_rule: String::new(),
                enforce_scope: true,
                files: BTreeMap::new(),
            },
        }
    }

    /// Whether the caller passes `rule`.
    pub fn allows(&self, rule: Rule, caller: &RequestContext, target: &Target<'_>) -> bool {
        self.in_scope(rule, caller) && self.passes(rule.name(), caller, target)
    }

    /// Whether the caller passes the rule of this name, whatever the caller's scope.
    pub fn passes(&self, name: &str, caller: &RequestContext, target: &Target<'_>) -> bool {
        self.find(name)
            .is_some_and(|check| check.holds(caller, target, self))
    }

    /// Whether there is a rule of this name, in the defaults or in a file.
    pub fn is_defined(&self, name: &str) -> bool {
        self.rules.contains_key(name)
    }

    /// Writes into the context whether the caller is an administrator, judged by everything but what the context says
    /// about that.
    pub fn judge(&self, caller: &mut RequestContext) {
        caller.set("is_admin", Value::Null);
        let is_admin = self.passes(CONTEXT_IS_ADMIN, caller, &Target::Nothing);
        caller.set("is_admin", Value::Bool(is_admin));
    }

    /// The check of a rule, for people.
    pub fn shown(&self, name: &str) -> Option<String> {
        self.rules.get(name).map(ToString::to_string)
    }

    /// The rules that files set, and where.
    pub fn from_files(&self) -> &BTreeMap<String, Place> {
        &self.files
    }

    fn in_scope(&self, rule: Rule, caller: &RequestContext) -> bool {
        if !self.enforce_scope || rule.scopes().is_empty() {
            return true;
        }
        let has = |key: &str| {
            caller
                .get(key)
                .is_some_and(|value| !value.is_null() && *value != Value::String(String::new()))
        };
        let scope = if has("system_scope") {
            "system"
        } else if has("domain_id") {
            "domain"
        } else {
            "project"
        };
        rule.scopes().contains(&scope)
    }

    /// References that do not end, or go on for too long.
    fn endless(&self) -> Vec<Problem> {
        let mut known = HashMap::new();
        let mut names: Vec<&str> = self.rules.keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut problems = Vec::new();
        for name in names {
            if let Err(path) = self.length(name, &mut Vec::new(), &mut known) {
                let in_file = path.iter().find_map(|name| self.files.get(*name));
                problems.push(Problem {
                    place: in_file.cloned().unwrap_or(Place::Default),
                    message: format!(
                        "rule \"{name}\" refers to itself, or to more than {LONGEST} rules in a row: {}",
                        path.join(" → ")
                    ),
                });
                // One cycle is met from each of its rules.
                break;
            }
        }
        problems
    }

    /// How many references follow each other from a rule; else the way on which they do not end.
    fn length<'s>(
        &'s self,
        name: &'s str,
        path: &mut Vec<&'s str>,
        known: &mut HashMap<&'s str, usize>,
    ) -> Result<usize, Vec<&'s str>> {
        let name = match self.rules.get_key_value(name) {
            Some((name, _)) => name.as_str(),
            None => self.default_rule.as_str(),
        };
        if let Some(length) = known.get(name) {
            return if path.len() + length > LONGEST {
                Err(path.clone())
            } else {
                Ok(*length)
            };
        }
        let Some(check) = self.rules.get(name) else {
            return Ok(0);
        };
        let is_met_again = path.contains(&name);
        path.push(name);
        if is_met_again || path.len() > LONGEST {
            return Err(path.clone());
        }
        let mut longest = 0;
        for next in check.references() {
            longest = longest.max(1 + self.length(next, path, known)?);
        }
        path.pop();
        known.insert(name, longest);
        Ok(longest)
    }

    /// What is probably a mistake: names that nothing asks for, and references to what is not there.
    fn doubtful(&self) -> Vec<Problem> {
        let mut warnings = Vec::new();
        let referred: Vec<&str> = self.rules.values().flat_map(Check::references).collect();
        for (name, place) in &self.files {
            let is_ours = BASE.iter().any(|base| base.name == name)
                || Rule::ALL.iter().any(|rule| rule.name() == name)
                || BASE
                    .iter()
                    .any(|base| base.deprecated.is_some_and(|was| was.name == name));
            if !is_ours && !referred.contains(&name.as_str()) && *name != self.default_rule {
                warnings.push(Problem {
                    place: place.clone(),
                    message: format!(
                        "rule \"{name}\" is unknown, and no other rule refers to it: it has no effect \
                         unless a driver's manifest names it"
                    ),
                });
            }
            for missing in self
                .rules
                .get(name)
                .iter()
                .flat_map(|check| check.references())
                .filter(|reference| !self.rules.contains_key(*reference))
            {
                let instead = if self.rules.contains_key(&self.default_rule) {
                    format!("\"{}\" holds instead", self.default_rule)
                } else {
                    "that check never passes".to_owned()
                };
                warnings.push(Problem {
                    place: place.clone(),
                    message: format!(
                        "rule \"{name}\" refers to \"{missing}\", which does not exist: {instead}"
                    ),
                });
            }
        }
        warnings
    }
}

/// A default together with what it was before.
///
/// As in oslo.policy: a file that sets the *old* name to something of its own decides, unless it sets the new one too;
/// otherwise the old check holds besides, while new defaults are not enforced.
fn with_deprecated(
    name: &str,
    check: Check,
    deprecated: Deprecated,
    files: &BTreeMap<String, Entry>,
    enforce_new_defaults: bool,
) -> Result<Check, String> {
    let old = parse::rule(deprecated.check)?;
    if let Some(entry) = files.get(deprecated.name)
        && entry.check != old
        && entry.check != Check::Rule(name.to_owned())
    {
        return Ok(entry.check.clone());
    }
    if enforce_new_defaults {
        return Ok(check);
    }
    Ok(Check::Any(vec![check, old]))
}

#[cfg(test)]
mod tests;
