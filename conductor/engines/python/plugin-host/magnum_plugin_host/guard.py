"""The guard: the process beside a worker that ends it.

A thread of the worker could not: a C call that holds the interpreter's lock stops all of them. The conductor keeps the
writing end of a pipe and sends a byte now and then:

=====================  ==================================================================
the guard sees         it
=====================  ==================================================================
a byte                 notes that the conductor is alive
end of file            kills the worker's group: the conductor is gone, or cancels
no byte for too long   kills the worker's group: the conductor hangs, and may lose its lease
the worker's end       kills what is left of its group
=====================  ==================================================================

Afterwards it removes the call's temporary folder. The kill is SIGKILL: a Python worker in a C call would not react to
less. The guard is no member of the group, so a driver that kills its own group does not hit it.
"""

import os
import select
import shutil
import signal


def watch(worker: int, conductor: int, silence_s: float, temporary_folder: str) -> None:
    """Watches until the worker has ended, and cleans up. ``conductor`` is the reading end of the pipe."""
    ended = os.pidfd_open(worker)
    poll = select.poll()
    poll.register(conductor, select.POLLIN)
    poll.register(ended, select.POLLIN)
    os.set_blocking(conductor, False)
    while True:
        ready = dict(poll.poll(int(silence_s * 1000)))
        if not ready or ended in ready or not os.read(conductor, 4096):
            break
    kill_group(worker)
    os.waitpid(worker, 0)
    # Members that were being forked while the group was killed.
    kill_group(worker)
    shutil.rmtree(temporary_folder, ignore_errors=True)


def kill_group(leader: int) -> None:
    """Kills a process group, if it has members."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
