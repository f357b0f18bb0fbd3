//! The drivers of the recording, on a conductor of ours.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use magnum_conductor::app::{Conductor, Given};
use magnum_config::Settings;
use magnum_db::Database;
use magnum_driver_api::GuardProgram;
use magnum_rpc::Transport;
use magnum_tests::process::built;
use magnum_tests::run_dir::run_dir;

/// Name, whether it is beta, the operating system that it provides, and what it can do besides.
pub const DRIVERS: [(&str, bool, &str, &[&str]); 5] = [
    (
        "fake_alpha",
        false,
        "ubuntu",
        &[
            "remove_named_nodes",
            "upgrade",
            "rotate_ca",
            "rotate_credential",
            "rebuild",
            "soft_reboot",
            "hard_reboot",
        ],
    ),
    ("fake_mid", false, "ubuntu", &[]),
    ("fake_preview", true, "flatcar", &[]),
    (
        "fake_zeta",
        false,
        "ubuntu",
        &["remove_named_nodes", "upgrade", "resize_masters"],
    ),
    ("zz_fake_beta", true, "ubuntu", &[]),
];

const PROGRAM: &str = include_str!("driver.py");

/// A folder with all of them, made once.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = run_dir().unwrap().folder("recorded-drivers").unwrap();
        for (name, beta, os, can) in DRIVERS {
            let own = folder.join(name);
            fs::create_dir(&own).unwrap();
            let can: String = can.iter().map(|name| format!("{name} = true\n")).collect();
            let manifest = format!(
                "[driver]\nname = \"{name}\"\nversion = \"1.0.0\"\nengine = \"exec\"\nbeta = {beta}\n\n\
                 [[provides]]\nserver_type = \"vm\"\nos = \"{os}\"\ncoe = \"kubernetes\"\n\n\
                 [capabilities]\n{can}\n[exec]\nprogram = \"driver.py\"\n"
            );
            fs::write(own.join("driver.toml"), manifest).unwrap();
            let program = own.join("driver.py");
            fs::write(&program, PROGRAM).unwrap();
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    })
}

/// A conductor that has them. It does not look after clusters that the sample rows say are in progress.
pub async fn conductor(settings: &Settings, database: Database, transport: Arc<dyn Transport>) -> Conductor {
    let mut settings = settings.clone();
    settings.drivers.driver_path = vec![folder().to_owned()];
    settings.default.periodic_enable = false;
    settings.conductor.journal_key_file = run_dir().unwrap().folder("key").unwrap().join("journal.key");
    settings.conductor.shutdown_timeout = Duration::from_secs(5);
    let given = Given {
        database: Some(database),
        transport: Some(transport),
        guard: Some(GuardProgram {
            program: built("magnum-conductor").unwrap(),
            arguments: Vec::new(),
        }),
    };
    let conductor = Conductor::start(&settings, given).await.unwrap();
    assert!(conductor.consuming().await, "the conductor takes requests");
    conductor
}
