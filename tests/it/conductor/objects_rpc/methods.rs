//! No remotable method of Magnum's classes is missing here, none is too much, and the parameters are the same.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use magnum_conductor::objects_rpc::methods::CLASSES;
use magnum_tests::Backend;
use serde_json::{Value, json};

use super::World;

#[tokio::test(flavor = "multi_thread")]
async fn our_tables_are_the_remotable_methods_of_the_real_classes() -> Result<()> {
    let mut world = World::on(Backend::Sqlite).await?;
    let real = world.python(json!({"do": "methods"})).await?;
    let ours: BTreeMap<&str, Value> = CLASSES
        .iter()
        .map(|class| {
            let of_class: BTreeMap<&str, Value> = class
                .class_methods
                .iter()
                .map(|method| {
                    let signature = method.signature;
                    let parameters = json!({"required": signature.required, "optional": signature.optional});
                    (signature.name, parameters)
                })
                .collect();
            let mut of_object: Vec<&str> = class
                .instance_methods
                .iter()
                .map(|method| method.signature.name)
                .collect();
            of_object.sort_unstable();
            (
                class.schema.name,
                json!({"class": of_class, "instance": of_object}),
            )
        })
        .chain([("Certificate", json!({"class": {}, "instance": []}))])
        .collect();
    let ours = json!(ours);
    ensure!(ours == real, "ours: {ours:#}\nMagnum's: {real:#}");
    Ok(())
}
