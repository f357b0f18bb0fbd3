"""What the doubles have in common: they note what they are asked, in whose name, and answer from the current world."""

import types
from typing import Any

from magnum_heat_replay import wording, world


class Thing(types.SimpleNamespace):
    """What a client answers: attributes, and some ask for a dictionary."""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class Client:
    """A client in somebody's name."""

    service = ""

    def __init__(self, by: str) -> None:
        self._by = by

    def note(self, call: str, **arguments: Any) -> None:
        """Writes a call of this client down."""
        world.current().note(f"{self.service}.{call}", self._by, wording.clean(arguments))
