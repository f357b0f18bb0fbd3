//! What the suite has to know of an engine: how to make a driver of it, and how to look at its effects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use magnum_common::ids::ClusterUuid;
use magnum_driver_api::Driver;

use super::scene::Scene;

/// How a subject is made to misbehave, as far as it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its outside answers what makes no sense.
    Garbage,
    /// Its outside answers a result with a field that no row can hold.
    OverLimit,
}

/// The term of the conductor's leases.
pub const LEASE: Duration = Duration::from_secs(12);

/// A driver of some engine, with a world of its own to build clusters in.
#[async_trait]
pub trait Subject: Send + Sync {
    /// A new driver over the same world: what a conductor has that was started again.
    fn driver(&self) -> Result<Arc<dyn Driver>>;

    /// A cluster of which nothing exists yet.
    fn scene(&self) -> Scene {
        Scene::new()
    }

    /// What exists of a cluster, name by name with its content; nothing when it is gone. Looks at the world itself.
    async fn effects(&self, cluster: &ClusterUuid) -> Result<BTreeMap<String, String>>;

    /// How many nodes of a cluster exist.
    async fn nodes(&self, cluster: &ClusterUuid) -> Result<usize>;

    /// Makes the calls for the scene take long enough that they can be stopped half-way.
    fn slow_down(&self, scene: &mut Scene) -> Result<()>;

    /// Makes the calls for the scene misbehave.
    fn break_down(&self, scene: &mut Scene, fault: Fault) -> Result<()>;

    /// Undoes [`Subject::slow_down`] and [`Subject::break_down`].
    fn mend(&self, scene: &mut Scene) -> Result<()>;
}

/// A check of one subject.
macro_rules! check_of {
    (disk) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn disk() -> Result<()> {
            on(&crate::conductor::engines::exec::Shipped::disk()?).await
        }
    };
    (ansible) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn ansible() -> Result<()> {
            on(&crate::conductor::engines::exec::Shipped::ansible()?).await
        }
    };
    (python) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn python() -> Result<()> {
            on(&crate::conductor::engines::python::Plugin::new()?).await
        }
    };
}
pub(super) use check_of;

/// Runs each check for each subject: for what a driver has a part in.
macro_rules! every_subject {
    ($($(#[$meta:meta])* async fn $name:ident($subject:ident : &dyn Subject) $body:block)+) => { $(
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn on($subject: &dyn Subject) -> Result<()> $body

            check_of!(disk);
            check_of!(ansible);
            check_of!(python);
        }
    )+ };
}
pub(super) use every_subject;

/// Runs each check for one subject of each engine: for what the engine alone decides, or where the driver with Ansible would only
/// say that it cannot do that. Each of its playbooks takes a processor for five seconds.
macro_rules! every_engine {
    ($($(#[$meta:meta])* async fn $name:ident($subject:ident : &dyn Subject) $body:block)+) => { $(
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn on($subject: &dyn Subject) -> Result<()> $body

            check_of!(disk);
            check_of!(python);
        }
    )+ };
}
pub(super) use every_engine;
