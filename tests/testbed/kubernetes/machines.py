"""The controllers of machines: control planes and machine deployments get as many as they ask for, of the version and the
template that they ask for; each change takes some rounds, so that what is under way can be seen."""

import secrets

from api import Object
from fleet import (
    CLUSTER_NAME,
    CONTROL_PLANE,
    DEPLOYMENT_NAME,
    Fleet,
    conditions,
    is_going,
    made,
    name_of,
    namespace_of,
    reference,
)

KEPT_BY = {
    "Machine": "machine.cluster.x-k8s.io",
    "OpenStackMachine": "openstackmachine.infrastructure.cluster.x-k8s.io",
    "KubeadmControlPlane": "kubeadm.controlplane.cluster.x-k8s.io",
}
CLONED_FROM = "cluster.x-k8s.io/cloned-from-name"
"""Says of a machine which template it is made from."""
DELETE_FIRST = "cluster.x-k8s.io/delete-machine"
"""Says of a machine that it is the one to go when there are too many."""
FAILING = "failing-node-groups"
"""A ConfigMap: machine deployments of its namespace whose names are among its keys end with the phase `Failed`."""


def control_plane(fleet: Fleet, plane: Object) -> None:
    """One round of a KubeadmControlPlane."""
    cluster, spec = cluster_of(fleet, plane), plane["spec"]
    fleet.keep(plane, KEPT_BY["KubeadmControlPlane"])
    mine = [one for one in _machines(fleet, plane, cluster) if CONTROL_PLANE in one["metadata"]["labels"]]
    if is_going(plane):
        for machine in mine:
            fleet.delete(machine)
        if not mine:
            fleet.let_go(plane)
        return
    template = spec["machineTemplate"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), CLUSTER_NAME: cluster, CONTROL_PLANE: ""}
    wanted = _Wanted(spec["version"], template["infrastructureRef"]["name"], labels, spec["replicas"])
    counts = _towards(fleet, plane, mine, wanted)
    done = counts["readyReplicas"] == counts["updatedReplicas"] == counts["replicas"] == spec["replicas"]
    are = ("Ready", "Available", "MachinesReady", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "Resized")
    status = {
        **counts,
        "ready": counts["readyReplicas"] > 0,
        "initialized": counts["readyReplicas"] > 0,
        "version": spec["version"] if done else (plane.get("status") or {}).get("version", spec["version"]),
        "conditions": conditions(plane, **{name: done for name in are}),
    }
    fleet.set_status(plane, status)


def deployment(fleet: Fleet, deployed: Object) -> None:
    """One round of a MachineDeployment."""
    spec = deployed["spec"]
    template = spec["template"]["spec"]
    if "replicas" not in spec:
        # What the API server of Cluster API would set.
        fleet.server.patch(deployed, {"spec": {"replicas": 1}})
        return
    mine = _machines(fleet, deployed, spec["clusterName"])
    mine = [one for one in mine if one["metadata"]["labels"].get(DEPLOYMENT_NAME) == name_of(deployed)]
    labels = {**(spec["template"].get("metadata") or {}).get("labels", {}), CLUSTER_NAME: spec["clusterName"]}
    labels[DEPLOYMENT_NAME] = name_of(deployed)
    version = template.get("version", "")
    wanted = _Wanted(version, template["infrastructureRef"]["name"], labels, spec["replicas"])
    counts = _towards(fleet, deployed, mine, wanted)
    phase = "Running"
    if counts["replicas"] > spec["replicas"] and counts["updatedReplicas"] == counts["replicas"]:
        phase = "ScalingDown"
    elif not counts["readyReplicas"] == counts["updatedReplicas"] == counts["replicas"] == spec["replicas"]:
        phase = "ScalingUp"
    switch = fleet.server.get("ConfigMap", namespace_of(deployed), FAILING) or {}
    if name_of(deployed) in (switch.get("data") or {}):
        phase = "Failed"
    is_ready = phase == "Running"
    status = {**counts, "phase": phase, "conditions": conditions(deployed, Available=is_ready, Ready=is_ready)}
    fleet.set_status(deployed, status)


def machine(fleet: Fleet, one: Object) -> None:
    """One round of a Machine: it is ready when its OpenStackMachine is, and goes after it. One whose deployment is gone goes,
    too, which is the garbage collector's work."""
    namespace, name = namespace_of(one), name_of(one)
    fleet.keep(one, KEPT_BY["Machine"])
    server = fleet.get("OpenStackMachine", namespace, name)
    owner = one["metadata"]["labels"].get(DEPLOYMENT_NAME)
    if owner and not fleet.get("MachineDeployment", namespace, owner):
        fleet.delete(one)
    if is_going(one):
        if server:
            fleet.delete(server)
        else:
            fleet.let_go(one)
        return
    is_ready = bool(server and (server.get("status") or {}).get("ready"))
    if server and is_ready and "providerID" not in one["spec"]:
        fleet.server.patch(one, {"spec": {"providerID": server["spec"]["providerID"]}})
    are = conditions(one, Ready=is_ready, InfrastructureReady=is_ready, NodeHealthy=is_ready)
    fleet.set_status(one, {"phase": "Running" if is_ready else "Provisioning", "conditions": are})


def openstack_machine(fleet: Fleet, one: Object) -> None:
    """One round of an OpenStackMachine: its server is there in the next one."""
    fleet.keep(one, KEPT_BY["OpenStackMachine"])
    if is_going(one):
        fleet.let_go(one)
    elif "providerID" not in one["spec"]:
        fleet.server.patch(one, {"spec": {"providerID": f"openstack:///{one['metadata']['uid']}"}})
    else:
        fleet.set_status(one, {"ready": True, "conditions": conditions(one, Ready=True)})


def cluster_of(fleet: Fleet, plane: Object) -> str:
    """The name of the cluster that names this control plane, or that its labels name."""
    for cluster in fleet.of("Cluster", namespace_of(plane)):
        if (cluster["spec"].get("controlPlaneRef") or {}).get("name") == name_of(plane):
            return name_of(cluster)
    name: str = (plane["metadata"].get("labels") or {}).get(CLUSTER_NAME, "")
    return name


class _Wanted:
    """What all machines of one owner are to be."""

    def __init__(self, version: str, template: str, labels: dict[str, str], replicas: int) -> None:
        self.version, self.template, self.labels, self.replicas = version, template, labels, replicas

    def is_met_by(self, one: Object) -> bool:
        template = one["metadata"]["annotations"][CLONED_FROM]
        return bool(one["spec"].get("version", "") == self.version and template == self.template)


def _machines(fleet: Fleet, owner: Object, cluster: str) -> list[Object]:
    return fleet.of("Machine", namespace_of(owner), cluster=cluster)


def _is_ready(one: Object) -> bool:
    return (one.get("status") or {}).get("phase") == "Running" and not is_going(one)


def _towards(fleet: Fleet, owner: Object, mine: list[Object], wanted: _Wanted) -> Object:
    """One step towards what is wanted: a new machine, or the end of one when enough are ready. Returns the counts."""
    current = [one for one in mine if wanted.is_met_by(one) and not is_going(one)]
    staying = [one for one in mine if not is_going(one)]
    ready = [one for one in mine if _is_ready(one)]
    if len(current) < wanted.replicas and len(staying) <= wanted.replicas:
        _add_machine(fleet, owner, wanted)
    elif len(staying) > wanted.replicas and all(_is_ready(one) for one in current):
        # Named ones first, then those that are not as wanted any more.
        fleet.delete(min(staying, key=lambda one: (DELETE_FIRST not in one["metadata"]["annotations"], one in current)))
    return {
        "replicas": len(mine),
        "updatedReplicas": len(current),
        "readyReplicas": len(ready),
        "availableReplicas": len(ready),
        "observedGeneration": owner["metadata"]["generation"],
    }


def _add_machine(fleet: Fleet, owner: Object, wanted: _Wanted) -> None:
    namespace = namespace_of(owner)
    template = fleet.get("OpenStackMachineTemplate", namespace, wanted.template)
    if template is None:
        # It comes about later than what refers to it.
        return
    name = f"{name_of(owner)}-{secrets.token_hex(3)}"
    server = made("OpenStackMachine", namespace, name, wanted.labels, template["spec"]["template"]["spec"])
    spec: Object = {
        "clusterName": wanted.labels[CLUSTER_NAME],
        "bootstrap": {"dataSecretName": name},
        "infrastructureRef": reference(server),
    }
    if wanted.version:
        spec["version"] = wanted.version
    one = made("Machine", namespace, name, wanted.labels, spec)
    one["metadata"]["annotations"] = {CLONED_FROM: wanted.template}
    fleet.create(one)
    fleet.create(server)
