"""What the Python peers share: real Magnum's set-up, and JSON lines on standard input and output.

A request is {"id": n, "do": "name", ...}; its answer {"id": n, "result": ...} or {"id": n, "error":
{"class", "module", "message"}}. A line without an id is an event.
"""
import json
import os
import sys
import threading
import warnings

warnings.simplefilter('ignore')

# Nothing but our lines may reach standard output: libraries that print write to the log instead.
_OUTPUT = os.fdopen(os.dup(1), 'w', buffering=1)
os.dup2(2, 1)
_LOCK = threading.Lock()


def emit(line):
    with _LOCK:
        _OUTPUT.write(json.dumps(line, default=str) + '\n')
        _OUTPUT.flush()


def setup(config_file):
    """Real Magnum as its own programs set it up; the RPC transport is ready afterwards."""
    from oslo_log import log as logging
    import magnum.conf
    from magnum.common import config
    logging.register_options(magnum.conf.CONF)
    # Reads the file, sets Magnum's defaults and opens the transport.
    config.parse_args(['peer', '--config-file', config_file])
    config.set_config_defaults()
    logging.setup(magnum.conf.CONF, 'peer')
    return magnum.conf.CONF


def serve(actions):
    """Answers requests until the input ends. `actions` maps the word after "do" to a function."""
    for line in sys.stdin:
        request = json.loads(line)
        number = request.pop('id')
        try:
            emit({'id': number, 'result': actions[request.pop('do')](**request)})
        except Exception as error:  # whatever it is, the test decides what it means
            # oslo raises a subclass that it makes up for what a server raised; name the class itself.
            kind = next(k for k in type(error).__mro__ if not k.__module__.endswith('_Remote'))
            emit({'id': number, 'error': {'class': kind.__name__, 'module': kind.__module__, 'message': str(error)}})
