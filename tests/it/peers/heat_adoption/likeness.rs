//! What two conductors have made of the same request, text by text: the stack in Heat with its template, its files and its
//! parameters, and the rows in the database. What must differ is replaced by rules: names, ids and addresses that are known
//! by the name of what they belong to, random values by whether they are there.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use magnum_db::Database;
use magnum_tests::heat_stacks::Stacks;
use magnum_tests::probe;
use magnum_tests::trustee_domain::TrusteeDomain;
use serde_json::{Map, Value, json};

/// Every text of it, by its path.
pub type Texts = BTreeMap<String, String>;

/// Paths whose text is random, or tells a time: it is there in both, or in none.
const RANDOM: [&str; 18] = [
    "/cluster/id",
    "/cluster/created_at",
    "/cluster/updated_at",
    "/cluster/ca_cert_ref",
    "/cluster/magnum_cert_ref",
    "/cluster/etcd_ca_cert_ref",
    "/cluster/front_proxy_ca_cert_ref",
    "/cluster/discovery_url",
    "/groups/default-master/id",
    "/groups/default-master/uuid",
    "/groups/default-master/created_at",
    "/groups/default-master/updated_at",
    "/groups/default-worker/id",
    "/groups/default-worker/uuid",
    "/groups/default-worker/created_at",
    "/groups/default-worker/updated_at",
    "/parameters/discovery_url",
    "/environment/parameters/discovery_url",
];

/// Whoever looks, and where.
pub struct Eyes<'a> {
    pub db: &'a Database,
    pub stacks: &'a Stacks,
    pub domain: &'a TrusteeDomain,
}

impl Eyes<'_> {
    /// All that was made of the request for this cluster, by the Magnum whose API is there.
    pub async fn look(&self, cluster: &str, api: &str) -> Result<Texts> {
        let row = self.rows("cluster", &format!("uuid = '{cluster}'")).await?;
        let mut row = row.into_iter().next().context("a row")?;
        if let Some(columns) = row.as_object_mut() {
            // Monitors write them in their own time: sooner for the cluster that was there first.
            columns.retain(|name, _| !name.starts_with("health_"));
        }
        let mut groups = Map::new();
        for group in self
            .rows("nodegroup", &format!("cluster_id = '{cluster}'"))
            .await?
        {
            groups.insert(group["name"].as_str().context("a name")?.to_owned(), group);
        }
        let stack = self
            .stacks
            .show(row["stack_id"].as_str().context("a stack")?)
            .await?;
        let names = stack.outputs.iter().map(|one| one["output_key"].clone());
        let whole = json!({
            "cluster": row,
            "groups": groups,
            "name": stack.name,
            "parameters": stack.parameters,
            "outputs": names.collect::<Vec<Value>>(),
            "template": self.stacks.part(&stack, "template").await?,
            "files": self.stacks.part(&stack, "files").await?,
            "environment": self.stacks.part(&stack, "environment").await?,
        });

        let users = self.domain.users_of(cluster).await?;
        let (_, user) = users.first().context("a trustee")?;
        let mut known = vec![
            (cluster.to_owned(), "<cluster>".to_owned()),
            (user.clone(), "<trustee>".to_owned()),
            (api.to_owned(), "<api>".to_owned()),
            (stack.id.clone(), "<stack>".to_owned()),
            (stack.name.clone(), "<name of the stack>".to_owned()),
        ];
        for output in &stack.outputs {
            let value = &output["output_value"];
            let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
            let addresses = values.iter().filter_map(Value::as_str);
            let addresses = addresses.filter(|text| text.parse::<std::net::IpAddr>().is_ok());
            let name = format!("<{}>", output["output_key"].as_str().context("a name")?);
            known.extend(addresses.map(|address| (address.to_owned(), name.clone())));
        }
        // An address may be the beginning of another one.
        known.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let mut texts = Texts::new();
        collect(&whole, "", &mut texts);
        for (path, text) in &mut texts {
            if RANDOM.contains(&path.as_str()) {
                *text = if text == "null" { "none" } else { "some" }.to_owned();
            }
            for (value, name) in &known {
                *text = text.replace(value, name);
            }
        }
        Ok(texts)
    }

    /// The rows of a table, each column as text.
    async fn rows(&self, table: &'static str, condition: &str) -> Result<Vec<Value>> {
        let condition = condition.to_owned();
        let rows = self.db.run(move |conn| {
            let columns = probe::columns(conn, table)?;
            let columns: Vec<String> = columns
                .iter()
                .map(|column| format!("'{column}', CAST({column} AS CHAR)"))
                .collect();
            let columns = columns.join(", ");
            let query = format!("SELECT JSON_OBJECT({columns}) AS line FROM {table} WHERE {condition}");
            probe::lines(conn, &query)
        });
        let rows = rows.await?;
        rows.iter().map(|row| Ok(serde_json::from_str(row)?)).collect()
    }
}

fn collect(value: &Value, path: &str, texts: &mut Texts) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                collect(value, &format!("{path}/{name}"), texts);
            }
        }
        Value::Array(items) => {
            for (number, value) in items.iter().enumerate() {
                collect(value, &format!("{path}/{number}"), texts);
            }
        }
        Value::String(text) => drop(texts.insert(path.to_owned(), text.clone())),
        other => drop(texts.insert(path.to_owned(), other.to_string())),
    }
}

/// That they are alike, but for paths that are expected to differ, each of which does.
pub fn alike(one: &Texts, other: &Texts, expected: &[(&str, &str)]) -> Result<()> {
    let paths: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differing: BTreeSet<&str> = paths
        .into_iter()
        .filter(|path| one.get(*path) != other.get(*path))
        .map(String::as_str)
        .collect();
    let expected: BTreeSet<&str> = expected.iter().map(|(path, _)| *path).collect();
    let surprises: Vec<String> = differing
        .difference(&expected)
        .map(|path| format!("{path}: {:?} and {:?}", one.get(*path), other.get(*path)))
        .collect();
    ensure!(surprises.is_empty(), "they differ: {surprises:#?}");
    let alike: Vec<_> = expected.difference(&differing).collect();
    ensure!(alike.is_empty(), "these do not differ any more: {alike:?}");
    Ok(())
}
