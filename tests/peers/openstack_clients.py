"""What people have on their side: the command `openstack`, python-magnumclient and openstacksdk, as a peer.

    openstack_clients.py KEYSTONE_URL REGION PASSWORD
    openstack_clients.py     (only for commands whose arguments say all about the login)

Importing the command takes seconds, so one process forks off many of them. Whoever asks is named by user and project.
"""
import contextlib
import importlib.metadata
import io
import json
import os
import sys

import peer
from keystoneauth1 import session as sessions
from keystoneauth1.identity import v3
from openstackclient import shell

KEYSTONE, REGION, PASSWORD = sys.argv[1:] or ('', '', '')
DOMAIN = {'user_domain_name': 'Default', 'project_domain_name': 'Default'}
_sessions = {}


def session(user, project):
    if (user, project) not in _sessions:
        auth = v3.Password(KEYSTONE, username=user, password=PASSWORD, project_name=project, **DOMAIN)
        _sessions[user, project] = sessions.Session(auth=auth)
    return _sessions[user, project]


def command(args, user=None, project=None, folder=None):
    """Runs `openstack ARGS…` in this process and returns its exit status and what it printed. SHELL is there as on any
    terminal: `coe cluster config` prints words for that shell, and fails without."""
    os.environ['SHELL'] = '/bin/bash'
    if user:
        os.environ.update(OS_AUTH_URL=KEYSTONE, OS_USERNAME=user, OS_PASSWORD=PASSWORD, OS_PROJECT_NAME=project,
                          OS_USER_DOMAIN_NAME='Default', OS_PROJECT_DOMAIN_NAME='Default', OS_REGION_NAME=REGION,
                          OS_IDENTITY_API_VERSION='3')
    os.chdir(folder or '.')
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = shell.OpenStackShell().run(args)
        except SystemExit as ended:
            status = ended.code
    text = out.getvalue()
    try:
        told = json.loads(text)
    except ValueError:
        told = text
    return {'status': status, 'out': told, 'err': err.getvalue()}


def cli(**request):
    """The same in a child, as from a person's shell: the command keeps its clients, and so its user, in its classes."""
    answer, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = command(**request)
        except Exception as error:
            result = {'status': -1, 'out': repr(error)}
        with os.fdopen(told, 'w') as told:
            json.dump(result, told)
        os._exit(0)
    os.close(told)
    with os.fdopen(answer) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def named(value):
    return value.to_dict() if hasattr(value, 'to_dict') else value


def library(user, project, call, args=(), kwargs=None):
    """A method of python-magnumclient, such as `clusters.get`."""
    from magnumclient.v1.client import Client
    method = Client(session=session(user, project), region_name=REGION, api_version='latest')
    for name in call.split('.'):
        method = getattr(method, name)
    found = method(*args, **(kwargs or {}))
    return [named(one) for one in found] if isinstance(found, (list, tuple)) else named(found)


def sdk(user, project, call, args=(), kwargs=None):
    """A method of openstacksdk's proxy of this service, such as `get_cluster`. Generators are read to their end. An
    argument {"found": "find_cluster", "name": ...} is what that method finds: updates need the whole object. `microversions`
    is what keystoneauth discovers below the proxy."""
    import openstack
    cloud = openstack.connection.Connection(session=session(user, project), region_name=REGION)
    proxy = cloud.container_infrastructure_management
    if call == 'microversions':
        data = proxy.get_endpoint_data()
        return [list(data.min_microversion or ()), list(data.max_microversion or ())]
    args = [getattr(proxy, one['found'])(one['name'], ignore_missing=False) if isinstance(one, dict) else one
            for one in args]
    found = getattr(proxy, call)(*args, **(kwargs or {}))
    return [named(one) for one in found] if hasattr(found, '__next__') else named(found)


def commands():
    """What python-magnumclient adds to the command `openstack`."""
    found = importlib.metadata.entry_points(group='openstack.container_infra.v1')
    return sorted(entry.name.replace('_', ' ') for entry in found)


if __name__ == '__main__':
    # Imports whatever commands of this service need; asks nobody.
    command(['coe', 'cluster', 'list', '--help'])
    peer.emit({'event': 'ready'})
    peer.serve({'cli': cli, 'library': library, 'sdk': sdk, 'commands': commands})
