//! The stack, and a client process that speaks for anybody.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::cloud_services::{CloudServices, Service};
use magnum_tests::deployment::{Api, Deployment, is_terminal};
use magnum_tests::openstack::PASSWORD;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::process::Program;
use magnum_tests::rest::{IMAGE, Rest};
use magnum_tests::wait;
use serde_json::{Value, json};

pub const PATIENCE: Duration = Duration::from_secs(90);

/// A user and the project that the token is for.
pub type Who = (&'static str, &'static str);

/// Members, a reader and an administrator of one project; the same of the other. Made by the testbed.
pub const ANNA: Who = ("anna", "north");
pub const CAROL: Who = ("carol", "north");
pub const RITA: Who = ("rita", "north");
pub const CHIEF: Who = ("chief", "north");
pub const BERT: Who = ("bert", "south");
pub const ROLF: Who = ("rolf", "south");
pub const BOSS: Who = ("boss", "south");

/// Our API with a conductor, in a region of the cloud.
pub struct Stack {
    pub cloud: &'static CloudServices,
    pub deployment: Deployment,
    pub region: String,
    _conductor: Program,
    api: Api,
}

impl Stack {
    pub async fn start() -> Result<Self> {
        let cloud = CloudServices::shared().await?;
        cloud.usual().await?;
        let mut deployment = Deployment::new(Backend::Mariadb).await?;
        for (section, option, value) in cloud.options() {
            deployment.set(section, option, value);
        }
        let conductor = deployment.conductor("one").await?;
        let api = deployment.api().await?;
        cloud.people.service("container-infra", "magnum").await?;
        let openstack = cloud.openstack;
        let region = openstack
            .region_of("container-infra", "public", api.rest.base())
            .await?;
        Ok(Self {
            cloud,
            deployment,
            region,
            _conductor: conductor,
            api,
        })
    }

    /// The API without a client of its own.
    pub fn rest(&self) -> &Rest {
        &self.api.rest
    }

    /// Puts the other services into that region, for clients that ask them, too.
    pub async fn list_the_cloud(&self) -> Result<()> {
        let openstack = self.cloud.openstack;
        let keystone = openstack.keystone_url();
        openstack
            .list(&self.region, "identity", "public", &keystone)
            .await?;
        for service in [Service::Glance, Service::Nova, Service::Neutron] {
            let url = format!("http://{}{}", self.cloud.address(service), service.listed());
            openstack
                .list(&self.region, service.kind(), "public", &url)
                .await?;
        }
        Ok(())
    }
}

/// The stack, and the clients.
pub struct World {
    pub stack: Stack,
    client: OsloPeer,
    /// What the words in capital letters stand for in a command.
    words: Vec<(&'static str, String)>,
    /// Every command that was done.
    done: Vec<String>,
}

/// What a command has said.
#[derive(Debug)]
pub struct Told {
    status: i64,
    /// JSON where it is.
    out: Value,
    /// All that was printed, as text.
    text: String,
}

impl Told {
    /// Several commands print a failure and exit with 0.
    fn is_refusal(&self) -> bool {
        self.status != 0 || self.text.contains("failed")
    }
}

impl World {
    pub async fn start() -> Result<Self> {
        let stack = Stack::start().await?;
        let url = stack.cloud.openstack.keystone_url();
        let client = OsloPeer::start("openstack_clients.py", &[&url, &stack.region, PASSWORD]).await?;
        let csr = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/csr/rsa-2048.pem");
        let mut world = Self {
            stack,
            client,
            words: Vec::new(),
            done: Vec::new(),
        };
        world.call_it("CSR", csr);
        world.call_it("IMAGE", IMAGE);
        Ok(world)
    }

    /// From now on, a word in a command stands for this.
    pub fn call_it(&mut self, word: &'static str, meant: &str) {
        self.words.push((word, meant.to_owned()));
    }

    /// What a word stands for.
    pub fn meant(&self, word: &str) -> Result<&str> {
        let known = self.words.iter().find(|(one, _)| *one == word);
        Ok(&known.with_context(|| word.to_owned())?.1)
    }

    /// Runs `openstack coe LINE`.
    pub async fn run(&mut self, who: Who, line: &str) -> Result<Told> {
        let words = ["coe"].into_iter().chain(line.split_whitespace());
        let args: Vec<&str> = words.map(|word| self.meant(word).unwrap_or(word)).collect();
        let folder = &self.stack.deployment.folder;
        let request = json!({"do": "cli", "user": who.0, "project": who.1, "args": args, "folder": folder});
        let told = self.client.ask(request).await??;
        let printed = told["out"]
            .as_str()
            .map_or_else(|| told["out"].to_string(), str::to_owned);
        let text = printed + told["err"].as_str().unwrap_or_default();
        Ok(Told {
            status: told["status"].as_i64().unwrap_or(-1),
            out: told["out"].clone(),
            text,
        })
    }

    /// The same, for a command that must succeed; what it printed, as text or as JSON.
    pub async fn done(&mut self, who: Who, line: &str) -> Result<Value> {
        let told = self.run(who, line).await?;
        ensure!(!told.is_refusal(), "{who:?} {line}: {told:?}");
        self.done.push(format!("coe {line}"));
        Ok(told.out)
    }

    /// The same as JSON.
    pub async fn json(&mut self, who: Who, line: &str) -> Result<Value> {
        let out = self.done(who, &format!("{line} -f json")).await?;
        ensure!(!out.is_string(), "{line}: {out}");
        Ok(out)
    }

    /// The same as text.
    pub async fn text(&mut self, who: Who, line: &str) -> Result<String> {
        let out = self.done(who, line).await?;
        let text = out.as_str().map(str::to_owned);
        text.with_context(|| format!("{line}: {out}"))
    }

    /// The same, for a command that begins so many operations; they have ended well when this returns.
    pub async fn carried_out(&mut self, who: Who, line: &str, count: usize) -> Result<Value> {
        let before = self.stack.deployment.operations().await?.len();
        let out = self.done(who, line).await?;
        self.operations(before + count).await?;
        Ok(out)
    }

    /// Waits until there were so many operations, and all have ended well.
    pub async fn operations(&self, count: usize) -> Result<()> {
        let operations = wait::until(&format!("{count} operations to end"), PATIENCE, async || {
            let all = self.stack.deployment.operations().await?;
            ensure!(all.len() >= count && all.iter().all(is_terminal), "{all:?}");
            Ok(all)
        })
        .await?;
        ensure!(operations.len() == count, "{operations:#?}");
        let failed: Vec<_> = operations
            .iter()
            .filter(|one| one["state"] != "succeeded")
            .collect();
        ensure!(failed.is_empty(), "{failed:#?}");
        Ok(())
    }

    /// A command that must be refused with these words.
    pub async fn refused(&mut self, who: Who, line: &str, words: &str) -> Result<()> {
        let told = self.run(who, line).await?;
        ensure!(told.is_refusal(), "{who:?} {line} was let through: {told:?}");
        ensure!(
            told.text.contains(words),
            "{who:?} {line} without {words:?}: {told:?}"
        );
        Ok(())
    }

    /// The commands that the client has, and nobody has done.
    pub async fn not_done(&mut self) -> Result<Vec<String>> {
        let commands = self.client.ask(json!({"do": "commands"})).await??;
        let commands = commands.as_array().context("a list")?;
        ensure!(!commands.is_empty(), "the client has no commands");
        let commands = commands.iter().filter_map(Value::as_str);
        Ok(commands
            .filter(|command| !self.done.iter().any(|line| line.starts_with(*command)))
            .map(str::to_owned)
            .collect())
    }

    /// A method of a library. The error has the exception's class and text.
    pub async fn call(
        &mut self,
        of: Library,
        who: Who,
        call: &str,
        args: Value,
        kwargs: Value,
    ) -> Result<Value> {
        let name = match of {
            Library::Magnumclient => "library",
            Library::Sdk => "sdk",
        };
        let request = json!({
            "do": name, "user": who.0, "project": who.1, "call": call, "args": args, "kwargs": kwargs});
        Ok(self.client.ask(request).await??)
    }

    /// A method that must raise this.
    pub async fn raises(
        &mut self,
        of: Library,
        who: Who,
        call: &str,
        args: Value,
        class: &str,
    ) -> Result<()> {
        match self.call(of, who, call, args.clone(), json!({})).await {
            Ok(found) => anyhow::bail!("{who:?} {call} {args} was let through: {found}"),
            Err(error) => {
                let told = format!("{error:#}");
                ensure!(
                    told.contains(class),
                    "{who:?} {call} {args}: {told} instead of {class}"
                );
                Ok(())
            }
        }
    }

    /// A template for the scripted driver; its id.
    pub async fn template(&mut self, who: Who, name: &str, more: &str) -> Result<String> {
        let line = format!(
            "cluster template create {name} --coe kubernetes --image IMAGE --external-network public \
             --network-driver calico --labels tier=gold {more}"
        );
        self.done(who, &line).await?;
        let made = self.json(who, &format!("cluster template show {name}")).await?;
        Ok(made["uuid"].as_str().context("a uuid")?.to_owned())
    }
}

/// A library that programs use.
#[derive(Debug, Clone, Copy)]
pub enum Library {
    Magnumclient,
    Sdk,
}
