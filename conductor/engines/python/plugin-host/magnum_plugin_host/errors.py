"""An exception of a driver, as the conductor classifies failures: transient, permanent, not supported or cancelled.

The whole chain counts (`__cause__`, `__context__`): Magnum turns every failure of Keystone, also of one that is away,
into `AuthorizationFailure` with code 403.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from magnum_plugin_host.channel import Cancelled

TRANSIENT_STATUS = {408, 423, 425, 429}
"""HTTP statuses below 500 after which the same request may succeed."""

HELM_TRANSIENT = (
    "another operation (install/upgrade/rollback) is in progress",
    "cluster unreachable",
    "connection refused",
    "connection reset by peer",
    "i/o timeout",
    "tls handshake timeout",
    "etcdserver: request timed out",
    "temporary failure in name resolution",
)
"""What helm, or a driver's own client, writes of a management cluster that is away or busy; in small letters."""

RUST_TRANSIENT = (
    "client error (connect)",
    "error trying to connect",
    "connection closed before message completed",
    "operation timed out",
)
"""What the Rust client of magnum-cluster-api writes of a management cluster that is away; in small letters."""

LONGEST_MESSAGE = 4000


def failed(error: BaseException) -> dict[str, Any]:
    """The fields of a `failed` message."""
    cls = type(error)
    message = str(error)[:LONGEST_MESSAGE]
    code = getattr(error, "code", None)
    return {
        "class": classify(error),
        "exception": f"{cls.__module__}.{cls.__qualname__}",
        # Drivers raise without a message, or with no more than the name of a key.
        "message": message if len(message.split()) > 1 else f"{cls.__name__}: {message}".rstrip(": "),
        "code": code if isinstance(code, int) else None,
    }


def classify(error: BaseException) -> str:
    """`transient`, `permanent`, `not_supported` or `cancelled`."""
    if isinstance(error, Cancelled):
        return "cancelled"
    if isinstance(error, NotImplementedError) or is_of(error, "magnum.common.exception.NotSupported"):
        return "not_supported"
    if any(_is_transient(link) for link in chain(error)):
        return "transient"
    return "permanent"


def chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that led to it."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def is_of(error: BaseException, *names: str) -> bool:
    """Whether the error is of one of these classes, which need not be installed."""
    return any(f"{cls.__module__}.{cls.__qualname__}" in names for cls in type(error).__mro__)


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, (ConnectionError, TimeoutError)) or is_of(
        error,
        "requests.exceptions.ConnectionError",
        "requests.exceptions.Timeout",
        "keystoneauth1.exceptions.connection.ConnectFailure",
        "keystoneauth1.exceptions.connection.ConnectTimeout",
        "keystoneauth1.exceptions.discovery.DiscoveryFailure",
        "urllib3.exceptions.NewConnectionError",
        "urllib3.exceptions.TimeoutError",
        "subprocess.TimeoutExpired",
    ):
        return True
    if type(error).__module__.partition(".")[0] == "sherlock":
        return True
    status = _status(error)
    if status is not None and (status >= 500 or status in TRANSIENT_STATUS):
        return True
    # In Kubernetes somebody else was quicker; in OpenStack a name is taken, and will be the next time.
    if status == 409 and _is_kubernetes(error):
        return True
    text = f"{error} {getattr(error, 'stderr', None) or ''}".lower()
    if is_of(error, "oslo_concurrency.processutils.ProcessExecutionError"):
        return any(words in text for words in HELM_TRANSIENT)
    return _is_rust(error) and any(words in text for words in RUST_TRANSIENT)


def _status(error: BaseException) -> int | None:
    """The HTTP status that an exception carries, whatever its library calls it."""
    if _is_rust(error):
        found = re.search(r"\bcode: (\d{3})\b", str(error))
        return int(found.group(1)) if found else None
    candidates = [
        getattr(error, "http_status", None),
        getattr(error, "status_code", None),
        getattr(getattr(error, "response", None), "status_code", None),
        getattr(error, "status", None),
    ]
    # Every exception of Magnum has a code: what the REST API shall answer, 500 unless said.
    if not type(error).__module__.startswith("magnum."):
        candidates.append(getattr(error, "code", None))
    return next((status for status in candidates if type(status) is int and 100 <= status < 600), None)


def _is_rust(error: BaseException) -> bool:
    """Whether it comes from the Rust half of magnum-cluster-api, which knows texts only."""
    if type(error).__module__ == "magnum_cluster_api":
        return True
    return type(error) is RuntimeError and str(error).startswith(("ApiError", "KubeError"))


def _is_kubernetes(error: BaseException) -> bool:
    if _is_rust(error) or type(error).__module__.partition(".")[0] in ("kubernetes", "pykube"):
        return True
    url = getattr(getattr(error, "response", None), "url", None)
    return isinstance(url, str) and urlsplit(url).path.startswith(("/api/", "/apis/"))
