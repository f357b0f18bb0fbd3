"""The real Heat beside the Keystone of openstack.py: its API as one process, its engine as another.

    heat.py api|engine FOLDER PORT KEYSTONE_PORT DATABASE_URL TRANSPORT_URL

Unlike the other services it cannot be had on SQLite: the engine writes resources of one stack at the same time. Its
user, its domain and its endpoint have to be in Keystone before the first request. The engine makes the database.

No machine, network or volume comes of a stack: in place of the types of Nova, Neutron, Octavia and Cinder, and of those
that wait for a signal from a machine, the engine has what heat/standins.yaml says. That is the engine's environment,
which a request's own environment beats.
"""
import hashlib
import importlib.util
import pathlib
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
# The services are named like files beside this one.
sys.path.pop(0)
spec = importlib.util.spec_from_file_location('testbed_openstack', HERE / 'openstack.py')
base = importlib.util.module_from_spec(spec)
spec.loader.exec_module(base)


def environments(folder):
    """Where the engine looks for the environment of all stacks."""
    return folder / 'environment.d'


def configuration(folder, keystone_port, database, transport):
    """What both processes are told."""
    user = base.service_user(keystone_port, 'heat')
    return {
        'DEFAULT': {
            'transport_url': transport, 'use_stderr': 'true', 'num_engine_workers': '1',
            'auth_encryption_key': hashlib.sha256(base.PASSWORD.encode()).hexdigest()[:32],
            'stack_user_domain_name': 'heat', 'stack_domain_admin': 'heat_domain_admin',
            'stack_domain_admin_password': base.PASSWORD, 'deferred_auth_method': 'trusts',
            'region_name_for_services': base.REGION, 'max_stacks_per_tenant': '-1', 'max_resources_per_stack': '-1',
            'environment_dir': environments(folder), 'template_dir': f'{sys.prefix}/etc/heat/templates', 'plugin_dirs': ''},
        'database': {'connection': database, 'max_pool_size': '10', 'max_overflow': '30'},
        'keystone_authtoken': user,
        'trustee': user,
        'clients_keystone': {'auth_uri': f'http://{base.HOST}:{keystone_port}'},
        'oslo_messaging_notifications': {'driver': 'noop'},
        'oslo_concurrency': {'lock_path': folder / 'locks'},
        'paste_deploy': {'api_paste_config': f'{sys.prefix}/etc/heat/api-paste.ini'},
    }


def api(_folder, config, port):
    sys.argv = ['heat-api', '--config-file', config]
    from heat.wsgi import api
    base.serve(api.application, port)


def engine(folder, config, _port):
    def tables():
        from heat.cmd import manage
        sys.argv = ['heat-manage', '--config-file', config, 'db_sync']
        return manage.main()

    base.in_child(tables)
    environments(folder).mkdir()
    standins = (HERE / 'heat/standins.yaml').read_text().replace('@HEAT_DIR@', f'file://{HERE}/heat')
    (environments(folder) / 'standins.yaml').write_text(standins)
    from heat.cmd.engine import main
    one_yaql_expression_at_a_time()
    sys.argv = ['heat-engine', '--config-file', config]
    sys.exit(main())


def one_yaql_expression_at_a_time():
    """Heat 27's engine reads conditions of templates in many threads with one yaql parser, which keeps its state in
    itself. Without this, a thread now and then gets a wrong result or an error; the message that asked for a resource
    is lost with it, and the stack is in progress for ever."""
    from heat.engine.hot import functions
    lock = threading.Lock()
    parse = functions.Yaql._parse

    def parse_alone(self, expression):
        with lock:
            return parse(self, expression)

    functions.Yaql._parse = parse_alone


if __name__ == '__main__':
    which, where, own, keystone, database, transport = sys.argv[1:]
    where = pathlib.Path(where)
    file = base.write(where / f'{which}.conf', configuration(where, int(keystone), database, transport))
    {'api': api, 'engine': engine}[which](where, file, int(own))
