"""The other half of the double of `helm` (`bin/helm`): says what a call prints and how it ends, and notes it in the order
of all effects."""

import threading
from typing import Any

from effects import Log
from servers import Handler, serve

FAILURES = {
    "fail": "Error: values do not meet the schema",
    "busy": "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
    "unreachable": "Error: Kubernetes cluster unreachable: connection refused",
}
"""What helm says of a call in each mode that a test may order. In the mode `gone` a release is not there; in the mode
`hang` a call does not end."""

RENDERED = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: rendered\ndata:\n  by: fake-helm\n\n"
"""What every chart renders."""


class Helm:
    """How calls end."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.mode = "ok"

    def run(self, call: dict[str, Any]) -> dict[str, Any]:
        """The end of a call: `status`, `out` and `err`."""
        self.log.add("helm", argv=call["argv"], stdin=call["stdin"], mode=self.mode)
        if self.mode == "hang":
            threading.Event().wait()
        if error := FAILURES.get(self.mode):
            return {"status": 1, "out": "", "err": error + "\n"}
        command = next(word for word in call["argv"] if not word.startswith("-"))
        if command in ("uninstall", "delete") and self.mode == "gone":
            return {"status": 1, "out": "", "err": "Error: uninstall: Release not loaded: x: release: not found\n"}
        out = {
            "upgrade": '{"name": "x", "info": {"status": "deployed"}, "version": 1}\n',
            "uninstall": "release uninstalled\n",
            "delete": "release uninstalled\n",
            "template": RENDERED,
            "version": "v3.0.0-fake\n",
        }
        return {"status": 0, "out": out.get(command, ""), "err": ""}


def start(helm: Helm) -> str:
    """Serves `bin/helm`; returns the URL."""

    class Calls(Handler):
        def handle_request(self, path: str, query: dict[str, str], body: Any) -> None:
            self.reply(200, helm.run(body))

    return serve(Calls)
