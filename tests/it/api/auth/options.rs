//! What an operator is told about `[keystone_authtoken]`, by the program itself.

use anyhow::Result;
use magnum_tests::builders::ConfigFile;
use magnum_tests::process::Launch;
use magnum_tests::run_dir::run_dir;

/// What `magnum-api` says when it does not start.
async fn refusal(name: &str, options: &[(&str, &str)]) -> Result<String> {
    let folder = run_dir()?.folder(name)?;
    let database = format!("sqlite:///{}", folder.join("magnum.sqlite").display());
    let mut config =
        ConfigFile::for_test(&database, "fake://", &folder).set("api", "auth_strategy", "keystone");
    for (option, value) in options {
        config = config.set("keystone_authtoken", option, value);
    }
    let file = config.write(&folder.join("magnum.conf"))?;
    Launch::program("magnum-db-manage")?
        .config(&file)
        .args(["upgrade"])
        .output()
        .await?;
    let ended = Launch::program("magnum-api")?.config(&file).finish().await?;
    assert!(!ended.status.success());
    Ok(ended.stderr + &ended.stdout)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_without_the_options_does_not_start_and_names_the_missing_ones() -> Result<()> {
    let told = refusal("auth-none", &[]).await?;
    assert!(
        told.contains("[keystone_authtoken] auth_url is not set"),
        "{told}"
    );
    let half = [
        ("auth_url", "http://k:5000"),
        ("username", "magnum"),
        ("project_name", "service"),
    ];
    let told = refusal("auth-half", &half).await?;
    assert!(
        told.contains("[keystone_authtoken] password is not set"),
        "{told}"
    );
    let mut unsafe_cache = half.to_vec();
    unsafe_cache.extend([
        ("password", "p"),
        ("memcached_servers", "localhost:11211"),
        ("memcache_security_strategy", "ENCRYPT"),
    ]);
    let told = refusal("auth-cache", &unsafe_cache).await?;
    assert!(
        told.contains("[keystone_authtoken] memcache_secret_key"),
        "{told}"
    );
    Ok(())
}
