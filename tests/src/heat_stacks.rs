//! The stacks of one project, as a client of [`crate::heat::Heat`] sees them with one token.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::openstack::Session;
use crate::wait;

/// The stacks that a token shows.
#[derive(Debug, Clone)]
pub struct Stacks {
    url: String,
    session: Session,
}

/// One stack.
#[derive(Debug, Clone, Deserialize)]
pub struct Stack {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(rename = "stack_name")]
    pub name: String,
    /// What is, or was, done to it and how that went, such as `CREATE_COMPLETE`.
    #[serde(rename = "stack_status")]
    pub status: String,
    /// Why.
    #[serde(rename = "stack_status_reason")]
    pub reason: Option<String>,
    /// When it was changed last, if it was.
    #[serde(rename = "updated_time")]
    pub updated: Option<String>,
    /// Its parameters, all of them texts. A list of stacks has none.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Its outputs as Heat lists them. A list of stacks has none.
    #[serde(default)]
    pub outputs: Vec<Value>,
}

impl Stack {
    /// The value of an output; an error when it has none of this name.
    pub fn output(&self, name: &str) -> Result<&Value> {
        let output = self.outputs.iter().find(|output| output["output_key"] == name);
        let output = output.with_context(|| format!("no output {name} in {:?}", self.outputs))?;
        Ok(&output["output_value"])
    }
}

impl Stacks {
    pub(crate) fn new(url: String, session: Session) -> Self {
        Self { url, session }
    }

    /// All of them that are not deleted, without those nested in others.
    pub async fn list(&self) -> Result<Vec<Stack>> {
        let found = self.ask(Method::GET, "/stacks", Value::Null).await?;
        let mut stacks: Vec<Stack> = serde_json::from_value(found["stacks"].clone())?;
        // Heat writes this status first and hides the stack in a second transaction.
        stacks.retain(|stack| stack.status != "DELETE_COMPLETE");
        Ok(stacks)
    }

    /// One of them by its id, which shows it also after its deletion.
    pub async fn show(&self, id: &str) -> Result<Stack> {
        let found = self
            .ask(Method::GET, &format!("/stacks/{id}"), Value::Null)
            .await?;
        serde_json::from_value(found["stack"].clone()).with_context(|| format!("{found}"))
    }

    /// What one of them was made of: its `template`, `files` or `environment`.
    pub async fn part(&self, stack: &Stack, part: &str) -> Result<Value> {
        let path = format!("{}/{part}", path(stack));
        self.ask(Method::GET, &path, Value::Null).await
    }

    /// What an operation waits for: each of them, and its resources that are not complete, nested ones too, a line each.
    pub async fn unfinished(&self) -> Result<String> {
        let mut lines = String::new();
        for stack in self.list().await? {
            lines += &format!("{}: {} ({:?})\n", stack.name, stack.status, stack.reason);
            let path = format!("{}/resources?nested_depth=5", path(&stack));
            let found = self.ask(Method::GET, &path, Value::Null).await?;
            for one in found["resources"].as_array().context("a list of resources")? {
                let [name, status, reason, since] = [
                    "resource_name",
                    "resource_status",
                    "resource_status_reason",
                    "updated_time",
                ]
                .map(|field| one[field].as_str().unwrap_or_default());
                if !status.ends_with("_COMPLETE") {
                    lines += &format!("  {name}: {status} since {since} ({reason})\n");
                }
            }
        }
        Ok(lines)
    }

    /// Asks for a new one; its id.
    pub async fn create(&self, name: &str, template: &Value, parameters: &Value) -> Result<String> {
        let body = json!({
            "stack_name": name, "template": template, "parameters": parameters, "timeout_mins": 10});
        let made = self.ask(Method::POST, "/stacks", body).await?;
        crate::keystone_people::id(&made["stack"])
    }

    /// Asks for other values of some parameters; the rest stays.
    pub async fn update(&self, stack: &Stack, parameters: &Value) -> Result<()> {
        let body = json!({ "parameters": parameters });
        self.ask(Method::PATCH, &path(stack), body).await.map(drop)
    }

    /// Asks for its deletion.
    pub async fn delete(&self, stack: &Stack) -> Result<()> {
        self.ask(Method::DELETE, &path(stack), Value::Null)
            .await
            .map(drop)
    }

    /// Waits until a stack has this status; an error as soon as it has failed instead.
    pub async fn wait_status(&self, id: &str, status: &str, within: Duration) -> Result<Stack> {
        let stack = wait::until(&format!("stack {id} to be {status}"), within, async || {
            let stack = self.show(id).await?;
            let is_over = stack.status == status || stack.status.ends_with("_FAILED");
            ensure!(is_over, "{}: {:?}", stack.status, stack.reason);
            Ok(stack)
        })
        .await?;
        ensure!(stack.status == status, "{}: {:?}", stack.status, stack.reason);
        Ok(stack)
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        self.session
            .ask(method, format!("{}{path}", self.url), body)
            .await
    }
}

/// By name and id: asked by one of them, Heat redirects, and what follows a redirect is always a GET.
fn path(stack: &Stack) -> String {
    format!("/stacks/{}/{}", stack.name, stack.id)
}
