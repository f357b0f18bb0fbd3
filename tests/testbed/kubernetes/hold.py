"""Holds a `helm` between the words "this revision is pending" and the first object, so that a test can see it there, let
it go on or kill it.

`HELM_HOLD` names a folder. While it has a file `hold`, a helm that comes to this place writes a file `held-<process id>`
with the release's name, and waits. The file goes when the helm goes on; of one that is killed, it stays."""

import os
import time
from pathlib import Path


def wait_while_held(release: str) -> None:
    """Returns when there is no hold any more."""
    folder = os.environ.get("HELM_HOLD")
    if not folder:
        return
    held = Path(folder) / f"held-{os.getpid()}"
    while (Path(folder) / "hold").exists():
        if not held.exists():
            unfinished = held.with_suffix(".new")
            unfinished.write_text(release, encoding="utf-8")
            unfinished.rename(held)
        time.sleep(0.02)
    held.unlink(missing_ok=True)
