"""What is read of helm's errors, and how a revision is marked. That helm goes on from there is shown with its releases in a
real Kubernetes, by the tests of the whole."""

import base64
import gzip
import json
from typing import Any

import pytest
from magnum_plugin_host import helm_releases
from oslo_concurrency.processutils import ProcessExecutionError

COMMAND = (
    "helm upgrade mine-abc openstack-cluster --history-max 10 --install --output json --timeout 5m"
    " --values - --namespace magnum-p1 --repo https://charts.test --version 0.1.0 --kubeconfig /etc/a file"
)
BUSY = f"Error: UPGRADE FAILED: {helm_releases.LOCKED}\n"


def revision(status: str) -> dict[str, Any]:
    release = {"name": "mine-abc", "version": 2, "info": {"status": status}, "manifest": "kind: Cluster"}
    encoded = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(release).encode()))).decode()
    labels = {"owner": "helm", "name": "mine-abc", "status": status, "version": "2"}
    metadata = {"name": "sh.helm.release.v1.mine-abc.v2", "resourceVersion": "7", "labels": labels}
    return {"metadata": metadata, "type": "helm.sh/release.v1", "data": {"release": encoded}}


@pytest.mark.parametrize(
    ("command", "stderr"),
    [
        (COMMAND, "Error: UPGRADE FAILED: chart requires kubeVersion"),
        (COMMAND.replace("upgrade", "uninstall"), BUSY),
        ("kubectl apply", BUSY),
        (None, BUSY),
        (COMMAND, None),
    ],
)
def test_another_failure_shows_no_locked_release(command: str | None, stderr: str | None) -> None:
    assert helm_releases.locked_by(ProcessExecutionError(cmd=command, stderr=stderr)) is None


def test_a_locked_release_is_read_from_helms_command_line() -> None:
    locked = helm_releases.locked_by(ProcessExecutionError(cmd=COMMAND, stderr=BUSY, exit_code=1))
    assert locked == ("mine-abc", "magnum-p1", 300.0)


def test_a_revision_is_marked_as_failed_and_keeps_all_else() -> None:
    before = revision("pending-upgrade")
    after = helm_releases.failed(before)
    assert before == revision("pending-upgrade")
    assert after["metadata"]["labels"]["status"] == "failed"
    assert after["metadata"]["resourceVersion"] == "7", "so that a helm that is alive is not overwritten"
    release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(after["data"]["release"]))))
    assert release["info"]["status"] == "failed"
    assert release["manifest"] == "kind: Cluster"


class Cluster:
    """A management cluster that has these revisions, at five past noon."""

    def __init__(self, *secrets: dict[str, Any]) -> None:
        self.secrets, self.selected = secrets, ""
        self.written: dict[str, str] = {}

    def get(self, path: str, params: dict[str, str], timeout: float) -> Any:
        self.selected = params["labelSelector"]
        return Reply({"items": self.secrets})

    def put(self, path: str, json: dict[str, Any], timeout: float) -> Any:
        self.written[path] = json["metadata"]["labels"]["status"]
        return Reply({})


class Reply:
    headers = {"Date": "Mon, 02 Mar 2026 12:05:00 GMT"}

    def __init__(self, body: Any) -> None:
        self.body = body

    def json(self) -> Any:
        return self.body

    def raise_for_status(self) -> None:
        pass


@pytest.mark.parametrize(
    ("attempt", "made", "expected"),
    [(2, "12:04:59", True), (1, "12:00:01", False), (1, "11:59:59", True)],
)
def test_only_a_revision_that_no_helm_can_be_at_work_with_is_marked(
    monkeypatch: pytest.MonkeyPatch, attempt: int, made: str, expected: bool
) -> None:
    secret = revision("pending-install")
    secret["metadata"]["creationTimestamp"] = f"2026-03-02T{made}Z"
    cluster = Cluster(secret)
    monkeypatch.setattr(helm_releases, "_management_cluster", lambda: cluster)
    assert helm_releases.unlock(helm_releases.Locked("mine-abc", "magnum-p1", 300), attempt) is expected
    path = "/api/v1/namespaces/magnum-p1/secrets/sh.helm.release.v1.mine-abc.v2"
    assert cluster.written == ({path: "failed"} if expected else {})
    assert cluster.selected.startswith("owner=helm,name=mine-abc,status in (pending-install,")


def test_releases_that_are_kept_elsewhere_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_DRIVER", "configmap")
    assert not helm_releases.unlock(helm_releases.Locked("mine-abc", "magnum-p1", 300), 2)
