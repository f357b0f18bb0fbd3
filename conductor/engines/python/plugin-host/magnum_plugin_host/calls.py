"""A method of a driver, called as Magnum's conductor calls it.

A new instance for each call, as there. What the driver has set and not saved is part of the reply: Magnum's conductor
saves it.
"""

import importlib
import inspect
import logging
from collections.abc import Callable
from typing import Any

from magnum_plugin_host import creations, deletions, errors
from magnum_plugin_host.channel import Message
from magnum_plugin_host.repairs import Repairs

LOG = logging.getLogger(__name__)

Call = Callable[["Arguments"], Any]


class Arguments:
    """What a message `call` holds, as objects of the library."""

    def __init__(self, driver: Any, message: Message) -> None:
        self.driver = driver
        self.message = message
        self.attempt: int = message.get("attempt", 1)
        self.context = _context(message["context"])
        base = importlib.import_module("magnum.objects.base")
        self._read = base.MagnumObjectSerializer().deserialize_entity
        self.cluster = self.object("cluster")
        self.node_group = self.object("node_group")

    def object(self, name: str) -> Any:
        """The object of this name, `None` where the message has none."""
        primitive = self.message.get(name)
        return self._read(self.context, primitive) if primitive is not None else None

    def clients(self) -> Any:
        """Magnum's OpenStack clients of the context: they log in when they are used."""
        return importlib.import_module("magnum.common.clients").OpenStackClients(self.context)

    def scale_manager(self) -> Any:
        """The driver's scale manager; none of the known drivers has one."""
        return self.driver.get_scale_manager(self.context, self.clients(), self.cluster)

    def unsaved(self) -> Message:
        """What the driver has set and not saved."""
        return {"cluster": _unsaved(self.cluster), "node_group": _unsaved(self.node_group)}


def run(driver: Any, message: Message) -> Message:
    """Makes the call; the reply to it."""
    store = importlib.import_module("magnum.common.context")
    arguments = Arguments(driver, message)
    store.set_ctx(arguments.context)
    repairs = Repairs(message, arguments.clients, arguments.context.user_id, arguments.cluster)
    try:
        repairs.before()
        value = CALLS[message["call"]](arguments)
        repairs.after_success()
    except BaseException as error:
        LOG.debug("the call failed", exc_info=True)
        failed = errors.failed(error)
        if deletions.is_busy(message["call"], error):
            failed["class"] = "transient"
        if repairs.after_failure(error):
            failed["class"] = "transient"
        return {"type": "failed", **arguments.unsaved(), **failed}
    finally:
        store.set_ctx(None)
    return {"type": "done", **arguments.unsaved(), "value": value}


def _context(values: Message) -> Any:
    library = importlib.import_module("magnum.common.context")
    if values.get("admin"):
        # As Magnum's periodic tasks.
        return library.make_admin_context(all_tenants=True)
    return library.RequestContext.from_dict(values)


def _unsaved(thing: Any) -> Message | None:
    if thing is None:
        return None
    return {
        name: thing.fields[name].to_primitive(thing, name, getattr(thing, name))
        for name in sorted(thing.obj_what_changed())
        if name in thing.fields
    }


def _create_cluster(a: Arguments) -> None:
    creations.go_on_with(a.driver, a.attempt)
    a.driver.create_cluster(a.context, a.cluster, a.message["create_timeout"])


def _update_cluster(a: Arguments) -> None:
    a.driver.update_cluster(a.context, a.cluster, a.scale_manager(), a.message["rollback"])


def _delete_cluster(a: Arguments) -> None:
    gone = deletions.go_on_without(a.driver)
    a.driver.delete_cluster(a.context, a.cluster)
    if a.cluster.stack_id in gone:
        # Nobody will see its end.
        a.cluster.status = "DELETE_COMPLETE"


def _resize_cluster(a: Arguments) -> None:
    count, nodes = a.message["node_count"], a.message["nodes_to_remove"]
    a.driver.resize_cluster(a.context, a.cluster, a.scale_manager(), count, nodes, a.node_group)


def _upgrade_cluster(a: Arguments) -> None:
    # Magnum passes rollback by position, where the scale manager is expected.
    a.driver.upgrade_cluster(
        a.context,
        a.cluster,
        a.object("new_template"),
        a.message["max_batch_size"],
        a.node_group,
        a.message["rollback"],
    )


def _create_node_group(a: Arguments) -> None:
    creations.go_on_with(a.driver, a.attempt)
    a.driver.create_nodegroup(a.context, a.cluster, a.node_group)


def _update_node_group(a: Arguments) -> None:
    a.driver.update_nodegroup(a.context, a.cluster, a.node_group)


def _delete_node_group(a: Arguments) -> None:
    gone = deletions.go_on_without(a.driver)
    a.driver.delete_nodegroup(a.context, a.cluster, a.node_group)
    if gone:
        a.node_group.destroy()


def _rotate_ca(a: Arguments) -> None:
    a.driver.rotate_ca_certificate(a.context, a.cluster)


def _rotate_credential(a: Arguments) -> None:
    a.driver.rotate_credential(a.context, a.cluster)


def _status(a: Arguments) -> None:
    """Two arguments, as not every driver has the third one. Drivers that have it look by the cluster's trust unless
    told otherwise: where there is none, or it has ended, they look as the service user, as Magnum's own task does."""
    look = a.driver.update_cluster_status
    as_service_user = "use_admin_ctx" in inspect.signature(look).parameters
    if as_service_user and not getattr(a.cluster, "trust_id", None):
        look(a.context, a.cluster, use_admin_ctx=True)
        return
    try:
        look(a.context, a.cluster)
    except importlib.import_module("magnum.common.exception").AuthorizationFailure as error:
        if not as_service_user:
            raise
        LOG.info("looking as the service user: the cluster's trust cannot be used: %s", error)
        look(a.context, a.cluster, use_admin_ctx=True)


def _health(a: Arguments) -> Message | None:
    monitor = a.driver.get_monitor(a.context, a.cluster)
    if monitor is None:
        return None
    monitor.poll_health_status()
    return {name: monitor.data.get(name) for name in ("health_status", "health_status_reason")}


CALLS: dict[str, Call] = {
    "create_cluster": _create_cluster,
    "update_cluster": _update_cluster,
    "delete_cluster": _delete_cluster,
    "resize_cluster": _resize_cluster,
    "upgrade_cluster": _upgrade_cluster,
    "create_nodegroup": _create_node_group,
    "update_nodegroup": _update_node_group,
    "delete_nodegroup": _delete_node_group,
    "rotate_ca_certificate": _rotate_ca,
    "rotate_credential": _rotate_credential,
    "update_cluster_status": _status,
    "health": _health,
}
"""The calls, by their names in messages."""
