"""What `helm` 3 does, with the charts of `charts.py`: `upgrade --install`, `uninstall` (`delete`), `rollback`, `history`,
`template` and `version`. Releases, messages and exit statuses are those of the real one; hooks, waiting and repositories of
charts are left out, and so is the colour of the output."""

import argparse
import copy
import json
import signal
import sys
from typing import Any, NoReturn

import charts
from api import ApiError, Object, Server, path
from hold import wait_while_held
from releases import PENDING, Releases, Revision, now

BUSY = "another operation (install/upgrade/rollback) is in progress"
KEEP = ("helm.sh/resource-policy", "keep")
OWNER = "meta.helm.sh/release"


class Failed(Exception):
    """What helm says after `Error: `."""


def arguments(argv: list[str]) -> argparse.Namespace:
    """The command line, as far as the drivers and those who repair releases use it."""
    parser = argparse.ArgumentParser(prog="helm", allow_abbrev=False)
    parser.add_argument("command")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--values", "-f")
    for option in ("namespace", "kubeconfig", "output", "timeout", "repo", "version"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--history-max", type=int, default=10)
    return parser.parse_intermixed_args(argv)


class Helm:
    """The commands, on the releases of a namespace."""

    def __init__(self, server: Server, namespace: str, history_max: int = 10) -> None:
        self.server, self.namespace, self.history_max = server, namespace, history_max
        self.releases = Releases(server, namespace)

    def upgrade(self, name: str, chart: str, values: charts.Values) -> Revision:
        """`upgrade --install`."""
        try:
            manifest = charts.objects(chart, name, self.namespace, values)
        except (KeyError, TypeError, ValueError) as error:
            raise Failed(f"execution error at ({chart}): {error!r}") from error
        history = self.releases.history(name)
        if not history:
            return self._carry_out(self._revision(name, 1, "pending-install", chart, values, manifest), None)
        last = history[-1]
        if last["info"]["status"] in PENDING:
            raise Failed(f"UPGRADE FAILED: {BUSY}")
        current = next((one for one in reversed(history) if one["info"]["status"] == "deployed"), None)
        if current is None and last["info"]["status"] in ("failed", "superseded"):
            current = last
        if current is None:
            raise Failed(f'UPGRADE FAILED: "{name}" has no deployed releases')
        new = self._revision(name, last["version"] + 1, "pending-upgrade", chart, values, manifest)
        new["info"]["first_deployed"] = current["info"]["first_deployed"]
        return self._carry_out(new, current)

    def rollback(self, name: str, version: int) -> None:
        """`rollback`: a new revision with what an older one had. A pending revision does not keep it from that."""
        history = self.releases.history(name)
        if not history:
            raise Failed("release: not found")
        last = history[-1]
        wanted = version or last["version"] - 1
        old = next((one for one in history if one["version"] == wanted), None)
        if old is None:
            raise Failed("release has no %d version" % wanted)
        new = copy.deepcopy(old)
        new.update(version=last["version"] + 1)
        new["info"].update(status="pending-rollback", last_deployed=now(), description=f"Rollback to {wanted}")
        self._carry_out(new, last)

    def uninstall(self, name: str) -> None:
        """`uninstall`, whatever state the release is in."""
        history = self.releases.history(name)
        if not history:
            raise Failed(f"uninstall: Release not loaded: {name}: release: not found")
        last = history[-1]
        last["info"].update(status="uninstalling", deleted=now(), description="Deletion in progress (or silently failed)")
        self.releases.update(last)
        for thing in reversed(manifest_of(last)):
            self._delete(thing)
        for revision in history:
            self.releases.remove(revision)

    def history(self, name: str) -> list[dict[str, Any]]:
        """`history`, as its output in JSON."""
        history = self.releases.history(name)
        if not history:
            raise Failed("release: not found")
        return [
            {
                "revision": one["version"],
                "updated": one["info"]["last_deployed"],
                "status": one["info"]["status"],
                "chart": one["chart"]["metadata"]["name"],
                "description": one["info"]["description"],
            }
            for one in history
        ]

    def _revision(
        self, name: str, version: int, status: str, chart: str, values: charts.Values, manifest: list[Object]
    ) -> Revision:
        what = "Initial install underway" if version == 1 else "Preparing upgrade"
        time = now()
        info = {"first_deployed": time, "last_deployed": time, "deleted": "", "description": what, "status": status}
        return {
            "name": name,
            "namespace": self.namespace,
            "version": version,
            "info": info,
            "chart": {"metadata": {"name": chart.rstrip("/").rsplit("/", 1)[-1], "apiVersion": "v2"}},
            "config": values,
            "manifest": "".join(f"---\n{json.dumps(self._owned(name, thing))}\n" for thing in manifest),
        }

    def _carry_out(self, new: Revision, current: Revision | None) -> Revision:
        """Writes down that the revision begins, has its objects made, and writes down how it has ended."""
        name, is_first = new["name"], new["version"] == 1
        verb = "UPGRADE FAILED: " if current else ""
        try:
            self.releases.create(new, self.history_max)
        except ApiError as error:
            message = "release: already exists" if error.status == 409 else str(error)
            raise Failed(verb + message) from error
        try:
            wait_while_held(name)
            self._apply(manifest_of(new), manifest_of(current) if current else [])
        except (ApiError, Interrupted) as error:
            what = f'Release "{name}" failed: {error}' if is_first else f'Upgrade "{name}" failed: {error}'
            new["info"].update(status="failed", description=what)
            self.releases.update(new)
            raise Failed(f"{verb}{error}") from error
        # A revision that was left pending stays so in the history.
        replaced = current["version"] if current and current["info"]["status"] == "failed" else None
        for former in self.releases.history(name):
            is_deployed = former["info"]["status"] == "deployed"
            if former["version"] != new["version"] and (is_deployed or former["version"] == replaced):
                former["info"]["status"] = "superseded"
                self.releases.update(former)
        done = new["info"]["description"] if new["info"]["status"] == "pending-rollback" else "Upgrade complete"
        new["info"].update(status="deployed", description="Install complete" if is_first else done)
        self.releases.update(new)
        return new

    def _apply(self, wanted: list[Object], former: list[Object]) -> None:
        """Makes or changes the objects, and deletes those that the former revision had and this one has not."""
        before = {path(thing): thing for thing in former}
        for thing in wanted:
            live = self.server.get(thing["kind"], self.namespace, thing["metadata"]["name"])
            if live is None:
                self.server.create(thing)
                continue
            owner, wants = (one["metadata"].get("annotations", {}).get(f"{OWNER}-name") for one in (live, thing))
            if owner != wants:
                raise ApiError(409, f"{path(thing)} exists and cannot be imported into the current release")
            if patch := _patch(before.get(path(thing), {}), thing, live):
                self.server.patch(thing, patch)
        there = {path(thing) for thing in wanted}
        for place, thing in before.items():
            if place not in there:
                self._delete(thing)

    def _delete(self, thing: Object) -> None:
        name, value = KEEP
        if thing["metadata"]["annotations"].get(name) != value:
            self.server.delete(thing)

    def _owned(self, name: str, thing: Object) -> Object:
        owned = copy.deepcopy(thing)
        metadata = owned["metadata"]
        metadata.setdefault("labels", {})["app.kubernetes.io/managed-by"] = "Helm"
        owner = {f"{OWNER}-name": name, f"{OWNER}-namespace": self.namespace}
        metadata.setdefault("annotations", {}).update(owner)
        return owned


def manifest_of(revision: Revision) -> list[Object]:
    """The objects of a revision."""
    return [json.loads(text) for text in revision["manifest"].split("---\n") if text]


def _patch(before: Any, wanted: Object, live: Object) -> Object:
    """A merge patch that gives `live` what is wanted, and takes away what only the former revision wanted."""
    patch: Object = {}
    for name, value in wanted.items():
        old, found = (one.get(name) if isinstance(one, dict) else None for one in (before, live))
        if isinstance(value, dict) and isinstance(found, dict):
            if inner := _patch(old, value, found):
                patch[name] = inner
        elif value != found:
            patch[name] = value
    if isinstance(before, dict):
        patch.update({name: None for name in before if name not in wanted and name in live})
    return patch


class Interrupted(Exception):
    """SIGTERM, after which helm still writes down that it has failed; not so after SIGKILL."""


def _interrupt(*_: Any) -> NoReturn:
    raise Interrupted("context canceled")


def run(argv: list[str], kubeconfig: str) -> None:
    """A command; prints what it prints."""
    if argv[:1] == ["version"]:
        print("v3.0.0-double")
        return
    asked = arguments(argv)
    given = sys.stdin.read() if asked.values == "-" else "{}"
    if asked.command == "template":
        print(charts.RENDERED, end="")
        return
    signal.signal(signal.SIGTERM, _interrupt)
    helm = Helm(Server(asked.kubeconfig or kubeconfig), asked.namespace or "default", asked.history_max)
    name, *others = asked.words
    match asked.command:
        case "upgrade" if asked.install:
            made = helm.upgrade(name, others[0], _values(given))
            print(json.dumps(made) if asked.output == "json" else f'Release "{name}" has been upgraded. Happy Helming!')
        case "uninstall" | "delete":
            helm.uninstall(name)
            print(f'release "{name}" uninstalled')
        case "rollback":
            helm.rollback(name, int(others[0]) if others else 0)
            print("Rollback was a success! Happy Helming!")
        case "history":
            print(json.dumps(helm.history(name)))
        case command:
            raise Failed(f'unknown command "{command}" for "helm"')


def _values(text: str) -> charts.Values:
    """Values in JSON. The autoscaler's are YAML, of which its rendering uses nothing."""
    try:
        values: charts.Values = json.loads(text)
    except json.JSONDecodeError:
        return {"yaml": text}
    return values
