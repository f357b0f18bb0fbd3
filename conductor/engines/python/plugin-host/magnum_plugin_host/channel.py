"""Messages between a worker and the conductor: lines of JSON on a stream socket.

The worker asks for objects and waits for each reply, so one thread reads and writes. That the conductor has gone away
is the guard's concern, which a blocked worker could not see.
"""

import itertools
import json
import socket
import threading
from typing import Any

Message = dict[str, Any]


class Cancelled(BaseException):
    """The call has no right to go on: the lease of its operation is lost, or the conductor is gone.

    Not an ``Exception``: drivers have many ``except Exception``.
    """


class Channel:
    """One connection. Safe to use from several threads of a driver."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._numbers = itertools.count(1)
        self._turn = threading.Lock()

    def send(self, message: Message) -> None:
        """Sends a message. What JSON does not know is sent as text."""
        line = json.dumps(message, separators=(",", ":"), default=str)
        try:
            self._connection.sendall(line.encode() + b"\n")
        except OSError as error:
            raise Cancelled(f"the conductor is gone: {error}") from None

    def receive(self) -> Message | None:
        """The next message; ``None`` at the end of the connection."""
        try:
            line = self._lines.readline()
        except OSError as error:
            raise Cancelled(f"the conductor is gone: {error}") from None
        if not line.endswith(b"\n"):
            return None
        message: Message = json.loads(line)
        return message

    def ask(self, message: Message) -> Message:
        """Asks the conductor, and waits for its reply."""
        with self._turn:
            number = next(self._numbers)
            self.send({**message, "id": number})
            reply = self.receive()
        if reply is None:
            raise Cancelled("the conductor is gone")
        if reply.get("id") != number:
            raise Cancelled(f"the conductor replied to {reply.get('id')} and was asked {number}")
        if "cancelled" in reply:
            raise Cancelled(reply["cancelled"])
        return reply
