//! What rules decide; the comparison with the real oslo.policy is among the integration tests.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use magnum_common::context::Caller;
use magnum_common::ids::RequestId;
use magnum_common::model::Cluster;
use serde_json::{Map, json};

use super::*;
use crate::policy::file;

fn context(roles: &[&str]) -> RequestContext {
    let caller = Caller {
        project_id: Some("p".into()),
        user_id: Some("u".into()),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        ..Caller::default()
    };
    admitted(
        &RuleSet::defaults(),
        &RequestContext::for_caller(&caller, &RequestId::random()),
    )
}

fn admitted(rules: &RuleSet, context: &RequestContext) -> RequestContext {
    let mut context = context.clone();
    rules.judge(&mut context);
    context
}

fn of(project: &str, user: &str) -> Map<String, Value> {
    let Value::Object(values) = json!({"project_id": project, "user_id": user}) else {
        unreachable!()
    };
    values
}

fn built(text: &str, choices: &Choices) -> Result<(RuleSet, Vec<Problem>), Vec<Problem>> {
    let entries = file::read(&Arc::new(PathBuf::from("policy.yaml")), text).unwrap();
    RuleSet::build(entries, choices)
}

fn with(text: &str) -> RuleSet {
    built(text, &Choices::default()).unwrap().0
}

#[test]
fn the_defaults_build_without_a_warning() {
    let (rules, warnings) = RuleSet::build(Vec::new(), &Choices::default()).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(rules.allows(Rule::ServiceGetAll, &context(&["admin"]), &Target::Nothing));
}

#[test]
fn a_reader_reads_and_a_member_writes_only_in_their_own_project() {
    let rules = RuleSet::defaults();
    let (own, other) = (of("p", "x"), of("q", "u"));
    let (own, other) = (Target::Values(&own), Target::Values(&other));
    let reader = context(&["reader"]);
    assert!(rules.allows(Rule::ClusterGet, &reader, &own));
    assert!(!rules.allows(Rule::ClusterGet, &reader, &other));
    assert!(!rules.allows(Rule::ClusterCreate, &reader, &own));
    let member = context(&["Member"]);
    assert!(rules.allows(Rule::ClusterCreate, &member, &own));
    assert!(!rules.allows(Rule::ClusterDelete, &member, &other));
    assert!(
        !rules.allows(Rule::ClusterGet, &member, &own),
        "member does not imply reader here"
    );
}

#[test]
fn certificates_are_for_the_owner_of_the_cluster_and_administrators() {
    let rules = RuleSet::defaults();
    let mut cluster = Cluster::new("c".into(), "t".into());
    cluster.project_id = Some("p".into());
    cluster.user_id = Some("u".into());
    for rule in [Rule::CertificateGet, Rule::CertificateCreate] {
        let mine = context(&["member", "reader"]);
        assert!(rules.allows(rule, &mine, &Target::of(&cluster)));
        let mut colleague = mine.clone();
        colleague.set("user_id", "colleague".into());
        assert!(!rules.allows(rule, &colleague, &Target::of(&cluster)));
        assert!(rules.allows(rule, &context(&["admin"]), &Target::of(&cluster)));
    }
}

#[test]
fn a_credential_is_rotated_by_members_whether_administrators_or_not() {
    let rules = RuleSet::defaults();
    let (member, admin) = (context(&["member"]), context(&["admin"]));
    assert!(rules.allows(Rule::CredentialRotate, &member, &Target::own(&member)));
    assert!(!rules.allows(Rule::CredentialRotate, &admin, &Target::own(&admin)));
}

#[test]
fn caller_without_project_does_not_own_a_resource_without_owner() {
    let rules = RuleSet::defaults();
    let mut nobody = context(&["reader", "member"]);
    nobody.set("project_id", Value::Null);
    nobody.set("project", Value::Null);
    assert!(!rules.allows(Rule::ClusterGetAll, &nobody, &Target::own(&nobody)));
    let cluster = Cluster::new("c".into(), "t".into());
    assert!(!rules.allows(Rule::ClusterGet, &nobody, &Target::of(&cluster)));
}

#[test]
fn a_rule_sees_every_attribute_of_a_resource_and_of_the_caller() {
    let rules = with(
        "a: \"'demo':%(name)s\"\nb: user_id:%(user_id)s and roles:member\nc: auth_token_info.token.user.id:%(user_id)s\n\
         d: project_id:%(nope)s\n",
    );
    let mut cluster = Cluster::new("c".into(), "t".into());
    cluster.name = Some("demo".into());
    cluster.user_id = Some("u".into());
    let mut caller = context(&["member"]);
    caller.set("auth_token_info", json!({"token": {"user": {"id": "u"}}}));
    for (name, passes) in [("a", true), ("b", true), ("c", true), ("d", false)] {
        assert_eq!(
            rules.passes(name, &caller, &Target::of(&cluster)),
            passes,
            "{name}"
        );
    }
}

#[test]
fn the_refusal_names_the_rule() {
    let fault = RuleSet::defaults()
        .authorize(Rule::ServiceGetAll, &context(&["member"]), &Target::Nothing)
        .unwrap_err();
    assert_eq!(
        fault.message,
        "Policy doesn't allow magnum-service:get_all to be performed."
    );
    assert_eq!(fault.code(), 403);
}

#[test]
fn policy_file_defines_the_administrator() {
    let rules = with("context_is_admin: role:cloud_admin\n");
    assert!(admitted(&rules, &context(&["cloud_admin"])).is_admin());
    assert!(!admitted(&rules, &context(&["admin"])).is_admin());
    // What the context claims does not count.
    let rules = with("context_is_admin: is_admin:True\n");
    assert!(!admitted(&rules, &context(&["admin"])).is_admin());
}

#[test]
fn old_defaults_hold_besides_until_the_new_ones_are_enforced() {
    let old = Choices {
        enforce_new_defaults: false,
        ..Choices::default()
    };
    let caller = context(&["other"]);
    let own = of("p", "u");
    let passes = |rules: &RuleSet| rules.allows(Rule::ClusterGet, &caller, &Target::Values(&own));
    assert!(!passes(&with("{}")));
    assert!(passes(&built("{}", &old).unwrap().0));
    // A rule that a file sets is what the file says.
    let set = "admin_or_project_reader_deny_cluster_user: role:reader\n";
    assert!(!passes(&built(set, &old).unwrap().0));
    // The old name set to something of its own decides; to its default, it changes nothing.
    assert!(passes(&with("\"rule:admin_or_owner\": role:other\n")));
    assert!(!passes(&with(
        "\"rule:admin_or_owner\": is_admin:True or project_id:%(project_id)s\n"
    )));
}

#[test]
fn token_scope_is_enforced_unless_disabled() {
    let mut system = context(&["admin"]);
    system.set("system_scope", "all".into());
    let own = of("p", "u");
    let allows = |choices: &Choices, rule| {
        let (rules, _) = built("{}", choices).unwrap();
        rules.allows(rule, &system, &Target::Values(&own))
    };
    assert!(!allows(&Choices::default(), Rule::ClusterGet));
    assert!(allows(&Choices::default(), Rule::ServiceGetAll));
    let lenient = Choices {
        enforce_scope: false,
        ..Choices::default()
    };
    assert!(allows(&lenient, Rule::ClusterGet));
}

#[test]
fn missing_rule_is_refused_or_replaced_by_the_default_rule() {
    let caller = context(&[]);
    let passes = |rules: &RuleSet, name: &str| rules.passes(name, &caller, &Target::Nothing);
    let rules = with("a: rule:nope\n");
    assert!(!passes(&rules, "a") && !passes(&rules, "b"));
    let rules = with("a: rule:nope\ndefault: \"@\"\n");
    assert!(passes(&rules, "a") && passes(&rules, "b"));
}

#[test]
fn doubtful_rules_are_reported_with_their_line() {
    let (_, warnings) = built(
        "\"cluster:gett\": role:a\nmine: role:b\n\"cluster:get\": rule:mine or rule:nope\n\"cluster:get\": rule:mine\n\
         \"cluster:delete\": rule:nobody\n",
        &Choices::default(),
    )
    .unwrap();
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "policy.yaml:4: rule \"cluster:get\" takes the place of the one at policy.yaml:3",
            "policy.yaml:5: rule \"cluster:delete\" refers to \"nobody\", which does not exist: that check never passes",
            "policy.yaml:1: rule \"cluster:gett\" is unknown, and no other rule refers to it: it has no effect unless a driver's manifest names it",
        ]
    );
}

#[test]
fn rules_that_refer_to_themselves_are_refused_however_long_the_way() {
    for text in [
        "a: rule:a\n",
        "a: rule:b\nb: not rule:c\nc: role:x or rule:a\n",
        "project_member: rule:admin_or_project_member\n",
        "default: rule:nope\n",
    ] {
        let problems = built(text, &Choices::default()).unwrap_err();
        assert!(problems[0].message.contains("refers to itself"), "{text}");
        assert!(matches!(problems[0].place, Place::Line(..)), "{problems:?}");
    }
    let chain = |length: usize| {
        let links: String = (0..length)
            .map(|at| format!("r{at}: rule:r{}\n", at + 1))
            .collect();
        format!("{links}r{length}: \"@\"\n")
    };
    assert!(built(&chain(50), &Choices::default()).is_ok());
    assert!(built(&chain(5000), &Choices::default()).is_err());
}

#[test]
fn a_decision_takes_microseconds() {
    let rules = RuleSet::defaults();
    let caller = context(&["reader", "member"]);
    let mut cluster = Cluster::new("c".into(), "t".into());
    cluster.project_id = Some("p".into());
    let times = 10_000;
    let started = Instant::now();
    for _ in 0..times {
        assert!(rules.allows(Rule::ClusterGet, &caller, &Target::of(&cluster)));
    }
    let each = started.elapsed() / times;
    println!("{each:?} for each decision");
    // Unoptimised, on a machine that may be busy.
    assert!(each.as_micros() < 200, "{each:?}");
}
