"""A real oslo.messaging server or client, to be measured.

    oslo_bench.py MESSAGE_FILE server URL TOTAL PROBES
                      prints "done" after TOTAL requests, and the latencies of the next PROBES in ms as JSON
    oslo_bench.py MESSAGE_FILE client URL CALLERS COUNT LIMIT
                      makes COUNT calls, or as many as LIMIT seconds allow; prints {"seconds", "cpu_seconds",
                      "latencies_ms"} as JSON

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
    def __init__(self, total, probes):
        self.total = total
        self.probes = probes
        self.handled = 0
        self.latencies = []
        self.lock = threading.Lock()

    def cluster_create(self, context, cluster=None, **arguments):
        now = time.time()
        with self.lock:
            self.handled += 1
            if self.handled == self.total:
                print('done', flush=True)
            elif self.handled > self.total:
                self.latencies.append(now * 1e3 - context['sent'] / 1e3)
                if len(self.latencies) == self.probes:
                    print(json.dumps(self.latencies), flush=True)
        return cluster


def serve(url, total, probes):
    target = oslo_messaging.Target(topic='magnum-conductor', server='bench')
    endpoints = [Endpoint(total, probes)]
    server = oslo_messaging.get_rpc_server(connect(url), target, endpoints, executor='threading')
    server.start()
    threading.Event().wait()


def call(url, message, callers, count, limit):
    context = {key[len('_context_'):]: value for key, value in message.items() if key.startswith('_context_')}
    client = oslo_messaging.get_rpc_client(connect(url), oslo_messaging.Target(topic='magnum-conductor'), timeout=120)
    client.call(context, 'cluster_create', **message['args'])
    latencies = [[] for _ in range(callers)]

    def caller(mine):
        for _ in range(count // callers):
            sent = time.perf_counter()
            if sent >= began + limit:
                break
            client.call(context, 'cluster_create', **message['args'])
            mine.append((time.perf_counter() - sent) * 1e3)

    threads = [threading.Thread(target=caller, args=(mine,)) for mine in latencies]
    cpu = time.process_time()
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    result = {'seconds': seconds, 'cpu_seconds': time.process_time() - cpu, 'latencies_ms': sum(latencies, [])}
    print(json.dumps(result), flush=True)


def main():
    with open(sys.argv[1]) as file:
        message = json.load(file)['inner']
    role, url, *rest = sys.argv[2:]
    numbers = [int(text) for text in rest]
    if role == 'server':
        serve(url, *numbers)
    else:
        call(url, message, *numbers)


if __name__ == '__main__':
    main()
