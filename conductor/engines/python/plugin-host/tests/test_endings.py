"""Ends: after each of them nothing is left of a call, neither processes nor files."""

import os
import signal
import socket
from pathlib import Path

import pytest
from conductor import Connection, Host, Rows, runs, wait


def hanging(host: Host, trick: str = "hang") -> tuple[Connection, list[int]]:
    """A call that never ends, and its processes."""
    connection, rows = host.connect(), Rows(test_update=trick)
    connection.begin("update_cluster", rows, rollback=False)
    pids = host.built / f"pids-{rows.cluster['uuid']}"
    wait("the call hangs", pids.exists)
    found = [int(pid) for pid in pids.read_text().split()]
    pids.unlink()
    assert found[0] == connection.pid
    assert all(runs(pid) for pid in found)
    return connection, found


def nothing_left(host: Host, pids: list[int]) -> None:
    wait(f"all of {pids} have ended", lambda: not any(runs(pid) for pid in pids))
    wait("the call's folder is gone", lambda: not list(host.temporary.iterdir()))


@pytest.mark.parametrize("trick", ["hang", "lock"])
def test_a_conductor_that_is_gone_ends_the_call(shared_host: Host, trick: str) -> None:
    connection, pids = hanging(shared_host, trick)
    connection.close()
    nothing_left(shared_host, pids)


def test_closing_the_pipe_of_the_guard_cancels_the_call(shared_host: Host) -> None:
    connection, pids = hanging(shared_host)
    os.close(connection.alive)
    nothing_left(shared_host, pids)
    assert connection.lines.readline() == b""
    connection.close()


def test_a_conductor_that_hangs_loses_its_calls(tmp_path: Path) -> None:
    host = Host(tmp_path, silence_ms=1500)
    host.ready()
    connection, pids = hanging(host)
    for _ in range(20):
        os.write(connection.alive, b".")
        signal.sigtimedwait([], 0.1)
    assert all(runs(pid) for pid in pids), "the conductor was alive"
    nothing_left(host, pids)
    connection.close()
    host.stop()


def test_a_worker_that_is_killed_ends_the_connection_and_its_children(shared_host: Host) -> None:
    connection, pids = hanging(shared_host)
    os.kill(connection.pid, signal.SIGKILL)
    assert connection.lines.readline() == b""
    nothing_left(shared_host, pids)
    connection.close()


def test_what_a_finished_call_has_started_ends_with_it(shared_host: Host) -> None:
    connection, rows = shared_host.connect(), Rows(test_update="orphan")
    connection.call("update_cluster", rows, rollback=False)
    pids = shared_host.built / f"pids-{rows.cluster['uuid']}"
    nothing_left(shared_host, [int(pid) for pid in pids.read_text().split()])
    pids.unlink()
    connection.close()


def test_a_call_outlives_its_zygote(own_host: Host) -> None:
    connection = own_host.connect()
    own_host.stop()
    assert connection.call("update_cluster", Rows(), rollback=False)["type"] == "done"
    wait("the worker has ended", lambda: not runs(connection.pid))
    connection.close()


def test_a_zygote_ends_with_its_standard_input(own_host: Host) -> None:
    assert own_host.process.stdin is not None
    own_host.process.stdin.close()
    assert own_host.process.wait(60) == 0


def test_no_worker_stays_without_descriptors(own_host: Host) -> None:
    with socket.socket(socket.AF_UNIX) as bare:
        bare.settimeout(60)
        bare.connect(str(own_host.path))
        bare.sendall(b"\n")
        assert bare.recv(1) == b""
    wait("it said so", lambda: "no file descriptors" in own_host.errors.read_text())
    assert not list(own_host.temporary.iterdir())


def test_an_import_that_never_ends_ends_with_the_conductor(tmp_path: Path) -> None:
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        host = Host(tmp_path, drivers=("test_exits_v1",), MAGNUM_TEST_ENDLESS_IMPORT="1")
        os.write(write, str(host.process.pid).encode())
        signal.pause()
        os._exit(0)
    zygote = int(os.read(read, 20))
    wait("it imports", lambda: runs(zygote))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    wait("the zygote has ended", lambda: not runs(zygote))
