//! What is made for a cluster says what Magnum's says, and OpenSSL verifies it.

use anyhow::Result;
use magnum_common::clock::utc_now;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::{Backend, TestDatabase};
use magnum_x509::authority::{Authority, KeyPair};
use magnum_x509::key::{KeyKind, PrivateKey};
use serde_json::{Value, json};

use super::Bench;
use magnum_tests::probe;

const DAYS: u32 = 1825;

fn set(kind: KeyKind) -> Result<(KeyPair, KeyPair)> {
    let (ca, pair) = Authority::new("k8s-ü", PrivateKey::generate(kind)?, DAYS, utc_now().into())?;
    let client = ca.client(&PrivateKey::generate(kind)?, DAYS, utc_now().into())?;
    Ok((pair, client))
}

fn put(bench: &Bench, name: &str, pair: &KeyPair) -> Result<()> {
    bench.write(&format!("{name}.pem"), &pair.certificate)?;
    bench.write(&format!("{name}.key"), pair.private_key.expose())?;
    let passphrase = pair.passphrase.as_ref().map_or("", |text| text.expose());
    bench.write(&format!("{name}.pass"), passphrase)
}

/// What `openssl x509 -text` says, without what is different each time.
fn says(bench: &Bench, name: &str) -> Result<Vec<String>> {
    let text = bench.openssl(&format!(
        "x509 -in {name}.pem -noout -text -certopt no_serial,no_validity,no_sigdump -nameopt RFC2253"
    ))?;
    let is_hex = |line: &str| {
        line.split(':')
            .all(|part| part.len() <= 2 && part.chars().all(|c| c.is_ascii_hexdigit()))
    };
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !is_hex(line))
        .map(str::to_owned)
        .collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_verifies_and_its_keys_open_with_their_passphrases() -> Result<()> {
    for kind in [KeyKind::Rsa(2048), KeyKind::EcdsaP256] {
        let bench = Bench::new()?;
        let (ca, client) = set(kind)?;
        put(&bench, "ca", &ca)?;
        put(&bench, "client", &client)?;
        bench.openssl("verify -x509_strict -CAfile ca.pem -purpose sslclient client.pem")?;
        for name in ["ca", "client"] {
            let public = bench.openssl(&format!("x509 -in {name}.pem -noout -pubkey"))?;
            let of_key = bench.openssl(&format!("pkey -in {name}.key -passin file:{name}.pass -pubout"))?;
            assert_eq!(public, of_key, "{kind:?}");
            let (_, _, opened) = bench.try_openssl(&format!("pkey -in {name}.key -passin pass:wrong"))?;
            assert!(!opened, "the key is encrypted");
            let scheme = bench.openssl(&format!("asn1parse -in {name}.key"))?;
            for part in [
                "PBES2",
                "PBKDF2",
                "hmacWithSHA256",
                "aes-256-cbc",
                "INTEGER           :0800",
            ] {
                assert!(scheme.contains(part), "{part} in {scheme}");
            }
        }
        assert_eq!(
            bench
                .openssl("x509 -in client.pem -noout -subject -nameopt RFC2253")?
                .trim(),
            "subject=O=system:masters,CN=admin"
        );
    }
    Ok(())
}

#[test]
fn validity_is_a_day_back_and_the_term_ahead_in_utc() -> Result<()> {
    let bench = Bench::new()?;
    let (ca, _) = set(KeyKind::EcdsaP256)?;
    put(&bench, "ca", &ca)?;
    let day = 24 * 60 * 60;
    // Still valid a minute before the end, no longer a minute after.
    bench.openssl(&format!(
        "x509 -in ca.pem -noout -checkend {}",
        u64::from(DAYS) * day - 60
    ))?;
    let end = u64::from(DAYS) * day + 60;
    assert!(
        !bench
            .try_openssl(&format!("x509 -in ca.pem -noout -checkend {end}"))?
            .2
    );
    let start = bench.openssl("x509 -in ca.pem -noout -startdate -dateopt iso_8601")?;
    let start = start.trim().trim_start_matches("notBefore=");
    let start = chrono::NaiveDateTime::parse_from_str(start, "%Y-%m-%d %H:%M:%SZ")?.and_utc();
    let ago = (utc_now() - start).num_seconds();
    assert!((86_400..86_460).contains(&ago), "{ago}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_equal_the_real_magnums_except_for_the_authority_key_identifier() -> Result<()> {
    let bench = Bench::new()?;
    let database = TestDatabase::empty(Backend::Mariadb).await?;
    probe::migrated(&database).await?;
    let mut peer = super::stores::magnum(&bench, &database).await?;
    let refs = peer
        .ask(json!({"do": "generate", "name": "k8s-ü", "project": "p", "user": "u"}))
        .await??;
    for (name, reference) in [("ca", &refs["ca"]), ("client", &refs["magnum"])] {
        let got = read(&mut peer, reference).await?;
        bench.write(
            &format!("theirs-{name}.pem"),
            got["certificate"].as_str().unwrap(),
        )?;
    }
    let (ca, client) = set(KeyKind::Rsa(2048))?;
    put(&bench, "ours-ca", &ca)?;
    put(&bench, "ours-client", &client)?;
    for name in ["ca", "client"] {
        let (mut ours, mut theirs) = (
            says(&bench, &format!("ours-{name}"))?,
            says(&bench, &format!("theirs-{name}"))?,
        );
        let identifier = "X509v3 Authority Key Identifier:";
        assert!(ours.iter().any(|line| line == identifier));
        ours.retain(|line| line != identifier);
        // The order of extensions means nothing.
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs, "{name}");
    }
    Ok(())
}

async fn read(peer: &mut OsloPeer, reference: &Value) -> Result<Value> {
    Ok(peer
        .ask(json!({"do": "get", "ref": reference, "project": "p"}))
        .await??)
}
