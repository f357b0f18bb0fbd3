//! `Stats`: how many clusters and nodes there are, masters included.

use magnum_common::context::RequestContext;
use magnum_db::AnyConnection;
use magnum_db::read::clusters as read;
use magnum_objects::records::Stats;
use magnum_objects::{object_of, tables};

use super::arguments::Bound;
use super::class::{Class, Outcome, class_methods};
use super::failure::Failure;

pub(super) const CLASS: Class = Class {
    schema: &tables::STATS,
    class_methods: class_methods! { "Stats";
        reads "get_cluster_stats" (; project_id) get_cluster_stats,
    },
    instance_methods: &[],
};

/// Of one project, or of all: policy has decided who may ask for what.
fn get_cluster_stats(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let project = args.take("project_id");
    let project = project.as_str().filter(|project| !project.is_empty());
    let (clusters, nodes) = (read::count(conn, project)?, read::count_nodes(conn, project)?);
    let most = |count: i64| i32::try_from(count).unwrap_or(i32::MAX);
    let stats = Stats {
        clusters: most(clusters),
        nodes: Some(most(nodes)),
    };
    Ok(Outcome::Object(object_of(
        &stats,
        |_| true,
        &["clusters", "nodes"],
    )))
}
