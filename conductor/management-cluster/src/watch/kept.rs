//! What is kept of a kind's objects, and how they are found.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::Value;

use super::Watched;

/// A namespace, and a name or a key in it.
type Place = (String, String);

/// The objects of a kind.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By their keys, then by their names.
    found: HashMap<Place, BTreeMap<String, Arc<Value>>>,
    /// The key of each name, which a new label changes.
    keys: HashMap<Place, String>,
}

impl Kept {
    /// Of objects without the label by which they are found, nothing is kept.
    pub(super) fn put(&mut self, object: DynamicObject, watched: Watched) {
        let Some(place) = place(&object) else { return };
        self.take_out(&place);
        let key = match watched.found_by {
            None => Some(place.1.clone()),
            Some(label) => object.metadata.labels.and_then(|mut labels| labels.remove(label)),
        };
        if let Some(key) = key {
            let (namespace, name) = place.clone();
            let kept = Arc::new((watched.kept)(&object.data));
            self.found
                .entry((namespace, key.clone()))
                .or_default()
                .insert(name, kept);
            self.keys.insert(place, key);
        }
    }

    pub(super) fn remove(&mut self, object: &DynamicObject) {
        if let Some(place) = place(object) {
            self.take_out(&place);
        }
    }

    fn take_out(&mut self, place: &Place) {
        let Some(key) = self.keys.remove(place) else {
            return;
        };
        let of_key = (place.0.clone(), key);
        if let Some(of_name) = self.found.get_mut(&of_key) {
            of_name.remove(&place.1);
            if of_name.is_empty() {
                self.found.remove(&of_key);
            }
        }
    }

    pub(super) fn found(&self, namespace: &str, key: &str) -> Vec<Arc<Value>> {
        let found = self.found.get(&(namespace.to_owned(), key.to_owned()));
        found
            .map(|of_name| of_name.values().cloned().collect())
            .unwrap_or_default()
    }
}

fn place(object: &DynamicObject) -> Option<Place> {
    let metadata = &object.metadata;
    Some((
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone()?,
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::HELM_RELEASE;

    const BY_LABEL: Watched = Watched {
        kind: HELM_RELEASE,
        may_be_missing: true,
        found_by: Some("of"),
        kept: |object| object["status"]["phase"].clone(),
    };

    fn object(name: &str, of: &str, phase: &str) -> DynamicObject {
        let labels = if of.is_empty() {
            json!({})
        } else {
            json!({"of": of})
        };
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "room", "labels": labels},
            "spec": {"values": "much"}, "status": {"phase": phase},
        }))
        .unwrap()
    }

    fn found(kept: &Kept, key: &str) -> Vec<String> {
        kept.found("room", key)
            .iter()
            .map(|one| one.as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn objects_are_found_by_their_label_in_the_order_of_their_names() {
        let mut kept = Kept::default();
        kept.put(object("b", "mine", "Failed"), BY_LABEL);
        kept.put(object("a", "mine", "Deployed"), BY_LABEL);
        kept.put(object("c", "", "Pending"), BY_LABEL);
        assert_eq!(found(&kept, "mine"), ["Deployed", "Failed"]);
        assert!(kept.found("elsewhere", "mine").is_empty());
        assert!(found(&kept, "c").is_empty());
    }

    #[test]
    fn an_object_is_where_its_newest_label_says() {
        let mut kept = Kept::default();
        kept.put(object("a", "mine", "Pending"), BY_LABEL);
        kept.put(object("a", "yours", "Deployed"), BY_LABEL);
        assert_eq!((found(&kept, "mine").len(), found(&kept, "yours").len()), (0, 1));
        kept.put(object("a", "", "Deployed"), BY_LABEL);
        assert!(found(&kept, "yours").is_empty());
        assert!(kept.found.is_empty() && kept.keys.is_empty());
    }

    #[test]
    fn a_removed_object_is_found_no_more() {
        let mut kept = Kept::default();
        let by_name = Watched {
            found_by: None,
            ..BY_LABEL
        };
        kept.put(object("a", "mine", "Pending"), by_name);
        assert_eq!(found(&kept, "a"), ["Pending"]);
        // What its labels are now does not matter.
        kept.remove(&object("a", "", ""));
        assert!(found(&kept, "a").is_empty() && kept.keys.is_empty());
    }
}
