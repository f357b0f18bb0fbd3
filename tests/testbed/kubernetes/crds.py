"""Loads the kinds of Cluster API into an API server: `crds.py KUBECONFIG`.

The definitions in `crds/` are the real ones. Of their versions only `v1beta1` is loaded, which both driver packages speak:
the server has no conversion webhook, and would cut off what the stored version `v1beta2` does not know. Descriptions are
left out, which are most of the text. Rules in CEL are there, and this server does not know them.

Four kinds have no definition at hand, and one that allows everything: the add-ons of the chart's provider, and two
templates that a ClusterClass names.
"""

import sys
import time
from pathlib import Path
from typing import Any

import yaml
from api import ApiError, Object, Server, collection, version_of

CRD = "CustomResourceDefinition"
SPOKEN = "v1beta1"
OPEN = [
    ("addons.stackhpc.com", "v1alpha1", "HelmRelease", "helmreleases"),
    ("addons.stackhpc.com", "v1alpha1", "Manifests", "manifests"),
    ("controlplane.cluster.x-k8s.io", SPOKEN, "KubeadmControlPlaneTemplate", "kubeadmcontrolplanetemplates"),
    ("infrastructure.cluster.x-k8s.io", SPOKEN, "OpenStackClusterTemplate", "openstackclustertemplates"),
]


def real(file: Path) -> Object:
    """A definition as it is loaded."""
    with file.open(encoding="utf-8") as text:
        definition: Object = yaml.load(text, Loader=yaml.CSafeLoader)
    versions = [one for one in definition["spec"]["versions"] if one["name"] == SPOKEN]
    definition["spec"]["versions"] = [{**one, "storage": True} for one in versions]
    for version in versions:
        _leave_out_descriptions(version["schema"]["openAPIV3Schema"])
    return definition


def _leave_out_descriptions(schema: Any) -> None:
    if isinstance(schema, dict):
        if isinstance(schema.get("description"), str):
            del schema["description"]
        for inner in schema.values():
            _leave_out_descriptions(inner)
    elif isinstance(schema, list):
        for inner in schema:
            _leave_out_descriptions(inner)


def open_kind(group: str, version: str, kind: str, plural: str) -> Object:
    """A definition that allows everything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": anything}
    served = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": version_of(CRD),
        "kind": CRD,
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
    }


def load(server: Server) -> None:
    """Loads what is missing, and waits until all of it is served."""
    folder = Path(__file__).with_name("crds")
    definitions = [real(file) for file in sorted(folder.glob("*.yaml"))] + [open_kind(*one) for one in OPEN]
    for definition in definitions:
        try:
            server.create(definition)
        except ApiError as error:
            if error.status != 409:
                raise
    missing = {definition["metadata"]["name"] for definition in definitions}
    deadline = time.monotonic() + 120
    while missing:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not served: {sorted(missing)}")
        time.sleep(0.1)
        for definition in server.request("GET", collection(CRD))["items"]:
            found = definition.get("status", {}).get("conditions") or []
            conditions = {one["type"]: one["status"] for one in found}
            if conditions.get("Established") == "True":
                missing.discard(definition["metadata"]["name"])


if __name__ == "__main__":
    load(Server(sys.argv[1]))
