"""What surrounds a cluster in a test: a cloud's answers, which the test has described, and a log of what was asked.

Each cluster has a world of its own, a file that is named by its uuid, and beside it the log: one line for each call. A
process makes one call of the driver at a time, so there is one current world.
"""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

FOLDER = "MAGNUM_TEST_WORLDS"
"""The environment variable that names the folder with the worlds."""


class World:
    """The answers of the cloud of one cluster, and what it was asked."""

    def __init__(self, cluster: str) -> None:
        path = pathlib.Path(os.environ[FOLDER], f"{cluster}.json")
        described: dict[str, Any] = json.loads(path.read_text())
        self.given = described
        self.cloud: dict[str, Any] = described["cloud"]
        self.deleted_load_balancers: set[str] = set()
        self._log = path.with_suffix(".calls")

    def note(self, call: str, by: str | None, arguments: dict[str, Any]) -> None:
        """Writes a call down. A call that is killed has told what it did until then."""
        entry: dict[str, Any] = {"call": call}
        if arguments:
            entry["args"] = arguments
        if by is not None:
            entry["as"] = by
        with self._log.open("a") as log:
            log.write(json.dumps(entry) + "\n")


_current: list[World] = []


@contextlib.contextmanager
def of(cluster: str) -> Iterator[World]:
    """The world of this cluster, current meanwhile."""
    world = World(cluster)
    _current.append(world)
    try:
        yield world
    finally:
        _current.pop()


def current() -> World:
    """The world of the cluster that the driver is called for."""
    return _current[-1]
