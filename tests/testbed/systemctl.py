#!/usr/bin/env python3
"""`systemctl` of a machine without systemd: starts what units say, as their user, and waits until it says that it is ready.

    systemctl daemon-reload
    systemctl enable --now UNIT…

Knows of a unit's [Service] what this project's have: Type=notify, User, Group, ExecStart, StateDirectory, RuntimeDirectory
with their modes, UMask, LimitNOFILE; the options that only harden or restart are left out. A unit's name or option that it does not
know is an error. What a service prints goes to /var/log/UNIT.log.
"""
import os
import pathlib
import pwd
import resource
import shlex
import socket
import subprocess
import sys
import tempfile

UNITS = pathlib.Path('/etc/systemd/system')
# Hardening, stopping and restarting: not needed to see a service start.
WITHOUT_EFFECT = {'ExecReload', 'KillMode', 'TimeoutStopSec', 'Restart', 'RestartSec', 'ProtectSystem', 'ProtectHome',
                  'PrivateTmp', 'PrivateDevices', 'ProtectClock', 'ProtectControlGroups', 'ProtectHostname',
                  'ProtectKernelLogs', 'ProtectKernelModules', 'ProtectKernelTunables', 'ProtectProc',
                  'RestrictAddressFamilies', 'RestrictRealtime', 'RestrictSUIDSGID', 'LockPersonality', 'NoNewPrivileges',
                  'CapabilityBoundingSet', 'SystemCallArchitectures', 'SystemCallFilter', 'SystemCallErrorNumber',
                  'LimitCORE', 'RuntimeDirectoryMode', 'StateDirectoryMode'}
START_WITHIN = 90


def read(unit):
    options, section = {}, None
    for line in (UNITS / f'{unit}.service').read_text().splitlines():
        if line.startswith('['):
            section = line.strip('[]')
        elif section == 'Service' and '=' in line and not line.startswith('#'):
            name, value = line.split('=', 1)
            options[name] = value
    return options


def start(unit):
    options = read(unit)
    if options.pop('Type') != 'notify':
        sys.exit(f'{unit}: only Type=notify is known here')
    account = pwd.getpwnam(options.pop('User'))
    group = options.pop('Group')
    for option, below in (('StateDirectory', '/var/lib'), ('RuntimeDirectory', '/run')):
        rights = int(options.get(f'{option}Mode', '755'), 8)
        if option in options:
            folder = pathlib.Path(below, options.pop(option))
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(rights)
            os.chown(folder, account.pw_uid, account.pw_gid)
    limit = int(options.pop('LimitNOFILE'))
    umask = int(options.pop('UMask', '022'), 8)
    command = shlex.split(options.pop('ExecStart'))
    unknown = set(options) - WITHOUT_EFFECT
    if unknown:
        sys.exit(f'{unit}: not known here: {sorted(unknown)}')
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        os.chmod(folder, 0o755)
        told.bind(f'{folder}/notify')
        os.chmod(f'{folder}/notify', 0o777)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        log = open(f'/var/log/{unit}.log', 'ab')
        service = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd='/', user=account.pw_uid, group=group, extra_groups=[],
            start_new_session=True, umask=umask, env={'PATH': '/usr/bin:/bin', 'LANG': 'C.UTF-8', 'NOTIFY_SOCKET': f'{folder}/notify'},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, hard), hard)))
        told.settimeout(START_WITHIN)
        try:
            while b'READY=1' not in told.recv(4096).split(b'\n'):
                pass
        except TimeoutError:
            ended = service.poll()
            sys.exit(f'{unit} is not ready after {START_WITHIN} s (status {ended}); see /var/log/{unit}.log')


def main(words):
    match words:
        case ['daemon-reload']:
            pass
        case ['enable', '--now', *units]:
            for unit in units:
                start(unit.removesuffix('.service'))
        case _:
            sys.exit(f'not known here: systemctl {shlex.join(words)}')


if __name__ == '__main__':
    main(sys.argv[1:])
