"""Keeps a listening socket and a service behind it, as systemd does with a .socket unit: the service gets the socket
as file descriptor 3, and is started again when it ends. Arguments: address, port, then the command."""

import os
import socket
import sys

listening = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=1024)
command = sys.argv[3:]
while True:
    child = os.fork()
    if child == 0:
        if listening.fileno() != 3:
            os.dup2(listening.fileno(), 3)
        os.set_inheritable(3, True)
        os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
        os.execv(command[0], command)
    print(f"started {child}", flush=True)
    os.waitpid(child, 0)
