//! What the nodes of every Galera cluster begin with, made once in a test process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::node::{Begin, Node};
use super::{PATIENCE, PROGRAM, PROVIDER, SYSTEM_USER};
use crate::mariadb::{PASSWORD, USER};
use crate::system_user::SystemUser;
use crate::wait;

/// Data with which every node begins: those of a node that was a cluster alone, and stopped in order.
pub(super) async fn create() -> Result<PathBuf> {
    for (file, package) in [(PROGRAM, "mariadb-server"), (PROVIDER, "galera-4")] {
        ensure!(
            Path::new(file).exists(),
            "{file} is missing; tests/run installs {package}"
        );
    }
    let (empty, users) = tokio::task::spawn_blocking(|| {
        let folder = SYSTEM_USER.folder("galera-data")?;
        let (data, users) = (folder.join("data"), folder.join("users.sql"));
        let sql = format!(
            "CREATE OR REPLACE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n\
             GRANT ALL ON *.* TO {USER}@'127.0.0.1' WITH GRANT OPTION;\n"
        );
        fs::write(&users, sql)?;
        let mut install = Command::new("mariadb-install-db");
        install.env("TMPDIR", &folder).args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--innodb-log-file-size=24M",
        ]);
        if SystemUser::is_needed() {
            install.arg(format!("--user={}", SYSTEM_USER.0));
        }
        run(install.arg(format!("--datadir={}", data.display())))?;
        Ok::<_, anyhow::Error>((data, users))
    })
    .await??;
    let first = Node::on(empty).await?;
    let users = format!("--init-file={}", users.display());
    first.start(Begin::New, "", &[users]).await?;
    wait::until("the first node", PATIENCE, async || {
        let state = first.status("wsrep_local_state").await?;
        ensure!(state == "4", "{state}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    if let Some(process) = first.process.lock().await.take() {
        process.stop(PATIENCE).await?;
    }
    let data = first.folder.join("data");
    // The cache and the membership are its own.
    for file in ["galera.cache", "gvwstate.dat"] {
        fs::remove_file(data.join(file)).ok();
    }
    // What a node leaves goes with it.
    let kept = SYSTEM_USER.folder("galera-data")?.join("data");
    fs::rename(&data, &kept)?;
    Ok(kept)
}

pub(super) fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
