"""The controllers of Cluster API and of its provider OpenStack, as far as driver packages see them: `controllers.py
KUBECONFIG`. Clusters get an address, their machines come and go one by one, and what is deleted goes in the order in which
it really does. Nothing is behind the machines.

What other controllers do that is needed here is done here, too: the garbage collector's work, and that of the add-ons'
provider, whose add-ons are deployed at once. A test has a node group fail by a ConfigMap (`machines.FAILING`).
"""

import sys
import time
from http.client import HTTPException

import machines
import topology
from api import ApiError, Object, Server, version_of
from fleet import CLUSTER_NAME, DEPLOYMENT_NAME, Fleet, conditions, is_going, name_of, namespace_of

ROUND = 0.2
KEPT_BY = {"Cluster": "cluster.cluster.x-k8s.io", "OpenStackCluster": "openstackcluster.infrastructure.cluster.x-k8s.io"}


def cluster(fleet: Fleet, one: Object) -> None:
    """One round of a Cluster."""
    fleet.keep(one, KEPT_BY["Cluster"])
    if is_going(one):
        _end(fleet, one)
        return
    namespace, name = namespace_of(one), name_of(one)
    if one["spec"].get("topology"):
        topology.reconcile(fleet, one)
    infrastructure, plane = _parts(fleet, one)
    endpoint = infrastructure["spec"].get("controlPlaneEndpoint") if infrastructure else None
    if endpoint and one["spec"].get("controlPlaneEndpoint") != endpoint:
        fleet.server.patch(one, {"spec": {"controlPlaneEndpoint": endpoint}})
    has_machines = bool(infrastructure and (infrastructure.get("status") or {}).get("ready"))
    is_up = bool(plane and (plane.get("status") or {}).get("ready"))
    if is_up:
        fleet.create(_kubeconfig(namespace, name, fleet.server.kubeconfig))
    is_ready = has_machines and is_up
    are = {"Ready": is_ready, "ControlPlaneReady": is_up, "InfrastructureReady": has_machines}
    if one["spec"].get("topology"):
        are["TopologyReconciled"] = True
    status = {
        "phase": "Provisioned" if is_ready else "Provisioning",
        "infrastructureReady": has_machines,
        "controlPlaneReady": is_up,
        "observedGeneration": one["metadata"]["generation"],
        "conditions": conditions(one, **are),
    }
    fleet.set_status(one, status)


def _end(fleet: Fleet, one: Object) -> None:
    """One step of the end of a cluster: workers, then masters, then what they stand in."""
    namespace, name = namespace_of(one), name_of(one)
    deployments = [x for x in fleet.of("MachineDeployment", namespace) if x["spec"]["clusterName"] == name]
    mine = fleet.of("Machine", namespace, cluster=name)
    workers = [x for x in mine if DEPLOYMENT_NAME in x["metadata"]["labels"]]
    infrastructure, plane = _parts(fleet, one)
    for deployment in deployments:
        fleet.delete(deployment)
    if deployments or workers:
        return
    if plane:
        fleet.delete(plane)
    elif infrastructure:
        fleet.delete(infrastructure)
    else:
        for template in fleet.of("OpenStackMachineTemplate", namespace, cluster=name):
            fleet.delete(template)
        fleet.server.delete(_kubeconfig(namespace, name, ""))
        fleet.let_go(one)


def _parts(fleet: Fleet, one: Object) -> tuple[Object | None, Object | None]:
    """What the cluster's machines stand in, and its control plane."""
    found = []
    for kind, ref in (("OpenStackCluster", "infrastructureRef"), ("KubeadmControlPlane", "controlPlaneRef")):
        name = (one["spec"].get(ref) or {}).get("name")
        found.append(fleet.get(kind, namespace_of(one), name) if name else None)
    return found[0], found[1]


def _kubeconfig(namespace: str, name: str, kubeconfig: str) -> Object:
    """The secret by which a cluster's own API server is found. That is this server: a driver that clears up old add-ons in
    `kube-system` finds none here, as in a cluster that never had any."""
    return {
        "apiVersion": version_of("Secret"),
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": f"{name}-kubeconfig", "namespace": namespace, "labels": {CLUSTER_NAME: name}},
        "stringData": {"value": kubeconfig},
    }


def openstack_cluster(fleet: Fleet, one: Object) -> None:
    """One round of an OpenStackCluster, which gets a network and the address of a load balancer."""
    fleet.keep(one, KEPT_BY["OpenStackCluster"])
    if is_going(one):
        fleet.let_go(one)
    elif "controlPlaneEndpoint" not in one["spec"]:
        # No machine answers there (RFC 5737).
        fleet.server.patch(one, {"spec": {"controlPlaneEndpoint": {"host": "192.0.2.10", "port": 6443}}})
    else:
        owner = {CLUSTER_NAME: name_of(one)}
        if not owner.items() <= (one["metadata"].get("labels") or {}).items():
            fleet.server.patch(one, {"metadata": {"labels": owner}})
        fleet.set_status(one, {"ready": True, "conditions": conditions(one, Ready=True)})


def addon(fleet: Fleet, one: Object) -> None:
    """One round of an add-on."""
    fleet.set_status(one, {"phase": "Deployed"})


CONTROLLERS = {
    "Cluster": cluster,
    "OpenStackCluster": openstack_cluster,
    "KubeadmControlPlane": machines.control_plane,
    "MachineDeployment": machines.deployment,
    "Machine": machines.machine,
    "OpenStackMachine": machines.openstack_machine,
    "HelmRelease": addon,
    "Manifests": addon,
}


def main(kubeconfig: str) -> None:
    """Goes round until the process is ended."""
    server = Server(kubeconfig)
    while True:
        try:
            fleet = Fleet(server)
            if not any(fleet.objects.values()):
                # Round after round would keep the API server busy for hours. Whatever there is comes with a cluster.
                server.wait_for("Cluster")
                continue
        except (ApiError, OSError, HTTPException) as error:
            print(f"no list: {error}", file=sys.stderr, flush=True)
            time.sleep(ROUND)
            continue
        for kind, reconcile in CONTROLLERS.items():
            for one in fleet.objects[kind]:
                try:
                    reconcile(fleet, one)
                except (ApiError, OSError, HTTPException) as error:
                    # Somebody else was first, or deletes it: the next round sees what is there then.
                    print(f"{kind} {name_of(one)}: {error}", file=sys.stderr, flush=True)
        time.sleep(ROUND)


if __name__ == "__main__":
    main(sys.argv[1])
