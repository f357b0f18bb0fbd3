"""A real oslo.messaging client, and on top of it the real magnum.conductor.api.

    oslo_client.py CONFIG_FILE

Requests:
  cast / call   method, args, context, and optionally topic, server, fanout, version, namespace, timeout,
                call_monitor_timeout: sent by oslo's RPCClient as they are, nothing added to the arguments
  api           method, args (list), context: a method of magnum.conductor.api.API. An argument
                {"object": "Cluster", "fields": {...}, "saved": {...}} becomes a versioned object whose
                `saved` fields are set and unchanged and whose `fields` are set after that, as changes
"""
import sys

import peer


class Plain:
    """Passes arguments through and the context as the dictionary that it is."""

    def serialize_entity(self, context, entity):
        return entity

    deserialize_entity = serialize_entity

    def serialize_context(self, context):
        return dict(context)

    def deserialize_context(self, context):
        return dict(context)


def main():
    conf = peer.setup(sys.argv[1])
    import oslo_messaging
    from oslo_messaging.rpc import client as rpc_client
    from magnum.common import context as magnum_context
    from magnum.common import rpc
    from magnum.conductor import api
    from magnum import objects
    conf.register_opts(rpc_client._client_opts)

    def client(topic, server, fanout, version, namespace, timeout, call_monitor_timeout):
        target = oslo_messaging.Target(topic=topic or conf.conductor.topic, server=server, fanout=fanout,
                                       version=version, namespace=namespace)
        return oslo_messaging.get_rpc_client(rpc.TRANSPORT, target, serializer=Plain(), timeout=timeout,
                                             call_monitor_timeout=call_monitor_timeout)

    def cast(method, args, context, topic=None, server=None, fanout=None, version=None, namespace=None, timeout=None):
        client(topic, server, fanout, version, namespace, timeout, None).cast(context, method, **args)

    def call(method, args, context, topic=None, server=None, version=None, namespace=None, timeout=None,
             call_monitor_timeout=None):
        return client(topic, server, None, version, namespace, timeout, call_monitor_timeout).call(context, method, **args)

    def build(context, argument):
        if not isinstance(argument, dict) or 'object' not in argument:
            return argument
        made = getattr(objects, argument['object'])(context, **argument.get('saved', {}))
        made.obj_reset_changes()
        for name, value in argument.get('fields', {}).items():
            setattr(made, name, value)
        return made

    def describe(value):
        if hasattr(value, 'obj_to_primitive'):
            return value.obj_to_primitive()
        return value

    def call_api(method, args, context):
        made = magnum_context.make_context(**context)
        conductor = api.API(context=made)
        return describe(getattr(conductor, method)(*[build(made, argument) for argument in args]))

    peer.emit({'event': 'ready'})
    peer.serve({'cast': cast, 'call': call, 'api': call_api})


main()
