//! `sign_certificate` and `get_ca_certificate`, asked as the real API asked them when it was recorded.

use anyhow::{Context as _, Result};
use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::OperationId;
use magnum_common::model::Cluster;
use magnum_conductor::certificates::Certificates;
use magnum_conductor::handlers::Answerer;
use magnum_conductor::handlers::question::{Question, Topic};
use magnum_conductor::store::clusters;
use magnum_conductor::workflows::CertificateRefs;
use magnum_config::CertManagerType;
use magnum_db::Database;
use magnum_tests::{TestDatabase, on_every_database};
use serde_json::{Map, Value, json};

use super::{Bench, admin, certificates, settings};
use magnum_tests::probe;

/// The recorded request, and the recorded answer.
fn recorded(method: &str) -> Result<(Value, Value)> {
    let read = |kind: &str| -> Result<Value> {
        let path = format!("{}/fixtures/rpc/{kind}-{method}.json", env!("CARGO_MANIFEST_DIR"));
        let frame: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        Ok(frame["inner"].clone())
    };
    Ok((read("request")?, read("reply")?))
}

/// The cluster of the recording, with certificates, and who asked.
struct World {
    db: Database,
    answerer: Answerer,
    certificates: Certificates,
    refs: CertificateRefs,
    asker: RequestContext,
}

impl World {
    async fn new(database: &TestDatabase) -> Result<Self> {
        let db = probe::migrated(database).await?;
        let certificates = certificates(&settings(CertManagerType::X509KeyPair), &db)?;
        let (request, _) = recorded("sign_certificate")?;
        let data = &request["args"]["cluster"]["magnum_object.data"];
        let text = |name: &str| data[name].as_str().map(str::to_owned);
        let mut cluster = Cluster::new(text("uuid").context("uuid")?.into(), "t".into());
        cluster.name = text("name");
        cluster.project_id = text("project_id");
        cluster.user_id = text("user_id");
        let refs = certificates
            .generate(&cluster, &admin(), &OperationId::random())
            .await?;
        cluster.ca_cert_ref = Some(refs.ca.clone());
        cluster.magnum_cert_ref = Some(refs.magnum.clone());
        cluster.etcd_ca_cert_ref = Some(refs.etcd_ca.clone());
        let mut context = Map::new();
        for (key, value) in request.as_object().context("object")? {
            if let Some(key) = key.strip_prefix("_context_") {
                context.insert(key.to_owned(), value.clone());
            }
        }
        db.transaction(move |conn| clusters::insert(conn, std::slice::from_ref(&cluster)))
            .await?;
        Ok(Self {
            answerer: Answerer::new(db.clone(), certificates.clone()),
            db,
            certificates,
            refs,
            asker: RequestContext::from_map(context),
        })
    }

    async fn ask(&self, method: &str, args: &Value, context: &RequestContext) -> Result<Value, Fault> {
        self.answerer
            .answer(Question {
                topic: Topic::of(method).expect("a topic"),
                method: method.to_owned(),
                args: args.as_object().cloned().expect("arguments"),
                context: context.clone(),
                message: None,
            })
            .await
    }
}

/// The answer without what differs by nature: the PEM.
fn shape(mut object: Value) -> Value {
    object["magnum_object.data"]["pem"] = json!("PEM");
    let changes = object["magnum_object.changes"].as_array_mut().expect("changes");
    changes.sort_by_key(|name| name.as_str().map(str::to_owned));
    object
}

on_every_database! {
    async fn the_recorded_calls_are_answered_in_the_recorded_shape(database: TestDatabase) -> Result<()> {
        let world = World::new(&database).await?;
        let bench = Bench::new()?;
        bench.openssl("req -new -newkey rsa:2048 -nodes -keyout k -out csr -subj /O=system:nodes/CN=node")?;

        let (request, reply) = recorded("get_ca_certificate")?;
        for (kind, reference) in [(json!("kubernetes"), &world.refs.ca), (json!("etcd"), &world.refs.etcd_ca),
                                  (json!("unheard of"), &world.refs.ca), (Value::Null, &world.refs.ca)] {
            let mut args = request["args"].clone();
            args["ca_cert_type"] = kind;
            let answer = world.ask("get_ca_certificate", &args, &world.asker).await?;
            let pem = answer["magnum_object.data"]["pem"].as_str().context("PEM")?;
            assert_eq!(pem, world.certificates.ca(reference).await?);
            assert_eq!(shape(answer), shape(reply["result"].clone()));
        }

        let (request, reply) = recorded("sign_certificate")?;
        let mut args = request["args"].clone();
        args["certificate"]["magnum_object.data"]["csr"] = json!(bench.read("csr")?);
        let answer = world.ask("sign_certificate", &args, &world.asker).await?;
        bench.write("node.pem", answer["magnum_object.data"]["pem"].as_str().context("PEM")?)?;
        bench.write("ca.pem", &world.certificates.ca(&world.refs.ca).await?)?;
        bench.openssl("verify -x509_strict -CAfile ca.pem node.pem")?;
        let mut expected = reply["result"].clone();
        expected["magnum_object.data"]["csr"] = args["certificate"]["magnum_object.data"]["csr"].clone();
        assert_eq!(shape(answer), shape(expected));

        // The request of the recording is none.
        let fault = world.ask("sign_certificate", &request["args"], &world.asker).await.unwrap_err();
        assert_eq!(fault.exception, Exception::InvalidCsr);
        Ok(())
    }

    async fn ca_is_chosen_by_the_row_and_limited_by_the_context(database: TestDatabase) -> Result<()> {
        let world = World::new(&database).await?;
        let (request, _) = recorded("get_ca_certificate")?;
        // Another reference in the object changes nothing.
        let mut args = request["args"].clone();
        args["cluster"]["magnum_object.data"]["ca_cert_ref"] = json!(world.refs.magnum);
        let answer = world.ask("get_ca_certificate", &args, &world.asker).await?;
        assert_eq!(answer["magnum_object.data"]["pem"], json!(world.certificates.ca(&world.refs.ca).await?));
        // Somebody else's cluster is not there, for an administrator who asks for all it is.
        let mut other = admin();
        let fault = world.ask("get_ca_certificate", &args, &other).await.unwrap_err();
        assert_eq!(fault.exception, Exception::ClusterNotFound);
        other.set_all_tenants(true);
        world.ask("get_ca_certificate", &args, &other).await?;
        // A cluster of an old release has no front proxy CA.
        args["ca_cert_type"] = json!("front-proxy");
        let fault = world.ask("get_ca_certificate", &args, &world.asker).await.unwrap_err();
        assert_eq!(fault.exception, Exception::X509KeyPairNotFound);
        // A certificate that is gone, and arguments that are wrong.
        world.certificates.remove(&world.refs.ca).await?;
        let fault = world.ask("get_ca_certificate", &request["args"], &world.asker).await.unwrap_err();
        assert_eq!(fault.exception, Exception::X509KeyPairNotFound);
        let fault = world.ask("sign_certificate", &json!({"cluster": {}}), &world.asker).await.unwrap_err();
        assert!(fault.code() >= 400, "{fault}");
        drop(world.db);
        Ok(())
    }
}
