//! The objects RPC against the real thing: Magnum's own classes read and write a database directly, and through our
//! conductor, and neither they nor the rows can tell the difference.
//!
//! | module | proves |
//! |---|---|
//! | `methods` | no remotable method of Magnum's is missing, and each takes the same arguments |
//! | `reading` | every class method that reads, by position and by name, seen by everybody who may ask |
//! | `writing` | every method that writes: what the object becomes, what the row becomes, what is refused |
//! | `messages` | recorded frames, older method names, versions, and what no well-behaved caller sends |
//! | `sealed` | private keys that are sealed in the database are of use to Magnum's classes all the same |
//! | `cluster_objects` | what a driver's call may do with the rows of its cluster |
//! | `scope` | what is answered where `[conductor] objects_rpc` allows less than everything |
//! | `once` | a message that comes twice is carried out once; a database that is away |

#![expect(clippy::needless_pass_by_value, reason = "callers write JSON on the spot")]

mod cluster_objects;
mod messages;
mod methods;
mod once;
mod reading;
mod scope;
mod sealed;
mod writing;

use anyhow::{Context as _, Result};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::{OsloPeer, Raised};
use magnum_tests::process::Program;
use serde_json::{Value, json};

const NORTH: &str = "11111111111111111111111111111111";
const SOUTH: &str = "22222222222222222222222222222222";

/// A database, a conductor of ours, and Magnum's classes on both.
struct World {
    deployment: Deployment,
    python: OsloPeer,
    conductor: Program,
}

impl World {
    async fn on(backend: Backend) -> Result<Self> {
        let mut deployment = Deployment::new(backend).await?;
        // One heartbeat, at the start: tests look at the services' table.
        deployment.set("conductor", "service_report_interval", 3600);
        deployment.set("conductor", "objects_rpc", "all");
        let conductor = deployment.conductor("one").await?;
        let config = deployment.config_file("peer")?.display().to_string();
        let python = OsloPeer::start("magnum_objects.py", &[&config]).await?;
        Ok(Self {
            deployment,
            python,
            conductor,
        })
    }

    /// A request to the Python side that must not fail.
    async fn python(&mut self, request: Value) -> Result<Value> {
        let shown = request.to_string();
        self.python.ask(request).await?.with_context(|| shown)
    }

    /// What comes of a request, an exception included.
    async fn outcome(&mut self, request: Value) -> Result<Outcome> {
        Ok(Outcome::from(self.python.ask(request).await?))
    }

    /// Every row of Magnum's tables goes, but for the conductor's own.
    async fn clear(&self) -> Result<()> {
        self.deployment
            .database
            .execute(
                "DELETE FROM cluster; DELETE FROM cluster_template; DELETE FROM nodegroup; DELETE FROM x509keypair; \
                 DELETE FROM quotas; DELETE FROM federation; DELETE FROM magnum_service WHERE host <> 'one'",
            )
            .await
    }
}

/// A result, or an exception by class and text.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Returned(Value),
    Raised(String, String),
}

impl From<Result<Value, Raised>> for Outcome {
    fn from(result: Result<Value, Raised>) -> Self {
        match result {
            Ok(value) => Self::Returned(value),
            // A caller's text ends with the traceback, of which ours is empty.
            Err(raised) => Self::Raised(
                format!("{}.{}", raised.module, raised.class),
                raised.message.trim_end().to_owned(),
            ),
        }
    }
}

fn member(project: &str) -> Value {
    let user = format!("user-of-{}", &project[..1]);
    json!({"project_id": project, "user_id": user, "roles": ["member"], "is_admin": false})
}

fn admin(all_tenants: bool) -> Value {
    json!({"project_id": NORTH, "user_id": "chief", "roles": ["admin"], "is_admin": true, "all_tenants": all_tenants})
}

/// Takes out what differs from run to run: row numbers, times, and uuids that nobody chose.
fn settled(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(settled).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(name, value)| {
                let value = match name.as_str() {
                    "id" if value.is_number() => json!("a number"),
                    "created_at" | "updated_at" | "last_seen_up" if value.is_string() => json!("a time"),
                    // Whether two writes fall into the same second is chance, and an object that was made
                    // directly has fractions of one until it is read.
                    "magnum_object.changes" | "changed" => {
                        let names = value.as_array().into_iter().flatten();
                        let is_time = |name: &&Value| **name == "updated_at" || **name == "created_at";
                        names.filter(|name| !is_time(name)).cloned().collect()
                    }
                    _ => settled(value),
                };
                (name.clone(), value)
            })
            .collect(),
        Value::String(text) if uuid::Uuid::try_parse(text).is_ok_and(|uuid| uuid.get_version_num() == 4) => {
            json!("a random uuid")
        }
        other => other.clone(),
    }
}

/// Uuids that tests choose: not of the random kind, so that they stay visible in what is compared.
fn chosen(kind: u8, number: u8) -> String {
    format!("{kind:08x}-0000-1000-8000-{number:012x}")
}

/// Where two values differ, one line each.
fn differences(ours: &Value, theirs: &Value) -> String {
    fn collect(place: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
        match (ours, theirs) {
            (Value::Object(one), Value::Object(other)) => {
                for name in one
                    .keys()
                    .chain(other.keys().filter(|name| !one.contains_key(*name)))
                {
                    let place = format!("{place}/{name}");
                    collect(&place, &ours[name], &theirs[name], found);
                }
            }
            (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
                for (index, (one, other)) in one.iter().zip(other).enumerate() {
                    collect(&format!("{place}/{index}"), one, other, found);
                }
            }
            _ if ours == theirs => {}
            _ => found.push(format!("{place}: ours {ours}, Magnum's {theirs}")),
        }
    }
    let mut found = Vec::new();
    collect("", ours, theirs, &mut found);
    found.join("\n")
}
