"""A forked process that makes the calls of one connection.

The conductor sends with its first byte two file descriptors: the writing end of a pipe for standard error, so that what
this call and the programs that it starts write is found with its operation, and the reading end of the pipe that the
guard watches.
"""

import array
import os
import resource
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass

from magnum_plugin_host import calls, errors, guard
from magnum_plugin_host.channel import Cancelled, Channel, Message
from magnum_plugin_host.entry_points import Loaded, describe
from magnum_plugin_host.remote_objects import remote_objects

FIRST_BYTE_WITHIN_S = 10
"""The conductor sends the first byte right after it has connected."""


@dataclass(frozen=True)
class Limits:
    """What a call may use, and how long its guard waits for a sign of the conductor."""

    silence_s: float
    address_space_bytes: int
    open_files: int
    temporary_folder: str


def serve(connection: socket.socket, drivers: dict[str, Loaded], limits: Limits) -> None:
    """In a process forked for `connection`: becomes guard and worker, and ends with the connection's last call."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the exit codes of programs are lost
    standard_error, conductor = _descriptors(connection)
    os.dup2(standard_error, 2)
    os.dup2(standard_error, 1)
    os.close(standard_error)
    folder = tempfile.mkdtemp(prefix="call-", dir=limits.temporary_folder)
    worker = os.fork()
    if worker:
        # The end of the connection tells the conductor that the worker has ended.
        connection.close()
        _lead_group(worker)
        guard.watch(worker, conductor, limits.silence_s, folder)
        return
    os.close(conductor)
    _lead_group(0)
    _keep_within(limits, folder)
    _calls(Channel(connection), drivers)


def _lead_group(process: int) -> None:
    """Done by both, whoever is first: neither may go on before."""
    try:
        os.setpgid(process, 0)
    except (PermissionError, ProcessLookupError):
        pass  # it ended, or started a program


def _descriptors(connection: socket.socket) -> tuple[int, int]:
    connection.settimeout(FIRST_BYTE_WITHIN_S)
    received = array.array("i")
    _, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(2 * received.itemsize))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            received.frombytes(data[: len(data) - len(data) % received.itemsize])
    if len(received) != 2:
        raise RuntimeError("the conductor sent no file descriptors")
    connection.settimeout(None)
    return received[0], received[1]


def _keep_within(limits: Limits, folder: str) -> None:
    os.environ["TMPDIR"] = folder
    tempfile.tempdir = None  # looked up again
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, limits.open_files)
    if limits.address_space_bytes:
        _limit(resource.RLIMIT_AS, limits.address_space_bytes)


def _limit(what: int, value: int) -> None:
    _, most = resource.getrlimit(what)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(what, (value, value))


def _calls(channel: Channel, drivers: dict[str, Loaded]) -> None:
    remote_objects().channel = channel
    channel.send({"type": "hello", "pid": os.getpid()})
    while (message := channel.receive()) is not None:
        try:
            channel.send({**_reply(message, drivers), "id": message["id"]})
        except Cancelled:
            return
        if not message.get("more"):
            return


def _reply(message: Message, drivers: dict[str, Loaded]) -> Message:
    if message["call"] == "list":
        described = [describe(name, loaded) for name, loaded in drivers.items()]
        return {"type": "done", "value": described}
    try:
        driver = _driver(drivers, message["driver"])
        _trace(message)
        return calls.run(driver, message)
    except BaseException as error:  # a constructor that exits, too
        return {"type": "failed", **errors.failed(error)}


def _driver(drivers: dict[str, Loaded], name: str) -> object:
    loaded = drivers.get(name)
    if loaded is None:
        raise LookupError(f"the Python environment {sys.prefix} has no entry point {name}")
    if loaded.error is not None:
        raise ImportError(f"the driver {name} cannot be imported: {loaded.error}")
    return loaded.cls()


def _trace(message: Message) -> None:
    """Programs that the driver starts find the trace where others look for it."""
    for name, value in message.get("trace", {}).items():
        os.environ[name.upper()] = value
