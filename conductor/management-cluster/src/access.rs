//! Where the management cluster is written down, and the connection to it.
//!
//! The order is the one of kubectl and of the package magnum-capi-helm: the file that an option names, else those that
//! `KUBECONFIG` names, else `~/.kube/config`. Where there is none of them, the account of the pod in which the program runs, which
//! the package does not look for. What an option or `KUBECONFIG` names is not replaced by the next one when it cannot be read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

/// How long a connection may take to be made.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Who asks, for the API server's audit log.
const WHO_WE_ARE: &str = concat!("magnum/", env!("CARGO_PKG_VERSION"));
/// How long the server may be silent.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Where it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A kubeconfig that an option names.
    Option(PathBuf),
    /// What the variable `KUBECONFIG` names.
    Variable(OsString),
    /// `~/.kube/config`.
    Home(PathBuf),
    /// The account of the pod in which this program runs.
    Pod,
}

/// Why there is no connection to ask over.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Nothing names one.
    #[error(
        "no management cluster is named: give a kubeconfig by the option kubeconfig_file or by KUBECONFIG, or put it into {0:?}"
    )]
    NowhereNamed(PathBuf),
    /// A kubeconfig cannot be used.
    #[error("the kubeconfig {named} cannot be used")]
    Kubeconfig {
        /// Which one.
        named: String,
        /// Why.
        #[source]
        why: KubeconfigError,
    },
    /// The pod's account cannot be used.
    #[error("the account of this pod cannot be used")]
    Pod(#[source] Box<InClusterError>),
    /// The certificates or the address in it cannot be used.
    #[error("no client can be made for {0}")]
    Client(String, #[source] Box<kube::Error>),
}

impl Source {
    /// The first that there is.
    ///
    /// # Errors
    /// [`AccessError::NowhereNamed`].
    pub fn find(
        option: Option<&Path>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, AccessError> {
        if let Some(file) = option {
            return Ok(Self::Option(file.to_owned()));
        }
        if let Some(files) = variable("KUBECONFIG").filter(|files| !files.is_empty()) {
            return Ok(Self::Variable(files));
        }
        let home = PathBuf::from(variable("HOME").unwrap_or_default()).join(".kube/config");
        if home.is_file() {
            return Ok(Self::Home(home));
        }
        if variable("KUBERNETES_SERVICE_HOST").is_some() {
            return Ok(Self::Pod);
        }
        Err(AccessError::NowhereNamed(home))
    }

    /// For messages.
    pub fn named(&self) -> String {
        match self {
            Self::Option(file) | Self::Home(file) => format!("{}", file.display()),
            Self::Variable(files) => format!("{} of KUBECONFIG", files.display()),
            Self::Pod => "the account of this pod".to_owned(),
        }
    }

    pub(crate) fn client(&self, config: Config) -> Result<Client, AccessError> {
        Client::try_from(config).map_err(|why| AccessError::Client(self.named(), Box::new(why)))
    }

    async fn config(&self) -> Result<Config, AccessError> {
        let unusable = |why| AccessError::Kubeconfig {
            named: self.named(),
            why,
        };
        let kubeconfig = match self {
            Self::Pod => return Config::incluster().map_err(|why| AccessError::Pod(Box::new(why))),
            Self::Option(file) | Self::Home(file) => Kubeconfig::read_from(file),
            Self::Variable(files) => merged(files),
        };
        Config::from_custom_kubeconfig(kubeconfig.map_err(unusable)?, &KubeConfigOptions::default())
            .await
            .map_err(unusable)
    }
}

/// Several files are one configuration: of what two say, the first counts.
fn merged(files: &OsString) -> Result<Kubeconfig, KubeconfigError> {
    let mut all = Kubeconfig::default();
    for file in std::env::split_paths(files).filter(|file| !file.as_os_str().is_empty()) {
        all = all.merge(Kubeconfig::read_from(file)?)?;
    }
    Ok(all)
}

/// A management cluster and the connection to it. Clones share it: one for a process, since each has a pool of its own.
#[derive(Clone)]
pub struct ManagementCluster {
    pub(crate) client: Client,
    /// What the client was made of.
    pub(crate) config: Config,
    /// Its address.
    pub address: String,
    /// Where it is written down.
    pub source: Source,
}

impl ManagementCluster {
    /// Reads where it is. Nothing is asked yet.
    ///
    /// # Errors
    /// What is written down cannot be used.
    pub async fn open(source: Source) -> Result<Self, AccessError> {
        let mut config = source.config().await?;
        config.connect_timeout = Some(CONNECT_WITHIN);
        config.read_timeout = Some(ANSWER_WITHIN);
        config
            .headers
            .push((USER_AGENT, HeaderValue::from_static(WHO_WE_ARE)));
        Ok(Self {
            client: source.client(config.clone())?,
            address: config.cluster_url.to_string(),
            config,
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(option: Option<&str>, variables: &[(&str, &str)]) -> Result<Source, String> {
        let variable = |name: &str| {
            let of_that_name = variables.iter().find(|(one, _)| *one == name);
            of_that_name.map(|(_, value)| OsString::from(value))
        };
        Source::find(option.map(Path::new), variable).map_err(|error| error.to_string())
    }

    #[test]
    fn an_option_counts_before_the_variable_the_home_and_the_pod() {
        let home = tempfile::tempdir().unwrap();
        let in_home = home.path().join(".kube/config");
        let at = home.path().to_str().unwrap();
        std::fs::create_dir(home.path().join(".kube")).unwrap();
        std::fs::write(&in_home, "").unwrap();
        let all = [
            ("KUBECONFIG", "/a:/b"),
            ("HOME", at),
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ];
        assert_eq!(found(Some("/o"), &all), Ok(Source::Option("/o".into())));
        assert_eq!(found(None, &all), Ok(Source::Variable("/a:/b".into())));
        assert_eq!(found(None, &all[1..]), Ok(Source::Home(in_home)));
        assert_eq!(found(None, &all[2..]), Ok(Source::Pod));
        assert_eq!(found(None, &[("KUBECONFIG", ""), all[2]]), Ok(Source::Pod));
        let error = found(None, &[("HOME", "/nowhere")]).unwrap_err();
        assert!(error.contains("/nowhere/.kube/config"), "{error}");
    }
}
