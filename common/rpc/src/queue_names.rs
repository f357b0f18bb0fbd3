//! What makes the name of a process's own queue unique: random text, or with `use_queue_manager` host, program and
//! a number, so that a program that starts again finds the queues it had.
//!
//! The number is the smallest one that no living process of this host has: each holds a lock on a file in
//! `[oslo_concurrency] lock_path`, which the system releases with the process. So the first process after a start
//! has number 1 again, and two that live at the same time never share a queue.
//!
//! Differs from oslo.messaging, which counts in `/dev/shm` and starts over whenever it sees another process group:
//! there two services with one name on one host get the same names and steal each other's replies. Towards a
//! Python program of the same host and name there is no protection: give them different `processname`s.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use uuid::Uuid;

use super::error::TransportError;
use super::options::RabbitOptions;

/// More queues than any one host has.
const MOST: u32 = 10_000;

/// The unique part of a queue's name, ours as long as it is kept.
#[derive(Debug)]
pub struct UniqueName {
    text: String,
    /// Lock file that reserves the number.
    _slot: Option<File>,
}

impl UniqueName {
    /// A random name, or one with a reserved number, as the options say.
    ///
    /// # Errors
    /// See [`TransportError`].
    pub async fn new(options: &RabbitOptions) -> Result<Self, TransportError> {
        let (true, Some(folder)) = (options.use_queue_manager, options.lock_path.clone()) else {
            return Ok(Self {
                text: Uuid::new_v4().simple().to_string(),
                _slot: None,
            });
        };
        let owner = format!("{}:{}", options.hostname, options.processname);
        let place = folder.clone();
        let file_owner = owner.clone();
        let taken = tokio::task::spawn_blocking(move || take_slot(&folder, &file_owner)).await;
        let fault = |error: io::Error| TransportError::QueueNames {
            folder: place,
            reason: error.to_string(),
        };
        match taken {
            Ok(Ok((number, slot))) => Ok(Self {
                text: format!("{owner}:{number}"),
                _slot: Some(slot),
            }),
            Ok(Err(error)) => Err(fault(error)),
            Err(error) => Err(fault(io::Error::other(error))),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The smallest free number, and the lock that makes it ours.
fn take_slot(folder: &Path, owner: &str) -> io::Result<(u32, File)> {
    fs::create_dir_all(folder)?;
    let stem = owner.replace(['/', '\0'], "_");
    for number in 1..=MOST {
        let path = folder.join(format!("magnum-queues-{stem}:{number}"));
        let file = File::options().create(true).append(true).open(path)?;
        match file.try_lock() {
            Ok(()) => return Ok((number, file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other(format!("{MOST} queues of {owner} are in use")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn managed(folder: &Path) -> RabbitOptions {
        RabbitOptions {
            use_queue_manager: true,
            hostname: "node1".into(),
            processname: "magnum/conductor".into(),
            lock_path: Some(folder.join("locks")),
            ..RabbitOptions::default()
        }
    }

    #[tokio::test]
    async fn without_the_manager_names_are_random() {
        let (one, two) = (
            UniqueName::new(&RabbitOptions::default()).await.unwrap(),
            UniqueName::new(&RabbitOptions::default()).await.unwrap(),
        );
        assert_eq!(one.as_str().len(), 32);
        assert_ne!(one.as_str(), two.as_str());
    }

    #[tokio::test]
    async fn the_smallest_free_number_is_taken_and_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let options = managed(folder.path());
        let one = UniqueName::new(&options).await.unwrap();
        let two = UniqueName::new(&options).await.unwrap();
        assert_eq!(one.as_str(), "node1:magnum/conductor:1");
        assert_eq!(two.as_str(), "node1:magnum/conductor:2");
        drop(one);
        assert_eq!(
            UniqueName::new(&options).await.unwrap().as_str(),
            "node1:magnum/conductor:1"
        );
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_used_is_named_with_its_option() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = UniqueName::new(&managed(file.path()))
            .await
            .unwrap_err()
            .to_string();
        assert!(text.contains("[oslo_concurrency] lock_path"), "{text}");
        assert!(text.contains(&file.path().display().to_string()), "{text}");
    }
}
