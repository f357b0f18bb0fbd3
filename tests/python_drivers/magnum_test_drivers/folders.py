"""A driver that builds clusters as folders: one file for each node, in MAGNUM_TEST_BUILT/<cluster>/<group>/.

A create, or another change, is done in two halves, as with a cloud: the call writes what shall be to the file `wanted`,
and the next look makes the nodes. Labels of the cluster change that:

    test_delay_ms       how long the call waits between its nodes, and before them
    test_<call>         what goes wrong in the call, or in `status`, one of

        transient       fails as if a service was away
        permanent       fails for good
        unsupported     raises NotImplementedError
        not_supported   raises what Magnum's own drivers raise for what they refuse
        unsaved         sets a field and fails
        hang            never ends, and has a child that never ends either
        orphan          ends, and leaves a child that never ends
        lock            never ends inside of a C function that holds the interpreter's lock
        garbage         breaks the process in the middle of a message
        over_limit      sets a stack_id that no column takes
        save            writes to the cluster for as long as it may

MAGNUM_TEST_DELAY: seconds that each create, update and delete takes.

With MAGNUM_TEST_RECORD it keeps the record that the scripted driver keeps (tests/drivers/scripted): a line when a call
begins and one when it ends. What that calls an operation is the request here: a driver does not know more.
"""
import contextlib
import ctypes
import fcntl
import functools
import json
import os
import shutil
import subprocess
import sys
import time

import requests

from magnum.common import exception
from magnum.drivers.common import driver
from magnum import objects


def recorded(call):
    """Keeps a record of a method; of two for one cluster at a time, whoever makes them, too."""
    def around(method):
        @functools.wraps(method)
        def recording(self, context, cluster, *args, **kwargs):
            with record(call, context, cluster):
                time.sleep(float(os.environ.get('MAGNUM_TEST_DELAY') or 0))
                return method(self, context, cluster, *args, **kwargs)
        return recording
    return around


@contextlib.contextmanager
def record(call, context, cluster):
    folder = os.environ.get('MAGNUM_TEST_RECORD')
    if not folder:
        yield
        return
    about = {'call': call, 'cluster': cluster.uuid, 'operation': context.request_id, 'attempt': 0, 'nodes': 0}

    def write(**more):
        line = json.dumps(about | more | {'pid': os.getpid(), 'at': time.monotonic()}) + '\n'
        with open(os.path.join(folder, 'calls'), 'ab', buffering=0) as calls:
            calls.write(line.encode())  # one write: lines of several processes do not mix

    os.makedirs(os.path.join(folder, 'locks'), exist_ok=True)
    # The kernel drops the lock when its holder dies.
    with open(os.path.join(folder, 'locks', cluster.uuid), 'w') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            write(event='overlap')
        write(event='begin')
        yield
        write(event='end', outcome={'create': 'CREATE', 'delete': 'DELETE'}.get(call, 'UPDATE') + '_COMPLETE')


class Monitor:
    def __init__(self, folder):
        self.folder, self.data = folder, {}

    def poll_health_status(self):
        if os.path.exists(os.path.join(self.folder, 'unreachable')):
            raise requests.exceptions.ConnectionError('the test cluster is away')
        there = os.path.isdir(self.folder)
        self.data['health_status'] = 'HEALTHY' if there else 'UNHEALTHY'
        self.data['health_status_reason'] = {'api': 'ok' if there else 'no folder'}


class FolderDriver(driver.Driver):
    @property
    def provides(self):
        return [{'server_type': 'vm', 'os': 'ubuntu', 'coe': 'kubernetes'}]

    @recorded('create')
    def create_cluster(self, context, cluster, cluster_create_timeout):
        if cluster.stack_id is None:
            cluster.stack_id = f'folder-{cluster.uuid[:8]}'
            cluster.save()
        self._want(cluster, 'create')
        self._note_trust(cluster, 'create')

    @recorded('update')
    def update_cluster(self, context, cluster, scale_manager=None, rollback=False):
        self._want(cluster, 'update')

    @recorded('resize')
    def resize_cluster(self, context, cluster, resize_manager, node_count, nodes_to_remove, nodegroup=None):
        self._want(cluster, 'resize')

    @recorded('upgrade')
    def upgrade_cluster(self, context, cluster, cluster_template, max_batch_size, nodegroup, scale_manager=None,
                        rollback=False):
        cluster.cluster_template_id = cluster_template.uuid
        cluster.coe_version = cluster_template.labels.get('kube_tag', 'v1.30.0')
        self._want(cluster, 'upgrade')

    @recorded('delete')
    def delete_cluster(self, context, cluster):
        self._misbehave(cluster, 'delete')
        for group in objects.NodeGroup.list(context, cluster.uuid):
            group.status = 'DELETE_IN_PROGRESS'
            group.save()
        self._write(cluster, {})

    @recorded('create_nodegroup')
    def create_nodegroup(self, context, cluster, nodegroup):
        self._want(cluster, 'create_nodegroup')

    @recorded('update_nodegroup')
    def update_nodegroup(self, context, cluster, nodegroup):
        nodegroup.save()
        self._want(cluster, 'update_nodegroup')

    @recorded('delete_nodegroup')
    def delete_nodegroup(self, context, cluster, nodegroup):
        nodegroup.status = 'DELETE_IN_PROGRESS'
        nodegroup.save()
        self._want(cluster, 'delete_nodegroup')

    @recorded('rotate_ca')
    def rotate_ca_certificate(self, context, cluster):
        self._want(cluster, 'rotate_ca')

    @recorded('rotate_credential')
    def rotate_credential(self, context, cluster):
        self._misbehave(cluster, 'rotate_credential')
        cluster.user_id = context.user_id
        cluster.save()

    def create_federation(self, context, federation):
        raise NotImplementedError

    update_federation = delete_federation = create_federation

    def get_monitor(self, context, cluster):
        return Monitor(self._folder(cluster))

    def update_cluster_status(self, context, cluster):
        self._misbehave(cluster, 'status')
        wanted = self._read(cluster)
        word = cluster.status.partition('_')[0]
        folder = self._folder(cluster)
        if not wanted:
            if word != 'DELETE':
                raise LookupError(f'There is no folder {folder}.')
            shutil.rmtree(folder, ignore_errors=True)
            if getattr(cluster, 'trust_id', None):
                cluster.trust_id = cluster.trustee_password = None
            cluster.status, cluster.status_reason = 'DELETE_COMPLETE', None
            cluster.save()
            return
        self._note_trust(cluster, 'look')
        self._make(cluster, wanted)
        for group in objects.NodeGroup.list(context, cluster.uuid):
            if group.uuid not in wanted:
                group.destroy()
            elif (group.status or '').endswith('_IN_PROGRESS'):
                group.status = group.status.partition('_')[0] + '_COMPLETE'
                group.node_addresses = [f'10.0.0.{n}' for n in range(1, wanted[group.uuid] + 1)]
                group.save()
        cluster.api_address = f'https://{cluster.stack_id}.test:6443'
        cluster.coe_version = cluster.coe_version or 'v1.30.0'
        cluster.save()
        cluster.status = f'{word}_COMPLETE'
        cluster.status_reason = None
        cluster.save()

    # What shall be, and what is.

    def _want(self, cluster, call):
        self._misbehave(cluster, call)
        groups = objects.NodeGroup.list(cluster._context, cluster.uuid)
        wanted = {g.uuid: g.node_count for g in groups if not (g.status or '').startswith('DELETE')}
        if call == 'create':
            self._make(cluster, wanted)
        self._write(cluster, wanted)

    def _make(self, cluster, wanted):
        folder = self._folder(cluster)
        for entry in os.scandir(folder) if os.path.isdir(folder) else ():
            if entry.is_dir() and entry.name not in wanted:
                shutil.rmtree(entry.path)
        for group, count in wanted.items():
            os.makedirs(os.path.join(folder, group), exist_ok=True)
            for name in os.listdir(os.path.join(folder, group)):
                if int(name.partition('-')[2]) >= count:
                    os.remove(os.path.join(folder, group, name))
            for number in range(count):
                time.sleep(self._delay(cluster))
                with open(os.path.join(folder, group, f'node-{number}'), 'a'):
                    pass

    def _note_trust(self, cluster, call):
        """With a library of Magnum 22 or before, what a cluster has in Keystone, in the file trust-<call>."""
        if 'trust_id' not in cluster.fields:
            return
        with open(os.path.join(self._folder(cluster), f'trust-{call}'), 'w') as file:
            for field in ('trust_id', 'trustee_user_id', 'trustee_username', 'trustee_password'):
                print(getattr(cluster, field), file=file)

    def _write(self, cluster, wanted):
        folder = self._folder(cluster)
        if not wanted and not os.path.isdir(folder):
            return
        os.makedirs(folder, exist_ok=True)
        draft = os.path.join(folder, 'wanted.new')
        with open(draft, 'w') as file:
            json.dump(wanted, file, sort_keys=True)
        os.rename(draft, os.path.join(folder, 'wanted'))

    def _read(self, cluster):
        try:
            with open(os.path.join(self._folder(cluster), 'wanted')) as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def _folder(self, cluster):
        return os.path.join(os.environ['MAGNUM_TEST_BUILT'], cluster.uuid)

    def _delay(self, cluster):
        return int(cluster.labels.get('test_delay_ms', 0)) / 1000

    # What goes wrong.

    def _misbehave(self, cluster, call):
        print(f'{call} of {cluster.uuid} as {os.getpid()}', file=sys.stderr, flush=True)
        time.sleep(self._delay(cluster))
        trick = cluster.labels.get(f'test_{call}')
        if trick:
            getattr(self, f'_{trick}')(cluster)

    def _transient(self, cluster):
        raise requests.exceptions.ConnectionError('the test cloud is away')

    def _permanent(self, cluster):
        raise ValueError('the test cloud has no such flavor')

    def _unsupported(self, cluster):
        raise NotImplementedError

    def _not_supported(self, cluster):
        raise exception.NotSupported('the test cloud cannot do this')

    def _unsaved(self, cluster):
        cluster.stack_id, cluster.name = 'unsaved-stack', 'unsaved-name'
        raise ValueError('failed with fields that are not saved')

    def _over_limit(self, cluster):
        cluster.stack_id = 's' * 256
        cluster.save()

    def _hang(self, cluster):
        child = subprocess.Popen(['sleep', '3600'])
        self._pids(cluster, child.pid)
        child.wait()

    def _orphan(self, cluster):
        self._pids(cluster, subprocess.Popen(['sleep', '3600']).pid)

    def _lock(self, cluster):
        self._pids(cluster)
        ctypes.PyDLL(None).sleep(3600)

    def _garbage(self, cluster):
        channel = objects.Cluster.indirection_api.channel
        channel._connection.sendall(b'{"type": "done", \n')
        os._exit(0)

    def _save(self, cluster):
        while True:
            cluster.api_address = f'https://{time.monotonic()}.test'
            cluster.save()
            time.sleep(0.01)

    def _pids(self, cluster, *children):
        path = os.path.join(os.environ['MAGNUM_TEST_BUILT'], f'pids-{cluster.uuid}')
        with open(path + '.new', 'w') as file:
            file.write(' '.join(map(str, (os.getpid(), *children))))
        os.rename(path + '.new', path)
