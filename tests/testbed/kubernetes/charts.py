"""What the charts make of their values. For a cluster: the objects by which the driver tells what has become of it, and what
these need, with the names and labels of the real `openstack-cluster` chart. Add-ons are two instead of some twenty,
and no machine could start of the templates."""

import hashlib
import json
from typing import Any

from api import Object, version_of

Values = dict[str, Any]

RENDERED = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: rendered\ndata:\n  by: helm-double\n\n"
"""What `helm template` prints of every chart."""


def objects(chart: str, release: str, namespace: str, values: Values) -> list[Object]:
    """The objects of a release, in the order in which they are made."""
    name = chart.rstrip("/").rsplit("/", 1)[-1]
    if name == "cluster-autoscaler":
        return [_autoscaler(release, namespace)]
    if name == "openstack-cluster":
        return _OpenstackCluster(release, namespace, values).objects()
    raise ValueError(f'chart "{name}" not found')


class _OpenstackCluster:
    def __init__(self, release: str, namespace: str, values: Values) -> None:
        self.release, self.namespace, self.values = release, namespace, values
        self.version = f"v{values['kubernetesVersion']}"

    def objects(self) -> list[Object]:
        groups = self.values.get("nodeGroups") or []
        parts = [part for group in groups for part in self._node_group(group)]
        autoscaler = self._autoscaler() if any(group.get("autoscale") for group in groups) else []
        return [self._infrastructure(), *self._control_plane(), *parts, self._cluster(), *self._addons(), *autoscaler]

    def _thing(self, kind: str, suffix: str, spec: Object, labels: dict[str, str] | None = None) -> Object:
        name = f"{self.release}-{suffix}" if suffix else self.release
        return {
            "apiVersion": version_of(kind),
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {"capi.stackhpc.com/cluster": self.release, **(labels or {})},
            },
            "spec": spec,
        }

    def _template(self, kind: str, suffix: str, spec: Object) -> Object:
        """A template. Machines are made anew when their template has another name, hence the hash of its text."""
        text = json.dumps(spec, sort_keys=True).encode()
        return self._thing(kind, f"{suffix}-{hashlib.sha256(text).hexdigest()[:8]}", {"template": {"spec": spec}})

    def _infrastructure(self) -> Object:
        network = self.values["clusterNetworking"]
        inner = network["internalNetwork"]
        spec: Object = {
            "identityRef": {"type": "Secret", "name": self.values["cloudCredentialsSecretName"], "cloudName": "openstack"},
            "apiServerLoadBalancer": {
                "enabled": self.values["apiServer"]["enableLoadBalancer"],
                "provider": self.values["apiServer"]["loadBalancerProvider"],
            },
            "managedSecurityGroups": {"allowAllInClusterTraffic": True},
        }
        if outer := network.get("externalNetworkId"):
            spec["externalNetwork"] = {"id": outer}
        if found := inner.get("networkFilter"):
            spec["network"] = {"id": found["id"]}
        if found := inner.get("subnetFilter"):
            spec["subnets"] = [{"id": found["id"]}]
        else:
            spec["managedSubnets"] = [{"cidr": inner["nodeCidr"]}]
        thing = self._thing("OpenStackCluster", "", spec)
        # Cluster API deletes it, after the machines that need it.
        thing["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
        return thing

    def _machine(self, flavor: str) -> Object:
        spec: Object = {"flavor": flavor, "image": {"id": self.values["machineImageId"]}}
        if key := self.values.get("machineSSHKeyName"):
            spec["sshKeyName"] = key
        return spec

    def _control_plane(self) -> list[Object]:
        values = self.values["controlPlane"]
        template = self._template("OpenStackMachineTemplate", "control-plane", self._machine(values["machineFlavor"]))
        labels = {"capi.stackhpc.com/component": "control-plane"}
        spec = {
            "version": self.version,
            "replicas": values["machineCount"],
            "machineTemplate": {"infrastructureRef": self._reference(template), "metadata": {"labels": labels}},
            "kubeadmConfigSpec": {"clusterConfiguration": {}, "initConfiguration": {}, "joinConfiguration": {}},
        }
        plane = self._thing("KubeadmControlPlane", "control-plane", spec, labels)
        return [template, plane, *self._health_check(values["healthCheck"], "control-plane", labels)]

    def _node_group(self, group: Values) -> list[Object]:
        name = group["name"]
        machine = self._template("OpenStackMachineTemplate", name, self._machine(group["machineFlavor"]))
        bootstrap = self._template("KubeadmConfigTemplate", name, {"joinConfiguration": {}})
        labels = {
            "capi.stackhpc.com/cluster": self.release,
            "capi.stackhpc.com/component": "worker",
            "capi.stackhpc.com/node-group": name,
        }
        spec: Object = {
            "clusterName": self.release,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "clusterName": self.release,
                    "version": self.version,
                    "bootstrap": {"configRef": self._reference(bootstrap)},
                    "infrastructureRef": self._reference(machine),
                },
            },
        }
        if not group.get("autoscale"):
            spec["replicas"] = group["machineCount"]
        deployment = self._thing("MachineDeployment", name, spec, labels)
        check = self._health_check(self.values["nodeGroupDefaults"]["healthCheck"], name, labels)
        return [machine, bootstrap, deployment, *check]

    def _health_check(self, values: Values, suffix: str, labels: dict[str, str]) -> list[Object]:
        if not values["enabled"]:
            return []
        ill = [{"type": "Ready", "status": status, "timeout": "5m0s"} for status in ("False", "Unknown")]
        spec = {"clusterName": self.release, "selector": {"matchLabels": labels}, "unhealthyConditions": ill}
        return [self._thing("MachineHealthCheck", suffix, spec)]

    def _cluster(self) -> Object:
        plane = {"kind": "KubeadmControlPlane", "metadata": {"name": f"{self.release}-control-plane"}}
        infrastructure = {"kind": "OpenStackCluster", "metadata": {"name": self.release}}
        spec = {
            "clusterNetwork": {
                "pods": {"cidrBlocks": ["172.20.0.0/16"]},
                "services": {"cidrBlocks": ["172.24.0.0/13"]},
                "serviceDomain": "cluster.local",
            },
            "controlPlaneRef": self._reference(plane),
            "infrastructureRef": self._reference(infrastructure),
        }
        return self._thing("Cluster", "", spec)

    def _addons(self) -> list[Object]:
        labels = {"addons.stackhpc.com/cluster": self.release}
        return [
            self._thing("HelmRelease", "ccm-openstack", {"clusterName": self.release}, labels),
            self._thing("Manifests", "cloud-config", {"clusterName": self.release}, labels),
        ]

    def _autoscaler(self) -> list[Object]:
        """The autoscaler, and what it is allowed: with the permissions of the real chart's role."""
        account, role, binding = (self._thing(kind, "autoscaler", {}) for kind in ("ServiceAccount", "Role", "RoleBinding"))
        for thing in (account, role, binding):
            del thing["spec"]
        group, name = "cluster.x-k8s.io", account["metadata"]["name"]
        kinds = ["machinedeployments", "machines", "machinesets", "machinepools"]
        scale = ["get", "patch", "update"]
        role["rules"] = [
            {"apiGroups": [group], "resources": kinds, "verbs": ["get", "list", "update", "watch"]},
            {"apiGroups": [group], "resources": ["machinedeployments/scale"], "verbs": scale},
        ]
        binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        binding["subjects"] = [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}]
        return [account, role, binding, _autoscaler(self.release, self.namespace)]

    def _reference(self, thing: Object) -> Object:
        kind, name = thing["kind"], thing["metadata"]["name"]
        return {"apiVersion": version_of(kind), "kind": kind, "name": name, "namespace": self.namespace}


def _autoscaler(release: str, namespace: str) -> Object:
    labels = {"app.kubernetes.io/instance": release, "app.kubernetes.io/name": "cluster-autoscaler"}
    container = {"name": "cluster-autoscaler", "image": "cluster-autoscaler"}
    return {
        "apiVersion": version_of("Deployment"),
        "kind": "Deployment",
        "metadata": {"name": f"{release}-autoscaler", "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
