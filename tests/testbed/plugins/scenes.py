"""The world that a recorded case begins in.

`given` of a case tells rows and options; objects of the management cluster only for looks. The rest is told by what the
case records of its course, and is read from there: a fault by the request that it answered or the message that names it,
helm's mode by helm's step, load balancers by their removal. What not even that tells is in the case's name.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from cloud import Cloud
from cluster import Cluster, kubeconfig
from helm import Helm
from inventory import PROJECT

Case = dict[str, Any]

PACKAGE_NAMESPACES = {"magnum-capi-helm": f"magnum-{PROJECT}", "magnum-cluster-api": "magnum-system"}
"""Where each package keeps the objects of the cluster."""

GROUPS = {
    "Cluster": "/apis/cluster.x-k8s.io/v1beta1",
    "Machine": "/apis/cluster.x-k8s.io/v1beta1",
    "MachineDeployment": "/apis/cluster.x-k8s.io/v1beta1",
    "KubeadmControlPlane": "/apis/controlplane.cluster.x-k8s.io/v1beta1",
    "OpenStackCluster": "/apis/infrastructure.cluster.x-k8s.io/v1beta1",
    "OpenStackMachine": "/apis/infrastructure.cluster.x-k8s.io/v1beta1",
    "HelmRelease": "/apis/addons.stackhpc.com/v1alpha1",
    "Manifests": "/apis/addons.stackhpc.com/v1alpha1",
    "HelmChartProxy": "/apis/addons.cluster.x-k8s.io/v1alpha1",
    "Event": "/api/v1",
    "Secret": "/api/v1",
}
"""The API group of each kind."""

ALREADY_THERE = (403, 500, 502, 503)
"""Statuses that the doubles answer only where a fault was ordered."""

SERVICES = {"credential": r"/application_credentials", "keystone": r"/auth/tokens"}
"""The faults that a name such as `gone-credential-403` tells: a service, and a status."""


class Scene:
    """A case, its package and its cluster's stack, over the doubles."""

    def __init__(self, cloud: Cloud, management: Cluster, workload_url: str, helm: Helm) -> None:
        self.cloud, self.management, self.workload_url, self.helm = cloud, management, workload_url, helm

    def prepare(self, case: Case, package: str, cluster: str, stack: str | None) -> None:
        """Adds to the world what the case begins with, faults included."""
        namespace = f"/namespaces/{PACKAGE_NAMESPACES[package]}"
        self.namespace, self.stack = namespace, stack
        if "rows_after" in case:
            self._observed(case, package, cluster)
        else:
            self._changed(case)
        self.management.not_installed = set(case["given"].get("not_installed", ()))
        self.management.faults = list(_management_faults(case, stack))
        self.cloud.faults = list(_cloud_faults(case))
        modes = [step["helm"].get("mode") for step in case["steps"] if "helm" in step]
        self.helm.mode = next((mode for mode in modes if mode), "ok")

    def building(self, name: str, namespace: str) -> None:
        """A cluster whose control plane and workers are not ready yet."""
        self.namespace, self.stack = f"/namespaces/{namespace}", name
        conditions = [{"type": kind, "status": "False"} for kind in ("Ready", "ControlPlaneReady", "InfrastructureReady")]
        self.management.put(self._place("Cluster", name), {"spec": {}, "status": {"conditions": conditions}})
        control_plane = {"spec": {"replicas": 1}, "status": {"replicas": 1, "conditions": conditions}}
        self.management.put(self._place("KubeadmControlPlane", f"{name}-control-plane"), control_plane)
        workers = {"spec": {"replicas": 1}, "status": {"phase": "ScalingUp"}}
        self.management.put(self._place("MachineDeployment", f"{name}-default-worker"), workers)

    def _place(self, kind: str, name: str) -> str:
        plural = "helmchartproxies" if kind == "HelmChartProxy" else kind.lower().removesuffix("s") + "s"
        return f"{GROUPS[kind]}{self.namespace}/{plural}/{name}"

    def _observed(self, case: Case, package: str, cluster: str) -> None:
        """The objects that a look finds."""
        name = case["name"]
        for number, thing in enumerate(case["given"]["objects"]):
            self.management.put(self._place(thing["kind"], self._name(thing, number)), thing)
        if package == "magnum-cluster-api":
            self._credential(cluster)
        elif self.stack and not name.endswith("no-secret"):
            self._credential("mine" if name.endswith("credential-of-other-name") else f"magnum-{cluster}-aaaaaaaa")
            clouds = "clouds: {openstack: {auth: {application_credential_id: cred-9}}}"
            secret = {
                "kind": "Secret",
                "metadata": {"labels": {"magnum.openstack.org/cluster-uuid": cluster}},
                "stringData": {"clouds.yaml": clouds},
            }
            self.management.put(self._place("Secret", f"{self.stack}-cloud-credentials"), secret)
        if name.endswith("credential-gone"):
            self.cloud.credentials.clear()
        if name.endswith("lock-is-held"):
            long_ago = "2026-01-01T00:00:00.000000Z"
            spec = {"holderIdentity": "other", "leaseDurationSeconds": 60, "renewTime": long_ago, "acquireTime": long_ago}
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
            place = f"/apis/coordination.k8s.io/v1{self.namespace}/leases/cluster-{cluster}"
            self.management.put(place, lease)

    def _name(self, thing: dict[str, Any], number: int) -> str:
        """Recorded objects have no names: those of a cluster's own derive from its stack, others are in order."""
        labels = thing.get("metadata", {}).get("labels", {})
        if thing["kind"] in ("Cluster", "OpenStackCluster"):
            return str(self.stack)
        if thing["kind"] == "KubeadmControlPlane":
            return f"{self.stack}-control-plane"
        if thing["kind"] == "MachineDeployment":
            return f"{self.stack}-{labels['topology.cluster.x-k8s.io/deployment-name']}"
        if thing["kind"] == "Machine":
            return self._machine_name(thing)
        return f"o{number:03d}"

    def _machine_name(self, thing: dict[str, Any]) -> str:
        """A machine refers to its own infrastructure by its own name."""
        return str(thing["spec"]["infrastructureRef"]["name"])

    def _credential(self, name: str) -> None:
        user = "1" * 32
        self.cloud.credentials["cred-9"] = {"id": "cred-9", "name": name, "user_id": user, "project_id": PROJECT}

    def _changed(self, case: Case) -> None:
        """What stands beside a cluster that was built."""
        name = case["name"]
        if name.endswith("old-one-is-gone"):
            self.cloud.credentials.clear()
        if name.endswith("secret-is-gone"):
            self.management.objects.clear()
        if case["call"] == "upgrade_cluster" and "-kubeconfig" not in case["result"].get("message", ""):
            value = yaml.safe_dump(kubeconfig(self.workload_url))
            secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"value": value}}
            self.management.put(self._place("Secret", f"{self.stack}-kubeconfig"), secret)
        arguments = case["given"].get("arguments", {})
        if arguments.get("nodes_to_remove"):
            for number in (1, 2, 3):
                self._machine(f"m{number}", arguments["node_group"], f"server-{number}")
        removed = [step["cloud"]["request"] for step in case["steps"] if "cloud" in step]
        if any(request.startswith("DELETE") and "/loadbalancers/" in request for request in removed):
            self._load_balancers()

    def _machine(self, name: str, group: str, server: str) -> None:
        labels = {"cluster.x-k8s.io/cluster-name": self.stack, "topology.cluster.x-k8s.io/deployment-name": group}
        infrastructure = {
            "kind": "OpenStackMachine",
            "name": f"{name}-infra",
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        }
        spec = {
            "clusterName": self.stack,
            "providerID": f"openstack:///{server}",
            "bootstrap": {},
            "infrastructureRef": infrastructure,
        }
        machine = {
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "Machine",
            "metadata": {"labels": labels},
            "spec": spec,
        }
        self.management.put(self._place("Machine", name), machine)

    def _load_balancers(self) -> None:
        """One that Kubernetes has made for a service of the cluster, with its address, and somebody else's."""
        service = "external service a from cluster c0000000-0000-4000-8000-000000000001"
        for ident, description in (("lb-1", f"Kubernetes {service}"), ("lb-2", "somebody elses")):
            self.cloud.load_balancers[ident] = {
                "id": ident,
                "name": ident,
                "description": description,
                "provisioning_status": "ACTIVE",
                "vip_port_id": f"port-{ident[-1]}",
                "operating_status": "ONLINE",
            }
        address = {"id": "fip-1", "port_id": "port-1", "description": f"Floating IP for Kubernetes {service}"}
        self.cloud.floating_ips["fip-1"] = address


def _management_faults(case: Case, stack: str | None) -> Iterator[tuple[str, str, int]]:
    """Faults of the management cluster: by the step that got one, else by the message that names its URL."""
    told = False
    for step in case["steps"]:
        request = step.get("kubernetes")
        if request and request["status"] in ALREADY_THERE:
            method, path = request["request"].split(" ", 1)
            yield method, _pattern(path, stack), request["status"]
            told = True
    message = case["result"].get("message", "")
    url = re.search(r"(\d{3}) (?:Server|Client) Error.* for url: http://management\.test(/[^?\s]*)", message)
    if url and not told:
        yield "GET", _pattern(url.group(2), stack), int(url.group(1))
    name = re.search(r"management-(\d{3})$", case["name"])
    if name and not url and not told:
        yield "GET", "/clusters/", int(name.group(1))


def _cloud_faults(case: Case) -> Iterator[tuple[str, int]]:
    """Faults of the cloud: by the message that names the URL, else by the case's name."""
    message = case["result"].get("message", "")
    url = re.search(r"(\d{3}): (?:Server|Client) Error for url: http://cloud\.test(/[^?\s]*?)(?:\?\S*)?, as told", message)
    if url:
        yield f"^{re.escape(url.group(2))}$", int(url.group(1))
        return
    for service, pattern in SERVICES.items():
        name = re.search(rf"{service}-(\d{{3}})$", case["name"])
        if name:
            yield pattern, int(name.group(1))


def _pattern(path: str, stack: str | None) -> str:
    """A recorded path as a regular expression: what was random is any word."""
    if stack and stack.startswith("kube-"):
        path = path.replace(stack, "kube-RANDOM")
    return "^" + re.escape(path).replace("RANDOM", "[^/]*?").replace("HEX8", "[^/]+") + "$"
