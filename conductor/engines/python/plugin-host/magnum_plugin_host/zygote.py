"""The zygote: imports everything once, and forks for each connection.

It has one thread, opens no connection, and makes no instance of a driver: none of these survives a fork. Its standard
input is a pipe of the conductor: at its end the zygote ends. Calls that run then are not disturbed; their guards watch
pipes of their own.
"""

import argparse
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Reads the command line, sets everything up, says so on standard output, and serves."""
    start = time.monotonic()
    arguments = _arguments()
    _end_with(arguments.parent)
    # The drivers' libraries write what they like to it.
    ready = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from magnum_plugin_host import PROTOCOL, entry_points, library, remote_objects, worker

    magnum = library.set_up(arguments.config)
    drivers = entry_points.load(arguments.driver)
    library.preload()
    limits = worker.Limits(
        silence_s=arguments.silence_ms / 1000,
        address_space_bytes=arguments.memory_mib << 20,
        open_files=arguments.open_files,
        temporary_folder=arguments.temporary_folder,
    )
    listener = _listen(arguments.listen)
    # The collector would write to every page, and each worker would have a copy of its own.
    gc.collect()
    gc.freeze()
    about = {
        "type": "ready",
        "protocol": PROTOCOL,
        "magnum": magnum,
        "objects": remote_objects.versions(),
        "drivers": {name: loaded.error for name, loaded in drivers.items()},
        "threads": len(os.listdir("/proc/self/task")),
        "seconds": round(time.monotonic() - start, 3),
    }
    ready.write(json.dumps(about) + "\n")
    ready.close()
    _serve(listener, lambda connection: worker.serve(connection, drivers, limits))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="magnum-plugin-host", description=__doc__)
    parser.add_argument("--listen", required=True, help="path of the socket to be made")
    parser.add_argument("--parent", type=int, required=True, help="process id of the conductor")
    parser.add_argument("--driver", action="append", default=[], help="entry point to be loaded; unsaid: all")
    parser.add_argument("--temporary-folder", required=True, help="where each call gets a folder of its own")
    parser.add_argument("--silence-ms", type=int, required=True, help="how long a guard waits for a sign")
    parser.add_argument("--memory-mib", type=int, default=0, help="address space of a call; 0: no limit")
    parser.add_argument("--open-files", type=int, default=1024, help="open files of a call")
    parser.add_argument("config", nargs="*", help="after --: arguments of oslo.config")
    return parser.parse_args()


def _end_with(parent: int) -> None:
    """Has the kernel end this process with the conductor, even while an import never ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the conductor has ended already")


def _listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(mask)
    listener.listen(256)
    return listener


def _serve(listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(0, 0)  # the end of the pipe
    while True:
        ready = dict(poll.poll())
        if 0 in ready:
            return
        try:
            connection, _ = listener.accept()
        except ConnectionAbortedError:
            continue
        if os.fork():
            connection.close()
            continue
        status = 1
        try:
            listener.close()
            # The conductor's pipe is the zygote's.
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.close(nothing)
            serve(connection)
            status = 0
        except BaseException as error:
            print(f"<3>a worker cannot serve: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
