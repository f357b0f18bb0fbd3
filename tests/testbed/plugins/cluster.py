"""The double of a Kubernetes API: a management cluster, or a cluster that was made. It keeps objects by their paths and
knows what the drivers ask for: not conflicts of server-side apply, admission, conversion or watch. As worlds change here from
one moment to the next, it lets nobody list what is to be watched then."""

import base64
import copy
import re
from typing import Any

from effects import Log
from servers import Handler, serve

Object = dict[str, Any]
Answer = tuple[int, Any]


class Refused(Exception):
    """A request that is answered with a Status object, which names what it is about, if that is an object."""

    def __init__(self, status: int, reason: str, message: str, name: str = "") -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message
        self.details = {"details": {"name": name}} if name else {}


class Cluster:
    """The objects of one API server, and the faults that a test has ordered."""

    def __init__(self, name: str, log: Log) -> None:
        self.name, self.log = name, log
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self.objects: dict[str, Object] = {}
        # What each field manager has applied last: what it leaves out the next time goes.
        self.applied: dict[tuple[str, str | None], Object] = {}
        self.resource_version = 0
        # (method, regular expression of the path, status)
        self.faults: list[tuple[str, str, int]] = []
        # Parts of paths that answer 404, as of a kind that is not installed.
        self.not_installed: set[str] = set()

    def state(self) -> Any:
        """All that a later `restore` brings back."""
        return copy.deepcopy((self.objects, self.applied, self.resource_version))

    def restore(self, state: Any) -> None:
        """As it was at `state`, without faults."""
        self.reset()
        self.objects, self.applied, self.resource_version = copy.deepcopy(state)

    def put(self, path: str, thing: Object) -> Object:
        """Stores an object as the API server does: with its name, its version and readable data of secrets encoded."""
        self.resource_version += 1
        stored = copy.deepcopy(thing)
        metadata = stored.setdefault("metadata", {})
        metadata["name"] = path.rsplit("/", 1)[1]
        if namespace := re.search(r"/namespaces/([^/]+)/", path):
            metadata["namespace"] = namespace.group(1)
        metadata["resourceVersion"] = str(self.resource_version)
        metadata.setdefault("uid", f"uid-{self.resource_version}")
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        if stored.get("kind") == "Secret" and "stringData" in stored:
            data = stored.setdefault("data", {})
            for name, value in stored.pop("stringData").items():
                data[name] = base64.b64encode((value or "").encode()).decode()
        self.objects[path] = stored
        return copy.deepcopy(stored)

    def list(self, path: str, labels: str | None, fields: str | None) -> list[Object]:
        """The objects of a collection, of all namespaces where the path names none."""
        found = []
        for place, stored in sorted(self.objects.items()):
            collection = place.rsplit("/", 1)[0]
            if path not in (collection, re.sub(r"/namespaces/[^/]+", "", collection)):
                continue
            if _has_labels(stored, labels) and _has_fields(stored, fields):
                found.append(copy.deepcopy(stored))
        return found

    def request(self, method: str, path: str, query: dict[str, str], content_type: str, body: Any) -> Answer:
        """Carries out a request."""
        if path == "/version":
            return 200, {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
        if any(part in path for part in self.not_installed):
            raise Refused(404, "NotFound", "404 page not found")
        parts = path.strip("/").split("/")
        group = 2 if parts[0] == "api" else 3
        rest = parts[group:]
        if not rest:
            raise Refused(404, "NotFound", "404 page not found")
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            rest = rest[2:]
        if len(rest) == 1:
            return self._collection(method, path, query, "/".join(parts[1:group]), body)
        return self._object(method, path, query, content_type, body, f'{rest[0]} "{rest[-1]}" not found')

    def _collection(self, method: str, path: str, query: dict[str, str], version: str, body: Any) -> Answer:
        if method == "GET":
            if "limit" in query or "watch" in query:
                raise Refused(403, "Forbidden", "nobody may list and watch")
            items = self.list(path, query.get("labelSelector"), query.get("fieldSelector"))
            metadata = {"resourceVersion": str(self.resource_version), "continue": ""}
            return 200, {"kind": "List", "apiVersion": version, "items": items, "metadata": metadata}
        if method == "POST":
            place = f"{path}/{body['metadata']['name']}"
            if place in self.objects:
                raise Refused(409, "AlreadyExists", body["metadata"]["name"])
            return 201, self.put(place, body)
        if method == "DELETE":
            for thing in self.list(path, query.get("labelSelector"), None):
                self.objects.pop(f"{path}/{thing['metadata']['name']}", None)
            return 200, SUCCESS
        raise Refused(405, "MethodNotAllowed", method)

    def _object(
        self, method: str, path: str, query: dict[str, str], content_type: str, body: Any, absent: str
    ) -> Answer:
        stored = self.objects.get(path)
        if method == "PATCH":
            return self._patch(path, query, content_type, body, stored)
        if stored is None:
            # Recorded errors quote all of an answer about a Secret, and these name nothing.
            name = path.rsplit("/", 1)[1] if path.startswith("/apis/") else ""
            raise Refused(404, "NotFound", absent if method == "GET" else path, name)
        if method == "GET":
            return 200, copy.deepcopy(stored)
        if method == "PUT":
            wanted = (body.get("metadata") or {}).get("resourceVersion")
            if wanted and wanted != stored["metadata"]["resourceVersion"]:
                raise Refused(409, "Conflict", "changed")
            status = {"status": stored["status"]} if "status" in stored else {}
            return 200, self.put(path, {**status, **body})
        if method == "DELETE":
            del self.objects[path]
            return 200, SUCCESS
        raise Refused(405, "MethodNotAllowed", method)

    def _patch(
        self, path: str, query: dict[str, str], content_type: str, body: Any, stored: Object | None
    ) -> Answer:
        if "apply" in content_type:
            applied = copy.deepcopy(body)
            (applied.get("metadata") or {}).pop("managedFields", None)
            place = (path, query.get("fieldManager"))
            patched = _applied(copy.deepcopy(stored) or {}, applied, self.applied.get(place))
            self.applied[place] = applied
        elif stored is None:
            raise Refused(404, "NotFound", path)
        else:
            patched = _merged(stored, body)
        return (200 if stored else 201), self.put(path, patched)


SUCCESS = {"kind": "Status", "apiVersion": "v1", "status": "Success", "metadata": {}}


def _has_labels(stored: Object, selector: str | None) -> bool:
    labels = stored["metadata"].get("labels") or {}
    wanted = (one.split("=", 1) for one in (selector or "").replace("==", "=").split(",") if one)
    return all(labels.get(name) == value for name, value in wanted)


def _has_fields(stored: Object, selector: str | None) -> bool:
    for one in (selector or "").split(",") if selector else ():
        path, wanted = one.split("=", 1)
        value: Any = stored
        for part in path.split("."):
            value = (value or {}).get(part)
        if str(value) != wanted:
            return False
    return True


def _merged(old: Any, patch: Any) -> Any:
    """A merge patch: null removes."""
    if not (isinstance(old, dict) and isinstance(patch, dict)):
        return copy.deepcopy(patch)
    result = dict(old)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _applied(old: Any, new: Any, before: Any) -> Any:
    """Server-side apply by one manager: what it has applied before and leaves out now goes."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return copy.deepcopy(new)
    before = before if isinstance(before, dict) else {}
    result = {
        name: value
        for name, value in old.items()
        if name in new or name not in before or name in ("metadata", "status")
    }
    for name, value in new.items():
        if value is not None:
            result[name] = _applied(result.get(name), value, before.get(name))
    return result


def start(cluster: Cluster) -> str:
    """Serves a cluster; returns its URL."""

    class Api(Handler):
        def handle_request(self, path: str, query: dict[str, str], body: Any) -> None:
            content_type = self.headers.get("Content-Type") or ""
            with cluster.log.lock:
                effect = cluster.log.add(
                    cluster.name,
                    method=self.command,
                    path=path,
                    query=query,
                    content_type=content_type if body is not None else None,
                    body=body,
                )
                try:
                    effect["status"], answer = self._carry_out(path, query, content_type, body)
                except Refused as refused:
                    effect["status"], answer = refused.status, {
                        "kind": "Status",
                        "apiVersion": "v1",
                        "metadata": {},
                        "status": "Failure",
                        "message": refused.message,
                        "reason": refused.reason,
                        **refused.details,
                        "code": refused.status,
                    }
            self.reply(effect["status"], answer)

        def _carry_out(self, path: str, query: dict[str, str], content_type: str, body: Any) -> Answer:
            for method, pattern, status in cluster.faults:
                if method == self.command and re.search(pattern, path):
                    raise Refused(status, "InternalError" if status == 500 else "Forbidden", "as told")
            return cluster.request(self.command, path, query, content_type, body)

    return serve(Api)


def kubeconfig(url: str) -> Object:
    """With which a driver finds the cluster at `url`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "magnum-system"}}],
        "clusters": [{"name": "k", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "kube-token"}}],
    }
