"""Real oslo.messaging notification listeners, as Ceilometer and others have them, and oslo's driver `log`.

    oslo_notified.py CONFIG_FILE

One listener for each of `[oslo_messaging_notifications] topics`, on the broker that the section names. Every
notification becomes an event {"event": "notification", "topic", "priority", "publisher_id", "event_type", "payload",
"context", "metadata"}.

Requests:
  log   publisher_id, event_type, priority, payload, context: has oslo's own notifier tell that by its driver `log`;
        answers {"logger", "level", "text"}, which is what arrives at Python's logging
"""
import logging
import sys
import threading

import peer


def main():
    conf = peer.setup(sys.argv[1])
    import oslo_messaging
    from magnum.common import context as magnum_context

    # What has piled up arrives with the start; it is told when the start is.
    started = threading.Event()

    class Endpoint:
        def __init__(self, topic):
            self.topic = topic

        def tell(self, priority, context, publisher_id, event_type, payload, metadata):
            started.wait()
            peer.emit({'event': 'notification', 'topic': self.topic, 'priority': priority,
                       'publisher_id': publisher_id, 'event_type': event_type, 'payload': payload,
                       'context': context, 'metadata': metadata})

        def info(self, *told):
            self.tell('info', *told)

        def error(self, *told):
            self.tell('error', *told)

    class Records(logging.Handler):
        def __init__(self):
            super().__init__()
            self.seen = []

        def emit(self, record):
            self.seen.append({'logger': record.name, 'level': record.levelname, 'text': record.getMessage()})

    class Serializer(oslo_messaging.NoOpSerializer):
        def serialize_context(self, context):
            return context.to_dict()

    transport = oslo_messaging.get_notification_transport(conf)

    def log(publisher_id, event_type, priority, payload, context):
        notifier = oslo_messaging.Notifier(transport, publisher_id, driver='log', serializer=Serializer())
        records = Records()
        logger = logging.getLogger('oslo.messaging.notification')
        logger.addHandler(records)
        logger.setLevel(logging.INFO)
        try:
            getattr(notifier, priority)(magnum_context.RequestContext.from_dict(context), event_type, payload)
        finally:
            logger.removeHandler(records)
        [record] = records.seen
        return record

    listeners = []
    for topic in conf.oslo_messaging_notifications.topics:
        target = oslo_messaging.Target(topic=topic, exchange=conf.control_exchange)
        listeners.append(oslo_messaging.get_notification_listener(
            transport, [target], [Endpoint(topic)], executor='threading'))
    for listener in listeners:
        listener.start()
    peer.emit({'event': 'ready'})
    started.set()
    peer.serve({'log': log})
    for listener in listeners:
        listener.stop()


main()
