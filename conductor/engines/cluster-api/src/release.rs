//! A helm that was killed leaves its release locked: the revision stays `pending-…`, and every later helm says that another operation
//! is in progress. Such a revision is marked as failed here, which is what helm does with one that it could not finish.
//!
//! Releases are read and written as helm keeps them where nothing else is set (`HELM_DRIVER`): a secret for each revision. A write
//! is refused by the API server when somebody has written the revision since it was read: that helm is alive.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use magnum_management_cluster::ManagementCluster;
use magnum_management_cluster::objects::{RequestError, SECRET};
use serde_json::{Value, json};

use crate::helm::Release;

/// No helm works for longer on a revision: what it is told with `--timeout`.
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// Bytes of a revision, unpacked. Secrets have at most 1 MiB.
const MAX_REVISION: u64 = 64 << 20;

/// Why a release is not unlocked.
#[derive(Debug, thiserror::Error)]
pub enum NotUnlocked {
    /// The management cluster did not do it.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The revision is none that helm writes.
    #[error("the revision {0} is none that helm writes: {1}")]
    Unreadable(String, String),
}

/// Marks revisions that a killed helm has left as failed; how many.
///
/// The cluster is this operation's alone, so from its second attempt on a pending revision is an earlier attempt's. In the first one
/// it has to be older than any helm can be.
///
/// # Errors
/// See [`NotUnlocked`].
pub async fn unlock(
    cluster: &ManagementCluster,
    release: Release<'_>,
    attempt: u32,
    now: DateTime<Utc>,
) -> Result<usize, NotUnlocked> {
    let labels = format!(
        "owner=helm,name={},status in (pending-install,pending-upgrade,pending-rollback)",
        release.name
    );
    let pending = cluster.list(SECRET, release.namespace, &labels).await?;
    let mut unlocked = 0;
    for secret in pending
        .iter()
        .filter(|secret| attempt > 1 || is_left(secret, now))
    {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        tracing::info!(
            revision = name,
            "a revision is marked as failed: the helm that made it has ended"
        );
        let failed = failed(secret, now).map_err(|why| NotUnlocked::Unreadable(name.to_owned(), why))?;
        cluster.replace(SECRET, release.namespace, name, &failed).await?;
        unlocked += 1;
    }
    Ok(unlocked)
}

fn is_left(secret: &Value, now: DateTime<Utc>) -> bool {
    let made = secret["metadata"]["creationTimestamp"].as_str();
    let made = made.and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    made.is_some_and(|made| {
        (now - made.with_timezone(&Utc))
            .to_std()
            .is_ok_and(|age| age > LONGEST)
    })
}

/// The same revision, failed, as helm writes it.
fn failed(secret: &Value, now: DateTime<Utc>) -> Result<Value, String> {
    let packed = secret["data"]["release"].as_str().ok_or("it has no release")?;
    let mut revision = unpacked(packed).map_err(|error| error.to_string())?;
    revision["info"]["status"] = json!("failed");
    revision["info"]["description"] = json!("The helm that made this revision was interrupted");
    let mut failed = secret.clone();
    failed["metadata"]["labels"]["status"] = json!("failed");
    failed["metadata"]["labels"]["modifiedAt"] = json!(now.timestamp().to_string());
    failed["data"]["release"] = json!(packed_again(&revision).map_err(|error| error.to_string())?);
    Ok(failed)
}

/// The secret's value is coded once more by helm.
fn unpacked(release: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let compressed = STANDARD.decode(STANDARD.decode(release)?)?;
    let mut text = String::new();
    GzDecoder::new(&*compressed)
        .take(MAX_REVISION)
        .read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn packed_again(revision: &Value) -> std::io::Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(revision.to_string().as_bytes())?;
    Ok(STANDARD.encode(STANDARD.encode(encoder.finish()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_revision_becomes_a_failed_one_and_keeps_the_rest() {
        let revision =
            json!({"name": "mine", "version": 3, "info": {"status": "pending-upgrade", "notes": "n"}});
        let secret = json!({
            "metadata": {"name": "sh.helm.release.v1.mine.v3", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"status": "pending-upgrade", "version": "3"}},
            "data": {"release": packed_again(&revision).unwrap()},
        });
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        assert!(is_left(&secret, at("2026-01-01T00:05:01Z")));
        assert!(!is_left(&secret, at("2026-01-01T00:04:59Z")));
        let failed = failed(&secret, at("2026-01-01T00:06:00Z")).unwrap();
        assert_eq!(failed["metadata"]["labels"]["status"], "failed");
        assert_eq!(failed["metadata"]["labels"]["version"], "3");
        assert_eq!(
            failed["metadata"]["resourceVersion"], "7",
            "or the write would not be refused"
        );
        let after = unpacked(failed["data"]["release"].as_str().unwrap()).unwrap();
        assert_eq!(after["info"]["status"], "failed");
        assert_eq!(
            (&after["version"], &after["info"]["notes"]),
            (&json!(3), &json!("n"))
        );
    }
}
