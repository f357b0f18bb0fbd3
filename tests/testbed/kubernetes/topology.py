"""The controller of topologies: what a Cluster says in `spec.topology` becomes a control plane and machine deployments, as a
ClusterClass would have it. Of the class nothing is read: flavor and image are the cluster's variables of these names."""

import hashlib
import json
from typing import Any

from api import Object
from fleet import CLUSTER_NAME, Fleet, made, name_of, namespace_of, reference
from machines import CLONED_FROM

OWNED = "topology.cluster.x-k8s.io/owned"
DEPLOYMENT = "topology.cluster.x-k8s.io/deployment-name"


def reconcile(fleet: Fleet, cluster: Object) -> None:
    """One round of a Cluster that has a topology."""
    name, namespace, topology = name_of(cluster), namespace_of(cluster), cluster["spec"]["topology"]
    labels = {CLUSTER_NAME: name, OWNED: ""}
    variables = {one["name"]: one["value"] for one in topology.get("variables") or []}
    credentials = {"type": "Secret", "name": variables.get("clusterIdentityRefName", name), "cloudName": "default"}
    infrastructure = made("OpenStackCluster", namespace, name, labels, {"identityRef": credentials})
    flavor = variables.get("controlPlaneFlavor") or variables["flavor"]
    template = _template(namespace, f"{name}-control-plane", labels, flavor, variables["imageUUID"])
    plane_spec = {
        "version": topology["version"],
        "replicas": topology["controlPlane"]["replicas"],
        "machineTemplate": {"infrastructureRef": reference(template)},
        "kubeadmConfigSpec": {},
    }
    plane = made("KubeadmControlPlane", namespace, f"{name}-control-plane", labels, plane_spec)
    for thing in (infrastructure, template, plane):
        _bring_about(fleet, thing)
    refs = {"infrastructureRef": reference(infrastructure), "controlPlaneRef": reference(plane)}
    if cluster["spec"].get("controlPlaneRef") != refs["controlPlaneRef"]:
        fleet.server.patch(cluster, {"spec": refs})

    wanted = {name_of(template)}
    groups = (topology.get("workers") or {}).get("machineDeployments") or []
    for group in groups:
        template = _deployment(fleet, cluster, group, variables)
        wanted.add(name_of(template))
    names = {group["name"] for group in groups}
    for deployment in fleet.of("MachineDeployment", namespace, cluster=name):
        if deployment["metadata"]["labels"].get(DEPLOYMENT) not in names:
            fleet.delete(deployment)
    in_use = {one["metadata"]["annotations"][CLONED_FROM] for one in fleet.of("Machine", namespace, cluster=name)}
    for old in fleet.of("OpenStackMachineTemplate", namespace, cluster=name):
        if name_of(old) not in wanted | in_use:
            fleet.delete(old)


def _deployment(fleet: Fleet, cluster: Object, group: Object, variables: dict[str, Any]) -> Object:
    """Brings a machine deployment about; returns its template."""
    name, namespace = name_of(cluster), namespace_of(cluster)
    labels = {CLUSTER_NAME: name, OWNED: "", DEPLOYMENT: group["name"]}
    own = {one["name"]: one["value"] for one in (group.get("variables") or {}).get("overrides") or []}
    merged = {**variables, **own}
    whole = f"{name}-{group['name']}"
    template = _template(namespace, whole, labels, merged["flavor"], merged["imageUUID"])
    annotations = (group.get("metadata") or {}).get("annotations") or {}
    spec: Object = {
        "clusterName": name,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {
                "clusterName": name,
                "version": cluster["spec"]["topology"]["version"],
                "bootstrap": {},
                "infrastructureRef": reference(template),
            },
        },
    }
    if "replicas" in group:
        spec["replicas"] = group["replicas"]
    deployment = made("MachineDeployment", namespace, whole, labels, spec)
    for thing in (template, deployment):
        _bring_about(fleet, thing)
    return template


def _template(namespace: str, name: str, labels: dict[str, str], flavor: str, image: str) -> Object:
    spec = {"flavor": flavor, "image": {"id": image}}
    suffix = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:5]
    return made("OpenStackMachineTemplate", namespace, f"{name}-{suffix}", labels, {"template": {"spec": spec}})


def _bring_about(fleet: Fleet, wanted: Object) -> None:
    """Makes an object, or gives it what is wanted of it; what others have set stays."""
    live = fleet.get(wanted["kind"], namespace_of(wanted), name_of(wanted))
    if live is None:
        fleet.create(wanted)
    elif not _contains(live["spec"], wanted["spec"]):
        fleet.server.patch(live, {"spec": wanted["spec"]})


def _contains(live: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(name in live and _contains(live[name], value) for name, value in wanted.items())
    return bool(live == wanted)
