//! A domain for users of clusters in the real Keystone, with its administrator: what `[trust]` asks for, and what is made
//! there.

use anyhow::Result;
use magnum_common::secret::Secret;
use magnum_config::Settings;
use reqwest::Method;
use serde_json::Value;

use crate::keystone_people::{Domain, People, Person, unique};
use crate::openstack::PASSWORD;

/// A domain of a test's own.
#[derive(Debug, Clone)]
pub struct TrusteeDomain {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    admin: String,
    people: People,
}

impl TrusteeDomain {
    /// A new domain, with nobody but its administrator in it.
    pub async fn new(people: &People) -> Result<Self> {
        let (name, admin) = (unique("domain"), unique("domain-admin"));
        Ok(Self::of(people, people.domain(&name, &admin).await?))
    }

    /// One that is there already.
    pub fn of(people: &People, domain: Domain) -> Self {
        Self {
            id: domain.id,
            name: domain.name,
            admin: domain.admin,
            people: people.clone(),
        }
    }

    /// Puts it into these settings.
    pub fn configure(&self, settings: &mut Settings) {
        let trust = &mut settings.trust;
        trust.trustee_domain_name = Some(self.name.clone());
        trust.trustee_domain_admin_name = Some(self.admin.clone());
        trust.trustee_domain_admin_password = Some(Secret::new(PASSWORD));
    }

    /// The same as options of a `magnum.conf`.
    pub fn options(&self) -> [(&'static str, &'static str, String); 3] {
        [
            ("trust", "trustee_domain_id", self.id.clone()),
            ("trust", "trustee_domain_admin_name", self.admin.clone()),
            ("trust", "trustee_domain_admin_password", PASSWORD.to_owned()),
        ]
    }

    /// The users in it, its administrator left out: name and id.
    pub async fn users(&self) -> Result<Vec<(String, String)>> {
        let path = format!("/users?domain_id={}", self.id);
        let found = self.people.administrate(Method::GET, &path, Value::Null).await?;
        let users = found["users"].as_array().into_iter().flatten();
        Ok(users
            .filter_map(|user| Some((user["name"].as_str()?.to_owned(), user["id"].as_str()?.to_owned())))
            .filter(|(name, _)| *name != self.admin)
            .collect())
    }

    /// The users of one cluster: name and id.
    pub async fn users_of(&self, cluster: &str) -> Result<Vec<(String, String)>> {
        let mut users = self.users().await?;
        users.retain(|(name, _)| name.starts_with(cluster));
        Ok(users)
    }

    /// The trusts in a user.
    pub async fn trusts_in(&self, user: &str) -> Result<Vec<Value>> {
        self.trusts(&format!("trustee_user_id={user}")).await
    }

    /// The trusts of somebody's, in whomever.
    pub async fn trusts_of(&self, person: &Person) -> Result<Vec<Value>> {
        self.trusts(&format!("trustor_user_id={}", person.id)).await
    }

    async fn trusts(&self, query: &str) -> Result<Vec<Value>> {
        let path = format!("/OS-TRUST/trusts?{query}");
        let found = self.people.administrate(Method::GET, &path, Value::Null).await?;
        Ok(found["trusts"].as_array().cloned().unwrap_or_default())
    }
}
