//! Rows that real Magnum wrote are read field by field, and ours are the same bytes, on all three databases.

use anyhow::{Context as _, Result};
use diesel::prelude::*;
use indexmap::IndexMap;
use magnum_common::context::RequestContext;
use magnum_common::ids::{ClusterUuid, NodeGroupUuid, TemplateUuid};
use magnum_common::model::{
    Cluster, ClusterStatus, ClusterTemplate, Federation, HealthStatus, MagnumService, NodeGroup, Quota,
    StringMap, Timestamp, X509KeyPair,
};
use magnum_db::read::{self, Page, SortDir, SortKey, Tenancy, cluster_templates, clusters, node_groups};
use magnum_db::rows::json::to_text;
use magnum_db::rows::{
    ClusterRow, ClusterTemplateRow, FederationRow, MagnumServiceRow, NodeGroupRow, QuotaRow, X509KeyPairRow,
};
use magnum_db::write::{self, cluster_templates::Written};
use magnum_db::{AnyConnection, Database, DbError, lock, schema};
use magnum_driver_api::{Driver as _, DriverReport, HealthReport, NodeGroupChanges, limits};
use magnum_tests::{TestDatabase, on_every_database};
use serde_json::json;

use magnum_tests::probe;

const PROJECT_A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const PROJECT_B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn cluster_uuid(number: u8) -> ClusterUuid {
    format!("000000c1-0000-4000-8000-00000000000{number}").into()
}

fn template_uuid(number: u8) -> TemplateUuid {
    format!("000000c7-0000-4000-8000-00000000000{number}").into()
}

/// The references of cluster 1 (ca, magnum, etcd, front proxy): each recording has its own.
const fn certificates(backend: magnum_tests::Backend) -> [&'static str; 4] {
    match backend {
        magnum_tests::Backend::Mariadb => [
            "42eaeb6c-423a-4a64-9483-56e8869490bc",
            "b9db58e9-5f46-4ee6-bab4-87e2d05a0172",
            "3db89f2c-f72c-4a29-ab9d-3496e13f2ee9",
            "cc696d4e-270a-4366-a226-5f537c82c43f",
        ],
        magnum_tests::Backend::Postgres => [
            "1c02adad-f450-409e-ac33-5bb074e78339",
            "ca0c3e69-d393-460f-bb62-0c23c55e54e1",
            "b7224789-7e2e-49b3-b85d-ad83af3d5081",
            "27e6d83b-c47e-4107-94da-be075f3a97f3",
        ],
        magnum_tests::Backend::Sqlite => [
            "24e4bf08-4aa9-44ba-a17b-2a9c5960f22d",
            "bb2f85e5-2ba4-48ff-ba64-12a98697bae0",
            "48122487-cf27-46b0-801e-bbb452686ab0",
            "97914d30-aede-46b9-92e5-dadb53a5858d",
        ],
    }
}

fn at(text: &str) -> Option<Timestamp> {
    Some(Timestamp::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap())
}

fn map<const N: usize>(pairs: [(&str, &str); N]) -> StringMap {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// A migrated database with the recorded rows.
async fn sample(database: &TestDatabase) -> Result<Database> {
    let db = probe::migrated(database).await?;
    probe::execute(&db, probe::fixture(database.backend, "sample-rows")).await?;
    Ok(db)
}

fn all<T, R>(rows: Vec<R>) -> Result<Vec<T>, DbError>
where
    T: TryFrom<R>,
    T::Error: std::fmt::Display,
{
    rows.into_iter()
        .map(|row| T::try_from(row).map_err(|error| DbError::Schema(error.to_string())))
        .collect()
}

macro_rules! load {
    ($conn:expr, $table:ident, $row:ident) => {
        schema::$table::table
            .select($row::as_select())
            .order(schema::$table::id)
            .load::<$row>($conn)?
    };
}

/// The limits are checked without a database, so they count bytes by themselves.
#[test]
fn the_limits_of_a_report_count_json_as_rows_have_it() {
    let longest = 65_535;
    for text in [
        "plain",
        "\"quoted\\",
        "line\n\r\t\u{8}\u{c}",
        "\u{1}\u{7f}ü",
        "😀",
    ] {
        let address = format!("{text}, ");
        let fits = |addresses: &Vec<String>| {
            let mut group = NodeGroupChanges::of(NodeGroupUuid::random());
            group.node_addresses = Some(addresses.clone());
            let report = DriverReport {
                node_groups: vec![group],
                ..DriverReport::default()
            };
            limits::check(&report).is_ok()
        };
        let one = to_text(&[&address]).len() - "[]".len() + ", ".len();
        let mut addresses = vec![address; longest / one];
        let room = longest - to_text(&addresses).len();
        let last = addresses.last_mut().expect("several fit");
        last.push_str(&"x".repeat(room));
        assert_eq!(to_text(&addresses).len(), longest);
        assert!(fits(&addresses), "{text:?}");
        addresses[0].push('x');
        assert!(!fits(&addresses), "{text:?}");
    }
    let reasons = |length: usize| HealthReport {
        status: HealthStatus::Unhealthy,
        reasons: map([("ü", "ö"), ("api", &"x".repeat(length))]),
    };
    let room = longest - to_text(&reasons(0).reasons).len();
    let driver = magnum_tests::fake_driver::FakeDriver::new("fake");
    assert!(limits::accept_health(driver.info(), Ok(reasons(room))).is_ok());
    assert!(limits::accept_health(driver.info(), Ok(reasons(room + 1))).is_err());
}

on_every_database! {
    async fn recorded_clusters_read_field_by_field(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        let read: Vec<Cluster> = db.run(|conn| all(load!(conn, cluster, ClusterRow))).await?;
        assert_eq!(read.len(), 4);
        assert_eq!(read[0], Cluster {
            id: Some(1),
            uuid: cluster_uuid(1),
            name: some("prod"),
            project_id: some(PROJECT_A),
            user_id: some("11111111111111111111111111111111"),
            cluster_template_id: template_uuid(1),
            keypair: some("default-key"),
            docker_volume_size: None,
            labels: map([("kube_tag", "v1.31.4"), ("boot_volume_size", "20")]),
            master_flavor_id: some("m1.medium"),
            flavor_id: some("m1.small"),
            stack_id: some("prod-3f2a"),
            status: Some(ClusterStatus::CreateComplete),
            status_reason: some("Cluster created"),
            health_status: Some(HealthStatus::Healthy),
            health_status_reason: map([("api", "ok"), ("prod-default-worker-0.Ready", "True")]),
            create_timeout: Some(60),
            api_address: some("https://203.0.113.10:6443"),
            discovery_url: None,
            ca_cert_ref: some(certificates(database.backend)[0]),
            magnum_cert_ref: some(certificates(database.backend)[1]),
            etcd_ca_cert_ref: some(certificates(database.backend)[2]),
            front_proxy_ca_cert_ref: some(certificates(database.backend)[3]),
            coe_version: some("v1.31.4"),
            container_version: some("1.7.24"),
            fixed_network: None,
            fixed_subnet: None,
            floating_ip_enabled: true,
            master_lb_enabled: true,
            created_at: at("2026-01-02 03:04:05"),
            updated_at: at("2026-01-02 03:14:15"),
        });
        assert_eq!(read[1].labels["note"], "UTF-8: żółć 雲 🚀");
        assert_eq!(read[1].status, Some(ClusterStatus::CreateInProgress));
        assert_eq!(read[1].health_status, None);
        assert_eq!(read[1].health_status_reason, StringMap::new());
        assert_eq!((read[1].fixed_network.as_deref(), read[1].fixed_subnet.as_deref()), (Some("private"), Some("private-subnet")));
        assert!(!read[1].master_lb_enabled);
        assert_eq!(read[2].status, Some(ClusterStatus::CreateFailed));
        assert_eq!(read[2].status_reason.as_deref(), Some("ResourceInError: quota exceeded for resources: cores"));
        assert_eq!(read[2].docker_volume_size, Some(10));
        assert_eq!(read[2].updated_at, None);
        assert_eq!(read[3].status, Some(ClusterStatus::DeleteInProgress));
        Ok(())
    }

    async fn recorded_templates_and_node_groups_read_field_by_field(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        let templates: Vec<ClusterTemplate> = db.run(|conn| all(load!(conn, cluster_template, ClusterTemplateRow))).await?;
        assert_eq!(templates.len(), 3);
        let mut expected = ClusterTemplate::new(template_uuid(2));
        expected.id = Some(2);
        expected.project_id = some(PROJECT_A);
        expected.user_id = some("11111111111111111111111111111111");
        expected.name = some("k8s-1.32-bm");
        expected.image_id = some("00000001-1111-4111-8111-111111111111");
        expected.flavor_id = some("m1.small");
        expected.master_flavor_id = some("m1.medium");
        expected.keypair_id = some("default-key");
        expected.dns_nameserver = some("8.8.8.8,1.1.1.1");
        expected.external_network_id = some("public");
        expected.fixed_network = some("private");
        expected.fixed_subnet = some("private-subnet");
        expected.network_driver = some("calico");
        expected.apiserver_port = Some(6443);
        expected.cluster_distro = some("ubuntu");
        expected.coe = some("kubernetes");
        expected.http_proxy = some("http://proxy.example:3128");
        expected.https_proxy = some("http://proxy.example:3128");
        expected.no_proxy = some("10.0.0.0/8");
        expected.labels = map([("kube_tag", "v1.32.0"), ("note", "UTF-8: żółć 雲 🚀")]);
        expected.driver = some("fake_zeta");
        expected.created_at = at("2026-01-02 03:04:05");
        assert_eq!(templates[1], expected);
        assert!(templates[0].public && templates[0].master_lb_enabled);
        assert_eq!(templates[0].tags.as_deref(), Some("stable,2026"));
        assert_eq!((templates[2].driver.as_deref(), templates[2].hidden), (None, true));
        assert_eq!((templates[2].volume_driver.as_deref(), templates[2].docker_storage_driver.as_deref()), (Some("cinder"), Some("overlay2")));

        let groups: Vec<NodeGroup> = db.run(|conn| all(load!(conn, nodegroup, NodeGroupRow))).await?;
        assert_eq!(groups.len(), 9);
        let mut expected = NodeGroup::new(
            NodeGroupUuid::new("00000096-0000-4000-8000-000000000003"), "gpu", cluster_uuid(1), PROJECT_A, "gpu",
        );
        expected.id = Some(3);
        expected.labels = map([("kube_tag", "v1.31.4"), ("boot_volume_size", "20")]);
        expected.flavor_id = some("g1.large");
        expected.image_id = some("00000001-1111-4111-8111-111111111111");
        expected.stack_id = some("prod-3f2a");
        expected.status = Some(ClusterStatus::CreateComplete);
        expected.node_labels = map([("accelerator", "nvidia")]);
        expected.node_taints = vec![json!({"key": "gpu", "value": "true", "effect": "NoSchedule"})];
        expected.created_at = at("2026-01-02 03:04:05");
        assert_eq!(groups[2], expected);
        assert_eq!(groups[0].node_addresses, ["10.0.0.11", "10.0.0.12", "10.0.0.13"]);
        assert!(groups[0].is_master() && groups[0].is_default);
        assert_eq!((groups[1].min_node_count, groups[1].max_node_count), (1, Some(5)));
        assert_eq!(groups[6].status_reason.as_deref(), Some("quota exceeded"));
        Ok(())
    }

    async fn recorded_small_records_read_field_by_field(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        let services: Vec<MagnumService> = db.run(read::records::services).await?;
        assert_eq!(services.len(), 2);
        assert_eq!(services[1], MagnumService {
            id: Some(2),
            host: some("controller-2"),
            binary: some("magnum-conductor"),
            disabled: false,
            disabled_reason: None,
            last_seen_up: at("2026-01-02 03:14:15"),
            forced_down: false,
            report_count: 1,
            created_at: at("2026-01-02 03:04:05"),
            updated_at: at("2026-01-02 03:14:15"),
        });
        let quotas: Vec<Quota> = db.run(|conn| read::records::quotas(conn, None, &Page::default())).await?;
        assert_eq!(quotas[1], Quota {
            id: Some(2),
            project_id: some(PROJECT_B),
            resource: some("Cluster"),
            hard_limit: 2,
            created_at: at("2026-01-02 03:04:05"),
            updated_at: None,
        });
        let federations: Vec<Federation> = db.run(|conn| all(load!(conn, federation, FederationRow))).await?;
        assert_eq!(federations, [Federation {
            id: Some(1),
            uuid: some("000000fe-0000-4000-8000-000000000001"),
            name: some("fed"),
            project_id: some(PROJECT_A),
            hostcluster_id: some(cluster_uuid(1).as_str()),
            member_ids: Vec::new(),
            status: some("CREATE_COMPLETE"),
            status_reason: None,
            properties: map([("dns-zone", "example.com.")]),
            created_at: at("2026-01-02 03:04:05"),
            updated_at: None,
        }]);
        let pairs: Vec<X509KeyPair> = db.run(|conn| all(load!(conn, x509keypair, X509KeyPairRow))).await?;
        assert_eq!(pairs.len(), 8);
        let pair = &pairs[0];
        assert_eq!(pair.uuid.as_deref(), Some(certificates(database.backend)[0]));
        let certificate = pair.certificate.as_deref().context("a certificate")?;
        assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----\nMIIC") && certificate.contains("-----END"));
        assert!(pair.private_key.as_ref().is_some_and(|key| key.expose().contains("left out")));
        assert!(!format!("{pair:?}").contains("left out"), "a key is not shown");
        Ok(())
    }

    /// Read, write again, compare the raw text of every column of every table.
    async fn written_rows_are_byte_equal_to_magnums(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        macro_rules! rewritten {
            ($($table:ident $row:ident $model:ident),*) => {
                $({
                    let table = stringify!($table);
                    let recorded = db.run(move |conn| probe::raw_rows(conn, table)).await?;
                    assert!(!recorded.is_empty());
                    let ours = db
                        .transaction::<_, DbError, _>(move |conn| {
                            let models: Vec<$model> = all(load!(conn, $table, $row))?;
                            diesel::delete(schema::$table::table).execute(conn)?;
                            for model in &models {
                                diesel::insert_into(schema::$table::table).values($row::from(model)).execute(conn)?;
                            }
                            probe::raw_rows(conn, table)
                        })
                        .await?;
                    assert_eq!(ours, recorded, "{table}");
                })*
            };
        }
        rewritten!(
            cluster ClusterRow Cluster, cluster_template ClusterTemplateRow ClusterTemplate,
            nodegroup NodeGroupRow NodeGroup, x509keypair X509KeyPairRow X509KeyPair,
            magnum_service MagnumServiceRow MagnumService, quotas QuotaRow Quota, federation FederationRow Federation
        );
        Ok(())
    }

    async fn old_and_broken_rows_are_read_as_far_as_they_can_be(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        let change = |sql: &str| probe::execute(&db, sql.to_owned());
        change("UPDATE cluster SET status = 'PAUSED', labels = NULL WHERE id = 1").await?;
        change("UPDATE cluster SET labels = '[1]' WHERE id = 2").await?;
        change("UPDATE nodegroup SET node_count = NULL, min_node_count = NULL WHERE id = 3").await?;

        let list = db
            .run(|conn| clusters::list(conn, &Tenancy::All, &clusters::Filter::default(), &Page::default()))
            .await?;
        assert_eq!(list.len(), 3, "the unreadable row is left out, the others are there");
        assert_eq!((list[0].status, list[0].labels.len()), (None, 0));
        let page = |after| Page { limit: Some(2), after, ..Page::default() };
        let numbers = async |after| {
            let list = db
                .run(move |conn| clusters::list(conn, &Tenancy::All, &clusters::Filter::default(), &page(after)))
                .await;
            list.map(|list| list.into_iter().filter_map(|cluster| cluster.id).collect::<Vec<_>>())
        };
        assert_eq!(numbers(None).await?, [1, 3], "the page is filled up, so it does not look like the last one");
        assert_eq!(numbers(Some(3)).await?, [4]);
        let error = db.run(|conn| clusters::find_by_uuid(conn, &Tenancy::All, &cluster_uuid(2))).await.unwrap_err();
        assert!(matches!(error, DbError::Corrupt { table: "cluster", column: "labels", .. }), "{error:?}");
        let groups = db.run(|conn| node_groups::of_cluster(conn, &cluster_uuid(1))).await?;
        assert_eq!((groups[2].node_count, groups[2].min_node_count), (1, 0));
        Ok(())
    }

    async fn a_drivers_message_is_storable_whatever_is_in_it(database: TestDatabase) -> Result<()> {
        use magnum_db::rows::{ClusterChanges, FreeText};
        let db = sample(&database).await?;
        // As operators have it: three-byte text columns.
        if database.backend == magnum_tests::Backend::Mariadb {
            probe::execute(&db, "ALTER TABLE cluster CONVERT TO CHARACTER SET utf8mb3").await?;
        }
        let message = format!("🚀 nul: \0 {}", "ż".repeat(60_000));
        let stored = db
            .run(move |conn| {
                let changes = ClusterChanges {
                    status_reason: Some(Some(FreeText(message))),
                    ..ClusterChanges::default()
                };
                let row = schema::cluster::table.filter(schema::cluster::id.eq(1));
                diesel::update(row).set(&changes).execute(conn)?;
                let row: ClusterRow = row.select(ClusterRow::as_select()).first(conn)?;
                Ok(row)
            })
            .await?;
        let text = stored.status_reason.context("a reason")?.0;
        assert!(text.contains("żżż") && text.len() > 60_000);
        assert_eq!(stored.name.as_deref(), Some("prod"), "other columns are left alone");
        assert!(stored.updated_at.is_some_and(|time| Some(time.0) > at("2026-01-02 03:14:15")));
        Ok(())
    }

    async fn tenants_see_their_own_clusters_only(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        let seen = |tenancy: Tenancy| {
            let db = db.clone();
            async move {
                db.run(move |conn| {
                    let list = clusters::list(conn, &tenancy, &clusters::Filter::default(), &Page::default())?;
                    for number in 1..=4 {
                        let uuid = cluster_uuid(number);
                        let found = clusters::find_by_uuid(conn, &tenancy, &uuid)?.is_some();
                        assert_eq!(found, list.iter().any(|cluster| cluster.uuid == uuid));
                    }
                    Ok(list.iter().filter_map(|cluster| cluster.id).collect::<Vec<_>>())
                })
                .await
            }
        };
        assert_eq!(seen(Tenancy::All).await?, [1, 2, 3, 4]);
        assert_eq!(seen(Tenancy::Project(PROJECT_A.into())).await?, [1, 2]);
        assert_eq!(seen(Tenancy::User("44444444444444444444444444444444".into())).await?, [3, 4]);
        assert_eq!(seen(Tenancy::Nobody).await?, Vec::<i32>::new());

        let names = db.run(|conn| clusters::find_by_name(conn, &Tenancy::All, "prod")).await?;
        assert_eq!(names.len(), 2, "a name is not unique");
        let own = Tenancy::Project(PROJECT_B.into());
        let names = db.run(move |conn| clusters::find_by_name(conn, &own, "prod")).await?;
        assert_eq!(names[0].id, Some(4));
        assert_eq!(db.run(|conn| clusters::count(conn, Some(PROJECT_A))).await?, 2);
        assert_eq!(db.run(|conn| clusters::count_nodes(conn, None)).await?, 13);
        assert_eq!(
            db.run(clusters::count_by_project).await?,
            [(some(PROJECT_A), 2), (some(PROJECT_B), 2)]
        );
        Ok(())
    }

    async fn templates_are_visible_by_ownership_and_publicity(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        // 1: public. 2: private of A. 3: hidden of B. Another one, public and hidden, of a third project.
        let mut hidden = ClusterTemplate::new(template_uuid(9));
        hidden.project_id = some("c");
        (hidden.public, hidden.hidden) = (true, true);
        db.run(move |conn| write::cluster_templates::insert(conn, &hidden)).await?;
        let context = |value: serde_json::Value| match value {
            serde_json::Value::Object(map) => RequestContext::from_map(map),
            _ => RequestContext::default(),
        };
        let cases = [
            (json!({"project_id": PROJECT_A}), vec![1, 2]),
            (json!({"project_id": PROJECT_B}), vec![1, 3]),
            (json!({"user_id": "44444444444444444444444444444444"}), vec![1, 3]),
            (json!({}), vec![1]),
            (json!({"project_id": "d", "is_admin": true}), vec![1, 4]),
            (json!({"project_id": "d", "is_admin": true, "all_tenants": true}), vec![1, 2, 3, 4]),
        ];
        for (caller, expected) in cases {
            let visibility = cluster_templates::Visibility::of(&context(caller.clone()));
            let seen = db
                .run(move |conn| {
                    let list = cluster_templates::list(conn, &visibility, &Page::default())?;
                    for number in 1..=4 {
                        let found = cluster_templates::find_by_id(conn, &visibility, number)?.is_some();
                        assert_eq!(found, list.iter().any(|template| template.id == Some(number)), "{number}");
                    }
                    Ok(list)
                })
                .await?;
            assert_eq!(seen.iter().filter_map(|t| t.id).collect::<Vec<_>>(), expected, "{caller}");
        }
        Ok(())
    }

    /// By every column, in both directions: pages of one give the same order as the whole list.
    async fn pages_put_together_are_the_whole_list(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        db.run(|conn| {
            for column in probe::columns(conn, "cluster")? {
                let sort_key = SortKey::of_cluster(&column);
                assert!(sort_key.is_some(), "{column}");
                for sort_dir in [SortDir::Asc, SortDir::Desc] {
                    let list = |conn: &mut AnyConnection, limit, after| {
                        let page = Page { limit, after, sort_key, sort_dir };
                        clusters::list(conn, &Tenancy::All, &clusters::Filter::default(), &page)
                    };
                    let whole: Vec<_> = list(conn, None, None)?.into_iter().map(|c| c.id).collect();
                    assert_eq!(whole.len(), 4);
                    let mut pages = Vec::new();
                    let mut after = None;
                    while let Some(cluster) = list(conn, Some(1), after)?.pop() {
                        after = cluster.id;
                        pages.push(cluster.id);
                        assert!(pages.len() <= 4, "{column} {sort_dir:?} goes round");
                    }
                    assert_eq!(pages, whole, "{column} {sort_dir:?}");
                }
            }
            let page = Page { sort_key: SortKey::of_cluster("health_status"), ..Page::default() };
            let first = clusters::list(conn, &Tenancy::All, &clusters::Filter::default(), &page)?;
            assert_eq!(first[0].health_status, None, "no value comes first on every database");
            Ok(())
        })
        .await?;
        Ok(())
    }

    async fn filters_narrow_a_list(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        db.run(|conn| {
            let mut ids = |filter: clusters::Filter| {
                clusters::list(conn, &Tenancy::All, &filter, &Page::default())
                    .map(|list| list.iter().filter_map(|cluster| cluster.id).collect::<Vec<_>>())
            };
            let none = clusters::Filter::default;
            assert_eq!(ids(clusters::Filter { name: Some(some("prod")), ..none() })?, [1, 4]);
            let statuses = Some(ClusterStatus::IN_PROGRESS.iter().map(ToString::to_string).collect());
            assert_eq!(ids(clusters::Filter { statuses, ..none() })?, [2, 4]);
            assert_eq!(ids(clusters::Filter { node_count: Some(3), ..none() })?, [1, 4]);
            assert_eq!(ids(clusters::Filter { node_count: Some(0), ..none() })?, [2]);
            assert_eq!(ids(clusters::Filter { master_count: Some(3), ..none() })?, [1]);
            let template = some(template_uuid(1).as_str());
            assert_eq!(ids(clusters::Filter { cluster_template_id: Some(template), ..none() })?, [1, 4]);

            let groups = node_groups::of_clusters(conn, &[cluster_uuid(1), cluster_uuid(4), cluster_uuid(8)])?;
            assert_eq!(groups.len(), 2);
            assert_eq!(groups[&cluster_uuid(1)].len(), 3);
            let filter = node_groups::Filter { role: Some(some("worker")), ..node_groups::Filter::default() };
            let own = Tenancy::Project(PROJECT_A.into());
            let workers = node_groups::list(conn, &own, &cluster_uuid(1), &filter, &Page::default())?;
            assert_eq!(workers.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["default-worker"]);
            let other = Tenancy::Project(PROJECT_B.into());
            assert_eq!(node_groups::find_by_name(conn, &other, &cluster_uuid(1), "gpu")?, None);
            Ok(())
        })
        .await?;
        Ok(())
    }

    async fn a_template_in_use_hardly_changes_and_does_not_go(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        db.transaction::<_, DbError, _>(|conn| {
            let all = cluster_templates::Visibility::all();
            let used = cluster_templates::find_by_uuid(conn, &all, &template_uuid(1))?.ok_or(DbError::NotFound)?;
            let mut after = used.clone();
            after.name = some("renamed");
            assert_eq!(write::cluster_templates::update(conn, &used, &after)?, Written::Done);
            after.tags = some("t");
            after.image_id = some("other");
            assert_eq!(write::cluster_templates::update(conn, &used, &after)?, Written::Referenced);
            assert_eq!(write::cluster_templates::delete(conn, &used.uuid)?, Written::Referenced);

            diesel::delete(schema::cluster::table).execute(conn)?;
            assert_eq!(write::cluster_templates::update(conn, &used, &after)?, Written::Done);
            let stored = cluster_templates::find_by_uuid(conn, &all, &used.uuid)?.ok_or(DbError::NotFound)?;
            assert_eq!((stored.name.as_deref(), stored.image_id.as_deref()), (Some("renamed"), Some("other")));
            assert!(stored.updated_at.is_some());
            assert_eq!(write::cluster_templates::delete(conn, &used.uuid)?, Written::Done);
            assert_eq!(write::cluster_templates::delete(conn, &used.uuid)?, Written::Absent);
            assert_eq!(write::cluster_templates::update(conn, &used, &after)?, Written::Absent);
            Ok(())
        })
        .await?;
        let twice = db
            .run(|conn| {
                let template = ClusterTemplate::new(template_uuid(2));
                write::cluster_templates::insert(conn, &template)
            })
            .await;
        assert!(matches!(twice, Err(DbError::UniqueViolation { .. })), "{twice:?}");
        Ok(())
    }

    async fn a_heartbeat_counts_up_from_its_own_row(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        for _ in 0..2 {
            db.run(|conn| write::services::report(conn, "controller-1", "magnum-conductor")).await?;
            db.run(|conn| write::services::report(conn, "new-host", "magnum-conductor")).await?;
        }
        let counts: IndexMap<_, _> = db
            .run(read::records::services)
            .await?
            .into_iter()
            .map(|service| (service.host.unwrap_or_default(), (service.report_count, service.last_seen_up)))
            .collect();
        assert_eq!(counts["controller-1"].0, 3);
        assert_eq!(counts["new-host"].0, 2);
        assert_eq!(counts["controller-2"].0, 1, "others are left alone");
        assert!(counts["controller-1"].1 > at("2026-01-02 03:14:15"));
        Ok(())
    }

    async fn reservations_are_counted_and_removed_in_any_number(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        // More than a statement of any of the three databases takes values.
        let mut promised: Vec<String> = (0..70_000).map(|number| format!("promised-{number}")).collect();
        promised.push(cluster_uuid(1).to_string());
        let (all, besides) = db
            .transaction::<_, DbError, _>(move |conn| {
                let besides = clusters::count_besides(conn, PROJECT_A, &promised)?;
                write::cluster_reservations::remove(conn, &promised)?;
                Ok((clusters::count(conn, Some(PROJECT_A))?, besides))
            })
            .await?;
        assert_eq!(besides, all - 1);
        assert!(besides > 0);
        Ok(())
    }

    async fn locks_return_whether_the_row_exists(database: TestDatabase) -> Result<()> {
        let db = sample(&database).await?;
        let (there, absent) = db
            .transaction::<_, DbError, _>(|conn| {
                Ok((lock::cluster(conn, &cluster_uuid(1))?, lock::cluster(conn, &cluster_uuid(9))?))
            })
            .await?;
        assert!(there && !absent);
        Ok(())
    }
}
