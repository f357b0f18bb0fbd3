//! Programs as another user. They need what the option needs: root.

use super::*;
use crate::account::Account;

const USER: &str = "nobody";

/// A driver of that user, who may write into its folder to say what it has seen.
fn script_as_user(body: &str) -> Script {
    let mut it = script(body);
    let folder = it.folder.path();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    it.driver.account = Some(Account::of(USER, folder).unwrap());
    it
}

#[tokio::test]
async fn a_program_is_the_user_that_its_manifest_names_and_nobody_else() {
    let it = script_as_user(
        r#"id -un > user; id -Gn > groups; grep CapEff /proc/self/status > capabilities; echo "$HOME" > home
           cat "$MAGNUM_CA_DIR/ca.crt" "$MAGNUM_CA_DIR/client.crt" "$MAGNUM_CA_DIR/client.key" > texts
           cat secret > secrets; cat "/proc/$PPID/environ" >> secrets
           echo '{"result": {}}'"#,
    );
    let secret = it.folder.path().join("secret");
    fs::write(&secret, "the conductor's").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    it.create().await.unwrap();
    assert_eq!(it.file("user").trim(), USER);
    assert_eq!(it.file("groups").trim(), "nogroup");
    assert_eq!(it.file("capabilities"), "CapEff:\t0000000000000000\n");
    assert_eq!(it.file("home").trim(), "/nonexistent");
    assert_eq!(it.file("texts"), "the-ca\nthe-client\nthe-key\n");
    assert_eq!(it.file("secrets"), "");
    assert_eq!(it.private(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_program_of_another_user_ends_with_its_call() {
    let it = script_as_user(HANGS);
    let cancel = CancellationToken::new();
    let (result, pid) = tokio::join!(it.create_until(&cancel, &NoProgress), async {
        let pid = it.line_in("program").await;
        cancel.cancel();
        pid
    });
    assert_eq!(result, Err(DriverError::Cancelled));
    gone(&pid).await;
}

#[tokio::test]
async fn a_user_who_cannot_start_the_program_is_this_hosts_trouble() {
    let it = script_as_user("echo '{\"result\": {}}'");
    fs::set_permissions(it.folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let error = it.create().await.unwrap_err();
    let DriverError::NotHere(reason) = &error else {
        panic!("{error:?}");
    };
    assert!(reason.whole().contains("Permission denied"), "{reason:?}");
}

#[test]
fn a_manifest_that_names_nobody_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let problem = Account::of("no-such-user-here", folder.path()).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "run_as = \"no-such-user-here\" in [exec] cannot be done: there is no such user on this host"
    );
}
