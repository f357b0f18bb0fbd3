//! The monitor of Kubernetes API servers, on a real one: healthy and not, and whatever a server may do to whoever
//! looks at it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use magnum_common::model::HealthStatus;
use magnum_common::secret::Secret;
use magnum_kubernetes::{AccessError, ApiServerAccess, ClusterHealth, Limits, check};
use magnum_tests::certificates::{Authority, Signed};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::kubernetes::Kubernetes;
use magnum_tests::tls_front::TlsFront;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const LIMITS: Limits = Limits {
    time: Duration::from_secs(20),
    answer: 1024 * 1024,
    reasons: 32 * 1024,
};

fn access(address: SocketAddr, authority: &Path, client: &Signed) -> Result<ApiServerAccess> {
    Ok(ApiServerAccess {
        address: format!("https://{address}"),
        authority: fs::read_to_string(authority)?,
        certificate: fs::read_to_string(&client.certificate)?,
        key: Secret::new(fs::read_to_string(&client.key)?),
    })
}

fn as_admin(kubernetes: &Kubernetes) -> Result<ApiServerAccess> {
    access(
        kubernetes.address(),
        &kubernetes.identity.authority,
        &kubernetes.identity.admin,
    )
}

async fn unhealthy_because(access: &ApiServerAccess, limits: &Limits, reason: &str) -> Result<()> {
    let health = check(access, limits).await?;
    let api = health.reasons.get("api").context("no reason")?;
    ensure!(
        health.status == HealthStatus::Unhealthy && api.contains(reason) && health.reasons.len() == 1,
        "{health:?}"
    );
    Ok(())
}

fn shown(health: &ClusterHealth) -> (HealthStatus, Vec<(&str, &str)>) {
    let mut reasons: Vec<_> = health
        .reasons
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    reasons.sort_unstable();
    (health.status, reasons)
}

/// The one test that makes nodes on the shared server.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_healthy_while_all_its_nodes_are_ready() -> Result<()> {
    let kubernetes = Kubernetes::shared().await?;
    let access = as_admin(kubernetes)?;
    let health = check(&access, &LIMITS).await?;
    ensure!(
        shown(&health) == (HealthStatus::Healthy, vec![("api", "ok")]),
        "{health:?}"
    );

    kubernetes.add_node("master-0", "True").await?;
    kubernetes.add_node("worker-0", "True").await?;
    let health = check(&access, &LIMITS).await?;
    let ready = [
        ("api", "ok"),
        ("master-0.Ready", "True"),
        ("worker-0.Ready", "True"),
    ];
    ensure!(
        shown(&health) == (HealthStatus::Healthy, ready.to_vec()),
        "{health:?}"
    );

    for (condition, expected) in [("False", "False"), ("Unknown", "Unknown")] {
        kubernetes.set_ready("worker-0", condition).await?;
        let health = check(&access, &LIMITS).await?;
        let reasons = [
            ("api", "ok"),
            ("master-0.Ready", "True"),
            ("worker-0.Ready", expected),
        ];
        ensure!(
            shown(&health) == (HealthStatus::Unhealthy, reasons.to_vec()),
            "{health:?}"
        );
    }

    // More than one page.
    for number in 1..=120 {
        kubernetes.add_node(&format!("worker-{number}"), "True").await?;
    }
    kubernetes.set_ready("worker-0", "True").await?;
    let health = check(&access, &LIMITS).await?;
    ensure!(health.status == HealthStatus::Healthy, "{health:?}");
    ensure!(
        health.reasons.len() == 1 + 1 + 121,
        "{} reasons",
        health.reasons.len()
    );
    kubernetes.remove_nodes().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_without_its_store_or_gone_makes_the_cluster_unhealthy() -> Result<()> {
    let kubernetes = Kubernetes::dedicated().await?;
    let access = as_admin(&kubernetes)?;
    ensure!(check(&access, &LIMITS).await?.status == HealthStatus::Healthy);
    kubernetes.kill_etcd().await?;
    unhealthy_because(&access, &LIMITS, "/readyz: HTTP 500").await?;
    kubernetes.kill().await?;
    unhealthy_because(&access, &LIMITS, "onnection refused").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_another_authority_signed_is_not_believed() -> Result<()> {
    let kubernetes = Kubernetes::shared().await?;
    let access = access(
        kubernetes.address(),
        &Authority::new()?.certificate(),
        &kubernetes.identity.admin,
    )?;
    unhealthy_because(&access, &LIMITS, "invalid peer certificate").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_of_another_authority_is_refused_by_the_server() -> Result<()> {
    let kubernetes = Kubernetes::shared().await?;
    let stranger = Authority::new()?.sign("admin", "DNS:admin")?;
    let access = access(kubernetes.address(), &kubernetes.identity.authority, &stranger)?;
    unhealthy_because(&access, &LIMITS, "HTTP 401").await
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_with_a_foreign_key_is_an_error_and_no_health() -> Result<()> {
    let authority = Authority::new()?;
    let (one, other) = (
        authority.sign("one", "DNS:one")?,
        authority.sign("other", "DNS:other")?,
    );
    let mixed = Signed {
        certificate: one.certificate,
        key: other.key,
    };
    let access = access(
        SocketAddr::from((Ipv4Addr::LOCALHOST, 9)),
        &authority.certificate(),
        &mixed,
    )?;
    let error = check(&access, &LIMITS).await;
    ensure!(matches!(error, Err(AccessError::Client(_))), "{error:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_given_up_in_time() -> Result<()> {
    let kubernetes = Kubernetes::shared().await?;
    let line = ChaosProxy::start(kubernetes.address()).await?;
    let access = access(
        line.address(),
        &kubernetes.identity.authority,
        &kubernetes.identity.admin,
    )?;
    let limits = Limits {
        time: Duration::from_secs(1),
        ..LIMITS
    };
    line.stall();
    let began = Instant::now();
    unhealthy_because(&access, &limits, "no answer within 1s").await?;
    ensure!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_is_cut_at_the_limit() -> Result<()> {
    let authority = Authority::new()?;
    let own = authority.sign("server", "IP:127.0.0.1")?;
    let front = TlsFront::start(endless().await?, &own, None).await?;
    let access = access(front.address(), &authority.certificate(), &own)?;
    unhealthy_because(&access, &LIMITS, "/readyz: length limit exceeded").await
}

/// Answers every request with a body that has no end.
async fn endless() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(flood(client));
        }
    });
    Ok(address)
}

/// Ends when the other side has had enough.
async fn flood(mut client: TcpStream) -> std::io::Result<()> {
    let mut request = [0; 4096];
    if client.read(&mut request).await? == 0 {
        return Ok(());
    }
    client
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        .await?;
    loop {
        client.write_all(&[b'x'; 64 * 1024]).await?;
    }
}
