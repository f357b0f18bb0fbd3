//! `management-cluster check`: whether the Kubernetes that drivers for Cluster API work in has what they need.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use magnum_common::error::with_causes;
use magnum_management_cluster::access::{ManagementCluster, Source};
use magnum_management_cluster::needs::{Group, Needs};
use magnum_management_cluster::served::Standing;
use magnum_management_cluster::{Report, check};

use super::{Outcome, table};

/// What is asked of the management cluster.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Says whether it has what a driver needs: kinds, their versions, permissions
    #[command(
        long_about = "Reads the kubeconfig as a conductor would, and asks the management cluster which kinds it serves, in which \
        versions, and what the kubeconfig's account may do. Changes nothing. Ends with exit code 1 when something is missing."
    )]
    Check(CheckArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The kubeconfig, as `[capi_helm] kubeconfig_file` names it; unsaid: those of KUBECONFIG, or ~/.kube/config, or the account
    /// of this pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Whose needs are looked at
    #[arg(long, value_enum, default_value = "magnum-capi-helm")]
    driver: Driver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Driver {
    /// The package magnum-capi-helm
    MagnumCapiHelm,
}

impl Driver {
    const fn needs(self) -> Needs {
        match self {
            Self::MagnumCapiHelm => Needs::CapiHelm,
        }
    }
}

pub(super) async fn run(command: Command, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Outcome> {
    let Command::Check(args) = command;
    let cluster = match opened(&args).await {
        Ok(cluster) => cluster,
        Err(why) => return wrong(&why, err),
    };
    writeln!(
        out,
        "asking {} as {} says ...",
        cluster.address,
        cluster.source.named()
    )?;
    out.flush()?;
    match check(&cluster, args.driver.needs()).await {
        Ok(report) => told(&report, out, err),
        Err(why) => wrong(&with_causes(&why), err),
    }
}

async fn opened(args: &CheckArgs) -> Result<ManagementCluster, String> {
    let source = Source::find(args.kubeconfig.as_deref(), |name| env::var_os(name));
    let source = source.map_err(|why| why.to_string())?;
    ManagementCluster::open(source)
        .await
        .map_err(|why| with_causes(&why))
}

fn wrong(why: &str, err: &mut dyn Write) -> io::Result<Outcome> {
    writeln!(err, "{why}")?;
    Ok(Outcome::Wrong)
}

fn told(report: &Report, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Outcome> {
    writeln!(out, "Kubernetes {}", report.version)?;
    let rows = report.groups.iter().map(|(group, standing)| {
        let (version, missing) = cells(group, standing);
        vec![group.name.to_owned(), version, missing]
    });
    table::print(&["Kinds", "Version", "Missing"], &rows.collect::<Vec<_>>(), out)?;
    out.flush()?;
    for right in &report.denied {
        writeln!(err, "the account may not {right}")?;
    }
    if !report.denied.is_empty() {
        writeln!(
            err,
            "deploy/kubernetes has an account with all these permissions: apply it, and use its token"
        )?;
    }
    if report.is_good() {
        writeln!(out, "nothing is missing")?;
        return Ok(Outcome::Fine);
    }
    Ok(Outcome::Wrong)
}

/// The version that is spoken, and what is to be done.
fn cells(group: &Group, standing: &Standing) -> (String, String) {
    let version = match standing {
        Standing::Served(version) | Standing::Lacks { version, .. } => version.clone(),
        Standing::OtherVersions(others) => others.join(", "),
        Standing::Missing => String::new(),
    };
    (version, standing.remedy(group).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use magnum_management_cluster::rights::Right;

    use super::*;

    fn said(report: &Report) -> (Outcome, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let outcome = told(report, &mut out, &mut err).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (outcome, text(out), text(err))
    }

    #[test]
    fn check_names_missing_kinds_and_permissions_with_a_remedy() {
        let groups = Needs::CapiHelm.groups();
        let mut report = Report {
            version: "v1.33.1".into(),
            groups: vec![(&groups[0], Standing::Served("v1beta1".into()))],
            denied: Vec::new(),
        };
        let (outcome, out, err) = said(&report);
        assert_eq!(outcome, Outcome::Fine, "{out}{err}");
        assert!(err.is_empty(), "{err}");
        report.denied.push(Right {
            group: String::new(),
            resource: "namespaces".into(),
            verb: "patch".into(),
        });
        let (outcome, _, err) = said(&report);
        assert_eq!(outcome, Outcome::Wrong);
        assert!(err.contains("may not patch namespaces"), "{err}");
        report.denied.clear();
        for (standing, words) in [
            (Standing::Missing, "install Cluster API"),
            (
                Standing::OtherVersions(vec!["v1".into()]),
                "v1beta1: Cluster API is too old or too new",
            ),
            (
                Standing::Lacks {
                    version: "v1beta1".into(),
                    resources: vec!["machines"],
                },
                "machines: update Cluster API",
            ),
        ] {
            report.groups[0].1 = standing;
            let (outcome, out, _) = said(&report);
            assert_eq!(outcome, Outcome::Wrong);
            assert!(out.contains(words), "{out}");
        }
    }
}
