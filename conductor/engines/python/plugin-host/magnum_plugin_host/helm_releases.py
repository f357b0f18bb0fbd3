"""A helm that was killed leaves its release locked: the revision stays `pending-install`, `pending-upgrade` or
`pending-rollback`, and every later helm says that another operation is in progress. Here such a revision is marked as
failed, which is what helm does with a revision that it could not finish: the next upgrade goes on from there.

Releases are read and written as helm keeps them where nothing else is set (`HELM_DRIVER`): a secret for each revision.
"""

import base64
import gzip
import importlib
import json
import logging
import os
import re
import time
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

LOG = logging.getLogger(__name__)

LOCKED = "another operation (install/upgrade/rollback) is in progress"
"""What helm writes of a release whose last revision is pending."""

PENDING = ("pending-install", "pending-upgrade", "pending-rollback")

UPGRADE = re.compile(
    r"helm upgrade (?P<name>\S+) .*--timeout (?P<minutes>\d+)m .*--namespace (?P<namespace>\S+)( .*)?"
)
"""The command line of magnum-capi-helm. That of magnum-cluster-api takes a locked release for an upgraded one itself."""

REQUEST_WITHIN_S = 30

Secret = dict[str, Any]


class Locked(NamedTuple):
    """A release that helm found locked."""

    name: str
    namespace: str
    time_limit_s: float
    """What that helm was given for waiting; nobody's helm works for longer."""


def locked_by(error: BaseException) -> Locked | None:
    """The release, when the error is that of a `helm upgrade` which found it locked."""
    command = getattr(error, "cmd", None)
    if not isinstance(command, str) or LOCKED not in (getattr(error, "stderr", None) or ""):
        return None
    found = UPGRADE.fullmatch(command)
    if found is None:
        return None
    return Locked(found["name"], found["namespace"], 60 * float(found["minutes"]))


def unlock(release: Locked, attempt: int) -> bool:
    """Marks the pending revisions of the release as failed; whether there were any.

    The cluster is this operation's alone, so from its second attempt on a pending revision is an earlier attempt's,
    whose helm was killed with it. In the first one it has to be older than any helm can be.
    """
    if os.environ.get("HELM_DRIVER", "secret") not in ("", "secret", "secrets"):
        return False
    client = _management_cluster()
    path = f"/api/v1/namespaces/{release.namespace}/secrets"
    selector = f"owner=helm,name={release.name},status in ({','.join(PENDING)})"
    listed = client.get(path, params={"labelSelector": selector}, timeout=REQUEST_WITHIN_S)
    listed.raise_for_status()
    now = parsedate_to_datetime(listed.headers["Date"])
    left = [one for one in listed.json()["items"] if attempt > 1 or _age_s(one, now) > release.time_limit_s]
    for secret in left:
        name = secret["metadata"]["name"]
        LOG.info("marking the helm revision %s as failed: the helm that made it has ended", name)
        # Refused if somebody has written it since: that helm is alive.
        written = client.put(f"{path}/{name}", json=failed(secret), timeout=REQUEST_WITHIN_S)
        written.raise_for_status()
    return bool(left)


def _management_cluster() -> Any:
    """The session in which the driver itself talks to Kubernetes."""
    return importlib.import_module("magnum_capi_helm.kubernetes").Client.load()


def _age_s(secret: Secret, now: datetime) -> float:
    made = datetime.strptime(secret["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%S%z")
    return (now - made).total_seconds()


def failed(secret: Secret) -> Secret:
    """The same revision, failed, as helm writes it."""
    revision = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    revision["info"]["status"] = "failed"
    revision["info"]["description"] = "The helm that made this revision was interrupted"
    encoded = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(revision).encode()))).decode()
    labels = {**secret["metadata"]["labels"], "status": "failed", "modifiedAt": str(int(time.time()))}
    return {**secret, "metadata": {**secret["metadata"], "labels": labels}, "data": {**secret["data"], "release": encoded}}
