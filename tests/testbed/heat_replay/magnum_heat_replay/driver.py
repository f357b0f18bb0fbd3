"""The driver: Magnum's, called in the world of its cluster.

The doubles are put in the place of the clients when this is imported, so in the environment of the replay, and nowhere
else, there are no others.
"""

import functools
from collections.abc import Callable
from typing import Any

from magnum import objects
from magnum.common import clients, keystone
from magnum.drivers.heat import template_def
from magnum.drivers.k8s_fedora_coreos_v1 import driver

from magnum_heat_replay import clients as doubles
from magnum_heat_replay import world

Method = Callable[..., Any]


def _in_its_world(method: Method) -> Method:
    """A method whose second argument is a cluster. It keeps its signature: the host calls drivers by that."""

    @functools.wraps(method)
    def called(self: Any, context: Any, cluster: Any, *rest: Any, **named: Any) -> Any:
        with world.of(cluster.uuid) as its:
            _as_given(context, cluster, its.given["node groups"])
            return method(self, context, cluster, *rest, **named)

    return called


def _if_looked_at(method: Method) -> Method:
    """A look, in a case that is one. Any other case ends with its call, and does not tell what a look would see."""

    @functools.wraps(method)
    def called(self: Any, context: Any, cluster: Any, *rest: Any, **named: Any) -> Any:
        with world.of(cluster.uuid) as its:
            if not its.given["is looked at"]:
                raise LookupError(f"the case of cluster {cluster.uuid} ends before a look")
        return method(self, context, cluster, *rest, **named)

    return called


def _as_given(context: Any, cluster: Any, groups: dict[str, dict[str, Any]]) -> None:
    """Saves what groups of a recorded cluster have and no request gives them."""
    for name, fields in groups.items():
        group = objects.NodeGroup.get_by_name(context, cluster.uuid, name)
        for field, value in fields.items():
            setattr(group, field, value)
        group.save()


class ReplayDriver(driver.Driver):
    """Magnum's driver of Fedora CoreOS."""

    create_cluster = _in_its_world(driver.Driver.create_cluster)
    update_cluster = _in_its_world(driver.Driver.update_cluster)
    delete_cluster = _in_its_world(driver.Driver.delete_cluster)
    resize_cluster = _in_its_world(driver.Driver.resize_cluster)
    upgrade_cluster = _in_its_world(driver.Driver.upgrade_cluster)
    create_nodegroup = _in_its_world(driver.Driver.create_nodegroup)
    update_nodegroup = _in_its_world(driver.Driver.update_nodegroup)
    delete_nodegroup = _in_its_world(driver.Driver.delete_nodegroup)
    rotate_ca_certificate = _in_its_world(driver.Driver.rotate_ca_certificate)
    update_cluster_status = _if_looked_at(_in_its_world(driver.Driver.update_cluster_status))


clients.OpenStackClients = doubles.Clients
keystone.is_octavia_enabled = doubles.is_octavia_enabled
template_def.requests = doubles.Requests
