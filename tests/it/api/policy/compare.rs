//! The same questions to the real oslo.policy with Magnum's own rules and to our engine: the same answers.
//!
//! One Python process answers all questions of a test (`tests/peers/magnum_policy.py`). What is compared: every rule,
//! for callers with different roles and scopes, for targets of different owners, under policy files as operators have
//! them; and random expressions of the check language, most of them no rule that anybody would write.
//!
//! Left out, because it differs on purpose: who has no project and asks about the own one (Python compares `None` with
//! `None`; see `docs/differences.md`).

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use magnum_api_shim::policy::rules::Choices;
use magnum_api_shim::policy::{Rule, RuleSet, Target, defaults, file, parse};
use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::RequestId;
use magnum_tests::oslo_peer::python;
use magnum_tests::process::Launch;
use magnum_tests::run_dir::run_dir;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

/// Asks the Python process and returns its answers.
async fn ask(questions: &[Value]) -> Result<Vec<Value>> {
    let folder = run_dir()?.folder("policy")?;
    let file = folder.join("questions");
    let lines: Vec<String> = questions.iter().map(ToString::to_string).collect();
    std::fs::write(&file, lines.join("\n"))?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/magnum_policy.py");
    let output = Launch::command("oslo-policy", Command::new(python()?))
        .args([script])
        .args([&file])
        .output()
        .await?;
    let answers: Vec<Value> = output
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    ensure!(answers.len() == questions.len(), "{output}");
    Ok(answers)
}

/// A policy file, and the options beside it.
struct Situation {
    policy: Option<&'static str>,
    new_defaults: bool,
    default_rule: &'static str,
}

const fn with(policy: &'static str) -> Situation {
    Situation {
        policy: Some(policy),
        new_defaults: true,
        default_rule: "default",
    }
}

const fn old(policy: Option<&'static str>) -> Situation {
    Situation {
        policy,
        new_defaults: false,
        default_rule: "default",
    }
}

const SITUATIONS: &[Situation] = &[
    Situation {
        policy: None,
        new_defaults: true,
        default_rule: "default",
    },
    old(None),
    with("context_is_admin: role:cloud_admin\n"),
    with("context_is_admin: role:admin and project_id:p1\n\"cluster:get\": is_admin:True\n"),
    // An observer and an operator beside the usual roles.
    with(
        "observer: role:observer\n\"cluster:get\": rule:project_reader or rule:observer\n\
         \"cluster:get_all\": rule:observer\n\"cluster:create\": role:magnum_user and project_id:%(project_id)s\n\
         \"clustertemplate:publish\": role:cloud_admin\n\"cluster:delete\": rule:context_is_admin and not role:observer\n",
    ),
    // JSON, the old form, and everybody and nobody.
    with(
        "{\"cluster:get\": [[\"role:reader\", \"project_id:%(project_id)s\"], [\"rule:context_is_admin\"]],\n\
         \"cluster:update\": \"@\", \"cluster:delete\": \"!\", \"cluster:resize\": \"\", \"cluster:detail\": [],\n\
         \"stats:get_all\": [[]], \"quota:get\": [\"role:OBSERVER\"]}",
    ),
    // Attributes of the caller and of the target.
    with(
        "\"cluster:get\": \"'prod':%(name)s or user_domain_id:default\"\n\"cluster:update\": True:%(public)s\n\
         \"cluster:delete\": 3:%(node_count)s\n\"cluster:upgrade\": None:%(stack_id)s\n\
         \"cluster:resize\": \"user_name:%(name)s-%(node_count)s\"\n\"certificate:get\": roles:reader\n\
         \"certificate:create\": auth_token_info.token.user.id:%(user_id)s\n\
         \"clustertemplate:get\": \"name:%(labels)s or auth_token_info.token.roles.name:member\"\n\
         \"clustertemplate:update\": all_tenants:False\n\"clustertemplate:delete\": nope:%(user_id)s or user_id:%(nope)s\n",
    ),
    // References to what does not exist, without and with a rule for that.
    with("\"cluster:get\": rule:nope\n"),
    with("\"cluster:get\": rule:nope\ndefault: role:observer\n"),
    Situation {
        policy: Some("\"cluster:get\": not rule:nope\nfallback: role:reader\n"),
        new_defaults: true,
        default_rule: "fallback",
    },
    // Base rules set anew: all that refers to them follows.
    with("project_member: role:magnum_user\nadmin_or_project_reader: role:observer\n"),
    old(Some(
        "admin_or_project_member_deny_cluster_user: role:cloud_admin\n",
    )),
    old(Some("\"rule:admin_or_owner\": role:observer\n")),
    with(
        "\"rule:admin_or_owner\": role:observer\n\"rule:admin_or_user\": rule:admin_or_project_reader_user\n",
    ),
];

fn callers() -> Vec<Value> {
    let token = json!({"token": {"user": {"id": "u1"}, "roles": [{"name": "member"}, {"name": "reader"}]}});
    let mut callers = Vec::new();
    for roles in [
        json!([]),
        json!(["reader"]),
        json!(["member"]),
        json!(["Member", "READER"]),
        json!(["admin"]),
        json!(["admin", "member", "reader"]),
        json!(["cloud_admin"]),
        json!(["observer", "magnum_user"]),
        json!(["service"]),
    ] {
        for (user, project) in [("u1", "p1"), ("u2", "p1"), ("u1", "p2")] {
            callers.push(json!({
                "user_id": user, "project_id": project, "roles": roles, "user_name": "prod-3",
                "user_domain_id": "default", "auth_token_info": token,
            }));
        }
    }
    // Of a system or a domain: without a project.
    callers.push(json!({"user_id": "u1", "project_id": null, "roles": ["admin", "member", "reader"]}));
    callers.push(json!({"user_id": "u1", "project_id": null, "roles": ["member", "reader"]}));
    callers
}

fn targets() -> Vec<Value> {
    vec![
        json!({"project_id": "p1", "user_id": "u1"}),
        json!({"project_id": "p2", "user_id": "u1"}),
        json!({
            "project_id": "p1", "user_id": "u2", "name": "prod", "node_count": 3, "public": true,
            "stack_id": null, "labels": {"a": 1},
        }),
        json!({"project_id": "p9", "user_id": "u9", "name": "x", "public": false, "node_count": 30}),
        json!({}),
    ]
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn context(rules: &RuleSet, given: &Value) -> Result<RequestContext> {
    let info = to_raw_value(&given["auth_token_info"])?.into();
    let text = |key: &str| given[key].as_str().map(str::to_owned);
    let caller = Caller {
        user_id: text("user_id"),
        user_name: text("user_name"),
        project_id: text("project_id"),
        user_domain_id: text("user_domain_id"),
        roles: given["roles"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        auth_token_info: Some(info),
        ..Caller::default()
    };
    let mut context = RequestContext::for_caller(&caller, &RequestId::random());
    rules.judge(&mut context);
    Ok(context)
}

fn rules_of(situation: &Situation) -> Result<RuleSet> {
    let path = Arc::new(PathBuf::from("policy.yaml"));
    let entries = file::read(&path, situation.policy.unwrap_or_default())
        .map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let choices = Choices {
        default_rule: situation.default_rule.to_owned(),
        enforce_new_defaults: situation.new_defaults,
        enforce_scope: true,
    };
    let (rules, _) = RuleSet::build(entries, &choices).map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    Ok(rules)
}

/// Magnum's rules: base rules, and those that we have in common.
fn names() -> Vec<&'static str> {
    let base = defaults::BASE.iter().map(|rule| rule.name);
    let of_calls = Rule::ALL.iter().filter(|rule| !rule.is_ours());
    base.chain(of_calls.map(|rule| rule.name())).collect()
}

#[tokio::test]
async fn every_decision_is_the_one_of_the_real_oslo_policy() -> Result<()> {
    let (names, callers, targets) = (names(), callers(), targets());
    let questions: Vec<Value> = SITUATIONS
        .iter()
        .flat_map(|situation| {
            [
                json!({
                    "policy": situation.policy, "new_defaults": situation.new_defaults,
                    "default_rule": situation.default_rule,
                }),
                json!({"rules": names, "callers": callers, "targets": targets}),
            ]
        })
        .collect();
    let answers = ask(&questions).await?;
    let mut compared = 0;
    let mut allowed = 0;
    let mut wrong = Vec::new();
    for (situation, answer) in SITUATIONS.iter().zip(answers.chunks(2)) {
        let rules = rules_of(situation)?;
        let mut theirs = answer[1].as_str().context("a text")?.bytes();
        for name in &names {
            for given in &callers {
                let caller = context(&rules, given)?;
                for target in &targets {
                    let theirs = theirs.next().context("an answer each")? == b'1';
                    let values = object(target);
                    let target = Target::Values(&values);
                    let ours = match Rule::ALL.iter().find(|rule| rule.name() == *name) {
                        Some(rule) => rules.allows(*rule, &caller, &target),
                        None => rules.passes(name, &caller, &target),
                    };
                    compared += 1;
                    allowed += usize::from(theirs);
                    if ours != theirs {
                        wrong.push(format!(
                            "{name}: ours {ours}, theirs {theirs}, {given}, {values:?}, {:?}",
                            situation.policy
                        ));
                    }
                }
            }
        }
    }
    println!("{compared} decisions, {allowed} of them allow");
    ensure!(compared > 50_000 && allowed > compared / 10 && allowed < compared * 9 / 10);
    ensure!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    Ok(())
}

#[tokio::test]
async fn the_rules_are_magnums_with_their_checks_and_scopes() -> Result<()> {
    let situation = json!({"policy": null, "new_defaults": true, "default_rule": "default"});
    let answers = ask(&[situation, json!({"names": true})]).await?;
    let theirs = answers[1].as_array().context("a list")?;
    let shown = |check: &str| parse::rule(check).map(|check| check.to_string());
    for rule in theirs {
        let name = rule[0].as_str().context("a name")?;
        let check = shown(rule[1].as_str().context("a check")?);
        let (ours, scopes) = match Rule::ALL.iter().find(|rule| rule.name() == name) {
            Some(rule) => (shown(rule.default_check()), rule.scopes()),
            None => {
                let base = defaults::BASE.iter().find(|base| base.name == name);
                (
                    shown(base.with_context(|| format!("{name} is missing"))?.check),
                    &[] as &[&str],
                )
            }
        };
        ensure!(ours == check, "{name}: {ours:?} instead of {check:?}");
        ensure!(
            json!(scopes) == rule[2],
            "{name}: scopes {scopes:?} instead of {}",
            rule[2]
        );
    }
    ensure!(
        theirs.len() == names().len(),
        "{} and {}",
        theirs.len(),
        names().len()
    );
    Ok(())
}

/// A random expression; now and then one that cannot be read.
fn expression(random: &mut StdRng, depth: usize) -> String {
    const CHECKS: &[&str] = &[
        "@",
        "!",
        "role:member",
        "role:ADMIN",
        "role:%(name)s",
        "rule:is_user",
        "rule:nope",
        "rule:context_is_admin",
        "project_id:%(project_id)s",
        "user_id:%(nope)s",
        "user_id:u1",
        "is_admin:True",
        "is_admin:False",
        "'prod':%(name)s",
        "\"prod\":%(name)s",
        "'x':%(name)s",
        "3:%(node_count)s",
        "True:%(public)s",
        "None:%(stack_id)s",
        "user_name:%(name)s-%(node_count)s",
        "roles:reader",
        "all_tenants:False",
        "auth_token_info.token.user.id:u1",
        "auth_token_info.token.roles.name:reader",
        "auth_token_info.nope.x:y",
        "user_name:100%%",
        "user_name:prod-3",
        "notary:x",
        "nothing:%(a)s",
        "or_else:x",
        "project_name:None",
        "-5:-5",
    ];
    const BROKEN: &[&str] = &[
        "member",
        "and",
        "or",
        "not",
        "(",
        ")",
        "user_id:%(x",
        "'a",
        "x:%",
        "1a:x",
        ":x",
        "a..b:c",
        "'a b':c",
        "'@'",
    ];
    if random.random_ratio(1, 60) {
        return (*BROKEN.choose(random).expect("not empty")).to_owned();
    }
    if depth == 0 || random.random_ratio(1, 4) {
        return (*CHECKS.choose(random).expect("not empty")).to_owned();
    }
    let mut one = || expression(random, depth - 1);
    let (first, second, third) = (one(), one(), one());
    match random.random_range(0..9) {
        0 => format!("not {first}"),
        1 => format!("NOT ({first})"),
        2 => format!("{first} and {second}"),
        3 => format!("{first} or {second} AND {third}"),
        4 => format!("({first})  Or\t{second}"),
        5 => format!("( {first} or {second} ) and {third}"),
        6 => format!("(({first} and {second}))\nor not {third}"),
        7 => format!("{first} and {second} or {third}"),
        _ => format!("{first} or {second} or {third}"),
    }
}

#[tokio::test]
async fn random_expressions_mean_the_same_to_both() -> Result<()> {
    const SEED: u64 = 0x0510_2026;
    let mut random = StdRng::seed_from_u64(SEED);
    let mut texts: Vec<String> = (0..4000).map(|at| expression(&mut random, at % 5)).collect();
    texts.sort_unstable();
    texts.dedup();
    let target = json!({
        "project_id": "p1", "user_id": "u1", "name": "prod", "node_count": 3, "public": true, "stack_id": null,
    });
    let caller = json!({
        "user_id": "u1", "project_id": "p1", "roles": ["member", "reader", "prod"], "user_name": "prod-3",
        "auth_token_info": {"token": {"user": {"id": "u1"}, "roles": [{"name": "member"}, {"name": "reader"}]}},
    });
    let situation = json!({"policy": null, "new_defaults": true, "default_rule": "default"});
    let answers = ask(&[
        situation,
        json!({"expressions": texts, "caller": caller, "target": target}),
    ])
    .await?;
    let theirs = answers[1].as_array().context("a list")?;
    let values = object(&target);
    let mut counts = [0; 3];
    let mut wrong = Vec::new();
    for (text, theirs) in texts.iter().zip(theirs) {
        let ours = match parse::rule(text) {
            Err(_) => "error",
            Ok(check) => {
                let place = magnum_config::Place::Default;
                let name = "asked".to_owned();
                let (rules, _) =
                    RuleSet::build(vec![file::Entry { name, check, place }], &Choices::default())
                        .map_err(|problems| anyhow::anyhow!("{text}: {problems:?}"))?;
                let caller = context(&rules, &caller)?;
                if rules.passes("asked", &caller, &Target::Values(&values)) {
                    "true"
                } else {
                    "false"
                }
            }
        };
        counts[["error", "false", "true"]
            .iter()
            .position(|word| *word == ours)
            .context("known")?] += 1;
        if *theirs != ours {
            wrong.push(format!("{text:?}: ours {ours}, theirs {theirs}"));
        }
    }
    println!(
        "{} expressions: errors, refusals, permissions {counts:?}",
        texts.len()
    );
    ensure!(counts.iter().all(|count| *count > 100), "{counts:?} say little");
    ensure!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    Ok(())
}
