//! The dialect and the option table, end to end: text in, settings or problems out.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::config_section;

/// A configuration as it is found in deployments: sections of several services, options of old releases.
const DEPLOYED: &str = include_str!("../tests/fixtures/deployed.conf");

fn load(files: &[&str], environment: &[(&str, &str)]) -> Result<Loaded, ConfigErrors> {
    let dir = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (number, text) in files.iter().enumerate() {
        paths.push(dir.path().join(format!("{number}.conf")));
        fs::write(&paths[number], text).unwrap();
    }
    let environment = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Settings::load_from(&paths, Vec::new(), environment)
}

fn settings(text: &str) -> Settings {
    load(&[text], &[]).unwrap().settings
}

/// The problems of a text, each without its directory.
fn problems(text: &str) -> Vec<String> {
    load(&[text], &[]).unwrap_err().0.iter().map(short).collect()
}

fn warnings(text: &str) -> Vec<String> {
    load(&[text], &[]).unwrap().warnings.iter().map(short).collect()
}

fn short(problem: &Problem) -> String {
    let text = problem.to_string();
    text.rsplit_once("/0.conf")
        .map_or_else(|| text.clone(), |(_, rest)| rest.to_owned())
}

#[test]
fn nothing_configured_gives_the_defaults() {
    assert_eq!(load(&[], &[]).unwrap().settings, Settings::default());
    assert_eq!(load(&["[DEFAULT]\n"], &[]).unwrap().warnings, []);
}

#[test]
fn every_default_reads_back_as_itself() {
    let mut text = String::new();
    for option in options() {
        let value = match option.default {
            DefaultText::Value(Some(value)) => value,
            DefaultText::Template(template) => template.to_owned(),
            DefaultText::Machine(_, Some(value)) => value,
            DefaultText::Value(None) | DefaultText::Machine(_, None) => continue,
        };
        text.push_str(&format!("[{}]\n{} = {value}\n", option.section, option.name));
    }
    assert_eq!(settings(&text), Settings::default());
}

#[test]
fn every_option_has_a_help_text_and_a_unique_name() {
    let options = options();
    assert_eq!(specs().len(), options.len());
    for option in &options {
        let help = option.help.trim();
        assert!(
            help.ends_with('.') && help.len() > 5,
            "[{}] {}: {help:?}",
            option.section,
            option.name
        );
        for was in option.was {
            assert!(
                !specs().contains_key(&(was.0.to_owned(), was.1.to_owned())),
                "{was:?} is also a current name"
            );
        }
    }
}

#[test]
fn a_deployed_file_loads_with_warnings_only_for_deprecated_options() {
    let loaded = load(&[DEPLOYED], &[]).unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(short).collect();
    assert!(warnings.is_empty(), "{warnings:#?}");
    let settings = loaded.settings;
    assert_eq!(settings.trust.trustee_domain_name.as_deref(), Some("magnum"));
    assert_eq!(settings.default.host, "ctl1");
    assert_eq!(settings.api.workers, 5);
    assert_eq!(settings.database.max_pool_size, 1);
    assert_eq!(settings.database.max_retries, -1);
    assert_eq!(
        settings.certificates.cert_manager_type,
        CertManagerType::X509KeyPair
    );
    assert!(settings.rabbit.rabbit_quorum_queue && settings.rabbit.rabbit_transient_quorum_queue);
    assert_eq!(settings.oslo_messaging_notifications.driver, ["noop"]);
    assert_eq!(
        settings.keystone_authtoken.www_authenticate_uri.as_deref(),
        Some("http://10.0.0.10:5000/v3")
    );
    assert_eq!(
        settings.conductor.journal_key_file,
        Path::new("/var/lib/magnum/journal.key")
    );
}

#[test]
fn later_files_win_and_the_environment_wins_over_files() {
    let files = ["[api]\nport = 1\nmax_limit = 1\n", "[api]\nport = 2\nport = 3\n"];
    let loaded = load(
        &files,
        &[("OS_API__MAX_LIMIT", "7"), ("OS_DEFAULT__DEBUG", "yes")],
    )
    .unwrap();
    assert_eq!((loaded.settings.api.port, loaded.settings.api.max_limit), (3, 7));
    assert!(loaded.settings.default.debug);
    assert!(loaded.place("api", "port").to_string().ends_with("1.conf:3"));
    assert_eq!(
        loaded.place("api", "max_limit").to_string(),
        "environment OS_API__MAX_LIMIT"
    );
    assert_eq!(loaded.place("api", "workers"), &Place::Default);
}

#[test]
fn all_problems_are_reported_at_once_with_their_lines() {
    let text = "[api]\nport = none\nmax_limit = 0\n[DEFAULT\n[drivers]\ncluster_type_check = loose\n\
                [DEFAULT]\ntransport_url = rabbit://u:hunter2@h:x/\n[api]\nenabled_ssl = on\n";
    let error = load(&[text], &[("OS_DATABASE__CONNECTION", "hunter2")]).unwrap_err();
    let found: Vec<_> = error.0.iter().map(short).collect();
    assert_eq!(found.len(), 8, "{found:#?}");
    for expected in [
        ":4: a section line must end with `]`",
        ":2: [api] port: \"none\" is not a whole number",
        ":3: [api] max_limit: 0 is out of range (integer, 1 to 1000000)",
        ":6: [drivers] cluster_type_check: \"loose\" is not one of: strict, lenient",
        "default: [api] ssl_cert_file: must be set when enabled_ssl is true",
    ] {
        assert!(
            found.contains(&expected.to_owned()),
            "{expected} is missing in {found:#?}"
        );
    }
    assert!(
        found
            .iter()
            .any(|line| line.starts_with(":8: [DEFAULT] transport_url: has a host whose port"))
    );
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("environment OS_DATABASE__CONNECTION: [database] connection"))
    );
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn values_refer_to_other_options_wherever_they_stand() {
    let settings = settings(
        "[database]\nconnection = mysql://magnum:${keystone_auth.password}@h/magnum\n[conductor]\ntopic = t\n\
         [DEFAULT]\nstate-path = /srv/$host\nhost = h1\nlog_dir = $state_path/log\n[keystone_auth]\npassword = 'a$$b'\n",
    );
    assert_eq!(
        settings.database.connection.expose(),
        "mysql://magnum:a$b@h/magnum"
    );
    assert_eq!(settings.conductor.dead_letter_queue.as_deref(), Some("t.dead"));
    assert_eq!(
        settings.conductor.journal_key_file,
        Path::new("/srv/h1/journal.key")
    );
    assert_eq!(
        settings.default.log_dir.as_deref(),
        Some(Path::new("/srv/h1/log"))
    );
}

#[test]
fn an_unresolved_dollar_in_a_secret_is_reported_without_it() {
    let found = problems("[DEFAULT]\ntransport_url = rabbit://u:pa$word@h/\nlog_dir = $nowhere\n");
    assert!(
        found[0].starts_with(":2: [DEFAULT] transport_url: has a `$` whose name"),
        "{found:#?}"
    );
    assert!(
        !found[0].contains("word@") && !found[0].contains("$word"),
        "{found:#?}"
    );
    assert!(found[1].contains("`$nowhere` names no option"), "{found:#?}");
}

#[test]
fn deprecated_names_work_with_a_warning_and_the_current_name_wins() {
    let text = "[oslo_messaging_rabbit]\nrabbit_durable_queues = true\nssl = true\nrabbit_use_ssl = false\n\
                kombu_ssl_ca_certs = /ca.pem\n[DEFAULT]\nlogdir = /log\n[bay]\ntemp_cache_dir = /x\n";
    let loaded = load(&[text], &[]).unwrap();
    assert!(loaded.settings.rabbit.amqp_durable_queues && loaded.settings.rabbit.ssl);
    assert_eq!(
        loaded.settings.rabbit.ssl_ca_file.as_deref(),
        Some(Path::new("/ca.pem"))
    );
    assert_eq!(
        loaded.settings.default.log_dir.as_deref(),
        Some(Path::new("/log"))
    );
    assert_eq!(loaded.settings.cluster.temp_cache_dir, Path::new("/x"));
    let warnings: Vec<_> = loaded.warnings.iter().map(short).collect();
    assert_eq!(warnings.len(), 5, "{warnings:#?}");
    assert!(warnings.iter().any(|line| line
        == ":2: [oslo_messaging_rabbit] rabbit_durable_queues is deprecated; use [oslo_messaging_rabbit] \
            amqp_durable_queues"));
    // A deprecated name in a later file still beats the current name in an earlier one.
    let files = [
        "[oslo_messaging_rabbit]\nssl = true\n",
        "[oslo_messaging_rabbit]\nrabbit_use_ssl = false\n",
    ];
    assert!(!load(&files, &[]).unwrap().settings.rabbit.ssl);
}

#[test]
fn unknown_options_are_warned_about_once_and_only_in_our_sections() {
    let found = warnings(
        "[api]\nprot = 1\nprot = 2\n[DEFAULT]\nrootwrap_config = /x\nenabled_drivers = a\n[profiler]\nx = 1\n\
         [keystone_authtoken]\nservice_type = x\n[bay]\nregion_name = a\nca_file = b\n",
    );
    assert_eq!(found.len(), 3, "{found:#?}");
    assert_eq!(
        found[0],
        ":2: [api] prot is not an option of this release; check its spelling"
    );
    assert!(found[1].starts_with(":6: [DEFAULT] enabled_drivers belongs to an older release"));
    assert!(found[2].starts_with(":12: section [bay] belongs to an older release"));
}

#[test]
fn an_unknown_name_in_a_section_about_security_is_warned_about() {
    let found = warnings(
        "[keystone_authtoken]\nservice_token_role_required = true\nauth_version = v3\n[keystone_auth]\ncafiles = /x\n\
         [barbican_client]\ninsecure = true\nendpoint = internal\n[ssl]\nciphers = HIGH\nca_file = /x\n",
    );
    let begins = [
        ":2: [keystone_authtoken] service_token_role_required is not an option",
        ":5: [keystone_auth] cafiles is not an option",
        ":8: [barbican_client] endpoint is not an option",
        ":10: section [ssl] belongs to an older release and is ignored: TLS of the API",
    ];
    assert_eq!(found.len(), begins.len(), "{found:#?}");
    for (line, begin) in found.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
    }
}

#[test]
fn an_option_without_effect_that_somebody_may_rely_on_is_warned_about() {
    let found = warnings(
        "[DEFAULT]\nlog_config_append = /x\nlog_color = true\n[database]\nslave_connection = mysql://x\n\
         [oslo_messaging_rabbit]\nssl_version = TLSv1_2\nssl_enforce_fips_mode = true\n",
    );
    assert_eq!(found.len(), 4, "{found:#?}");
    assert_eq!(
        found[1],
        ":5: [database] slave_connection has no effect here: everything is read from [database] connection"
    );
    assert!(found.iter().all(|line| line.contains(" has no effect here: ")));
}

#[test]
fn values_that_magnum_takes_do_not_keep_a_program_from_starting() {
    let settings = settings(
        "[kubernetes]\nhealth_polling_interval = -1\n[quotas]\nmax_clusters_per_project = -1\n\
         [cluster]\npre_delete_lb_timeout = -1\n",
    );
    assert_eq!(settings.kubernetes.health_polling_interval, None);
    // Magnum compares the count with it, so that no cluster is below the limit.
    assert_eq!(settings.quotas.max_clusters_per_project, 0);
    assert_eq!(settings.cluster.pre_delete_lb_timeout, -1);
}

#[test]
fn a_certificate_manager_of_a_python_package_is_refused_with_the_way_out() {
    let problems = problems("[certificates]\ncert_manager_type = vault\n");
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(
        problems[0].contains(
            "\"vault\" is not one of: barbican, x509keypair, local; certificate managers of Python"
        ),
        "{problems:#?}"
    );
}

#[test]
fn repeated_keys_add_up_only_for_repeatable_options() {
    let settings = settings(
        "[oslo_messaging_notifications]\ndriver = log\ndriver = messagingv2\ntopics = a\ntopics = b,\n  c\n\
         [x509]\nallowed_key_usage = \"Digital Signature\", \"CRL Sign\"\n",
    );
    assert_eq!(
        settings.oslo_messaging_notifications.driver,
        ["log", "messagingv2"]
    );
    assert_eq!(settings.oslo_messaging_notifications.topics, ["b", "c"]);
    assert_eq!(
        settings.x509.allowed_key_usage,
        [X509KeyUsage::DigitalSignature, X509KeyUsage::CrlSign]
    );
}

#[test]
fn empty_values_mean_not_set_or_off() {
    let settings = settings(
        "[api]\nport =\nworkers = 0\nadmin_listen =\n[conductor]\ndead_letter_queue =\n[database]\nmysql_sql_mode =\n\
         pool_timeout =\n[drivers]\nopenstack_ca_file =\ndefault_driver =\n",
    );
    assert_eq!(settings.api.port, 9511);
    assert!(settings.api.workers > 0);
    assert_eq!(settings.conductor.dead_letter_queue, None);
    assert_eq!(settings.database.mysql_sql_mode, None);
    assert_eq!(settings.database.pool_timeout, None);
    assert_eq!(settings.drivers.openstack_ca_file, None);
}

#[test]
fn options_are_checked_against_each_other() {
    let found = problems(
        "[conductor]\noperation_retry_initial = 10\noperation_retry_max_interval = 5\nupdate_timeout = 0.001\n\
         dead_letter_queue = $topic\n[oslo_messaging_rabbit]\nssl_key_file = /k\n",
    );
    assert_eq!(found.len(), 4, "{found:#?}");
    let found =
        warnings("[DEFAULT]\nservice_down_time = 30\nuse_syslog = true\n[conductor]\ntopic = other\n");
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn durations_have_the_unit_of_their_option() {
    let settings = settings("[conductor]\nupdate_timeout = 2\nstatus_poll_interval = 0.2\n");
    assert_eq!(settings.conductor.update_timeout, Duration::from_secs(120));
    assert_eq!(
        settings.conductor.status_poll_interval,
        Duration::from_millis(200)
    );
}

#[test]
fn neither_the_dump_nor_debug_output_shows_a_password() {
    let loaded = load(&[&DEPLOYED.replace("secret", "hunter2")], &[]).unwrap();
    let shown = format!("{}{:?}", dump(&loaded, &[]).unwrap(), loaded.settings);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(
        shown.contains("connection = mysql+pymysql://magnum:***@10.0.0.10:3306/magnum"),
        "{shown}"
    );
}

#[test]
fn dump_names_the_source_of_each_value_and_reads_back() {
    let loaded = load(
        &["[DEFAULT]\nhost = h$$1\n[api]\nport = 1\n"],
        &[("OS_API__MAX_LIMIT", "7")],
    )
    .unwrap();
    let text = dump(&loaded, &[]).unwrap();
    assert!(text.contains("/0.conf:2\nhost = h$$1\n"), "{text}");
    assert!(
        text.contains("# environment OS_API__MAX_LIMIT\nmax_limit = 7\n"),
        "{text}"
    );
    assert!(text.contains("# default: not set\n# admin_listen =\n"), "{text}");
    assert_eq!(settings(&text), loaded.settings);
}

config_section! {
    /// An engine.
    EngineSection "some_engine" {
        /// Where it is.
        place: PathBuf as Path = PathBuf::from("/srv/magnum/x"), template "$state_path/x";
        /// How many.
        count: u32 as Int<1, 9> = 3, was [("old_engine", "number")];
    }
}

#[test]
fn a_section_of_another_crate_is_read_from_the_same_files_when_it_is_wanted() {
    let text = "[DEFAULT]\nstate_path = /var/m\n[old_engine]\nnumber = 4\n[some_engine]\ncuont = 5\n";
    let loaded = load(&[text], &[]).unwrap();
    assert_eq!(loaded.warnings, [], "nobody has asked for it yet");
    let read = loaded.settings.section::<EngineSection>().unwrap();
    assert_eq!(
        (read.section.place.to_str(), read.section.count),
        (Some("/var/m/x"), 4)
    );
    assert_eq!(
        read.warnings.iter().map(short).collect::<Vec<_>>(),
        [
            ":4: [old_engine] number is deprecated; use [some_engine] count",
            ":6: [some_engine] cuont is not an option of this release; check its spelling",
        ]
    );
    let by_variable = load(&[text], &[("OS_SOME_ENGINE__COUNT", "7")]).unwrap();
    assert_eq!(
        by_variable
            .settings
            .section::<EngineSection>()
            .unwrap()
            .section
            .count,
        7
    );
}

#[test]
fn problem_in_a_declared_section_has_its_line_and_affects_no_other_section() {
    let loaded = load(&["[some_engine]\ncount = 10\n"], &[]).unwrap();
    let problems = loaded.settings.section::<EngineSection>().unwrap_err().0;
    assert_eq!(problems.len(), 1);
    let told = short(&problems[0]);
    assert!(told.starts_with(":2: [some_engine] count: "), "{told}");
    assert_eq!(Declared::of::<EngineSection>().warnings(&loaded.settings), []);
}

#[test]
fn sample_reference_and_dump_have_the_sections_of_other_crates() {
    let declared = [Declared::of::<EngineSection>()];
    assert!(sample(&declared).contains("[some_engine]\n# An engine.\n"));
    assert!(reference(&declared).contains("## [some_engine]"));
    let loaded = load(&["[some_engine]\ncount = 5\n"], &[]).unwrap();
    let text = dump(&loaded, &declared).unwrap();
    assert!(text.contains("/0.conf:2\ncount = 5\n"), "{text}");
}
