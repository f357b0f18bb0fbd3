"""A real oslo.messaging server in the conductor's place, with Magnum's own object serializer.

    oslo_server.py CONFIG_FILE

Every request it receives becomes an event {"event": "request", "method", "args", "context"}; objects in
the arguments are written as {"object", "version", "fields", "changes"} *after* Magnum has rebuilt them.

Requests:
  answer   method, result | raises (name of a class in magnum.common.exception), message: what calls of that
           method get from now on; without it they get null
"""
import sys

import peer


def main():
    conf = peer.setup(sys.argv[1])
    import oslo_messaging
    from magnum.common import exception
    from magnum.common import rpc
    from magnum.objects import base as objects_base
    from magnum import objects

    answers = {}

    def describe(value):
        if isinstance(value, objects_base.MagnumObject):
            fields = {name: describe(getattr(value, name)) for name in value.fields if value.obj_attr_is_set(name)}
            return {'object': value.obj_name(), 'version': value.VERSION, 'fields': fields,
                    'changes': sorted(value.obj_what_changed())}
        if isinstance(value, dict):
            return {key: describe(item) for key, item in value.items()}
        if isinstance(value, (list, tuple, set)):
            return [describe(item) for item in value]
        return value

    class Endpoint:
        """Has every method; `target` is what oslo asks an endpoint for."""
        target = None

        def __getattr__(self, method):
            if method.startswith(('_', 'oslo_')):
                raise AttributeError(method)

            def handle(context, **args):
                peer.emit({'event': 'request', 'method': method, 'args': describe(args), 'context': context.to_dict()})
                answer = answers.get(method, {})
                if 'raises' in answer:
                    raise getattr(exception, answer['raises'])(**({'message': answer['message']} if 'message' in answer else {}))
                return answer.get('result')
            return handle

    def answer(method, **how):
        answers[method] = how

    del objects  # imported for its registration of the object classes
    target = oslo_messaging.Target(topic=conf.conductor.topic, server='peer')
    server = rpc.get_server(target, [Endpoint()], serializer=objects_base.MagnumObjectSerializer())
    server.start()
    peer.emit({'event': 'ready'})
    peer.serve({'answer': answer})
    server.stop()


main()
