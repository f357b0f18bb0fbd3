"""The part of a cloud that Magnum's API looks at while it answers: a Keystone that knows six people, and what they
see of Glance, Nova and Neutron. Nothing can be changed in it.

    cloud.py PORT

`<name>` logs in with the password `secret` and gets the token `token-of-<name>`, which works without a login, too.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

PROJECTS = {'11' * 16: 'north', '22' * 16: 'south', '33' * 16: 'service'}
# name: (project, roles)
PEOPLE = {
    'anna': ('11' * 16, ['member', 'reader']),
    'bert': ('22' * 16, ['member', 'reader']),
    'rita': ('11' * 16, ['reader']),
    'gus': ('11' * 16, ['guest']),
    'chief': ('11' * 16, ['admin', 'member', 'reader']),
    'magnum': ('33' * 16, ['admin', 'service']),
}
IMAGES = [
    {'id': '0c6bd6d8-4ac2-4e5e-9f24-0d5d1e4f8d6f', 'name': 'ubuntu-24.04', 'os_distro': 'ubuntu'},
    {'id': '5b7f4f52-8c1f-4d0e-9a55-6a0f6f1b3c11', 'name': 'ubuntu-26.04', 'os_distro': 'ubuntu'},
    {'id': '9e0e3b58-3b53-4c7b-8ac9-3d8a1f9b7a10', 'name': 'unknown-system'},
]
FLAVORS = [('1', 'm1.small', 2048, 1, 20), ('2', 'm1.large', 8192, 4, 80), ('3', 'm1.medium', 4096, 2, 40),
           ('4', 'm1.diskless', 2048, 1, 0)]
NETWORKS = [('6f1c34ab-2a0f-4c5e-8a9e-0f6c7a1d2b01', 'public', True), ('6f1c34ab-2a0f-4c5e-8a9e-0f6c7a1d2b02', 'inner', False),
            ('6f1c34ab-2a0f-4c5e-8a9e-0f6c7a1d2b03', 'private', False)]
SUBNET = {'id': '6f1c34ab-2a0f-4c5e-8a9e-0f6c7a1d2b04', 'name': 'private-subnet', 'network_id': NETWORKS[2][0]}
KEY_PAIRS = ['key', 'default-key']
DOMAIN = {'id': 'default', 'name': 'Default'}


def login(name, here):
    """What Keystone says about somebody's token."""
    project, roles = PEOPLE[name]
    catalog = [('identity', 'keystone', '/identity/v3'), ('image', 'glance', '/image'),
               ('compute', 'nova', '/compute/v2.1'), ('network', 'neutron', '/network')]
    return {'token': {
        'methods': ['password'], 'audit_ids': ['a'], 'is_domain': False, 'issued_at': '2026-01-01T00:00:00.000000Z',
        'expires_at': '2099-01-01T00:00:00.000000Z', 'roles': [{'id': role, 'name': role} for role in roles],
        'user': {'id': name.encode().hex().ljust(32, '0'), 'name': name, 'domain': DOMAIN, 'password_expires_at': None},
        'project': {'id': project, 'name': PROJECTS[project], 'domain': DOMAIN},
        'catalog': [{'id': name, 'name': name, 'type': kind, 'endpoints': [
            {'id': name + side, 'interface': side, 'region': 'RegionOne', 'region_id': 'RegionOne', 'url': here + path}
            for side in ('public', 'internal', 'admin')]} for kind, name, path in catalog]}}


def version(number, url):
    return {'id': number, 'status': 'CURRENT', 'links': [{'rel': 'self', 'href': url}]}


class NotThere(Exception):
    """Becomes a 404."""


class Cloud(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def answer(self, status, body, headers=()):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (('Content-Type', 'application/json'), ('Content-Length', str(len(text))), *headers):
            self.send_header(name, value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(text)

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        url = urlsplit(self.path)
        service, *path = unquote(url.path).strip('/').split('/')
        here = 'http://' + self.headers['Host']
        try:
            part = {'identity': self.identity, 'image': self.image, 'compute': self.compute, 'network': self.network}[service]
            part(path, dict(parse_qsl(url.query)), body, here)
        except (KeyError, NotThere) as missing:
            self.answer(404, {'error': {'code': 404, 'title': 'Not Found', 'message': 'no such thing: %s' % missing}})

    do_GET = do_HEAD = do_POST = handle_request

    def identity(self, path, query, body, here):
        if path == ['v3']:
            self.answer(200, {'version': dict(version('v3.14', here + '/identity/v3/'), status='stable')})
        elif path == ['v3', 'auth', 'tokens'] and self.command == 'POST':
            identity = json.loads(body)['auth']['identity']
            user = identity.get('password', {}).get('user', {})
            name = user.get('name') if 'password' in identity else identity['token']['id'].removeprefix('token-of-')
            if name not in PEOPLE or ('password' in identity and user.get('password') != 'secret'):
                return self.answer(401, {'error': {'code': 401, 'title': 'Unauthorized', 'message': 'no'}})
            self.answer(201, login(name, here), [('X-Subject-Token', 'token-of-' + name)])
        elif path == ['v3', 'auth', 'tokens']:
            token = self.headers.get('X-Subject-Token', '')
            self.answer(200, login(token.removeprefix('token-of-'), here), [('X-Subject-Token', token)])
        elif path[:2] == ['v3', 'projects']:
            project = path[2]
            self.answer(200, {'project': {'id': project, 'name': PROJECTS[project], 'domain_id': 'default', 'enabled': True,
                                          'is_domain': False, 'parent_id': 'default', 'tags': [], 'options': {}, 'links': {}}})
        else:
            raise NotThere(self.path)

    def image(self, path, query, body, here):
        images = [dict(image, status='active', visibility='public', tags=[], min_disk=0, min_ram=0, size=1, protected=False,
                       container_format='bare', disk_format='qcow2') for image in IMAGES]
        if path in ([], ['versions']):
            self.answer(300, {'versions': [version('v2.15', here + '/image/v2/')]})
        elif path == ['v2', 'images']:
            found = [image for image in images if query.get('name', image['name']) == image['name']]
            self.answer(200, {'images': [] if query.get('os_hidden') == 'True' else found, 'schema': '/v2/schemas/images'})
        elif path[:2] == ['v2', 'images']:
            self.answer(200, {image['id']: image for image in images}[path[2]])
        else:
            raise NotThere(self.path)

    def compute(self, path, query, body, here):
        if path == ['v2.1']:
            found = dict(version('v2.1', here + '/compute/v2.1/'), version='2.96', min_version='2.1')
            self.answer(200, {'version': found})
        elif path == ['v2.1', 'flavors', 'detail']:
            self.answer(200, {'flavors': [] if 'marker' in query else [
                {'id': number, 'name': name, 'ram': ram, 'vcpus': cpus, 'disk': disk, 'swap': 0, 'links': [], 'rxtx_factor': 1.0,
                 'OS-FLV-EXT-DATA:ephemeral': 0, 'OS-FLV-DISABLED:disabled': False, 'os-flavor-access:is_public': True}
                for number, name, ram, cpus, disk in FLAVORS]})
        elif path[:2] == ['v2.1', 'os-keypairs'] and path[2] in KEY_PAIRS:
            self.answer(200, {'keypair': {'name': path[2], 'type': 'ssh', 'public_key': 'ssh-ed25519 A', 'fingerprint': '0', 'id': 1}})
        else:
            raise NotThere(self.path)

    def network(self, path, query, body, here):
        if path == []:
            self.answer(200, {'versions': [version('v2.0', here + '/network/v2.0/')]})
        elif path == ['v2.0', 'networks']:
            outer = {'true': [True], 'false': [False]}.get(query.get('router:external', '').lower(), [True, False])
            self.answer(200, {'networks': [{'id': number, 'name': name, 'router:external': external, 'status': 'ACTIVE', 'subnets': []}
                                           for number, name, external in NETWORKS if external in outer]})
        elif path == ['v2.0', 'subnets']:
            self.answer(200, {'subnets': [SUBNET]})
        else:
            raise NotThere(self.path)


if __name__ == '__main__':
    server = ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Cloud)
    server.daemon_threads = True
    server.serve_forever()
