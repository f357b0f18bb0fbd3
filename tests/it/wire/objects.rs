//! Versioned objects against what real Magnum sent: every object in messages recorded from oslo.messaging
//! 18.3.1 with Magnum 23.0.0, calls and replies, decodes and encodes equal, directly and by way of the domain.

use anyhow::{Context as _, Result};
use magnum_common::model::{
    Cluster, ClusterTemplate, Federation, MagnumService, NodeGroup, Quota, X509KeyPair,
};
use magnum_objects::records::{Certificate, Stats};
use magnum_objects::{Received, VersionedObject, WireModel, object_of};
use serde_json::Value;

const RECORDED: &str = include_str!("../../fixtures/objects/recorded.jsonl");

fn recorded() -> Result<Vec<(String, Value)>> {
    let line = |line: &str| -> Result<(String, Value)> {
        let mut line: Value = serde_json::from_str(line)?;
        let from = line["from"].as_str().context("from")?.to_owned();
        Ok((from, line["object"].take()))
    };
    RECORDED.lines().map(line).collect()
}

#[test]
fn every_recorded_object_encodes_to_the_same_text() -> Result<()> {
    let recorded = recorded()?;
    assert!(recorded.len() > 20);
    for (from, sent) in recorded {
        let decoded = VersionedObject::decode(&sent).with_context(|| from.clone())?;
        // As text, so that the order of fields counts, too.
        assert_eq!(decoded.encode().to_string(), sent.to_string(), "{from}");
    }
    Ok(())
}

fn by_way_of<M: WireModel>(sent: &Value) -> Result<Value> {
    let received = Received::<M>::decode(sent)?;
    let model = received.model()?;
    let is_set = |name: &str| received.object().get(name).is_some();
    Ok(object_of(&model, is_set, received.changes()).encode())
}

/// The same object with its changes in one order, and without the template that a cluster may carry: the domain's
/// cluster has none.
fn comparable(mut object: Value) -> Value {
    if let Some(changes) = object
        .get_mut("magnum_object.changes")
        .and_then(Value::as_array_mut)
    {
        changes.sort_by_key(ToString::to_string);
    }
    if let Some(data) = object["magnum_object.data"].as_object_mut() {
        data.remove("cluster_template");
    }
    object
}

#[test]
fn every_recorded_object_survives_the_way_through_the_domain() -> Result<()> {
    for (from, sent) in recorded()? {
        let name = sent["magnum_object.name"].as_str().unwrap_or_default();
        let back = match name {
            "Cluster" => by_way_of::<Cluster>(&sent),
            "ClusterTemplate" => by_way_of::<ClusterTemplate>(&sent),
            "NodeGroup" => by_way_of::<NodeGroup>(&sent),
            "X509KeyPair" => by_way_of::<X509KeyPair>(&sent),
            "Quota" => by_way_of::<Quota>(&sent),
            "Federation" => by_way_of::<Federation>(&sent),
            "MagnumService" => by_way_of::<MagnumService>(&sent),
            "Certificate" => by_way_of::<Certificate>(&sent),
            "Stats" => by_way_of::<Stats>(&sent),
            _ => panic!("{name} is not a class of Magnum"),
        }
        .with_context(|| from.clone())?;
        assert_eq!(comparable(back), comparable(sent), "{from}");
    }
    Ok(())
}

#[test]
fn a_cluster_with_its_template_inside_gives_both() -> Result<()> {
    let (_, sent) = recorded()?
        .into_iter()
        .find(|(from, _)| from == "request-cluster_update-nested-template")
        .context("recorded")?;
    let cluster = Received::<Cluster>::decode(&sent)?;
    let template = cluster.template()?.context("the template")?.model()?;
    assert_eq!(template.uuid, cluster.model()?.cluster_template_id);
    assert_eq!(template.driver.as_deref(), Some("k8s_fedora_coreos_v1"));
    Ok(())
}
