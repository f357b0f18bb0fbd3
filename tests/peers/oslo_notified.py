"""A real oslo.messaging notification listener, as Ceilometer and others have one.

    oslo_notified.py CONFIG_FILE

Every notification it receives becomes an event {"event": "notification", "priority", "publisher_id",
"event_type", "payload", "context"}.
"""
import sys

import peer


def main():
    conf = peer.setup(sys.argv[1])
    import oslo_messaging

    class Endpoint:
        def tell(self, priority, context, publisher_id, event_type, payload):
            peer.emit({'event': 'notification', 'priority': priority, 'publisher_id': publisher_id,
                       'event_type': event_type, 'payload': payload, 'context': context})

        def info(self, context, publisher_id, event_type, payload, metadata):
            self.tell('info', context, publisher_id, event_type, payload)

        def error(self, context, publisher_id, event_type, payload, metadata):
            self.tell('error', context, publisher_id, event_type, payload)

    transport = oslo_messaging.get_notification_transport(conf)
    target = oslo_messaging.Target(topic='notifications', exchange='magnum')
    listener = oslo_messaging.get_notification_listener(transport, [target], [Endpoint()], executor='threading')
    listener.start()
    peer.emit({'event': 'ready'})
    peer.serve({})
    listener.stop()


main()
