//! Our configuration against the real oslo.config with the real Magnum's options: the same names and defaults,
//! and the same values from the same files. Where they differ on purpose, the difference stands here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use magnum_config::{ConfigArgs, DefaultText, Settings, dump, options};
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::run_dir::run_dir;
use serde_json::{Value, json};

/// Defaults that are ours on purpose, or that Magnum sets later than its option table says.
const OTHER_DEFAULTS: &[(&str, &str)] = &[
    // Magnum has none, and its heartbeat then fails.
    ("DEFAULT", "host"),
    // The program's own name.
    ("oslo_messaging_rabbit", "processname"),
    // Magnum's are inside its Python package.
    ("DEFAULT", "state_path"),
    ("DEFAULT", "pybasedir"),
    // Magnum replaces oslo's when it starts.
    ("DEFAULT", "control_exchange"),
    // The newest oslo.log no longer has it; files in the field do.
    ("DEFAULT", "watch_log_file"),
    // Loggers of Python libraries.
    ("DEFAULT", "default_log_levels"),
    // The newest oslo.policy always does so; files in the field say it.
    ("oslo_policy", "enforce_scope"),
    // Magnum says these in its api-paste.ini, and the newest oslo.middleware no longer has the path.
    ("healthcheck", "path"),
    ("healthcheck", "backends"),
    ("healthcheck", "disable_by_file_path"),
    // The number of processors is not in the option table.
    ("api", "workers"),
    ("conductor", "workers"),
];

/// A list that is written in quotes, since Python shows it without.
const QUOTES: char = '"';

#[tokio::test]
async fn names_and_defaults_are_those_of_magnum() -> Result<()> {
    let mut peer = OsloPeer::start("oslo_config_reader.py", &[]).await?;
    let shared: Vec<_> = options()
        .into_iter()
        .filter(|option| !option.ours && !option.secret)
        .collect();
    let names: Vec<_> = shared
        .iter()
        .map(|option| (option.section, option.name))
        .collect();
    let theirs = peer
        .ask(json!({"do": "read", "files": [], "options": names}))
        .await??;
    let mut different = Vec::new();
    for (option, theirs) in shared.iter().zip(theirs.as_array().context("no list")?) {
        let ours = match &option.default {
            DefaultText::Value(value) => value.clone(),
            DefaultText::Template(text) => Some((*text).to_owned()),
            DefaultText::Machine(_, value) => value.clone(),
        };
        let same = match theirs {
            Value::Bool(false) => false,
            theirs => {
                theirs.as_str().unwrap_or_default() == ours.clone().unwrap_or_default().replace(QUOTES, "")
            }
        };
        if !same && !OTHER_DEFAULTS.contains(&(option.section, option.name)) {
            different.push(format!(
                "[{}] {}: ours {ours:?}, theirs {theirs}",
                option.section, option.name
            ));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
    Ok(())
}

#[tokio::test]
async fn the_same_files_give_the_same_values() -> Result<()> {
    let cases: &[(&str, &[&str])] = &[
        (
            "both signs, spaces, comments",
            &[
                "[api]\nport=1\nmax_limit : 2 \n# port = 3\n;port = 4\n[cinder]\ndefault_boot_volume_type = a=b:c # d\n",
            ],
        ),
        (
            "quotes",
            &[
                "[cinder]\ndefault_boot_volume_type = \"a b\"\ndefault_etcd_volume_type = 'c\"\ndefault_docker_volume_type = \"\n",
            ],
        ),
        (
            "continuation",
            &[
                "[drivers]\ndisabled_drivers = a,\n  b,\n\tc\n\n[cinder]\ndefault_boot_volume_type = \"a\"\n  'b'\n",
            ],
        ),
        (
            "lists in quotes",
            &["[drivers]\ndisabled_drivers = \"a,b\"\nenabled_beta_drivers = c , d\n"],
        ),
        (
            "repeated keys",
            &[
                "[oslo_messaging_notifications]\ndriver = log\ndriver = noop\ntopics = a\ntopics = b\n[api]\nport = 1\nport = 2\n",
            ],
        ),
        (
            "several files",
            &[
                "[api]\nport = 1\nmax_limit = 1\n[oslo_messaging_notifications]\ndriver = log\n",
                "[API]\nport = 2\n[oslo_messaging_notifications]\ndriver = noop\n",
            ],
        ),
        (
            "booleans",
            &["[DEFAULT]\ndebug = On\nuse_json = 1\nuse_stderr = YES\n[api]\nenabled_ssl = no\n"],
        ),
        (
            "substitution",
            &[
                "[DEFAULT]\nlog_dir = $state_path/log\nstate_path = /srv/${host}\nhost = h\n[cinder]\ndefault_boot_volume_type = $default_etcd_volume_type-$$x-${api.port}-\\$y-$ z-$1\ndefault_etcd_volume_type = $state_path\n",
            ],
        ),
        (
            "deprecated names",
            &["[DEFAULT]\nlogdir = /log\nlogfile = m.log\n"],
        ),
        (
            "deprecated name in a later file",
            &["[DEFAULT]\nlog_dir = /a\n", "[DEFAULT]\nlogdir = /b\n"],
        ),
        (
            "choices, numbers",
            &[
                "[certificates]\ncert_manager_type = x509keypair\n[database]\nmax_pool_size = -1\npool_timeout =\n[x509]\nallowed_key_usage = Key Agreement, CRL Sign\n",
            ],
        ),
        (
            "a deployed file",
            &[include_str!(
                "../../../common/config/tests/fixtures/deployed.conf"
            )],
        ),
    ];
    let mut peer = OsloPeer::start("oslo_config_reader.py", &[]).await?;
    let folder = run_dir()?.folder("config")?;
    for (number, (what, texts)) in cases.iter().enumerate() {
        let mut files: Vec<PathBuf> = Vec::new();
        for (part, text) in texts.iter().enumerate() {
            files.push(folder.join(format!("{number}-{part}.conf")));
            std::fs::write(&files[part], text)?;
        }
        // An empty directory keeps the machine's own /etc/magnum/magnum.conf.d out.
        let dirs = vec![run_dir()?.folder("config-dir")?];
        let loaded = Settings::load(&ConfigArgs {
            files: files.clone(),
            dirs,
        })
        .with_context(|| (*what).to_owned())?;
        let ours = values(&dump(&loaded, &[])?);
        // Only what the files set: defaults are the other test's.
        let set: Vec<_> = options()
            .into_iter()
            .filter(|option| !option.ours && !option.secret)
            .filter(|option| loaded.place(option.section, option.name).to_string() != "default")
            .map(|option| (option.section, option.name))
            .collect();
        assert!(!set.is_empty(), "{what}");
        let theirs = peer
            .ask(json!({"do": "read", "files": files, "options": set}))
            .await??;
        for ((section, name), theirs) in set.iter().zip(theirs.as_array().context("no list")?) {
            let ours = ours
                .get(&format!("{section}.{name}"))
                .map_or(Value::Null, |text| json!(text));
            assert_eq!(&ours, theirs, "{what}: [{section}] {name}");
        }
    }
    Ok(())
}

/// The values of a dump by `section.name`, without those that are not set.
fn values(dump: &str) -> BTreeMap<String, String> {
    let mut section = "";
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in dump.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some(more) = line.strip_prefix("  ") {
            let value = found.entry(last.clone()).or_default();
            value.push('\n');
            value.push_str(more);
        } else if let Some((name, value)) = line.split_once(" =").filter(|_| !line.starts_with('#')) {
            last = format!("{section}.{name}");
            found.insert(last.clone(), value.trim_start().replace("$$", "$"));
        }
    }
    found
}
