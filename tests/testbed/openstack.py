"""The real Keystone or the real Barbican, on SQLite, as one process that makes its database and serves.

    openstack.py keystone FOLDER PORT BARBICAN_PORT
    openstack.py barbican FOLDER PORT KEYSTONE_PORT

FOLDER is shared by the two. All users have the password below: admin of the project admin; barbican, and magnum,
the service user, of the project service; demo, a reader of the project demo; and two projects with members, a reader
and an administrator each: anna, carol, rita and chief of north; bert, rolf and boss of south. Serves until it is killed.
"""
import base64
import hashlib
import io
import os
import pathlib
import socketserver
import sys
import threading
import warnings
import wsgiref.simple_server

warnings.simplefilter('ignore')
os.environ['PYTHONWARNINGS'] = 'ignore'

HOST, PASSWORD, REGION = '127.0.0.1', 'openstack-secret', 'RegionOne'


class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 128


class Handler(wsgiref.simple_server.WSGIRequestHandler):
    # Keeps connections, as real deployments do.
    protocol_version = 'HTTP/1.1'

    def address_string(self):
        return self.client_address[0]


def one_at_a_time(application):
    """SQLite has one writer, and both services read before they write: two at once would end in "database is
    locked" for one of them, whatever the timeout."""
    lock = threading.Lock()

    def locked(environ, start_response):
        # Before the lock: who says a body is coming and does not send it must not keep everybody waiting.
        body = environ['wsgi.input'].read(int(environ.get('CONTENT_LENGTH') or 0))
        environ['wsgi.input'] = io.BytesIO(body)
        with lock:
            answer = application(environ, start_response)
            try:
                return list(answer)
            finally:
                getattr(answer, 'close', lambda: None)()
    return locked


def serve(application, port):
    wsgiref.simple_server.make_server(HOST, port, application, Server, Handler).serve_forever()


def write(path, sections):
    lines = []
    for name, options in sections.items():
        lines.append(f'[{name}]')
        lines += [f'{option} = {value}' for option, value in options.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('\n'.join(lines) + '\n')
    return str(path)


def service_user(keystone_port, user):
    """How a service logs in, and knows that a token is a service's."""
    url = f'http://{HOST}:{keystone_port}/v3'
    return {
        'auth_type': 'password', 'auth_url': url, 'www_authenticate_uri': url, 'username': user, 'password': PASSWORD,
        'project_name': 'service', 'user_domain_name': 'Default', 'project_domain_name': 'Default', 'region_name': REGION,
        'service_token_roles': 'service', 'service_token_roles_required': 'true',
    }


def database(folder, name):
    return f'sqlite:///{folder}/{name}.sqlite?timeout=60'


def in_child(work):
    """A tool that fills global state, in a process of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            code = work()
        except SystemExit as ended:
            code = ended.code
        if isinstance(code, str):
            # As the interpreter itself has it: a text says what went wrong.
            print(code, file=sys.stderr, flush=True)
            code = 1
        os._exit(code if isinstance(code, int) else 0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        sys.exit(f'making the database failed with {code}')


def keystone(folder, port, barbican_port):
    for keys in ('fernet', 'credential'):
        place = folder / keys
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for index in ('0', '1'):
            key = place / index
            key.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
            key.chmod(0o600)
    url = f'http://{HOST}:{port}/v3'
    config = write(folder / 'keystone.conf', {
        'DEFAULT': {'use_stderr': 'true', 'transport_url': 'fake://'},
        'database': {'connection': database(folder, 'keystone')},
        'oslo_messaging_notifications': {'driver': 'noop'},
        'token': {'provider': 'fernet', 'expiration': 14400},
        'fernet_tokens': {'key_repository': folder / 'fernet'},
        'fernet_receipts': {'key_repository': folder / 'fernet'},
        'credential': {'key_repository': folder / 'credential'},
        'identity': {'password_hash_rounds': 4},
        'cache': {'enabled': 'true', 'backend': 'oslo_cache.dict'},
    })

    def manage(*words):
        from keystone.cmd import manage
        sys.argv = ['keystone-manage', '--config-file', config, *words]
        return manage.main()

    in_child(lambda: manage('db_sync'))
    in_child(lambda: manage(
        'bootstrap', '--bootstrap-password', PASSWORD, '--bootstrap-region-id', REGION, '--bootstrap-public-url', url,
        '--bootstrap-internal-url', url, '--bootstrap-admin-url', url))
    os.environ['OS_KEYSTONE_CONFIG_FILES'] = config
    sys.argv = ['keystone']
    from keystone.server import wsgi
    application = wsgi.initialize_public_application()
    seed(f'http://{HOST}:{barbican_port}')
    serve(one_at_a_time(application), port)


def seed(barbican_url):
    """Users, projects, roles and Barbican's endpoint, by Keystone's own managers."""
    import uuid
    from keystone.common import provider_api
    apis = provider_api.ProviderAPIs

    def named(**fields):
        return dict(fields, id=uuid.uuid4().hex)

    roles = {role['name']: role['id'] for role in apis.role_api.list_roles()}
    for name in ('creator', 'service'):
        if name not in roles:
            role = named(name=name)
            apis.role_api.create_role(role['id'], role)
            roles[name] = role['id']
    for project, users in (('service', {'barbican': ('admin', 'service'), 'magnum': ('admin', 'service')}),
                           ('demo', {'demo': ('reader',)}),
                           ('north', {'anna': ('member',), 'carol': ('member',), 'rita': ('reader',), 'chief': ('admin',)}),
                           ('south', {'bert': ('member',), 'rolf': ('reader',), 'boss': ('admin',)})):
        made = named(name=project, domain_id='default', enabled=True, is_domain=False, parent_id='default',
                     description='', tags=[], options={})
        apis.resource_api.create_project(made['id'], made)
        for user, granted in users.items():
            created = apis.identity_api.create_user(
                {'name': user, 'domain_id': 'default', 'password': PASSWORD, 'enabled': True, 'options': {}})
            for role in granted:
                apis.assignment_api.add_role_to_user_and_project(created['id'], made['id'], roles[role])
    service = named(type='key-manager', name='barbican', enabled=True)
    apis.catalog_api.create_service(service['id'], service)
    for interface in ('public', 'internal', 'admin'):
        endpoint = named(service_id=service['id'], interface=interface, url=barbican_url, region_id=REGION,
                         enabled=True)
        apis.catalog_api.create_endpoint(endpoint['id'], endpoint)


def barbican(folder, port, keystone_port):
    # Barbican takes no --config-file: it looks into the home folder.
    os.environ['HOME'] = str(folder / 'home')
    connection = database(folder, 'barbican')
    write(folder / 'home/.barbican/barbican.conf', {
        'DEFAULT': {'use_stderr': 'true', 'transport_url': 'fake://', 'host_href': f'http://{HOST}:{port}',
                    'db_auto_create': 'false'},
        'database': {'connection': connection},
        'oslo_messaging_notifications': {'driver': 'noop'},
        'keystone_authtoken': {**service_user(keystone_port, 'barbican'), 'token_cache_time': '-1'},
        'secretstore': {'enabled_secretstore_plugins': 'store_crypto'},
        'crypto': {'enabled_crypto_plugins': 'simple_crypto'},
        'simple_crypto_plugin': {'kek': base64.b64encode(hashlib.sha256(PASSWORD.encode()).digest()).decode()},
    })

    def manage():
        from barbican.cmd import db_manage
        sys.argv = ['barbican-db-manage', '--dburl', connection, 'upgrade']
        return db_manage.main()

    in_child(manage)
    sys.argv = ['barbican']
    from barbican.api import app  # noqa: F401  (reads its configuration)
    from oslo_config import cfg
    from paste import deploy
    # Its middleware reads the global configuration, which nothing else fills.
    cfg.CONF([], project='barbican')
    application = deploy.loadapp(f'config:{sys.prefix}/etc/barbican/barbican-api-paste.ini')
    serve(one_at_a_time(application), port)


if __name__ == '__main__':
    which, where, own, other = sys.argv[1:]
    {'keystone': keystone, 'barbican': barbican}[which](pathlib.Path(where), int(own), int(other))
