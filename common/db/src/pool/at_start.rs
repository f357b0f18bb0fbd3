//! What a program does with the database before it runs: an outage is waited for then, too.
//!
//! A server that is not up yet, a disk without room, a collision or a slow answer pass. `[database] max_retries` and
//! `retry_interval` say how often and how long that is tried, as oslo.db does with its first connection. What the server
//! refuses (a password, a missing database) and tables that do not fit are the operator's to correct, and told at once.

use std::time::Duration;

use super::{Database, PoolOptions, blocking};
use crate::error::DbError;
use crate::session;
use crate::url::DatabaseUrl;

impl Database {
    /// Runs `work` until it succeeds, fails for a reason that lasts, or the attempts of
    /// [`PoolOptions::connect_attempts`] are used up. It has to be repeatable.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn at_start<T, F>(&self, work: impl FnMut() -> F) -> Result<T, DbError>
    where
        F: Future<Output = Result<T, DbError>>,
    {
        let options = &self.inner.options;
        patiently(options.connect_attempts, options.connect_interval, work).await
    }
}

/// Tries to connect until it works, is refused, or the attempts are used up.
pub(super) async fn wait_for_server(url: &DatabaseUrl, options: &PoolOptions) -> Result<(), DbError> {
    patiently(options.connect_attempts, options.connect_interval, || {
        let (url, session) = (url.clone(), options.session.clone());
        async { blocking(move || session::open(&url, &session).map(drop)).await? }
    })
    .await
}

/// `attempts`: `None` is for ever.
async fn patiently<T, F>(
    attempts: Option<u32>,
    interval: Duration,
    mut work: impl FnMut() -> F,
) -> Result<T, DbError>
where
    F: Future<Output = Result<T, DbError>>,
{
    let mut attempt = 1;
    loop {
        let error = match work().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !passes(&error) || attempts.is_some_and(|most| attempt >= most.max(1)) {
            return Err(error);
        }
        tracing::warn!(
            attempt,
            attempts,
            next_in_s = interval.as_secs_f64(),
            error = %error,
            "the database does not answer yet; [database] max_retries and retry_interval say how long it is tried"
        );
        tokio::time::sleep(interval).await;
        attempt += 1;
    }
}

/// Whether it may be over without anybody correcting an option.
const fn passes(error: &DbError) -> bool {
    matches!(
        error,
        DbError::Unavailable(_)
            | DbError::Full(_)
            | DbError::Conflict(_)
            | DbError::Locked(_)
            | DbError::TimedOut(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `failures` attempts end with before one succeeds, and how many were made.
    async fn tried(attempts: Option<u32>, failures: Vec<DbError>) -> (Result<(), DbError>, usize) {
        let (mut failures, mut made) = (failures.into_iter(), 0);
        let result = patiently(attempts, Duration::ZERO, || {
            made += 1;
            let next = failures.next();
            async { next.map_or(Ok(()), Err) }
        })
        .await;
        (result, made)
    }

    #[tokio::test]
    async fn what_passes_is_waited_for_as_often_as_allowed() {
        let full = || DbError::Full("disk".to_owned());
        let away = || DbError::Unavailable("gone".to_owned());
        let (result, made) = tried(None, vec![full(), away(), full()]).await;
        assert!(result.is_ok());
        assert_eq!(made, 4);
        let (result, made) = tried(Some(3), vec![full(), full(), away()]).await;
        assert!(matches!(result, Err(DbError::Unavailable(_))));
        assert_eq!(made, 3);
        let (result, made) = tried(Some(0), vec![full()]).await;
        assert!(matches!(result, Err(DbError::Full(_))));
        assert_eq!(made, 1);
    }

    #[tokio::test]
    async fn what_lasts_is_told_at_once() {
        for error in [
            DbError::Refused("password".to_owned()),
            DbError::Schema("older".to_owned()),
        ] {
            let (result, made) = tried(None, vec![error]).await;
            assert!(result.is_err());
            assert_eq!(made, 1);
        }
    }
}
