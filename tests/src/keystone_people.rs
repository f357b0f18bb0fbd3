//! People and projects of a test's own in the real Keystone, and their tokens of every scope.

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use magnum_common::clock::utc_now;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::openstack::{OpenStack, PASSWORD, Session, client_of_all_tests};

/// A user of one project.
#[derive(Debug, Clone)]
pub struct Person {
    /// Name of the user.
    pub name: String,
    /// Id of the user.
    pub id: String,
    /// Name of the project.
    pub project: String,
    /// Id of the project.
    pub project_id: String,
}

/// A domain with its administrator, whose password is everybody's.
#[derive(Debug, Clone)]
pub struct Domain {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Name of the user, of this domain, who administrates it.
    pub admin: String,
}

/// Keystone with its administrator.
#[derive(Debug, Clone)]
pub struct People {
    url: String,
    admin: Session,
    client: reqwest::Client,
}

impl People {
    /// Of the Keystone that all tests share.
    pub async fn of(openstack: &OpenStack) -> Result<Self> {
        Ok(Self {
            url: openstack.keystone_url(),
            admin: openstack.log_in("admin", "admin").await?,
            client: client_of_all_tests()?,
        })
    }

    /// Asks Keystone as its administrator.
    pub async fn administrate(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        self.admin.keystone(method, path, body).await
    }

    /// The administrator's token.
    pub fn admin_token(&self) -> &str {
        self.admin.token()
    }

    /// A new project; its id.
    pub async fn project(&self, name: &str) -> Result<String> {
        let made = json!({"project": {"name": name, "domain_id": "default"}});
        let made = self.administrate(Method::POST, "/projects", made).await?;
        id(&made["project"])
    }

    /// A new user of a domain, who may do nothing yet; its id.
    async fn user(&self, name: &str, domain: &str) -> Result<String> {
        let made = json!({"user": {"name": name, "password": PASSWORD, "domain_id": domain}});
        id(&self.administrate(Method::POST, "/users", made).await?["user"])
    }

    /// A new user with these roles in a new project of its own.
    pub async fn person(&self, roles: &[&str]) -> Result<Person> {
        let project = unique("project");
        let project_id = self.project(&project).await?;
        self.member_of(&project, &project_id, roles).await
    }

    /// A new user with these roles in a project.
    pub async fn member_of(&self, project: &str, project_id: &str, roles: &[&str]) -> Result<Person> {
        let name = unique("user");
        let person = Person {
            id: self.user(&name, "default").await?,
            name,
            project: project.to_owned(),
            project_id: project_id.to_owned(),
        };
        for role in roles {
            self.grant(&person, &format!("projects/{project_id}"), role)
                .await?;
        }
        Ok(person)
    }

    /// Gives a role: `place` is `projects/ID`, `domains/ID` or `system`.
    pub async fn grant(&self, person: &Person, place: &str, role: &str) -> Result<()> {
        self.grant_to(&person.id, place, role).await
    }

    async fn grant_to(&self, user: &str, place: &str, role: &str) -> Result<()> {
        let found = self
            .administrate(Method::GET, &format!("/roles?name={role}"), Value::Null)
            .await?;
        let id = id(&found["roles"][0]).with_context(|| format!("no role {role}"))?;
        let path = format!("/{place}/users/{user}/roles/{id}");
        self.administrate(Method::PUT, &path, Value::Null).await?;
        Ok(())
    }

    /// A token for the person's project.
    pub async fn token(&self, person: &Person) -> Result<String> {
        self.token_for(person, json!({"project": {"id": person.project_id}}))
            .await
    }

    /// A token for another scope; null for none at all.
    pub async fn token_for(&self, person: &Person, scope: Value) -> Result<String> {
        let user = json!({"id": person.id, "password": PASSWORD});
        let mut auth = json!({"identity": {"methods": ["password"], "password": {"user": user}}});
        auth["scope"] = if scope.is_null() { json!("unscoped") } else { scope };
        self.log_in(auth).await
    }

    /// A token of an application credential that the person makes with these attributes.
    pub async fn token_of_application(&self, person: &Person, attributes: Value) -> Result<String> {
        let session = self.token(person).await?;
        self.token_of(person, attributes, &session).await
    }

    async fn token_of(&self, person: &Person, attributes: Value, session: &str) -> Result<String> {
        let mut made = attributes;
        made["name"] = json!(unique("application"));
        let answer = self
            .client
            .post(format!(
                "{}/users/{}/application_credentials",
                self.url, person.id
            ))
            .header("X-Auth-Token", session)
            .json(&json!({ "application_credential": made }))
            .send()
            .await?;
        let (status, made): (_, Value) = (answer.status(), answer.json().await?);
        ensure!(status.is_success(), "{status} {made}");
        let made = &made["application_credential"];
        let credential = json!({"id": made["id"], "secret": made["secret"]});
        self.log_in(json!({"identity": {
            "methods": ["application_credential"], "application_credential": credential}}))
            .await
    }

    /// A token that ends after some seconds, enough for a few requests on a busy machine.
    pub async fn short_token(&self, person: &Person) -> Result<String> {
        let session = self.token(person).await?;
        let ends = utc_now() + TimeDelta::seconds(12);
        let ends = json!({"expires_at": ends.format("%Y-%m-%dT%H:%M:%S.%6f").to_string()});
        self.token_of(person, ends, &session).await
    }

    async fn log_in(&self, auth: Value) -> Result<String> {
        let url = format!("{}/auth/tokens", self.url);
        let answer = self
            .client
            .post(url)
            .json(&json!({ "auth": auth }))
            .send()
            .await?;
        ensure!(
            answer.status().is_success(),
            "{} {}",
            answer.status(),
            answer.text().await?
        );
        let token = answer.headers().get("X-Subject-Token").context("a token")?;
        Ok(token.to_str()?.to_owned())
    }

    /// A service in the catalog, unless there is one of this type, with one endpoint.
    pub async fn service(&self, kind: &str, name: &str) -> Result<()> {
        // Tests that look at the same time would each make one.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
        let _alone = ONE_AT_A_TIME.lock().await;
        let found = self
            .administrate(Method::GET, &format!("/services?type={kind}"), Value::Null)
            .await?;
        if found["services"][0].is_object() {
            return Ok(());
        }
        let made = json!({"service": {"type": kind, "name": name}});
        let made = self.administrate(Method::POST, "/services", made).await?;
        let endpoint = json!({"endpoint": {
            "service_id": made["service"]["id"], "interface": "public", "url": "http://127.0.0.1:9/v1"}});
        self.administrate(Method::POST, "/endpoints", endpoint).await?;
        Ok(())
    }

    /// A service that acts by itself: its user in the project `service`, and its endpoint in the catalog.
    pub async fn acting_service(&self, name: &str, kind: &str, region: &str, url: &str) -> Result<()> {
        let projects = self
            .administrate(Method::GET, "/projects?name=service", Value::Null)
            .await?;
        let project = id(&projects["projects"][0])?;
        let user = self.user(name, "default").await?;
        for role in ["admin", "service"] {
            self.grant_to(&user, &format!("projects/{project}"), role).await?;
        }
        let made = json!({"service": {"type": kind, "name": name}});
        let made = self.administrate(Method::POST, "/services", made).await?;
        for interface in ["public", "internal"] {
            let endpoint = json!({"endpoint": {
                "service_id": made["service"]["id"], "interface": interface, "region_id": region, "url": url}});
            self.administrate(Method::POST, "/endpoints", endpoint).await?;
        }
        Ok(())
    }

    /// A new domain and a user who administrates it.
    pub async fn domain(&self, name: &str, admin: &str) -> Result<Domain> {
        let made = json!({"domain": {"name": name}});
        let domain = id(&self.administrate(Method::POST, "/domains", made).await?["domain"])?;
        let admin_id = self.user(admin, &domain).await?;
        self.grant_to(&admin_id, &format!("domains/{domain}"), "admin")
            .await?;
        Ok(Domain {
            id: domain,
            name: name.to_owned(),
            admin: admin.to_owned(),
        })
    }

    /// A role of this name.
    pub async fn role(&self, name: &str) -> Result<()> {
        let made = json!({"role": {"name": name}});
        self.administrate(Method::POST, "/roles", made).await.map(drop)
    }

    /// A trust: a new user of `domain` may act for the person with these roles. Returns that user's token for it.
    pub async fn trustee_token(&self, person: &Person, domain: &Domain, roles: &[&str]) -> Result<String> {
        let trustee = self.user(&unique("trustee"), &domain.id).await?;
        let named: Vec<Value> = roles.iter().map(|role| json!({"name": role})).collect();
        let trust = json!({"trust": {
            "trustor_user_id": person.id, "trustee_user_id": trustee, "project_id": person.project_id,
            "impersonation": true, "allow_redelegation": false, "roles": named}});
        let answer = self
            .client
            .post(format!("{}/OS-TRUST/trusts", self.url))
            .header("X-Auth-Token", self.token(person).await?)
            .json(&trust)
            .send()
            .await?;
        let (status, made): (_, Value) = (answer.status(), answer.json().await?);
        ensure!(status.is_success(), "{status} {made}");
        let user = json!({"id": trustee, "password": PASSWORD});
        self.log_in(json!({
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"OS-TRUST:trust": {"id": made["trust"]["id"]}}}))
            .await
    }

    /// Takes a token back.
    pub async fn revoke(&self, token: &str) -> Result<()> {
        let answer = self
            .client
            .delete(format!("{}/auth/tokens", self.url))
            .header("X-Auth-Token", self.admin_token())
            .header("X-Subject-Token", token)
            .send()
            .await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        Ok(())
    }
}

/// The id of what a service answers.
pub(crate) fn id(made: &Value) -> Result<String> {
    let id = made["id"].as_str().map(str::to_owned);
    id.with_context(|| format!("no id in {made}"))
}

/// A name that nobody has.
pub fn unique(kind: &str) -> String {
    format!("{kind}-{}", uuid::Uuid::new_v4().simple())
}
