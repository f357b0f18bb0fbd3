//! Requests to Barbican, and answers of it, that are lost on their way: nothing is left behind that nobody refers to.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use magnum_common::error::ErrorClass;
use magnum_common::ids::OperationId;
use magnum_conductor::certificates::Certificates;
use magnum_conductor::workflows::CertificateRefs;
use magnum_config::CertManagerType;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::http_trap::{HttpTrap, Loss};
use magnum_tests::openstack::OpenStack;

use super::barbican::{barbican, kept};
use super::stores::all;
use super::{Bench, admin, cluster};

const CONTAINERS: &str = "GET /v1/containers";
const NEW_SECRET: &str = "POST /v1/secrets";
const NEW_CONTAINER: &str = "POST /v1/containers";
const SECRETS: &str = "GET /v1/secrets";
const PAYLOAD: &str = "GET /v1/secrets/ID/payload";

/// A conductor's store in a Barbican that is reached through a trap.
async fn trapped() -> Result<(HttpTrap, Certificates)> {
    let cloud = OpenStack::shared().await?;
    let trap = HttpTrap::start(cloud.barbican_address()).await?;
    let region = cloud.region_via(&format!("http://{}", trap.address())).await?;
    let certificates = barbican(|settings| settings.barbican_client.region_name = Some(region)).await?;
    Ok((trap, certificates))
}

/// Generates once more, with success; the set is whole, usable, and all there is of the operation.
async fn whole(certificates: &Certificates, operation: &OperationId) -> Result<CertificateRefs> {
    let refs = certificates
        .generate(&cluster("k8s"), &admin(), operation)
        .await?;
    let (containers, secrets) = kept(operation).await?;
    ensure!(
        (containers.len(), secrets.len()) == (4, 12),
        "{containers:?} {secrets:?}"
    );
    let bench = Bench::new()?;
    bench.write("ca.pem", &certificates.ca(&refs.ca).await?)?;
    bench.write("client.pem", &certificates.ca(&refs.magnum).await?)?;
    bench.openssl("verify -x509_strict -CAfile ca.pem client.pem")?;
    for reference in all(&refs) {
        certificates.ca(reference).await?;
    }
    Ok(refs)
}

/// The first attempt fails, and says that another one may succeed.
async fn interrupted(certificates: &Certificates, trap: &HttpTrap, operation: &OperationId) -> Result<()> {
    let outcome = certificates.generate(&cluster("k8s"), &admin(), operation).await;
    ensure!(trap.sprung(), "nothing was lost: {:?}", trap.seen());
    let error = outcome.err().context("an attempt that was interrupted")?;
    ensure!(error.class() == ErrorClass::Transient, "{error}");
    Ok(())
}

async fn gone(operation: &OperationId) -> Result<()> {
    let (containers, secrets) = kept(operation).await?;
    ensure!(
        containers.is_empty() && secrets.is_empty(),
        "orphans: {containers:?} {secrets:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_attempt_after_a_lost_exchange_ends_with_one_whole_set() -> Result<()> {
    let (trap, certificates) = trapped().await?;
    for (what, number, loss) in [
        (CONTAINERS, 1, Loss::Request),
        (SECRETS, 2, Loss::Request),
        (PAYLOAD, 2, Loss::Request),
        (NEW_SECRET, 1, Loss::Request),
        (NEW_SECRET, 4, Loss::Answer),
        (NEW_SECRET, 12, Loss::Answer),
        (NEW_CONTAINER, 1, Loss::Request),
        (NEW_CONTAINER, 1, Loss::Answer),
        (NEW_CONTAINER, 4, Loss::Answer),
    ] {
        let told = || format!("{what}, number {number}, {loss:?}");
        let operation = OperationId::random();
        trap.lose(what, number, loss);
        interrupted(&certificates, &trap, &operation)
            .await
            .with_context(told)?;
        let refs = whole(&certificates, &operation).await.with_context(told)?;
        for reference in all(&refs) {
            certificates.remove(reference).await?;
        }
        gone(&operation).await.with_context(told)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_given_up_after_a_lost_exchange_leaves_nothing() -> Result<()> {
    let (trap, certificates) = trapped().await?;
    for (what, number, loss) in [
        (NEW_SECRET, 2, Loss::Answer),
        (NEW_CONTAINER, 1, Loss::Request),
        (NEW_CONTAINER, 2, Loss::Answer),
    ] {
        let operation = OperationId::random();
        trap.lose(what, number, loss);
        interrupted(&certificates, &trap, &operation).await?;
        ensure!(
            kept(&operation).await? != (Vec::new(), Vec::new()),
            "nothing to remove"
        );
        certificates
            .remove_made_by(CertManagerType::Barbican, &operation, "k8s")
            .await?;
        gone(&operation).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn late_artifacts_are_removed_with_the_rest() -> Result<()> {
    let (trap, certificates) = trapped().await?;
    for what in [NEW_SECRET, NEW_CONTAINER] {
        // Arrives before the next attempt, and after it.
        let operation = OperationId::random();
        trap.lose(what, 2, Loss::Late);
        interrupted(&certificates, &trap, &operation).await?;
        trap.deliver().await?;
        let early = whole(&certificates, &operation).await?;
        let other = OperationId::random();
        trap.lose(what, 2, Loss::Late);
        interrupted(&certificates, &trap, &other).await?;
        let late = whole(&certificates, &other).await?;
        ensure!(trap.deliver().await? == 1);
        // Whoever looks again removes it, and so does the end of the cluster.
        if what == NEW_SECRET {
            ensure!(kept(&other).await?.1.len() == 13, "it did not arrive");
        }
        for reference in all(&early).into_iter().chain(all(&late)) {
            certificates.remove(reference).await?;
        }
        gone(&operation).await?;
        gone(&other).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_was_interrupted_is_finished_by_the_next() -> Result<()> {
    let (trap, certificates) = trapped().await?;
    let cases = [
        ("GET /v1/containers/ID", 1, Loss::Request),
        (SECRETS, 3, Loss::Request),
        ("DELETE /v1/secrets/ID", 1, Loss::Answer),
        ("DELETE /v1/secrets/ID", 3, Loss::Request),
        ("DELETE /v1/containers/ID", 1, Loss::Request),
        ("DELETE /v1/containers/ID", 1, Loss::Answer),
    ];
    let (one, two) = (OperationId::random(), OperationId::random());
    let sets = [
        whole(&certificates, &one).await?,
        whole(&certificates, &two).await?,
    ];
    let references = sets.iter().flat_map(all);
    for (index, reference) in references.enumerate() {
        let (what, number, loss) = cases[index % cases.len()];
        trap.lose(what, number, loss);
        let error = certificates.remove(reference).await.err();
        ensure!(trap.sprung(), "nothing was lost: {:?}", trap.seen());
        let error = error.with_context(|| format!("{what} was lost unnoticed"))?;
        ensure!(error.class() == ErrorClass::Transient, "{what}: {error}");
        certificates.remove(reference).await?;
    }
    gone(&one).await?;
    gone(&two).await
}

/// All wait for the same token; with one after the other the last would wait for 40 s.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_waits_for_an_unresponsive_keystone_fail_together() -> Result<()> {
    let cloud = OpenStack::shared().await?;
    let line = ChaosProxy::start(cloud.keystone_address()).await?;
    let url = format!("http://{}/v3", line.address());
    let certificates = barbican(|settings| {
        settings.keystone_auth.auth_url = Some(url);
        settings.keystone_auth.timeout = Some(Duration::from_secs(2));
        settings.default.rpc_response_timeout = Duration::from_secs(600);
    })
    .await?;
    line.stall();
    let asked = Instant::now();
    let reference = "http://b/v1/containers/6a1f7e0c-0000-4000-8000-000000000001";
    let outcomes = futures::future::join_all((0..20).map(|_| certificates.ca(reference))).await;
    for outcome in outcomes {
        let error = outcome.err().context("an answer without a token")?;
        ensure!(error.to_string().contains("Keystone is not available"), "{error}");
    }
    ensure!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    // A failure is not kept: back again, it serves.
    line.restore();
    let error = certificates
        .ca(reference)
        .await
        .err()
        .context("there is no such container")?;
    ensure!(error.to_string().contains("there is no certificate"), "{error}");
    Ok(())
}
