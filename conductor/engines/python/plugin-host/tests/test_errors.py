"""Which class an exception has."""

import subprocess

import pytest
import requests
from keystoneauth1 import exceptions as keystone
from magnum.common import exception as magnum
from magnum_plugin_host import errors
from magnum_plugin_host.channel import Cancelled
from oslo_concurrency.processutils import ProcessExecutionError


def http(status: int, url: str = "https://cloud.test/identity/v3/users") -> requests.HTTPError:
    response = requests.Response()
    response.status_code, response.url = status, url
    return requests.HTTPError(f"{status} for url {url}", response=response)


def wrapped(inner: Exception) -> Exception:
    """As Magnum turns what Keystone's client raises."""
    try:
        try:
            raise inner
        except Exception as error:
            raise magnum.AuthorizationFailure(client="keystone", message=str(error)) from None
    except Exception as error:
        return error


def rust(text: str) -> Exception:
    cls = type("KubeError", (Exception,), {"__module__": "magnum_cluster_api"})
    return cls(text)


def foreign(module: str, **attributes: object) -> Exception:
    error: Exception = type("Error", (Exception,), {"__module__": module})("as told")
    vars(error).update(attributes)
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Cancelled("x"), "cancelled"),
        (NotImplementedError(), "not_supported"),
        (magnum.NotSupported(), "not_supported"),
        (magnum.MasterNGResizeNotSupported(), "not_supported"),
        (ConnectionRefusedError(), "transient"),
        (TimeoutError(), "transient"),
        (requests.exceptions.ReadTimeout(), "transient"),
        (subprocess.TimeoutExpired("helm", 1), "transient"),
        (keystone.ConnectFailure(), "transient"),
        (keystone.DiscoveryFailure(), "transient"),
        (keystone.ServiceUnavailable(), "transient"),
        (keystone.Unauthorized(), "permanent"),
        (wrapped(keystone.ServiceUnavailable()), "transient"),
        (wrapped(keystone.Unauthorized()), "permanent"),
        (http(500), "transient"),
        (http(429), "transient"),
        (http(408), "transient"),
        (http(423), "transient"),
        (http(425), "transient"),
        (http(404), "permanent"),
        (http(409), "permanent"),
        (http(409, "https://management.test/apis/cluster.x-k8s.io/v1beta1/clusters"), "transient"),
        (http(409, "https://management.test/api/v1/secrets/s"), "transient"),
        (foreign("kubernetes.client.exceptions", status=409), "transient"),
        (foreign("pykube.exceptions", code=500), "transient"),
        (foreign("openstack.exceptions", status_code=409, http_status=409), "permanent"),
        (foreign("heatclient.exc", code=503), "transient"),
        (foreign("heatclient.exc", code=409), "permanent"),
        (foreign("neutronclient.common.exceptions", status_code=503), "transient"),
        (foreign("sherlock.lock"), "transient"),
        (rust("ApiError: etcd leader changed: InternalError (Status { code: 500 })"), "transient"),
        (rust("ApiError: already exists: AlreadyExists (Status { code: 409 })"), "transient"),
        (rust("ApiError: not found: NotFound (Status { code: 404 })"), "permanent"),
        (rust("ServiceError: client error (Connect)"), "transient"),
        (RuntimeError("ApiError: gone: NotFound (Status { code: 503 })"), "transient"),
        (RuntimeError("something with code: 503"), "permanent"),
        (ProcessExecutionError(stderr="Error: INSTALLATION FAILED: values don't meet the schema"), "permanent"),
        (
            ProcessExecutionError(
                stderr="Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"
            ),
            "transient",
        ),
        (ProcessExecutionError(stderr="Error: Kubernetes cluster unreachable: dial tcp"), "transient"),
        (magnum.MagnumException(message="Flavor m1.tiny does not have enough RAM"), "permanent"),
        (magnum.PreDeletionFailed(cluster_uuid="u", details="x"), "permanent"),
        (KeyError("kube_tag"), "permanent"),
        (SystemExit(1), "permanent"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{type(value).__name__}({value})"[:60],
)
def test_classes(error: BaseException, expected: str) -> None:
    assert errors.classify(error) == expected


def test_a_message_that_says_nothing_gets_the_name_of_the_class() -> None:
    assert errors.failed(KeyError("kube_tag"))["message"] == "KeyError: 'kube_tag'"
    assert errors.failed(NotImplementedError())["message"] == "NotImplementedError"
    assert errors.failed(ValueError("no such flavor"))["message"] == "no such flavor"
    assert len(errors.failed(ValueError("x " * 5000))["message"]) == errors.LONGEST_MESSAGE


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert errors.classify(first) == "permanent"
