//! Who may do what: oslo.policy's rules with Magnum's names and defaults, and operators' policy files.
//!
//! | module | topic |
//! |---|---|
//! | [`defaults`] | every rule, its default, and the requests that it decides |
//! | [`check`], [`parse`] | the check language |
//! | [`mod@file`], [`rules`] | a policy file's text; defaults and files together |
//! | [`source`] | where the files lie, and reading them again |
//! | [`target`] | what a rule is asked about |
//! | [`sample`] | the commented sample file |
//!
//! Asking is a walk through a small tree in memory: no I/O, no waiting, no failure but "no". What differs from
//! oslo.policy stands in `docs/differences.md`; why this is not a crate, in
//! `docs/adr/0005-policy-rules-by-our-own-engine.md`.

pub mod check;
pub mod defaults;
pub mod file;
pub mod parse;
pub mod rules;
pub mod sample;
pub mod source;
pub mod target;

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};

pub use defaults::{Asks, Rule};
pub use rules::RuleSet;
pub use source::{Policy, PolicyErrors, Source};
pub use target::{Resource, Target};

impl RuleSet {
    /// The refusal is `PolicyNotAuthorized`, 403, and names the rule.
    ///
    /// # Errors
    /// That refusal.
    pub fn authorize(&self, rule: Rule, caller: &RequestContext, target: &Target<'_>) -> Result<(), Fault> {
        if self.allows(rule, caller, target) {
            return Ok(());
        }
        Err(refused(rule.name()))
    }

    /// The same for a rule that a driver's manifest names: any that our defaults or a policy file define. One that
    /// nobody defines is not passed, whatever `[oslo_policy] policy_default_rule` says: a misspelt name must not open
    /// what a driver offers.
    ///
    /// # Errors
    /// That refusal.
    pub fn authorize_named(
        &self,
        name: &str,
        caller: &RequestContext,
        target: &Target<'_>,
    ) -> Result<(), Fault> {
        let known = Rule::ALL.iter().find(|rule| rule.name() == name);
        let is_allowed = match known {
            Some(rule) => self.allows(*rule, caller, target),
            None if self.is_defined(name) => self.passes(name, caller, target),
            None => {
                tracing::warn!(
                    rule = name,
                    "a driver's manifest names a policy rule that nobody defines: refused"
                );
                false
            }
        };
        if is_allowed { Ok(()) } else { Err(refused(name)) }
    }
}

fn refused(rule: &str) -> Fault {
    Fault::new(
        Exception::PolicyNotAuthorized,
        format!("Policy doesn't allow {rule} to be performed."),
    )
}
