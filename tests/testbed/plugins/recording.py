"""Effects in the form of the recorded cases: without random parts, secrets, places and names of hosts.

What a recording replaces is described beside the recordings (tests/fixtures/plugins/README.md). Texts that belong to a
package, and are long, are told by a digest.
"""

import base64
import copy
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization

Step = dict[str, Any]

REGISTRY = re.compile(r"(?<![\w./-])((?:[a-z0-9-]+\.)+(?:io|com|dev|org|cr))(?=/[a-z0-9])")
"""What looks like the host of an image registry."""

TEMPLATE_KINDS = (
    "ClusterClass",
    "OpenStackClusterTemplate",
    "OpenStackMachineTemplate",
    "KubeadmControlPlaneTemplate",
    "KubeadmConfigTemplate",
)
"""Kinds whose content is the package's and the same for all clusters."""


@dataclass(frozen=True)
class Names:
    """What stands for what in one case."""

    # (text, what it is replaced by), the more special ones first.
    places: list[tuple[str, str]]
    # Names that the driver gave the cluster: the last part is random.
    stacks: list[str]
    # Certificates of the cluster by the name of its column.
    certificates: dict[str, str]


def steps(effects: Iterable[dict[str, Any]], names: Names) -> list[Step]:
    """The steps of a recording: what was asked for but not what was only read, and no logins."""
    told = []
    for effect in effects:
        reads = effect.get("method") in ("GET", "HEAD")
        if effect["by"] == "cloud" and not reads and not effect["path"].endswith("/auth/tokens"):
            request = f"{effect['method']} {text(effect['path'], names)}"
            told.append({"cloud": {"request": request, "as": effect["caller"], "body": any_(effect["body"], names)}})
        elif effect["by"] == "workload_cluster" or effect["by"] == "kubernetes" and not reads:
            told.append({effect["by"]: _request(effect, names)})
        elif effect["by"] == "helm":
            told.append({"helm": _helm(effect, names)})
    return told


def reads(effects: Iterable[dict[str, Any]], names: Names) -> dict[str, int]:
    """What was read from the cloud by somebody who had logged in, counted."""
    counted: dict[str, int] = {}
    for effect in effects:
        # Where services are is part of a login.
        is_login = effect.get("path", "").endswith("/auth/catalog")
        if effect["by"] == "cloud" and effect["method"] == "GET" and effect["caller"] and not is_login:
            query = "&".join(f"{name}={value}" for name, value in sorted(effect["query"].items()))
            what = f"{text(effect['path'], names)}{'?' if query else ''}{query} as {effect['caller']}"
            counted[what] = counted.get(what, 0) + 1
    return counted


def text(value: str, names: Names) -> str:
    """A text without random parts."""
    for place, replacement in names.places:
        value = value.replace(place, replacement)
    if "-----BEGIN" in value:
        return _pem(value, names)
    for stack in names.stacks:
        value = value.replace(stack, stack.rpartition("-")[0] + "-RANDOM")
    value = re.sub(r"(magnum-[0-9a-f-]{36}-)[0-9a-f]{8}", r"\1HEX8", value)
    value = re.sub(r"/[^\s'\"]*/\.tmp\w+", "<chart unpacked to a temporary folder>", value)
    value = re.sub(r"/[^\s'\"]*/site-packages/magnum_cluster_api/", "<package>/", value)
    return REGISTRY.sub(lambda found: _registry(found, value), value)


def any_(value: Any, names: Names) -> Any:
    """The same of all texts within."""
    if isinstance(value, str):
        return text(value, names)
    if isinstance(value, dict):
        return {text(name, names): any_(one, names) for name, one in value.items()}
    if isinstance(value, list):
        return [any_(one, names) for one in value]
    return value


def _pem(value: str, names: Names) -> str:
    for name, certificate in names.certificates.items():
        if certificate.strip() == value.strip():
            return f"<certificate of {name}>"
    if "PRIVATE KEY" not in value:
        return "<certificate>"
    return "<private key, encrypted>" if "ENCRYPTED" in value else "<private key, decrypted>"


def _registry(found: re.Match[str], whole: str) -> str:
    host = found.group(1)
    # Names of labels and of API groups look like hosts, too.
    of_kubernetes = host.endswith("k8s.io") and not host.startswith("registry.")
    of_projects = host.endswith(("openstack.org", "stackhpc.com", "kubernetes.io", "coreos.com", "storage.io"))
    if of_kubernetes or of_projects or f"/apis/{host}" in whole:
        return host
    return f"registry-{_digest(host)[:4]}.test"


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:16]


def _request(effect: dict[str, Any], names: Names) -> dict[str, Any]:
    told = {"request": f"{effect['method']} {text(effect['path'], names)}", "status": effect["status"]}
    if effect["query"]:
        told["query"] = any_(effect["query"], names)
    if effect["content_type"] and effect["method"] == "PATCH":
        told["content_type"] = effect["content_type"]
    if effect["body"] is not None:
        told["body"] = _body(effect["body"], effect["path"], names)
    return told


def _helm(effect: dict[str, Any], names: Names) -> dict[str, Any]:
    told: dict[str, Any] = {"argv": [text(word, names) for word in effect["argv"]]}
    if effect["stdin"]:
        try:
            told["values"], told["stdin"] = any_(json.loads(effect["stdin"]), names), "json"
        except ValueError:
            told["values"], told["stdin"] = any_(yaml.safe_load(effect["stdin"]), names), "yaml"
    if effect["mode"] != "ok":
        told["mode"] = effect["mode"]
    return told


def _body(body: Any, path: str, names: Names) -> Any:
    if not isinstance(body, dict):
        return any_(body, names)
    body = copy.deepcopy(body)
    metadata = body.get("metadata") or {}
    # The first three count what happened before.
    for name in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
        metadata.pop(name, None)
    kind = body.get("kind")
    if kind in TEMPLATE_KINDS:
        return any_(_template(body), names)
    if kind == "Secret":
        return _secret(body, names)
    if kind == "Cluster" and "topology" in body.get("spec", {}):
        for variable in body["spec"]["topology"].get("variables", []):
            if variable["name"] in ("containerdConfig", "systemdProxyConfig", "aptProxyConfig") and variable["value"]:
                variable["value"] = _encoded(variable["value"])
    if kind == "Lease" or "/leases" in path:
        spec = body.get("spec") or {}
        body = {"spec": {name: value for name, value in spec.items() if name == "leaseDurationSeconds"}}
    return any_(body, names)


def _template(body: dict[str, Any]) -> dict[str, Any]:
    spec = body.get("spec") or {}
    told: dict[str, Any] = {"sha256": _digest(json.dumps(body.get("spec"), sort_keys=True))}
    if body["kind"] == "ClusterClass":
        told["patches"] = [patch["name"] for patch in spec.get("patches", [])]
        told["variables"] = [
            {
                "name": variable["name"],
                "required": variable.get("required"),
                "type": variable.get("schema", {}).get("openAPIV3Schema", {}).get("type"),
            }
            for variable in spec.get("variables", [])
        ]
    return {"kind": body["kind"], "apiVersion": body.get("apiVersion"), "metadata": body["metadata"], "spec": told}


def _encoded(value: str) -> Any:
    decoded = base64.b64decode(value).decode()
    if not decoded:
        return ""
    told = {"sha256": _digest(decoded), "bytes": len(decoded), "lines": len(decoded.splitlines())}
    return {"base64 of text": told}


def _secret(body: dict[str, Any], names: Names) -> dict[str, Any]:
    data = body.pop("stringData", None) or {}
    told: dict[str, Any] = any_(body, names)
    if data:
        told["stringData"] = {name: _secret_value(name, value, names) for name, value in data.items()}
        if "tls.crt" in data and "tls.key" in data and not _belong_together(data["tls.crt"], data["tls.key"]):
            told["stringData"]["tls.key"] = "<private key of another certificate>"
    return told


def _secret_value(name: str, value: str, names: Names) -> Any:
    if name == "clouds.yaml":
        return {"yaml": any_(yaml.safe_load(value), names)}
    if not name.endswith((".yaml", ".yml")):
        return text(value, names)
    told: dict[str, Any] = {"documents": [_document(one, names) for one in yaml.safe_load_all(value) if one]}
    if images := sorted(set(re.findall(r"image: ['\"]?([^\s'\"]+)", value))):
        told["images"] = [text(image, names) for image in images]
    return told


def _document(document: dict[str, Any], names: Names) -> Any:
    metadata = document.get("metadata") or {}
    told = {"kind": document.get("kind"), "name": metadata.get("name"), "namespace": metadata.get("namespace")}
    of_cloud = told["kind"] == "Secret" and told["name"] in ("cloud-config", "csi-manila-secrets")
    return any_(document if told["kind"] == "StorageClass" or of_cloud else told, names)


def _belong_together(certificate: str, key: str) -> bool:
    if "BEGIN CERTIFICATE" not in certificate or "PRIVATE KEY" not in key:
        return False
    encoding = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    of_certificate = x509.load_pem_x509_certificate(certificate.encode()).public_key()
    of_key = serialization.load_pem_private_key(key.encode(), None).public_key()
    return of_certificate.public_bytes(*encoding) == of_key.public_bytes(*encoding)
