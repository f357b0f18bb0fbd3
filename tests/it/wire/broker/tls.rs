//! TLS to a real broker, with certificates that `openssl` made: it works, and what is wrong is said with the option
//! that is wrong.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_rpc::PublishError;
use magnum_tests::certificates::{Authority, Signed};
use magnum_tests::rabbitmq::{PASSWORD, Rabbitmq, USER, Vhost};
use magnum_tests::wait;
use serde_json::Value;
use tokio::time::timeout;

use super::{Bed, SOON, args, next, nobody};

/// A broker whose certificate is good for the address 127.0.0.1 and for nothing else.
struct Broker {
    authority: Authority,
    node: Rabbitmq,
    vhost: Vhost,
}

impl Broker {
    async fn start() -> Result<Self> {
        let authority = Authority::new()?;
        let server = authority.sign("broker", "IP:127.0.0.1")?;
        let node = Rabbitmq::with_tls(&authority, &server).await?;
        let vhost = node.vhost().await?;
        Ok(Self {
            authority,
            node,
            vhost,
        })
    }

    fn port(&self) -> Result<u16> {
        Ok(self.node.tls_address().context("no TLS")?.port())
    }

    /// A client that trusts `authority`, and connects to `host`.
    fn client(&self, host: &str, authority: &Authority, more: &str) -> Result<Bed> {
        let url = format!(
            "rabbit://{USER}:{PASSWORD}@{host}:{}/{}",
            self.port()?,
            self.vhost.name
        );
        let query = format!(
            "ssl=true&ssl_ca_file={}&{more}",
            authority.certificate().display()
        );
        Ok(impatient(Bed::new(&url, &query)?))
    }

    /// The broker's view of an encrypted connection.
    async fn encrypted(&self) -> Result<Value> {
        wait::until("the broker to tell of a connection", SOON, async || {
            let connections = self.vhost.management().connections().await?;
            connections
                .into_iter()
                .find(|connection| connection["ssl"] == true)
                .context("none is encrypted")
        })
        .await
    }
}

/// One that does not try for long what cannot work.
fn impatient(mut bed: Bed) -> Bed {
    bed.options.addressing.publish_timeout = Duration::from_secs(2);
    bed
}

/// A request goes there and is taken.
async fn works(bed: &Bed) -> Result<()> {
    let mut server = bed.server("one").await?;
    bed.client().cast(&nobody(), "m", args(1)).await?;
    next(&mut server).await.delivery.ack().await;
    Ok(())
}

/// What a cast is told.
async fn refusal(bed: &Bed) -> Result<String> {
    let cast = timeout(SOON, bed.client().cast(&nobody(), "m", args(1))).await?;
    match cast {
        Err(PublishError::Disconnected(why)) => Ok(why),
        other => anyhow::bail!("{other:?}"),
    }
}

#[tokio::test]
async fn requests_go_over_tls_and_a_wrong_side_is_named_with_its_option() -> Result<()> {
    let broker = Broker::start().await?;

    let bed = broker.client("127.0.0.1", &broker.authority, "")?;
    works(&bed).await?;
    let seen = broker.encrypted().await?;
    ensure!(seen["peer_cert_subject"].is_null(), "{seen}");
    bed.transport.close().await;

    let Signed { certificate, key } = broker.authority.sign("conductor", "DNS:conductor")?;
    let own = format!(
        "ssl_cert_file={}&ssl_key_file={}",
        certificate.display(),
        key.display()
    );
    let bed = broker.client("127.0.0.1", &broker.authority, &own)?;
    works(&bed).await?;
    let subject = wait::until("the broker to know the client's certificate", SOON, async || {
        let seen = broker.encrypted().await?;
        seen["peer_cert_subject"]
            .as_str()
            .map(str::to_owned)
            .context("unknown")
    })
    .await?;
    ensure!(subject.contains("conductor"), "{subject}");
    bed.transport.close().await;

    let stranger = Authority::new()?;
    let why = refusal(&broker.client("127.0.0.1", &stranger, "")?).await?;
    ensure!(
        why.contains("[oslo_messaging_rabbit] ssl_ca_file"),
        "another authority: {why}"
    );

    let why = refusal(&broker.client("localhost", &broker.authority, "")?).await?;
    ensure!(
        why.contains("not valid for the host name in transport_url"),
        "{why}"
    );

    let Signed { certificate, key } = stranger.sign("stranger", "DNS:stranger")?;
    let own = format!(
        "ssl_cert_file={}&ssl_key_file={}",
        certificate.display(),
        key.display()
    );
    let why = refusal(&broker.client("127.0.0.1", &broker.authority, &own)?).await?;
    ensure!(why.contains("ssl_cert_file"), "another name: {why}");

    // TLS to the port that does not speak it, and the other way round.
    let ca = broker.authority.certificate();
    let tls = format!("ssl=true&ssl_ca_file={}", ca.display());
    let plain_port = impatient(Bed::new(&broker.vhost.transport_url(), &tls)?);
    let why = refusal(&plain_port).await?;
    ensure!(
        why.contains("[oslo_messaging_rabbit] ssl"),
        "a certificate of another authority: {why}"
    );
    let address = broker.node.tls_address().context("no TLS")?;
    let tls_port = impatient(Bed::new(&broker.vhost.transport_url_via(address), "")?);
    let why = refusal(&tls_port).await?;
    ensure!(
        why.contains("[oslo_messaging_rabbit] ssl"),
        "TLS to a plain port: {why}"
    );
    Ok(())
}
