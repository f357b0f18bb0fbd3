"""The driver `scripted` as a plug-in of Python Magnum: the counterpart of tests/drivers/scripted, which our conductor
runs. Both touch no cloud; they keep the same record, take the same locks and leave the same marks in the folder
MAGNUM_TEST_RECORD, so that each sees what the other one built, and a test sees who did what.

Labels of a cluster: `scripted_<call>` = `permanent` makes a call fail. MAGNUM_TEST_DELAY: seconds that a call takes.
"""
import fcntl
import json
import os
import time
import uuid

from magnum.common import exception
from magnum.drivers.common import driver
from magnum.objects import fields

RECORD = os.environ['MAGNUM_TEST_RECORD']
Status = fields.ClusterStatus

# As in tests/drivers/scripted.
MOST_NODES = 1000


def _write(line):
    record = os.open(os.path.join(RECORD, 'calls'), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(record, (json.dumps(dict(line, pid=os.getpid(), at=time.monotonic())) + '\n').encode())
    os.close(record)


def _mark(cluster):
    return os.path.join(RECORD, 'built', cluster.uuid)


def _nodes_built(cluster):
    """How many nodes there are; None: there is no such cluster."""
    try:
        with open(_mark(cluster)) as mark:
            return int(mark.read())
    except FileNotFoundError:
        return None


def _addresses(group):
    return ['192.0.2.%d' % (n + 10) for n in range(min(group.node_count, MOST_NODES))]


class Scripted(driver.Driver):
    @property
    def provides(self):
        return [{'server_type': 'vm', 'os': 'ubuntu', 'coe': 'kubernetes'}]

    def _call(self, call, cluster, nodes=None):
        """One call: recorded, alone at its cluster, and as the labels want it."""
        if nodes is None:
            nodes = sum(group.node_count for group in cluster.nodegroups)
        about = {'call': call, 'cluster': cluster.uuid, 'operation': 'python:' + str(uuid.uuid4()), 'attempt': 1, 'nodes': nodes}
        for folder in ('locks', 'built'):
            os.makedirs(os.path.join(RECORD, folder), exist_ok=True)
        with open(os.path.join(RECORD, 'locks', cluster.uuid), 'w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _write(dict(about, event='overlap'))
            _write(dict(about, event='begin'))
            time.sleep(float(os.environ.get('MAGNUM_TEST_DELAY') or 0))
            if (cluster.labels or {}).get('scripted_' + call) == 'permanent':
                _write(dict(about, event='end', outcome='permanent'))
                raise exception.MagnumException(message='no such flavor: m1.nano')
            if call == 'delete':
                if os.path.exists(_mark(cluster)):
                    os.unlink(_mark(cluster))
            else:
                # Renamed into place: who looks meanwhile finds the old number or the new one.
                with open(_mark(cluster) + '.new', 'w') as mark:
                    mark.write(str(nodes))
                os.rename(mark.name, _mark(cluster))
            _write(dict(about, event='end', outcome=call.upper() + '_COMPLETE'))

    def _seen(self, cluster):
        cluster.stack_id = 'scripted-' + cluster.uuid
        cluster.api_address = 'https://192.0.2.1:6443'

    def _settle(self, cluster, status):
        """The group that the call was about, which the conductor marked; without one, all of them."""
        self._seen(cluster)
        cluster.status = status
        groups = cluster.nodegroups
        for group in [group for group in groups if group.status == Status.UPDATE_IN_PROGRESS] or groups:
            group.status = status
            group.node_addresses = _addresses(group)
            group.save()

    def create_cluster(self, context, cluster, cluster_create_timeout):
        self._call('create', cluster)
        self._settle(cluster, Status.CREATE_COMPLETE)

    def update_cluster(self, context, cluster, scale_manager=None, rollback=False):
        self._call('update', cluster)

    def resize_cluster(self, context, cluster, resize_manager, node_count, nodes_to_remove, nodegroup=None):
        self._call('resize', cluster)

    def upgrade_cluster(self, context, cluster, cluster_template, max_batch_size, nodegroup, scale_manager=None, rollback=False):
        self._call('upgrade', cluster)
        cluster.cluster_template_id = cluster_template.uuid
        nodegroup.image_id = cluster_template.image_id

    def delete_cluster(self, context, cluster):
        self._call('delete', cluster)

    def _done(self, cluster):
        # The conductor has written UPDATE_IN_PROGRESS before, and writes nothing into the cluster afterwards.
        self._seen(cluster)
        cluster.status = Status.UPDATE_COMPLETE
        cluster.save()

    def create_nodegroup(self, context, cluster, nodegroup):
        self._call('create_nodegroup', cluster)
        self._done(cluster)
        nodegroup.stack_id = cluster.stack_id
        nodegroup.status = Status.CREATE_COMPLETE
        nodegroup.node_addresses = _addresses(nodegroup)

    def update_nodegroup(self, context, cluster, nodegroup):
        # The new size is in the object, not in the row yet.
        others = sum(group.node_count for group in cluster.nodegroups if group.uuid != nodegroup.uuid)
        self._call('update_nodegroup', cluster, others + nodegroup.node_count)
        nodegroup.status = Status.UPDATE_COMPLETE
        nodegroup.node_addresses = _addresses(nodegroup)
        self._done(cluster)

    def delete_nodegroup(self, context, cluster, nodegroup):
        self._call('delete_nodegroup', cluster, sum(group.node_count for group in cluster.nodegroups if group.uuid != nodegroup.uuid))
        nodegroup.destroy()
        self._done(cluster)

    def rotate_ca_certificate(self, context, cluster):
        self._call('rotate_ca', cluster)

    def rotate_credential(self, context, cluster):
        self._call('rotate_credential', cluster)

    def update_cluster_status(self, context, cluster, use_admin_ctx=False):
        """Says what is there, whoever built it."""
        built = _nodes_built(cluster)
        if cluster.status == Status.DELETE_IN_PROGRESS:
            if built is None:
                cluster.status = Status.DELETE_COMPLETE
                cluster.save()
            return
        if any(group.status in (Status.CREATE_IN_PROGRESS, Status.DELETE_IN_PROGRESS) for group in cluster.nodegroups):
            return  # That call is at work, and settles the cluster itself.
        wanted = sum(group.node_count for group in cluster.nodegroups if group.status != Status.DELETE_IN_PROGRESS)
        if cluster.status == Status.UPDATE_IN_PROGRESS and built == wanted:
            self._settle(cluster, Status.UPDATE_COMPLETE)
            cluster.save()

    def validate_master_size(self, node_count):
        if node_count < 1:
            raise exception.MasterNGSizeInvalid(requested_size=node_count)

    def validate_master_resize(self, node_count):
        self.validate_master_size(node_count)

    def create_federation(self, context, federation):
        raise NotImplementedError()

    update_federation = delete_federation = create_federation
