//! `magnum-db-manage upgrade`: what it makes, what it adopts, what it refuses, on all three databases.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use diesel::prelude::*;
use magnum_common::ids::ClusterUuid;
use magnum_common::secret::Secret;
use magnum_conductor::cli::db_manage;
use magnum_conductor::seal::JournalKey;
use magnum_conductor::trusts::{self, Trusts};
use magnum_config::{DatabaseSection, Settings};
use magnum_db::migrate::{self, HEAD};
use magnum_db::{AnyConnection, Backend, Database, DbError, schema};
use magnum_driver_api::ClusterTrusts as _;
use magnum_tests::process::Launch;
use magnum_tests::{TestDatabase, on_every_database};

use magnum_tests::probe::{self, MAGNUM_TABLES};

const OUR_TABLES: [&str; 12] = [
    "conductor_cluster_driver",
    "conductor_cluster_health",
    "conductor_cluster_poll",
    "conductor_cluster_reservation",
    "conductor_cluster_trust",
    "conductor_driver",
    "conductor_key_pool",
    "conductor_object_answer",
    "conductor_operation",
    "conductor_operation_event",
    "conductor_pending_change",
    "conductor_project",
];

fn section(database: &TestDatabase) -> DatabaseSection {
    DatabaseSection {
        connection: Secret::new(database.url()),
        ..DatabaseSection::default()
    }
}

async fn definition(db: &Database, tables: &'static [&'static str]) -> Result<Vec<String>> {
    Ok(db.run(|conn| probe::definition(conn, tables)).await?)
}

/// What is in the database, tables and stamp, for "nothing was changed".
async fn everything(db: &Database) -> Result<Vec<String>> {
    Ok(db
        .run(|conn| {
            let mut all = probe::definition(conn, &MAGNUM_TABLES)?;
            all.extend(probe::raw_rows(conn, "alembic_version")?);
            let tables = match conn.backend() {
                Backend::Sqlite => "SELECT name AS line FROM sqlite_master WHERE type = 'table' ORDER BY 1",
                Backend::Mysql => {
                    "SELECT table_name AS line FROM information_schema.tables \
                     WHERE table_schema = DATABASE() ORDER BY 1"
                }
                Backend::Postgres => {
                    "SELECT CAST(table_name AS TEXT) AS line FROM information_schema.tables \
                     WHERE table_schema = 'public' ORDER BY 1"
                }
            };
            all.extend(probe::lines(conn, tables)?);
            Ok(all)
        })
        .await?)
}

/// The recorded database of Magnum 23, made to look like one of Magnum 18 to 22.
async fn as_release_22(database: &TestDatabase) -> Result<Database> {
    let db = probe::open(database).await?;
    probe::execute(&db, probe::fixture(database.backend, "magnum-23.0.0")).await?;
    probe::execute(&db, probe::fixture(database.backend, "sample-rows")).await?;
    for column in ["node_labels", "node_taints"] {
        probe::execute(&db, format!("ALTER TABLE nodegroup DROP COLUMN {column}")).await?;
    }
    for column in [
        "trust_id",
        "trustee_username",
        "trustee_user_id",
        "trustee_password",
    ] {
        probe::execute(
            &db,
            format!("ALTER TABLE cluster ADD COLUMN {column} VARCHAR(255)"),
        )
        .await?;
    }
    probe::execute(&db, "UPDATE alembic_version SET version_num = 'c0f832afc4fd'").await?;
    Ok(db)
}

on_every_database! {
    /// Column by column, key by key, in the database's own words.
    async fn an_empty_database_gets_the_tables_of_magnum_23(database: TestDatabase) -> Result<()> {
        let report = migrate::upgrade(&section(&database)).await?;
        assert_eq!(report[0], format!("created Magnum's tables at revision {HEAD}"));
        let ours = probe::open(&database).await?;

        let recorded = TestDatabase::empty(database.backend).await?;
        let theirs = probe::open(&recorded).await?;
        probe::execute(&theirs, probe::fixture(database.backend, "magnum-23.0.0")).await?;

        assert_eq!(definition(&ours, &MAGNUM_TABLES).await?, definition(&theirs, &MAGNUM_TABLES).await?);
        let stamp = |conn: &mut AnyConnection| probe::raw_rows(conn, "alembic_version");
        assert_eq!(ours.run(stamp).await?, theirs.run(stamp).await?);
        migrate::check(&ours).await?;
        Ok(())
    }

    async fn a_database_of_magnum_23_keeps_its_rows_and_gets_our_tables(database: TestDatabase) -> Result<()> {
        let db = probe::open(&database).await?;
        probe::execute(&db, probe::fixture(database.backend, "magnum-23.0.0")).await?;
        probe::execute(&db, probe::fixture(database.backend, "sample-rows")).await?;
        let refused = migrate::check(&db).await.unwrap_err().to_string();
        assert!(refused.contains("run `magnum-db-manage upgrade`"), "{refused}");
        let before = db.run(|conn| probe::raw_rows(conn, "cluster")).await?;
        let tables = definition(&db, &MAGNUM_TABLES).await?;

        let report = migrate::upgrade(&section(&database)).await?;
        assert_eq!(
            report,
            [
                "applied 2026-11-21-000000_create_conductor_tables",
                "applied 2026-11-21-100000_create_object_answers",
                "applied 2026-11-21-110000_create_certificate_removal",
                "applied 2026-11-21-120000_add_certificate_removal_manager",
                "applied 2026-11-21-130000_create_cluster_reservation",
                "applied 2026-11-22-000000_create_cluster_health",
                "applied 2026-11-22-100000_create_key_pool",
                "applied 2026-11-22-110000_add_operation_trace",
                "applied 2026-11-22-130000_add_driver_api_routes",
                "applied 2026-11-23-000000_create_cluster_trust",
                "applied 2026-11-23-100000_create_pending_change",
                "applied 2026-11-24-000000_add_operation_lost_claims",
                "applied 2026-11-25-000000_add_operation_turn",
                "applied 2026-11-25-100000_add_project_reservations",
                "applied 2026-11-26-000000_add_operation_format",
                "applied 2026-11-26-100000_create_sealing",
                "applied 2026-11-26-200000_add_driver_journal_format",
            ]
        );
        assert_eq!(db.run(|conn| probe::raw_rows(conn, "cluster")).await?, before);
        assert_eq!(definition(&db, &MAGNUM_TABLES).await?, tables);
        assert_eq!(migrate::upgrade(&section(&database)).await?, Vec::<String>::new(), "nothing left to do");
        migrate::check(&db).await?;
        Ok(())
    }

    async fn a_database_of_magnum_22_is_brought_to_the_head(database: TestDatabase) -> Result<()> {
        let db = as_release_22(&database).await?;
        let refused = migrate::check(&db).await.unwrap_err().to_string();
        assert!(refused.contains("c0f832afc4fd") && refused.contains("magnum-db-manage upgrade"), "{refused}");

        migrate::upgrade(&section(&database)).await?;
        let names: Vec<_> = db.run(|conn| probe::columns(conn, "cluster")).await?;
        assert!(!names.iter().any(|name| name.starts_with("trust")), "{names:?}");
        let names: Vec<_> = db.run(|conn| probe::columns(conn, "nodegroup")).await?;
        assert!(names.contains(&"node_labels".to_owned()) && names.contains(&"node_taints".to_owned()));
        let version = migrate::version(&section(&database)).await?;
        assert_eq!(version.magnum.as_deref(), Some(HEAD.as_str()));
        let kept = db.run(|conn| probe::raw_rows(conn, "nodegroup")).await?;
        assert_eq!(kept.len(), 9);
        migrate::check(&db).await?;
        Ok(())
    }

    async fn trusts_of_magnum_22_are_kept_sealed_before_their_columns_go(database: TestDatabase) -> Result<()> {
        let db = as_release_22(&database).await?;
        let given = "UPDATE cluster SET trust_id = 't-1', trustee_username = 'n-1', trustee_user_id = 'u-1', \
                     trustee_password = 'hunter2' WHERE id = (SELECT * FROM (SELECT MIN(id) FROM cluster) AS first)";
        probe::execute(&db, given).await?;
        let refused = migrate::upgrade(&section(&database)).await.unwrap_err().to_string();
        assert!(refused.contains("1 clusters have a user or a trust"), "{refused}");
        let folder = tempfile::tempdir()?;
        let key = folder.path().join("journal.key");
        let saved = migrate::keep_trusts(&section(&database), trusts::keep, key.clone()).await?;
        assert!(saved.iter().any(|line| line.contains("trusts of 1 clusters")), "{saved:?}");
        let again = migrate::keep_trusts(&section(&database), trusts::keep, key.clone()).await?;
        assert_eq!(again, Vec::<String>::new());

        migrate::upgrade_keeping(&section(&database), trusts::keep, key.clone()).await?;
        migrate::check(&db).await?;
        let (sealed, uuids): (Vec<Vec<u8>>, Vec<Option<String>>) = db
            .run(|conn| {
                let sealed = schema::conductor_cluster_trust::table
                    .select(schema::conductor_cluster_trust::sealed_password)
                    .load(conn)?;
                Ok::<_, DbError>((sealed, schema::cluster::table.select(schema::cluster::uuid).load(conn)?))
            })
            .await?;
        assert_eq!(sealed.len(), 1);
        assert!(!sealed[0].windows(7).any(|part| part == b"hunter2"));
        let key = Arc::new(JournalKey::load(&key)?);
        let uuids: Vec<ClusterUuid> = uuids.into_iter().flatten().map(ClusterUuid::new).collect();
        let found = Trusts::new(&Settings::default(), db.clone(), key).of(&uuids).await?;
        let kept: Vec<_> = found.values().collect();
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].trust_id.as_str(), kept[0].trustee_user_id.as_str()), ("t-1", "u-1"));
        assert_eq!(kept[0].trustee_password.expose(), "hunter2");
        Ok(())
    }

    /// MySQL commits each step by itself: whatever was done already is not done again.
    async fn an_upgrade_that_was_cut_short_is_completed_by_the_next(database: TestDatabase) -> Result<()> {
        let db = as_release_22(&database).await?;
        probe::execute(&db, "ALTER TABLE cluster DROP COLUMN trustee_password").await?;
        probe::execute(&db, "ALTER TABLE nodegroup ADD COLUMN node_labels TEXT").await?;
        migrate::upgrade(&section(&database)).await?;
        migrate::check(&db).await?;
        Ok(())
    }

    async fn an_unknown_revision_is_refused_by_name_and_nothing_is_touched(database: TestDatabase) -> Result<()> {
        let db = probe::open(&database).await?;
        probe::execute(&db, probe::fixture(database.backend, "magnum-23.0.0")).await?;
        for revision in ["7da8489d6a68", "d7e6a4d39fe4", "fedcba987654"] {
            probe::execute(&db, format!("UPDATE alembic_version SET version_num = '{revision}'")).await?;
            let before = everything(&db).await?;
            let error = migrate::upgrade(&section(&database)).await.unwrap_err().to_string();
            assert!(error.contains(revision) && error.contains("Nothing was changed"), "{error}");
            assert_eq!(everything(&db).await?, before);
            let error = migrate::check(&db).await.unwrap_err().to_string();
            assert!(error.contains(revision), "{error}");
        }
        Ok(())
    }

    async fn tables_without_a_revision_are_refused_until_somebody_stamps_them(database: TestDatabase) -> Result<()> {
        let db = probe::open(&database).await?;
        probe::execute(&db, probe::fixture(database.backend, "magnum-23.0.0")).await?;
        probe::execute(&db, "DROP TABLE alembic_version").await?;
        let error = migrate::upgrade(&section(&database)).await.unwrap_err().to_string();
        assert!(error.contains("stamp"), "{error}");

        let error = migrate::stamp(&section(&database), "nonsense").await.unwrap_err().to_string();
        assert!(error.contains("'nonsense'"), "{error}");
        migrate::stamp(&section(&database), HEAD.as_str()).await?;
        migrate::upgrade(&section(&database)).await?;
        migrate::check(&db).await?;
        Ok(())
    }

    async fn a_stamp_that_lies_is_found_out(database: TestDatabase) -> Result<()> {
        as_release_22(&database).await?;
        migrate::stamp(&section(&database), "head").await?;
        let error = migrate::upgrade(&section(&database)).await.unwrap_err().to_string();
        assert!(error.contains("table nodegroup is not as revision"), "{error}");
        Ok(())
    }

    async fn our_tables_go_down_and_up_again_without_touching_magnums(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let ours = definition(&db, &OUR_TABLES).await?;
        let magnums = definition(&db, &MAGNUM_TABLES).await?;
        db.run(migrate::conductor::revert_all).await?;
        assert_eq!(definition(&db, &MAGNUM_TABLES).await?, magnums);
        let left = db
            .run(|conn| OUR_TABLES.iter().map(|table| probe::columns(conn, table)).collect::<Result<Vec<_>, _>>())
            .await?;
        assert!(left.iter().all(Vec::is_empty), "{left:?}");
        db.run(|conn| migrate::upgrade_on(conn).map(drop)).await?;
        assert_eq!(definition(&db, &OUR_TABLES).await?, ours);
        Ok(())
    }

    async fn two_upgrades_at_once_do_the_work_once(database: TestDatabase) -> Result<()> {
        let (one, other) = (section(&database), section(&database));
        let (one, other) = tokio::join!(migrate::upgrade(&one), migrate::upgrade(&other));
        let mut lengths = [one?.len(), other?.len()];
        lengths.sort_unstable();
        assert_eq!(lengths, [0, 18]);
        Ok(())
    }

    async fn empty_database_is_refused_with_the_command_to_run(database: TestDatabase) -> Result<()> {
        let error = migrate::check(&probe::open(&database).await?).await.unwrap_err().to_string();
        assert!(error.contains("run `magnum-db-manage upgrade`"), "{error}");
        assert_eq!(migrate::version(&section(&database)).await?.magnum, None);
        Ok(())
    }

    /// Both ways: diesel knows every column, and every column that diesel knows is there.
    async fn the_schema_in_rust_is_the_schema_in_the_database(database: TestDatabase) -> Result<()> {
        macro_rules! in_rust {
            ($conn:expr, $($table:ident),*) => {
                [$((
                    stringify!($table),
                    diesel::debug_query::<diesel::pg::Pg, _>(&schema::$table::table.select(schema::$table::all_columns)).to_string(),
                    schema::$table::table.limit(0).execute($conn).map(drop),
                )),*]
            };
        }
        probe::migrated(&database)
            .await?
            .run(|conn| {
                let tables = in_rust!(
                    conn, cluster, cluster_template, nodegroup, x509keypair, magnum_service, quotas, federation,
                    alembic_version, conductor_operation, conductor_operation_event, conductor_cluster_poll,
                    conductor_driver, conductor_cluster_driver, conductor_object_answer, conductor_certificate_removal,
                    conductor_cluster_reservation, conductor_project, conductor_key_pool, conductor_cluster_health
                );
                for (table, select, runs) in tables {
                    runs.unwrap_or_else(|error| panic!("{table}: {error}"));
                    let names = select.split(" FROM ").next().unwrap_or_default();
                    let mut names: Vec<String> = names
                        .trim_start_matches("SELECT ")
                        .split(", ")
                        .map(|name| name.rsplit('.').next().unwrap_or_default().trim_matches(['`', '"']).to_owned())
                        .collect();
                    names.sort();
                    assert_eq!(names, probe::columns(conn, table)?, "{table}");
                }
                Ok(())
            })
            .await?;
        Ok(())
    }
}

on_every_database! {
    /// The program itself, with a configuration file.
    async fn magnum_db_manage_reports_its_result_and_the_next_step(database: TestDatabase) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let config = folder.path().join("magnum.conf");
        let key = folder.path().join("state/journal.key");
        std::fs::write(
            &config,
            format!(
                "[database]\nconnection = {}\n[conductor]\njournal_key_file = {}\n",
                database.url().replace('$', "$$"),
                key.display()
            ),
        )?;
        let run = |words: &'static [&'static str]| {
            let args = ["magnum-db-manage", "--config-file", &config.display().to_string()]
                .into_iter()
                .chain(words.iter().copied())
                .map(str::to_owned)
                .collect::<Vec<_>>();
            async move {
                let args = <db_manage::Args as clap::Parser>::try_parse_from(args)?;
                let (mut out, mut err) = (Vec::new(), Vec::new());
                let code = db_manage::run(args, &mut out, &mut err).await?;
                anyhow::Ok((format!("{code:?}"), String::from_utf8(out)?, String::from_utf8(err)?))
            }
        };
        let (success, failure) = (format!("{:?}", ExitCode::SUCCESS), format!("{:?}", ExitCode::FAILURE));

        let (_, out, _) = run(&["version"]).await?;
        assert!(out.starts_with("Current DB revision is none\nmissing "), "{out}");
        let (code, out, err) = run(&["upgrade"]).await?;
        assert_eq!((&code, err.as_str()), (&success, ""));
        assert!(out.contains("created Magnum's tables") && out.contains("made the journal key file"), "{out}");
        assert!(key.exists());
        let (_, out, _) = run(&["upgrade", "head"]).await?;
        assert_eq!(out, "nothing to do: the database is at revision b3e1cf4a2d5e\n");
        let (_, out, _) = run(&["version"]).await?;
        assert!(out.starts_with("Current DB revision is b3e1cf4a2d5e\napplied "), "{out}");

        let (code, _, err) = run(&["upgrade", "c04e925e65c2"]).await?;
        assert_eq!(code, failure);
        assert!(err.contains("cannot upgrade to 'c04e925e65c2'"), "{err}");
        let (code, _, err) = run(&["stamp", "c04e925e65c2"]).await?;
        assert_eq!(code, failure);
        assert!(err.contains("'c04e925e65c2'"), "{err}");
        Ok(())
    }
}

on_every_database! {
    async fn another_services_database_is_called_that_and_left_alone(database: TestDatabase) -> Result<()> {
        let db = probe::open(&database).await?;
        for statement in [
            "CREATE TABLE alembic_version (version_num varchar(32) NOT NULL)",
            "INSERT INTO alembic_version VALUES ('29e87d24a316')",
            "CREATE TABLE access_token (id varchar(64))",
        ] {
            probe::execute(&db, statement).await?;
        }
        let section = section(&database);
        let told = [
            migrate::version(&section).await.map(drop).unwrap_err(),
            migrate::upgrade(&section).await.map(drop).unwrap_err(),
            migrate::stamp(&section, "head").await.map(drop).unwrap_err(),
            migrate::check(&db).await.unwrap_err(),
        ];
        for error in told {
            let error = error.to_string();
            assert!(error.contains("another service's") && error.contains("29e87d24a316"), "{error}");
        }
        let stamp = db.run(|conn| probe::raw_rows(conn, "alembic_version")).await?;
        assert_eq!(stamp.len(), 1, "{stamp:?}");
        assert!(db.run(|conn| probe::columns(conn, "cluster")).await?.is_empty());
        Ok(())
    }
}

/// Nobody has said which database: a person must see which one was made.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_of_the_default_database_says_which_one_that_is() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("magnum.conf");
    std::fs::write(
        &config,
        format!(
            "[DEFAULT]\nstate_path = {}\n[conductor]\njournal_key_file = {0}/key\n",
            folder.path().display()
        ),
    )?;
    let launch = Launch::program("magnum-db-manage")?
        .config(&config)
        .args(["upgrade"]);
    let finished = launch.finish().await?;
    assert!(finished.status.success(), "{}", finished.stderr);
    let file = folder.path().join("magnum.sqlite");
    let told = format!(
        "[database] connection is the default, sqlite:///{}",
        file.display()
    );
    assert!(finished.stderr.contains(&told), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("magnum.conf does not set it"),
        "{}",
        finished.stderr
    );
    assert!(file.exists());
    Ok(())
}

#[tokio::test]
async fn a_creation_that_mysql_cut_short_is_taken_up_again() -> Result<()> {
    let database = TestDatabase::empty(magnum_tests::Backend::Mariadb).await?;
    let db = probe::open(&database).await?;
    let script = probe::fixture(database.backend, "magnum-23.0.0");
    let half = script
        .split("CREATE TABLE `federation`")
        .next()
        .unwrap_or_default()
        .to_owned();
    probe::execute(&db, half).await?;
    migrate::upgrade(&section(&database)).await?;
    migrate::check(&db).await?;
    Ok(())
}

#[tokio::test]
async fn sqlite_in_a_missing_folder_is_an_error_that_names_it() {
    let section = DatabaseSection {
        connection: Secret::new("sqlite:////nonexistent/folder/magnum.sqlite"),
        ..DatabaseSection::default()
    };
    let error = migrate::upgrade(&section).await.unwrap_err();
    assert!(matches!(error, DbError::Refused(_)), "{error:?}");
    assert!(error.to_string().contains("does its folder exist"), "{error}");
}

/// A file that an administrator has made by asking would be one that the services cannot write.
#[tokio::test]
async fn asking_for_the_version_makes_no_file() -> Result<()> {
    let database = TestDatabase::empty(magnum_tests::Backend::Sqlite).await?;
    let url = format!("{}-missing", database.url());
    let mut section = section(&database);
    section.connection = Secret::new(url.clone());
    let version = migrate::version(&section).await?;
    assert_eq!((version.magnum, version.pending.len()), (None, 17));
    let path = url.strip_prefix("sqlite:///").unwrap_or_default();
    assert!(!path.is_empty() && !std::path::Path::new(path).exists(), "{path}");
    Ok(())
}

/// A server that is still starting, or a wrong address: the person at the terminal sees what is being waited for.
#[tokio::test(flavor = "multi_thread")]
async fn magnum_db_manage_logs_the_wait_for_a_server_and_then_gives_up() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let nobody = magnum_tests::ports::free_port()?;
    let config = folder.path().join("magnum.conf");
    std::fs::write(
        &config,
        format!(
            "[database]\nconnection = mysql://magnum:hidden@127.0.0.1:{nobody}/magnum\nmax_retries = 2\nretry_interval = 1\n"
        ),
    )?;
    let finished = Launch::program("magnum-db-manage")?
        .config(&config)
        .args(["version"])
        .finish()
        .await?;
    assert!(!finished.status.success());
    let said = &finished.stderr;
    assert!(said.contains("does not answer yet"), "{said}");
    assert!(said.contains("'127.0.0.1'"), "{said}");
    assert!(!said.contains("hidden"), "{said}");
    Ok(())
}
