"""All objects of Cluster API in the API server at one moment, and how the controllers change them."""

from typing import Any

from api import ApiError, Object, Server, version_of

KINDS = (
    "Cluster",
    "OpenStackCluster",
    "KubeadmControlPlane",
    "MachineDeployment",
    "Machine",
    "OpenStackMachine",
    "OpenStackMachineTemplate",
    "HelmRelease",
    "Manifests",
)
CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
DEPLOYMENT_NAME = "cluster.x-k8s.io/deployment-name"


class Fleet:
    """The objects, as they were when they were listed."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.objects = {kind: server.list(kind) for kind in KINDS}

    def of(self, kind: str, namespace: str, **labels: str) -> list[Object]:
        """The objects of a kind with these labels, whose names are keyword arguments of `labelled`."""
        wanted = {_LABELS[name]: value for name, value in labels.items()}
        return [one for one in self.objects[kind] if namespace_of(one) == namespace and _has(one, wanted)]

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """An object by its name."""
        return next((one for one in self.of(kind, namespace) if name_of(one) == name), None)

    def create(self, thing: Object) -> None:
        """Makes an object, unless it is there."""
        try:
            self.server.create(thing)
        except ApiError as error:
            if error.status != 409:
                raise

    def delete(self, thing: Object) -> None:
        """Asks for the deletion of an object; once is enough."""
        if not is_going(thing):
            self.server.delete(thing)

    def keep(self, thing: Object, finalizer: str) -> None:
        """Has an object stay until its controller lets it go."""
        if finalizer not in finalizers_of(thing) and not is_going(thing):
            self.server.patch(thing, {"metadata": {"finalizers": [*finalizers_of(thing), finalizer]}})

    def let_go(self, thing: Object) -> None:
        """Takes away the controllers' finalizers, and leaves those of others."""
        left = [one for one in finalizers_of(thing) if not one.endswith(".x-k8s.io")]
        if left != finalizers_of(thing):
            self.server.patch(thing, {"metadata": {"finalizers": left}})

    def set_status(self, thing: Object, status: Object) -> None:
        """Writes a status that differs from what is there."""
        now = thing.get("status") or {}
        if any(now.get(name) != value for name, value in status.items()):
            self.server.patch(thing, {"status": status}, "status")


_LABELS = {"cluster": CLUSTER_NAME, "deployment": DEPLOYMENT_NAME}


def _has(thing: Object, wanted: dict[str, str]) -> bool:
    labels = thing["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, value in wanted.items())


def name_of(thing: Object) -> str:
    """The name of an object."""
    name: str = thing["metadata"]["name"]
    return name


def namespace_of(thing: Object) -> str:
    """The namespace of an object."""
    namespace: str = thing["metadata"]["namespace"]
    return namespace


def is_going(thing: Object) -> bool:
    """Whether somebody has asked for its deletion."""
    return "deletionTimestamp" in thing["metadata"]


def finalizers_of(thing: Object) -> list[str]:
    """What keeps an object from going."""
    return thing["metadata"].get("finalizers") or []


def made(kind: str, namespace: str, name: str, labels: dict[str, str], spec: Object) -> Object:
    """An object to be made."""
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": version_of(kind), "kind": kind, "metadata": metadata, "spec": spec}


def reference(thing: Object) -> Object:
    """How one object names another."""
    named: dict[str, Any] = {"apiVersion": thing["apiVersion"], "kind": thing["kind"]}
    return {**named, "name": name_of(thing), "namespace": namespace_of(thing)}


def conditions(thing: Object, **are: bool) -> list[Object]:
    """Conditions with these values. One that stays as it is keeps the time of its last change."""
    before = {one["type"]: one for one in (thing.get("status") or {}).get("conditions") or []}
    found = []
    for name, is_true in are.items():
        status = "True" if is_true else "False"
        old = before.get(name)
        changed = {"type": name, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        found.append(old if old and old["status"] == status else changed)
    return found
