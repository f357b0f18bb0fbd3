"""Magnum's objects, whose methods the conductor carries out: the operation that the call belongs to reads and writes.

Calls of methods go out in the form that Magnum's API sends them to its conductor, and the same replies come back. The
versions asked for are those of the library, so the conductor sends objects that it knows.
"""

import importlib
from typing import Any

from magnum_plugin_host.channel import Channel, Message


class RemoteObjects:
    """What `indirection_api` of every object class is. One process makes one call, so it has one channel."""

    def __init__(self, serializer: Any) -> None:
        self._serializer = serializer
        self.channel: Channel | None = None

    def object_class_action_versions(
        self,
        context: Any,
        objname: str,
        objmethod: str,
        object_versions: dict[str, str],
        args: Any,
        kwargs: Any,
    ) -> Any:
        """A method of a class, such as `NodeGroup.list`."""
        result = self._ask(
            context,
            {
                "object": objname,
                "method": objmethod,
                "versions": object_versions,
                "args": self._primitive(context, list(args)),
                "kwargs": self._primitive(context, dict(kwargs)),
            },
        )
        return self._serializer.deserialize_entity(context, result)

    def object_action(self, context: Any, objinst: Any, objmethod: str, args: Any, kwargs: Any) -> Any:
        """A method of an object, such as `Cluster.save`: the fields that it has changed, and its result."""
        updates, result = self._ask(
            context,
            {
                "object": objinst.obj_name(),
                "method": objmethod,
                "instance": self._primitive(context, objinst),
                "args": self._primitive(context, list(args)),
                "kwargs": self._primitive(context, dict(kwargs)),
            },
        )
        return updates, self._serializer.deserialize_entity(context, result)

    def object_backport_versions(self, context: Any, objinst: Any, object_versions: dict[str, str]) -> Any:
        """Needed by nothing: the conductor sends the versions asked for."""
        raise RuntimeError(f"the conductor sent {objinst} in a version that this library does not know")

    def _primitive(self, context: Any, value: Any) -> Any:
        return self._serializer.serialize_entity(context, value)

    def _ask(self, context: Any, request: Message) -> Any:
        if self.channel is None:
            raise RuntimeError("a driver asked for an object outside of a call")
        scope = {
            "is_admin": bool(context.is_admin),
            "all_tenants": bool(context.all_tenants),
            "project_id": context.project_id,
            "user_id": context.user_id,
        }
        reply = self.channel.ask({"type": "object", "context": scope, **request})
        if "raised" in reply:
            raise _exception(reply["raised"])
        return reply["result"]


def install() -> None:
    """Makes the conductor carry out the methods of all objects."""
    importlib.import_module("magnum.objects")
    base = importlib.import_module("magnum.objects.base")
    base.MagnumObject.indirection_api = RemoteObjects(base.MagnumObjectSerializer())


def remote_objects() -> RemoteObjects:
    """What `install` has made."""
    remote: RemoteObjects = importlib.import_module("magnum.objects.base").MagnumObject.indirection_api
    return remote


def versions() -> dict[str, str]:
    """The version of each object class that the library has."""
    base = importlib.import_module("magnum.objects.base")
    classes = base.MagnumObjectRegistry.obj_classes()
    return {name: newest[0].VERSION for name, newest in sorted(classes.items())}


def _exception(raised: Message) -> BaseException:
    """The exception that the conductor's reply names, as the driver would see it without the socket."""
    module, name, message = raised["module"], raised["class"], raised["message"]
    if module.partition(".")[0] in ("magnum", "builtins"):
        cls = getattr(importlib.import_module(module), name, None)
        if isinstance(cls, type) and issubclass(cls, Exception):
            # A message with a % would be formatted again.
            return cls(message.replace("%", "%%") if module.startswith("magnum.") else message)
    return RuntimeError(f"{module}.{name}: {message}")
