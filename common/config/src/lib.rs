//! Configuration: oslo.config's dialect, read into typed sections.
//!
//! One `magnum.conf` serves these programs and the Python ones. [`Settings::load`] finds the files, reads the
//! environment, and gives either settings in which every value was checked, or *all* problems with the places
//! they were written at. Warnings are returned, not logged, since the log is not set up yet.
//!
//! Options are written once, in `config/sections/`: field, default, help, sample file, dump and documentation
//! come from the same line.
//!
//! What it does not do: command-line options other than `--config-file` and `--config-dir`, remote sources
//! (`config_source`), and reloading. It never prints a secret option.
//!
//! Differs from oslo.config: `$host`-like references work for every option, wherever it is declared; durations
//! accept fractions; unknown options in known sections are warned about. `docs/configuration.md` is the page for
//! operators.

mod check;
mod declared;
mod dump;
mod files;
mod ini;
pub mod key_file;
mod known;
mod log_level;
mod option_spec;
mod problem;
mod reader;
mod reference;
mod sample;
mod schema;
mod sections;
mod substitute;
mod url;
pub mod value;
mod without_effect;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

pub use declared::{Declared, SectionRead, Written};
pub use dump::dump;
pub use log_level::log_level;
pub use option_spec::{DefaultText, OptionSpec};
pub use problem::{ConfigErrors, Place, Problem};
pub use reader::Reader;
pub use reference::reference;
pub use sample::sample;
pub use schema::{Section, is_secret};
pub use sections::*;
pub use url::masked as masked_url;

use option_spec::Key;
use reader::Sources;

/// Where to find the configuration; part of every program's command line.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ConfigArgs {
    /// Configuration file; may be repeated, later files win. Default: magnum.conf and PROGRAM.conf in
    /// ~/.magnum, ~, /etc/magnum or /etc
    #[arg(long = "config-file", value_name = "FILE", global = true)]
    pub files: Vec<PathBuf>,
    /// Directory whose *.conf files are read after the files, sorted by name; may be repeated. Default:
    /// magnum.conf.d and PROGRAM.conf.d at the same places
    #[arg(long = "config-dir", value_name = "DIR", global = true)]
    pub dirs: Vec<PathBuf>,
}

macro_rules! settings {
    ($($(#[$meta:meta])* $field:ident: $section:ident,)*) => {
        /// Every option, checked.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Settings {
            $($(#[$meta])* pub $field: $section,)*
            /// Where files that options name by relative paths are looked for, first place first: beside the
            /// configuration, then the default places. No option.
            pub search_path: Vec<PathBuf>,
            /// The files that were read, in this order: later ones win. For programs that read them, too. No option.
            pub files: Vec<PathBuf>,
            /// What was written, for sections that other crates declare: see [`Settings::section`]. No option.
            pub written: Written,
        }

        impl Settings {
            fn read(reader: &mut Reader<'_>) -> Self {
                Self {
                    $($field: <$section as Section>::read(reader),)*
                    search_path: Vec::new(),
                    files: Vec::new(),
                    written: Written::default(),
                }
            }

            /// Every value as shown to people, in the order of [`options`].
            fn shown(&self) -> Vec<Option<String>> {
                let mut all = Vec::new();
                $(all.extend(self.$field.shown());)*
                all
            }
        }

        /// The sections, with what they are for.
        fn section_help() -> Vec<(&'static str, &'static str)> {
            vec![$((<$section as Section>::NAME, <$section as Section>::HELP),)*]
        }

        /// The option table, in the order of sections and declarations.
        pub fn options() -> Vec<OptionSpec> {
            let mut all = Vec::new();
            $(all.extend(<$section as Section>::specs());)*
            all
        }
    };
}

settings! {
    /// `[DEFAULT]`
    default: DefaultSection,
    /// `[api]`
    api: ApiSection,
    /// `[conductor]`
    conductor: ConductorSection,
    /// `[database]`
    database: DatabaseSection,
    /// `[oslo_messaging_rabbit]`
    rabbit: RabbitSection,
    /// `[oslo_messaging_notifications]`
    oslo_messaging_notifications: NotificationsSection,
    /// `[oslo_concurrency]`
    oslo_concurrency: ConcurrencySection,
    /// `[drivers]`
    drivers: DriversSection,
    /// `[cluster]`
    cluster: ClusterSection,
    /// `[cluster_template]`
    cluster_template: ClusterTemplateSection,
    /// `[kubernetes]`
    kubernetes: KubernetesSection,
    /// `[quotas]`
    quotas: QuotasSection,
    /// `[cinder]`
    cinder: CinderSection,
    /// `[certificates]`
    certificates: CertificatesSection,
    /// `[x509]`
    x509: X509Section,
    /// `[oslo_middleware]`
    oslo_middleware: OsloMiddlewareSection,
    /// `[oslo_policy]`
    oslo_policy: OsloPolicySection,
    /// `[cors]`
    cors: CorsSection,
    /// `[healthcheck]`
    healthcheck: HealthcheckSection,
    /// `[otlp]`
    otlp: OtlpSection,
    /// `[trust]`
    trust: TrustSection,
    /// `[keystone_auth]`
    keystone_auth: KeystoneAuthSection,
    /// `[keystone_authtoken]`
    keystone_authtoken: KeystoneAuthtokenSection,
    /// `[barbican_client]`
    barbican_client: BarbicanClientSection,
    /// `[glance_client]`
    glance_client: GlanceClientSection,
    /// `[nova_client]`
    nova_client: NovaClientSection,
    /// `[neutron_client]`
    neutron_client: NeutronClientSection,
    /// `[cinder_client]`
    cinder_client: CinderClientSection,
}

/// All sections with their help and options: ours, then those that other crates declare.
fn all_sections(declared: &[Declared]) -> Vec<(&'static str, &'static str, Vec<OptionSpec>)> {
    let options = options();
    let ours = section_help().into_iter().map(|(name, help)| {
        let of_it = options.iter().filter(|option| option.section == name);
        (name, help, of_it.cloned().collect())
    });
    let theirs = declared
        .iter()
        .map(|section| (section.name, section.help, section.options.clone()));
    ours.chain(theirs).collect()
}

/// The option table by name.
fn specs() -> &'static BTreeMap<Key, OptionSpec> {
    static SPECS: LazyLock<BTreeMap<Key, OptionSpec>> = LazyLock::new(|| {
        options()
            .into_iter()
            .map(|spec| ((spec.section.to_owned(), spec.name.to_owned()), spec))
            .collect()
    });
    &SPECS
}

/// Settings, and what to tell the operator about where they came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// What looks wrong but is harmless; log it once the log is set up.
    pub warnings: Vec<Problem>,
    /// The files that were read, in this order.
    pub files: Vec<PathBuf>,
    places: BTreeMap<Key, Place>,
}

impl Loaded {
    /// Where an option's value was written.
    pub fn place(&self, section: &str, name: &str) -> &Place {
        self.places
            .get(&(section.to_owned(), name.to_owned()))
            .unwrap_or(&Place::Default)
    }
}

impl Settings {
    /// Reads the configuration files that the arguments name, or the default ones, and the environment.
    ///
    /// # Errors
    /// A file cannot be read, or an option is malformed, out of range or contradicts another. All problems are reported
    /// together, each with its place; no value of a secret option is quoted.
    pub fn load(args: &ConfigArgs) -> Result<Loaded, ConfigErrors> {
        let (paths, missing) = files::find(
            args,
            &files::search_directories(),
            files::program_name().as_deref(),
        );
        let mut loaded = Self::load_from(
            &paths,
            missing,
            std::env::vars_os().filter_map(files::text_variable).collect(),
        )?;
        loaded.settings.search_path = files::beside(args, &paths);
        loaded.settings.files = paths;
        Ok(loaded)
    }

    fn load_from(
        paths: &[PathBuf],
        mut problems: Vec<Problem>,
        environment: BTreeMap<String, String>,
    ) -> Result<Loaded, ConfigErrors> {
        let mut entries = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let (found, wrong) = files::read(path, number);
            entries.extend(found);
            problems.extend(wrong);
        }
        let sources = Sources { entries, environment };
        let mut reader = Reader::new(&sources, specs());
        let mut settings = Self::read(&mut reader);
        let mut findings = reader.finish(|_| true);
        problems.append(&mut findings.problems);
        check::together(&settings, &findings.places, &mut problems, &mut findings.warnings);
        if !problems.is_empty() {
            return Err(ConfigErrors(problems));
        }
        settings.written = Written(Arc::new(sources));
        Ok(Loaded {
            settings,
            warnings: findings.warnings,
            files: paths.to_vec(),
            places: findings.places,
        })
    }
}

#[cfg(test)]
mod tests;
