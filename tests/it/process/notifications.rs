//! What a real oslo.messaging listener hears of clusters: accepted, done, failed and refused.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::process::Program;
use magnum_tests::raw_rpc::{self, RawRpc};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

struct Listener(OsloPeer);

impl Listener {
    async fn on(deployment: &Deployment) -> Result<Self> {
        let config = deployment.config_file("listener")?;
        let config = config.to_str().context("path")?;
        Ok(Self(OsloPeer::start("oslo_notified.py", &[config]).await?))
    }

    /// The next notification is of this kind. Returns its payload.
    async fn hears(
        &mut self,
        priority: &str,
        event: &str,
        outcome: &str,
        status: Option<&str>,
    ) -> Result<Value> {
        let heard = self.0.next_event(PATIENCE).await?;
        let payload = &heard["payload"];
        let seen = (
            heard["priority"].as_str(),
            heard["event_type"].as_str(),
            payload["outcome"].as_str(),
            payload["target"]["attachments"][0]["content"]["status"].as_str(),
        );
        let expected = (Some(priority), Some(event), Some(outcome), status);
        ensure!(seen == expected, "{seen:?} instead of {expected:?}: {heard:#}");
        ensure!(heard["publisher_id"] == "container-infra.one", "{heard:#}");
        ensure!(!heard.to_string().contains("token-of-the-user"), "{heard:#}");
        Ok(payload.clone())
    }
}

async fn deployment(backend: Backend) -> Result<(Deployment, Program)> {
    let mut deployment = Deployment::new(backend).await?;
    deployment.set("oslo_messaging_notifications", "driver", "messagingv2");
    let conductor = deployment.conductor("one").await?;
    Ok((deployment, conductor))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_cluster_sends_a_notification() -> Result<()> {
    let (deployment, _conductor) = deployment(Backend::Mariadb).await?;
    let api = deployment.api().await?;
    let rest = api.rest.with_token("token-of-the-user");
    let template = rest.create_template("t").await?;
    let mut listener = Listener::on(&deployment).await?;

    let cluster = rest.create_cluster(&template, "c", json!({})).await?;
    let told = listener
        .hears(
            "info",
            "magnum.cluster.create",
            "pending",
            Some("CREATE_IN_PROGRESS"),
        )
        .await?;
    ensure!(
        told["target"]["id"] == cluster.as_str() && told["target"]["name"] == "c",
        "{told:#}"
    );
    ensure!(told["initiator"]["project_id"] == "noauth", "{told:#}");
    let told = listener
        .hears(
            "info",
            "magnum.cluster.create",
            "success",
            Some("CREATE_COMPLETE"),
        )
        .await?;
    let data = &told["target"]["attachments"][0]["content"];
    ensure!(data["node_count"] == 1 && data["master_count"] == 1, "{told:#}");
    ensure!(data["node_addresses"] == json!(["192.0.2.10"]), "{told:#}");
    ensure!(told["initiator"]["project_id"] == "noauth", "{told:#}");

    rest.resize(&cluster, 3).await?.expect(202)?;
    listener
        .hears(
            "info",
            "magnum.cluster.update",
            "pending",
            Some("CREATE_COMPLETE"),
        )
        .await?;
    let told = listener
        .hears(
            "info",
            "magnum.cluster.update",
            "success",
            Some("UPDATE_COMPLETE"),
        )
        .await?;
    ensure!(
        told["target"]["attachments"][0]["content"]["node_count"] == 3,
        "{told:#}"
    );

    rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    listener
        .hears(
            "info",
            "magnum.cluster.delete",
            "pending",
            Some("UPDATE_COMPLETE"),
        )
        .await?;
    // The cluster is gone; its last words are still told.
    let told = listener
        .hears(
            "info",
            "magnum.cluster.delete",
            "success",
            Some("DELETE_COMPLETE"),
        )
        .await?;
    ensure!(
        told["target"]["attachments"][0]["content"]["node_count"] == 3,
        "{told:#}"
    );
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_and_refused_casts_send_notifications_with_their_reason() -> Result<()> {
    let (deployment, _conductor) = deployment(Backend::Sqlite).await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await?;
    let mut listener = Listener::on(&deployment).await?;

    let labels = json!({"scripted_create": "permanent"});
    let cluster = api.rest.create_cluster(&template, "c", labels).await?;
    listener
        .hears(
            "info",
            "magnum.cluster.create",
            "pending",
            Some("CREATE_IN_PROGRESS"),
        )
        .await?;
    let told = listener
        .hears("error", "magnum.cluster.create", "failure", Some("CREATE_FAILED"))
        .await?;
    let data = &told["target"]["attachments"][0]["content"];
    ensure!(data["status_reason"] == "no such flavor: m1.nano", "{told:#}");

    // The REST API would refuse this itself. As a cast nobody hears of it but by the journal, and here.
    let rpc = RawRpc::connect(&deployment.vhost).await?;
    let fields = json!({"uuid": cluster, "cluster_template_id": template});
    let args = json!({
        "cluster": raw_rpc::object("Cluster", "1.24", fields), "node_count": 2, "health_status": null,
        "health_status_reason": null,
    });
    let mut update = raw_rpc::request("cluster_update", args);
    update["_context_auth_token"] = json!("token-of-the-user");
    rpc.cast(&update).await?;
    let told = listener
        .hears("error", "magnum.cluster.update", "failure", Some("CREATE_FAILED"))
        .await?;
    let refusal = &told["target"]["attachments"][1];
    ensure!(refusal["name"] == "refusal", "{told:#}");
    ensure!(refusal["content"]["exception"] == "NotSupported", "{told:#}");
    ensure!(
        refusal["content"]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("CREATE_FAILED")),
        "{told:#}"
    );

    // A cluster that is not there: only the refusal can be told.
    let nobody = "5d12f6fd-a196-4bf0-ae4c-1f639a523a52";
    rpc.cast(&raw_rpc::request("cluster_delete", json!({"uuid": nobody})))
        .await?;
    let told = listener
        .hears("error", "magnum.cluster.delete", "failure", None)
        .await?;
    ensure!(told["target"]["id"] == nobody, "{told:#}");
    ensure!(told["target"]["attachments"][0]["name"] == "refusal", "{told:#}");

    // One that another project has is none of this caller's business: as above.
    rpc.cast(&raw_rpc::request("cluster_delete", json!({"uuid": cluster})))
        .await?;
    let told = listener
        .hears("error", "magnum.cluster.delete", "failure", None)
        .await?;
    ensure!(!told.to_string().contains("no such flavor"), "{told:#}");
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn status_sync_sends_notifications_only_with_a_driver() -> Result<()> {
    let (mut deployment, mut conductor) = deployment(Backend::Sqlite).await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await?;
    let mut listener = Listener::on(&deployment).await?;
    let labels = json!({"scripted_create": "in_progress"});
    let cluster = api.rest.create_cluster(&template, "c", labels).await?;
    listener
        .hears(
            "info",
            "magnum.cluster.create",
            "pending",
            Some("CREATE_IN_PROGRESS"),
        )
        .await?;
    listener
        .hears(
            "info",
            "magnum.cluster.create",
            "success",
            Some("CREATE_COMPLETE"),
        )
        .await?;
    deployment.settled(PATIENCE).await?;

    // As a Python conductor leaves it: in progress, and no operation of ours.
    deployment
        .database
        .execute("UPDATE cluster SET status = 'UPDATE_IN_PROGRESS'")
        .await?;
    api.rest
        .wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    listener
        .hears(
            "info",
            "magnum.cluster.update",
            "success",
            Some("UPDATE_COMPLETE"),
        )
        .await?;
    ensure!(conductor.terminate(PATIENCE).await?.success());

    deployment.set("oslo_messaging_notifications", "driver", "noop");
    let mut conductor = deployment.conductor("two").await?;
    let silent = api.rest.create_cluster(&template, "silent", json!({})).await?;
    api.rest.wait_status(&silent, "CREATE_COMPLETE", PATIENCE).await?;
    deployment.settled(PATIENCE).await?;
    ensure!(conductor.terminate(PATIENCE).await?.success());
    // A conductor that has stopped has sent what it had to send.
    let heard = listener.0.next_event(Duration::from_secs(1)).await;
    ensure!(heard.is_err(), "{heard:?}");
    Ok(())
}
