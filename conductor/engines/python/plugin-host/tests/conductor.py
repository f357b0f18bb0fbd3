"""The conductor's side of the plug-in host, for its tests: rows in memory, file descriptors, messages."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOST = Path(__file__).resolve().parent.parent
DRIVERS = HOST.parents[3] / "tests/python_drivers"
PATIENCE_S = 60

VERSIONS = {"Cluster": "1.24", "ClusterTemplate": "1.21", "NodeGroup": "1.2", "X509KeyPair": "1.2"}


def primitive(name: str, fields: dict[str, Any], changes: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object as it is sent."""
    sent = {
        "magnum_object.name": name,
        "magnum_object.namespace": "magnum",
        "magnum_object.version": VERSIONS[name],
        "magnum_object.data": dict(fields),
    }
    if changes:
        sent["magnum_object.changes"] = list(changes)
    return sent


class Rows:
    """One cluster with its node groups. Replies to the host's requests for objects, and remembers them."""

    def __init__(self, **labels: str) -> None:
        self.cluster: dict[str, Any] = {
            "id": 1,
            "uuid": "c0000000-0000-4000-8000-000000000001",
            "name": "one",
            "project_id": "a" * 32,
            "status": "CREATE_IN_PROGRESS",
            "status_reason": None,
            "stack_id": None,
            "labels": labels,
            "coe_version": None,
            "api_address": None,
        }
        self.groups = [self._group(1, "default-master", "master"), self._group(2, "default-worker", "worker")]
        self.asked: list[dict[str, Any]] = []
        self.saved: list[dict[str, Any]] = []
        self.lease_lost = False

    def _group(self, number: int, name: str, role: str) -> dict[str, Any]:
        return {
            "id": number,
            "uuid": f"e0000000-0000-4000-8000-00000000000{number}",
            "name": name,
            "cluster_id": "c0000000-0000-4000-8000-000000000001",
            "project_id": "a" * 32,
            "role": role,
            "node_count": 1,
            "is_default": True,
            "status": "CREATE_IN_PROGRESS",
            "status_reason": None,
            "node_addresses": [],
        }

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        if "instance" not in request:
            if (request["object"], request["method"]) != ("NodeGroup", "list"):
                return self.raised("ClusterNotFound", "Cluster 100% gone could not be found.")
            return {"result": [primitive("NodeGroup", group) for group in self.groups]}
        if self.lease_lost:
            return {"cancelled": "the lease is lost"}
        instance = request["instance"]
        data, changes = instance["magnum_object.data"], instance.get("magnum_object.changes", [])
        rows = [self.cluster, *self.groups]
        row = next(row for row in rows if row["uuid"] == data["uuid"])
        self.saved.append({name: data[name] for name in changes})
        row.update(self.saved[-1])
        return {"result": [{"obj_what_changed": []}, None]}

    def raised(self, name: str, message: str) -> dict[str, Any]:
        return {"raised": {"module": "magnum.common.exception", "class": name, "message": message}}


class Connection:
    """One connection to a host: a worker with its guard."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))
        self.stderr, stderr = os.pipe()
        conductor, self.alive = os.pipe()
        socket.send_fds(self.socket, [b"\n"], [stderr, conductor])
        os.close(stderr)
        os.close(conductor)
        self.lines = self.socket.makefile("rb")
        self.number = 0
        self.pid = self.receive()["pid"]

    def receive(self) -> dict[str, Any]:
        line = self.lines.readline()
        assert line, "the worker has ended"
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, message: dict[str, Any]) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def begin(self, call: str, rows: Rows, driver: str = "test_folders_v1", **more: Any) -> None:
        self.number += 1
        context = {"auth_token": "t0ken", "user_id": "alice", "project_id": "a" * 32, "is_admin": False, "new": 1}
        message = {
            "type": "call",
            "id": self.number,
            "call": call,
            "driver": driver,
            "context": context,
            "cluster": primitive("Cluster", rows.cluster),
            **more,
        }
        self.send(message)

    def end(self, rows: Rows) -> dict[str, Any]:
        """Replies to requests until the call has ended."""
        while (message := self.receive())["type"] == "object":
            self.send({"id": message["id"], **rows.reply(message)})
        assert message["id"] == self.number
        return message

    def call(self, call: str, rows: Rows, **more: Any) -> dict[str, Any]:
        self.begin(call, rows, **more)
        return self.end(rows)

    def close(self) -> None:
        """What becomes of the descriptors of a conductor that dies."""
        for descriptor in (self.alive, self.stderr):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.lines.close()
        self.socket.close()

    def standard_error(self) -> str:
        """All that was written until nobody has the pipe open any more."""
        text, deadline = b"", time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if not select.select([self.stderr], [], [], deadline - time.monotonic())[0]:
                break
            part = os.read(self.stderr, 65536)
            if not part:
                return text.decode()
            text += part
        raise AssertionError("somebody still has standard error open")


class Host:
    """A zygote of the environment that the tests run in, with the tests' own drivers."""

    def __init__(self, folder: Path, drivers: tuple[str, ...] = (), silence_ms: int = 60000, **env: str) -> None:
        self.folder, self.path, self.temporary = folder, folder / "socket", folder / "tmp"
        self.built = folder / "built"
        for made in (self.temporary, self.built):
            made.mkdir()
        config = folder / "magnum.conf"
        config.write_text("[DEFAULT]\nlog_file = /nowhere/magnum.log\n[certificates]\ncert_manager_type = x509keypair\n")
        command = [sys.executable, "-B", str(HOST), "--listen", str(self.path), "--parent", str(os.getpid())]
        command += ["--temporary-folder", str(self.temporary), "--silence-ms", str(silence_ms)]
        for driver in drivers:
            command += ["--driver", driver]
        environment = {
            **os.environ,
            "EVENTLET_THREADPOOL_SIZE": "0",
            "PYTHONPATH": str(DRIVERS),
            "MAGNUM_TEST_BUILT": str(self.built),
            **env,
        }
        self.errors = folder / "stderr"
        self.about: dict[str, Any] = {}
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [*command, "--", "--config-file", str(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                process_group=0,
            )

    def ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.errors.read_text()
        self.about = json.loads(line)

    def connect(self) -> Connection:
        return Connection(self.path)

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


def wait(what: str, condition: Any) -> Any:
    """Waits until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.005)
    raise AssertionError(f"not within {PATIENCE_S} s: {what}")


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
