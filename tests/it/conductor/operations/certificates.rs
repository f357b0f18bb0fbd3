//! A cluster's certificates: made before the driver is called, replaced when it has taken new ones, and not left
//! behind.

use magnum_common::error::Exception;
use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_common::model::{Cluster, ClusterStatus};
use magnum_conductor::operations::State;
use magnum_conductor::operations::stored_reply::StoredReply;
use magnum_conductor::periodic::certificate_removal::CertificateRemoval;
use magnum_driver_api::{DriverError, DriverReport};
use magnum_tests::fake_driver::Act;
use magnum_tests::{TestDatabase, on_every_database};

use super::world::{World, as_call, create, rotate_ca};

fn refs(cluster: &Cluster) -> Vec<String> {
    let refs = [
        &cluster.ca_cert_ref,
        &cluster.magnum_cert_ref,
        &cluster.etcd_ca_cert_ref,
        &cluster.front_proxy_ca_cert_ref,
    ];
    refs.into_iter().flatten().cloned().collect()
}

async fn row(world: &World, cluster: &ClusterUuid) -> Cluster {
    world.cluster(cluster).await.expect("the cluster")
}

/// Certificates in the store.
async fn kept(world: &World) -> i64 {
    world
        .read(|conn| {
            use diesel::prelude::*;
            Ok(magnum_db::schema::x509keypair::table.count().get_result(conn)?)
        })
        .await
}

on_every_database! {
    async fn a_new_cluster_has_its_certificates_before_the_driver_is_called(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let refs = refs(&row(&world, &cluster).await);
        assert_eq!(refs.len(), 4);
        assert_eq!(world.driver.calls()[0].ca_cert_ref.as_ref(), Some(&refs[0]));
        for ca in [&refs[0], &refs[2], &refs[3]] {
            assert!(world.certificates().ca(ca).await.unwrap().contains("BEGIN CERTIFICATE"));
        }
        world.nothing_is_open().await;
    }

    async fn a_create_that_is_repeated_keeps_its_certificates(database: TestDatabase) {
        let world = World::new(&database).await;
        for _ in 0..2 {
            world.driver.then(Act::Fail(DriverError::Transient("busy".into())));
        }
        let asked = create();
        let cluster = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let _conductor = world.conductor("one");
        world.reaches(&operation, State::Succeeded).await;
        let refs = refs(&row(&world, &cluster).await);
        let seen: Vec<_> = world.driver.calls().into_iter().map(|call| call.ca_cert_ref).collect();
        assert_eq!(seen, vec![Some(refs[0].clone()); 3]);
        world.nothing_is_open().await;
    }

    async fn a_rotation_replaces_all_four_when_the_driver_has_taken_them(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let before = refs(&row(&world, &cluster).await);
        // The first attempt fails, the second one brings the same certificates.
        world.driver
            .then(Act::Fail(DriverError::Transient("busy".into())))
            .then(Act::Report(Box::new(DriverReport::status(ClusterStatus::UpdateComplete))));
        let operation = world.record(as_call(rotate_ca(&cluster))).await;
        conductor.wake();
        let done = world.reaches(&operation, State::Succeeded).await;
        let after = row(&world, &cluster).await;
        let new = refs(&after);
        assert!(before.iter().all(|old| !new.contains(old)), "{before:?} {new:?}");
        assert_eq!(after.status, Some(ClusterStatus::UpdateComplete));
        let seen: Vec<_> = world.driver.calls().into_iter().skip(1).map(|call| call.ca_cert_ref).collect();
        assert_eq!(seen, vec![Some(new[0].clone()); 2]);
        let answer = StoredReply::read(done.answer.as_deref().unwrap()).unwrap().unwrap();
        assert_eq!(answer["magnum_object.data"]["ca_cert_ref"], new[0].as_str());
        world.nothing_is_open().await;
    }

    async fn a_rotation_leaves_nothing_behind_whether_it_succeeds_or_not(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        // One that fails, after the new certificates were made.
        world.driver.then(Act::Fail(DriverError::NotSupported("not this one".into())));
        let failing = world.record(rotate_ca(&cluster)).await;
        conductor.wake();
        world.reaches(&failing, State::Failed).await;
        assert_eq!(kept(&world).await, 8, "the old ones and the new ones");
        // What was made is left alone for a moment, in case a request to the store is still under way.
        database.execute("UPDATE conductor_certificate_removal SET next_attempt_ms = 0").await.unwrap();
        let removal = CertificateRemoval {
            db: world.db.clone(),
            me: ConductorId::new("one"),
            certificates: world.certificates(),
        };
        removal.pass().await.unwrap();
        assert_eq!(kept(&world).await, 4, "the cluster's own");
        for reference in refs(&row(&world, &cluster).await) {
            assert!(world.certificates().ca(&reference).await.is_ok());
        }
        // One that succeeds takes the old ones away.
        let rotating = world.record(rotate_ca(&cluster)).await;
        conductor.wake();
        world.reaches(&rotating, State::Succeeded).await;
        removal.pass().await.unwrap();
        assert_eq!(kept(&world).await, 4);
        world.nothing_is_open().await;
    }

    async fn a_rotation_that_the_driver_cannot_do_leaves_the_cluster_as_it_was(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let before = row(&world, &cluster).await;
        for (error, status) in [
            (DriverError::NotSupported("not this one".into()), before.status),
            (DriverError::Permanent("a node is away".into()), Some(ClusterStatus::UpdateFailed)),
        ] {
            world.driver.then(Act::Fail(error));
            let operation = world.record(as_call(rotate_ca(&cluster))).await;
            conductor.wake();
            let done = world.reaches(&operation, State::Failed).await;
            let after = row(&world, &cluster).await;
            assert_eq!((refs(&after), after.status), (refs(&before), status));
            assert!(StoredReply::read(done.answer.as_deref().unwrap()).unwrap().is_err());
        }
        // Not from a failed cluster.
        let refused = world.record(as_call(rotate_ca(&cluster))).await;
        let answer = world.row(&refused).await.answer.unwrap();
        assert_eq!(StoredReply::read(&answer).unwrap().unwrap_err().exception, Exception::NotSupported);
        world.nothing_is_open().await;
    }
}
