"""The world of drivers for Cluster API: doubles of a cloud, a management cluster, a workload cluster and helm, in one
process, and a control by JSON lines on standard input and output.

A request is {"id": n, "do": "name", ...}, its answer {"id": n, "result": ...} or {"id": n, "error": {"class", "module",
"message"}}, as of the Python peers of the tests.
"""

import json
import os
import sys
from typing import Any

import cloud
import cluster
import helm
import recording
from effects import Log
from scenes import Case, Scene


class World:
    """The doubles. Each method is a request."""

    def __init__(self, kubeconfig: str) -> None:
        self.log = Log()
        self.cloud = cloud.Cloud(self.log)
        self.management = cluster.Cluster("kubernetes", self.log)
        self.workload = cluster.Cluster("workload_cluster", self.log)
        self.helm = helm.Helm(self.log)
        self._urls = {
            "cloud": cloud.start(self.cloud),
            "management": cluster.start(self.management),
            "workload": cluster.start(self.workload),
            "helm": helm.start(self.helm),
        }
        self.kubeconfig = kubeconfig
        self.snapshots: dict[str, Any] = {}
        with open(kubeconfig, "w", encoding="utf-8") as file:
            json.dump(cluster.kubeconfig(self._urls["management"]), file)

    def urls(self) -> dict[str, str]:
        """Where each double is."""
        return self._urls

    def list_service(self, service: str, url: str) -> None:
        """Has the catalog say that a service is there, until the next `reset`."""
        self.cloud.elsewhere[service] = url

    def in_cloud(self) -> dict[str, list[str]]:
        """Names of what has been made in the cloud and not been removed."""
        cloud = self.cloud
        made = {"credentials": cloud.credentials, "server_groups": cloud.server_groups}
        return {kind: sorted(one["name"] for one in rows.values()) for kind, rows in made.items()}

    def hold_cloud(self, pattern: str) -> None:
        """Has requests to the cloud wait whose path matches; none, if the pattern is empty."""
        self.cloud.hold(pattern)

    def cloud_holds(self) -> int:
        """How many requests to the cloud wait."""
        return self.cloud.waiting

    def reset(self) -> None:
        """An empty world without faults."""
        with self.log.lock:
            for one in (self.cloud, self.management, self.workload):
                one.reset()
            self.helm.mode = "ok"
            self.log.take()

    def keep(self, name: str) -> None:
        """Keeps the world as it is, for `restore`."""
        with self.log.lock:
            self.snapshots[name] = (self.cloud.state(), self.management.state())

    def restore(self, name: str) -> None:
        """The world as it was kept, without faults."""
        with self.log.lock:
            self.reset()
            of_cloud, of_management = self.snapshots[name]
            self.cloud.restore(of_cloud)
            self.management.restore(of_management)

    def prepare(self, case: Case, package: str, cluster: str, stack: str | None) -> None:
        """Adds what the case begins with (`scenes.py`)."""
        with self.log.lock:
            Scene(self.cloud, self.management, self._urls["workload"], self.helm).prepare(case, package, cluster, stack)
            self.log.take()

    def set_helm(self, mode: str) -> None:
        """How calls of helm end from now on."""
        self.helm.mode = mode

    def build(self, clusters: int, namespace: str) -> None:
        """Adds clusters called `bench-0` and so on that are being built."""
        with self.log.lock:
            for number in range(clusters):
                Scene(self.cloud, self.management, self._urls["workload"], self.helm).building(f"bench-{number}", namespace)

    def progress(self) -> dict[str, Any]:
        """How often helm was called since the effects were taken, and how many seconds after the first effect the last
        time; how many looks at clusters there were, and in how many seconds."""
        effects = self.log.so_far()
        helm_calls = [effect["at"] for effect in effects if effect["by"] == "helm"]
        asked = [effect for effect in effects if effect["by"] == "kubernetes" and effect["method"] == "GET"]
        looks = [effect["at"] for effect in asked if "/clusters/" in effect["path"]]
        return {
            "helm_calls": len(helm_calls),
            "create_seconds": max(helm_calls) - effects[0]["at"] if helm_calls else 0.0,
            "looks": len(looks),
            "look_seconds": max(looks) - min(looks) if looks else 0.0,
        }

    def forget(self) -> None:
        """Drops the effects so far."""
        self.log.take()

    def effects(self, stacks: list[str], certificates: dict[str, str]) -> dict[str, Any]:
        """The effects since the last time, in the form of the recordings: `steps` and `cloud_reads`."""
        names = self._names(stacks, certificates)
        effects = self.log.take()
        return {"steps": recording.steps(effects, names), "cloud_reads": recording.reads(effects, names)}

    def scrub(self, value: Any, stacks: list[str]) -> Any:
        """A value, in the form of the recordings."""
        return recording.any_(value, self._names(stacks, {}))

    def _names(self, stacks: list[str], certificates: dict[str, str]) -> recording.Names:
        places = [(self._urls[name], f"http://{name}.test") for name in ("cloud", "management", "workload")]
        places.append((self.kubeconfig, "<kubeconfig_file>"))
        return recording.Names(places, stacks, certificates)


def main() -> None:
    """Answers requests until the input ends."""
    # Nothing but our lines may reach standard output.
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    world = World(sys.argv[1])
    output.write(json.dumps({"event": "ready"}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        number, do = request.pop("id"), request.pop("do")
        try:
            answer = {"result": getattr(world, do)(**request)}
        except Exception as error:  # the test decides what it means
            kind = type(error)
            answer = {"error": {"class": kind.__name__, "module": kind.__module__, "message": str(error)}}
        output.write(json.dumps({"id": number, **answer}) + "\n")


main()
