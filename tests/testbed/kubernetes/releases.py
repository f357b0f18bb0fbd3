"""Releases as helm 3 keeps them: a Secret for each revision, whose data is the revision as JSON, compressed, in base64
(and once more, as all data of a Secret)."""

import base64
import gzip
import json
from datetime import UTC, datetime
from typing import Any

from api import Object, Server, version_of

Revision = dict[str, Any]

PENDING = ("pending-install", "pending-upgrade", "pending-rollback")


def now() -> str:
    """The time, as helm writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


class Releases:
    """The releases in a namespace."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.server, self.namespace = server, namespace

    def history(self, name: str) -> list[Revision]:
        """The revisions of a release, the oldest first."""
        found = self.server.list("Secret", self.namespace, {"owner": "helm", "name": name})
        revisions = [_decoded(secret["data"]["release"]) for secret in found]
        return sorted(revisions, key=lambda one: int(one["version"]))

    def create(self, revision: Revision, history_max: int) -> None:
        """Adds a revision. Of the former ones as many are kept as make `history_max` with it (0: all), and in any case the
        one that is deployed."""
        if history_max:
            former = self.history(revision["name"])
            for old in former[: max(0, len(former) - history_max + 1)]:
                if old["info"]["status"] != "deployed":
                    self.remove(old)
        secret = self._secret(revision)
        secret["metadata"]["labels"]["createdAt"] = str(int(datetime.now(UTC).timestamp()))
        self.server.create(secret)

    def update(self, revision: Revision) -> None:
        """Writes a revision whose status has changed."""
        secret = self._secret(revision)
        self.server.patch(secret, {"metadata": {"labels": secret["metadata"]["labels"]}, "data": secret["data"]})

    def remove(self, revision: Revision) -> None:
        """Forgets a revision."""
        self.server.delete(self._secret(revision))

    def _secret(self, revision: Revision) -> Object:
        name, version = revision["name"], revision["version"]
        labels = {"owner": "helm", "name": name, "status": revision["info"]["status"], "version": str(version)}
        return {
            "apiVersion": version_of("Secret"),
            "kind": "Secret",
            "type": "helm.sh/release.v1",
            "metadata": {
                "name": f"sh.helm.release.v1.{name}.v{version}",
                "namespace": self.namespace,
                "labels": labels,
            },
            "data": {"release": _encoded(revision)},
        }


def _encoded(revision: Revision) -> str:
    compressed = gzip.compress(json.dumps(revision).encode())
    return base64.b64encode(base64.b64encode(compressed)).decode()


def _decoded(data: str) -> Revision:
    revision: Revision = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(data))))
    return revision
