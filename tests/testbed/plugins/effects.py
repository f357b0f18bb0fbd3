"""What the doubles have seen, in the order in which it happened: one log for all of them, so that the order between a
request to a cloud, one to a cluster and a start of helm can be compared."""

import threading
import time
from typing import Any

Effect = dict[str, Any]


class Log:
    """Effects in order. `lock` is also that of the doubles' state: one request is carried out at a time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._effects: list[Effect] = []

    def add(self, by: str, **effect: Any) -> Effect:
        """Notes an effect of the double `by`; what is known of it later may be added to what this returns."""
        noted = {"by": by, "at": time.monotonic(), **effect}
        with self.lock:
            self._effects.append(noted)
        return noted

    def so_far(self) -> list[Effect]:
        """The effects since the last time they were taken, which are kept."""
        with self.lock:
            return list(self._effects)

    def take(self) -> list[Effect]:
        """The effects since the last time."""
        with self.lock:
            taken, self._effects = self._effects, []
            return taken
