"""Magnum's conductor for a test that waits for it. It adds the name of each method that it has carried out to the file
MAGNUM_TEST_CARRIED_OUT, and `sync_cluster_status` for each round in which it has asked the drivers of clusters in progress,
every second instead of every ten: both are fixed in Magnum.

    magnum_conductor.py --config-file FILE
"""
import functools
import os
import threading

# First: it prepares Python's library for the kind of threads that Magnum uses.
from magnum.cmd import conductor

from magnum.common import exception
from magnum.service import periodic
from oslo_messaging.rpc import dispatcher
from oslo_service import loopingcall

CARRIED_OUT = os.environ['MAGNUM_TEST_CARRIED_OUT']
SYNC = 'sync_cluster_status'
Tasks = periodic.MagnumPeriodicTasks


def tell(name):
    with open(CARRIED_OUT, 'a') as names:
        names.write(name + '\n')


# Magnum asks a driver of a cluster also while a method is in the midst of changing it, of whose node groups it has not written
# any yet, or with what it had read before. What comes of that is a matter of chance, and not compared.
at_work = threading.Lock()
carry_out = dispatcher.RPCDispatcher.dispatch
ask_driver = periodic.ClusterUpdateJob.update_status


def dispatch(self, incoming):
    try:
        with at_work:
            return carry_out(self, incoming)
    finally:
        tell(incoming.message['method'])


def ask_between_methods(self):
    with at_work:
        try:
            self.cluster.refresh()
        except exception.ClusterNotFound:
            raise loopingcall.LoopingCallDone()
        if not self.cluster.status.endswith('_IN_PROGRESS'):
            raise loopingcall.LoopingCallDone()
        return ask_driver(self)


def told(task):
    @functools.wraps(task)
    def run(*args, **kwargs):
        try:
            return task(*args, **kwargs)
        finally:
            tell(SYNC)

    return run


dispatcher.RPCDispatcher.dispatch = dispatch
periodic.ClusterUpdateJob.update_status = ask_between_methods
Tasks._periodic_tasks = [(name, told(task) if name == SYNC else task) for name, task in Tasks._periodic_tasks]
Tasks._periodic_spacing[SYNC] = 1

if __name__ == '__main__':
    conductor.main()
