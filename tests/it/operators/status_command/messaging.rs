//! What `magnum-status` says of messaging, against the options that services refuse and a broker that is away, locked
//! or has other queues.

use anyhow::{Result, bail, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::OsloPeer;

use super::{FAILURE, OK, PATIENCE, WARNING, check, finds};

const OPTIONS: &str = "Messaging options";
const BROKER: &str = "Message broker";
const QUEUE: &str = "Queue of requests";

/// A conductor does not start, and says this.
async fn refuses(deployment: &Deployment, words: &str) -> Result<()> {
    let Err(refused) = deployment.conductor("one").await else {
        bail!("it starts");
    };
    let refused = format!("{refused:#}");
    ensure!(refused.contains(words), "{refused}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_messaging_errors_are_reported_at_once() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    finds(&deployment, OPTIONS, OK, &[]).await?;
    // With rabbit_quorum_queue, which is on, each of these stops a service.
    deployment.set("oslo_messaging_rabbit", "rabbit_ha_queues", true);
    deployment.set("oslo_messaging_rabbit", "amqp_auto_delete", true);
    let words = [
        "set rabbit_ha_queues = false",
        "set amqp_auto_delete = false",
        "Services do not start with it",
    ];
    finds(&deployment, OPTIONS, FAILURE, &words).await?;
    // The broker is there all the same.
    finds(&deployment, BROKER, OK, &[]).await?;
    refuses(&deployment, "set rabbit_ha_queues = false").await?;

    deployment.set("oslo_messaging_rabbit", "rabbit_ha_queues", false);
    deployment.set("oslo_messaging_rabbit", "amqp_auto_delete", false);
    deployment.set("oslo_messaging_rabbit", "ssl", true);
    finds(&deployment, OPTIONS, WARNING, &["ssl_ca_file"]).await?;
    let nowhere = deployment.folder.join("no-ca.pem");
    deployment.set("oslo_messaging_rabbit", "ssl_ca_file", nowhere.display());
    let words = ["ssl_ca_file", "no-ca.pem", "Services do not start with it"];
    finds(&deployment, OPTIONS, FAILURE, &words).await?;

    deployment.set("oslo_messaging_rabbit", "ssl", false);
    let url = format!("{}?colour=red", deployment.vhost.transport_url());
    deployment.set("DEFAULT", "transport_url", url);
    finds(&deployment, OPTIONS, FAILURE, &["`colour`"]).await?;
    deployment.set("DEFAULT", "transport_url", "fake://alone");
    finds(&deployment, OPTIONS, WARNING, &["one process"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_messages_are_checked_and_shown_by_their_ids() -> Result<()> {
    const SIGNING: &str = "Message authentication";
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    finds(&deployment, SIGNING, OK, &[]).await?;
    deployment.set("conductor", "message_authentication", "require");
    refuses(&deployment, "needs message_key_file").await?;
    let file = deployment.folder.join("messages.key");
    deployment.set("conductor", "message_key_file", file.display());
    finds(
        &deployment,
        SIGNING,
        FAILURE,
        &["message_key_file", "no such file"],
    )
    .await?;
    refuses(&deployment, "no such file").await?;
    std::fs::write(&file, "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n")?;
    let mut modes = std::fs::metadata(&file)?.permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut modes, 0o644);
    std::fs::set_permissions(&file, modes.clone())?;
    finds(&deployment, SIGNING, FAILURE, &["chmod 600"]).await?;
    refuses(&deployment, "chmod 600").await?;
    std::os::unix::fs::PermissionsExt::set_mode(&mut modes, 0o600);
    std::fs::set_permissions(&file, modes)?;
    finds(&deployment, SIGNING, OK, &["signed with key"]).await?;
    deployment.set("conductor", "message_authentication", "sign");
    finds(
        &deployment,
        SIGNING,
        OK,
        &["signed with key", "message_authentication = require when"],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_or_refusing_broker_is_reported_with_advice() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    finds(&deployment, BROKER, OK, &[]).await?;
    let broker = deployment.vhost.address;
    let vhost = deployment.vhost.name.clone();
    for (url, words) in [
        (
            "rabbit://magnum:broker-secret@127.0.0.1:1/".to_owned(),
            ["127.0.0.1:1", "check_running"],
        ),
        (
            format!("rabbit://magnum:broker-secret@{broker}/{vhost}"),
            ["user, password", "authenticate_user"],
        ),
        (
            deployment.vhost.transport_url().replace(&vhost, "elsewhere"),
            ["virtual host", "list_permissions"],
        ),
    ] {
        deployment.set("DEFAULT", "transport_url", &url);
        let (result, details, code) = check(&deployment, BROKER).await?;
        ensure!(
            result == FAILURE && code == 2,
            "{url}: {result}, {code}: {details}"
        );
        for word in words {
            ensure!(details.contains(word), "{url}: {word} is not in {details}");
        }
        ensure!(!details.contains("secret"), "{details}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn mismatched_queue_is_reported_and_left_unchanged() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    // Nobody has declared anything yet, and the look does not.
    finds(&deployment, QUEUE, OK, &[]).await?;
    ensure!(
        deployment.vhost.management().queues().await?.is_empty(),
        "the look declared a queue"
    );

    let mut conductor = deployment.conductor("one").await?;
    finds(&deployment, QUEUE, OK, &[]).await?;
    conductor.terminate(PATIENCE).await?;
    let before = deployment.vhost.management().queue("magnum-conductor").await?;
    // The URL's word is the last one.
    deployment.set("oslo_messaging_rabbit", "rabbit_quorum_queue", false);
    let url = deployment.vhost.transport_url();
    deployment.set("DEFAULT", "transport_url", format!("{url}?rabbit_quorum_queue=1"));
    finds(&deployment, QUEUE, OK, &[]).await?;
    deployment.set("DEFAULT", "transport_url", url);
    let words = [
        "not durable",
        "magnum-conductor exists with other arguments",
        "rabbit_quorum_queue",
    ];
    finds(&deployment, QUEUE, WARNING, &words).await?;
    let after = deployment.vhost.management().queue("magnum-conductor").await?;
    ensure!(
        after["arguments"] == before["arguments"] && after["durable"] == true,
        "{after}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_problems_are_reported() -> Result<()> {
    const CHECK: &str = "Notifications";
    let section = "oslo_messaging_notifications";
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    finds(&deployment, CHECK, OK, &[]).await?;
    deployment.set(section, "driver", "routing");
    finds(&deployment, CHECK, WARNING, &["\"routing\" does not exist here"]).await?;
    deployment.set(section, "driver", "messagingv2");
    finds(&deployment, CHECK, OK, &[]).await?;

    let nowhere = "rabbit://magnum:broker-secret@127.0.0.1:1/";
    deployment.set(section, "transport_url", nowhere);
    let words = [section, "127.0.0.1:1", "check_running"];
    finds(&deployment, CHECK, WARNING, &words).await?;
    // The requests have another broker.
    finds(&deployment, BROKER, OK, &[]).await?;
    deployment.set(section, "transport_url", format!("{nowhere}?colour=red"));
    finds(&deployment, CHECK, FAILURE, &["`colour`", "do not start"]).await?;
    refuses(&deployment, "[oslo_messaging_notifications] transport_url").await?;

    // The listener's queue is not as ours would be.
    deployment.set(section, "transport_url", deployment.vhost.transport_url());
    deployment.set("oslo_messaging_rabbit", "rabbit_quorum_queue", false);
    let config = deployment.config_file("listener")?.display().to_string();
    drop(OsloPeer::start("oslo_notified.py", &[&config]).await?);
    finds(&deployment, CHECK, OK, &[]).await?;
    deployment.set("oslo_messaging_rabbit", "rabbit_quorum_queue", true);
    let words = [
        "notifications.info exists with other arguments",
        "rabbit_quorum_queue",
    ];
    finds(&deployment, CHECK, WARNING, &words).await
}
