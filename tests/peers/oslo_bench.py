"""A real oslo.messaging server or client, to be measured.

    oslo_bench.py MESSAGE_FILE server URL TOTAL      prints "done" after TOTAL requests
    oslo_bench.py MESSAGE_FILE client URL CALLERS COUNT
                                                     prints {"seconds", "latencies_ms"} as JSON

Default options, executor `threading`, no serializer: the least that any OpenStack service pays.
"""
import json
import sys
import threading
import time
import warnings

warnings.simplefilter('ignore')

from oslo_config import cfg  # noqa: E402
import oslo_messaging  # noqa: E402


def connect(url):
    oslo_messaging.set_transport_defaults('magnum')
    cfg.CONF([], project='bench', default_config_files=[])
    return oslo_messaging.get_rpc_transport(cfg.CONF, url=url)


class Endpoint:
    def __init__(self, total):
        self.total = total
        self.handled = 0
        self.lock = threading.Lock()

    def cluster_create(self, context, cluster=None, **arguments):
        with self.lock:
            self.handled += 1
            last = self.handled == self.total
        if last:
            print('done', flush=True)
        return cluster


def serve(url, total):
    target = oslo_messaging.Target(topic='magnum-conductor', server='bench')
    server = oslo_messaging.get_rpc_server(connect(url), target, [Endpoint(total)], executor='threading')
    server.start()
    threading.Event().wait()


def call(url, message, callers, count):
    context = {key[len('_context_'):]: value for key, value in message.items() if key.startswith('_context_')}
    client = oslo_messaging.get_rpc_client(connect(url), oslo_messaging.Target(topic='magnum-conductor'), timeout=120)
    client.call(context, 'cluster_create', **message['args'])
    latencies = [[] for _ in range(callers)]

    def caller(mine):
        for _ in range(count // callers):
            sent = time.perf_counter()
            client.call(context, 'cluster_create', **message['args'])
            mine.append((time.perf_counter() - sent) * 1e3)

    threads = [threading.Thread(target=caller, args=(mine,)) for mine in latencies]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    print(json.dumps({'seconds': seconds, 'latencies_ms': sum(latencies, [])}), flush=True)


def main():
    with open(sys.argv[1]) as file:
        message = json.load(file)['inner']
    role, url, *rest = sys.argv[2:]
    if role == 'server':
        serve(url, int(rest[0]))
    else:
        call(url, message, int(rest[0]), int(rest[1]))


if __name__ == '__main__':
    main()
