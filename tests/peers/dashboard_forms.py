"""The functions of magnum_ui.api.magnum, which the dashboard's forms end in, and what was said on the way, as a peer.

    dashboard_forms.py API_URL     (the API's endpoint, ending in /v1; one without Keystone)

Each action is a chapter, answered with a list of exchanges: {"step", "asked", "sent", "status", "body"}. What differs from
run to run is named in order of appearance (uuids), or replaced by its kind (times, request ids, certificates). Horizon is
there as far as these functions need it: a person's request with a token and a catalog.

The functions make text of every value, and empty text of none. The steps named after a field send it so, to see what the
API makes of it; the forms themselves leave out what is empty, except for what `cluster_form` has.
"""
import http.client
import io
import json
import os
import re
import sys
import time

import peer

# Neither Keystone nor the folder for style sheets is asked for.
os.environ.update(DJANGO_SETTINGS_MODULE='dashboard_settings', DASHBOARD_KEYSTONE_URL='', DASHBOARD_FOLDER='nowhere')

import django  # noqa: E402

django.setup()

from magnum_ui.api import magnum  # noqa: E402
from magnumclient import exceptions  # noqa: E402
from magnumclient.common import httpclient  # noqa: E402

API = sys.argv[1]
NORTH = '11' * 16
PATIENCE = 60
UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')
TIME = re.compile(r'\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*([+-]\d\d:\d\d|Z)?')
PEM = re.compile(r'-----BEGIN CERTIFICATE-----[^"]*')

exchanges = []
names = {}
recording = ['']


def named(text):
    # Not every answer of Magnum's names its request.
    text = re.sub('"request_id": ?"[^"]*"', '"request_id": "<request>"', text.replace(API.removesuffix('/v1'), '<api>'))
    text = UUID.sub(lambda found: names.setdefault(found[0], '<uuid %d>' % (len(names) + 1)), text)
    return PEM.sub('<certificate>', TIME.sub('<time>', text))


class Connection(http.client.HTTPConnection):
    """Writes down what goes over it. The headers tell an API without Keystone what the token tells one with it."""

    def request(self, method, url, body=None, headers=None, **more):
        identity = {'X-Project-Id': NORTH, 'X-User-Id': 'chief'.encode().hex().ljust(32, '0'), 'X-Roles': 'admin,member,reader'}
        self.asked, self.sent = f'{method} {named(url)}', named(body or '')
        super().request(method, url, body=body, headers={**(headers or {}), **identity}, **more)

    def getresponse(self):
        response = super().getresponse()
        told = response.read()
        response.read = io.BytesIO(told).read
        if recording[0]:
            text = named(told.decode())
            try:
                text = json.loads(text)
            except ValueError:
                pass
            sent = json.loads(self.sent) if self.sent else None
            exchanges.append({'step': recording[0], 'asked': self.asked, 'sent': sent, 'status': response.status, 'body': text})
        return response


def connection(client):
    return Connection(*client.connection_params[1][0:2], **client.connection_params[2])


httpclient.HTTPClient.get_connection = connection


class Request:
    """A person's request, as far as magnum_ui.api looks at it."""

    class user:
        username, tenant_id, services_region = 'chief', NORTH, 'RegionOne'
        service_catalog = [{'type': 'container-infra', 'name': 'magnum', 'endpoints': [
            {'interface': 'public', 'url': API, 'region': 'RegionOne', 'region_id': 'RegionOne'}]}]

        class token:
            id = 'token-of-chief'


REQUEST = Request()


def say(step, function, *args, **kwargs):
    """Asks and records. What the functions make of the answer is recorded with it."""
    recording[0] = step
    try:
        return function(REQUEST, *args, **kwargs)
    except Exception as error:
        exchanges.append({'step': step, 'asked': 'raised', 'sent': None, 'status': type(error).__name__, 'body': named(str(error))})
        return None
    finally:
        recording[0] = ''


def wait(name, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f'{name} after {PATIENCE} s')
        time.sleep(0.2)


def status(name):
    """Magnum's API makes a cluster's row by its conductor, so at first there may be none."""
    try:
        return magnum.cluster_show(REQUEST, name).status
    except exceptions.NotFound:
        return None


def made(name):
    wait(f'{name} is not made', lambda: status(name) == 'CREATE_COMPLETE')


def deleted(name):
    magnum.cluster_delete(REQUEST, name)
    wait(f'{name} is still there', lambda: status(name) is None)


def template_form(name, **more):
    """What the form sends that was filled in as far as it must be."""
    return dict({'name': name, 'coe': 'kubernetes', 'image_id': 'ubuntu-24.04', 'keypair_id': 'key', 'volume_driver': 'cinder',
                 'external_network_id': 'public', 'floating_ip_enabled': True}, **more)


def cluster_form(name, **more):
    """The same of a cluster: `discovery_url` is always null, and labels may be empty."""
    return dict({'discovery_url': None, 'create_timeout': 60, 'rollback': False, 'name': name, 'cluster_template_id': 'small',
                 'keypair': 'key', 'master_lb_enabled': False, 'labels': {
                     'tier': 'gold', 'availability_zone': '', 'auto_scaling_enabled': False, 'auto_healing_enabled': False,
                     'master_lb_floating_ip_enabled': False}}, **more)


def template():
    full = template_form('small', flavor_id='m1.small', master_flavor_id='m1.small', network_driver='calico', docker_volume_size=3,
                         dns_nameserver='9.9.9.9', labels='tier=gold,a=b', server_type='vm', registry_enabled=False,
                         docker_storage_driver='overlay2')
    say('create a template', magnum.cluster_template_create, **full)
    for field in ('docker_volume_size', 'fixed_network', 'dns_nameserver', 'http_proxy', 'flavor_id', 'network_driver',
                  'docker_storage_driver', 'volume_driver', 'keypair_id', 'public', 'tls_disabled', 'name',
                  'external_network_id', 'image_id', 'coe'):
        form = dict(template_form('other'), **{field: None})
        found = say(f'a template with an empty {field}', magnum.cluster_template_create, **form)
        if found:
            magnum.cluster_template_delete(REQUEST, found.uuid)
    say('list templates', magnum.cluster_template_list)
    say('show a template', magnum.cluster_template_show, 'small')
    changed = dict(full, dns_nameserver='8.8.4.4')
    # The form has what is true or false of the template, too.
    flags = dict.fromkeys(('public', 'hidden', 'tls_disabled', 'master_lb_enabled'), False)
    say('update a template', magnum.cluster_template_update, 'small', **changed, **flags)
    say('update a number of a template', magnum.cluster_template_update, 'small', **dict(changed, docker_volume_size=4), **flags)
    say('update a template, and leave out what it has', magnum.cluster_template_update, 'small', **changed)


COUNTS = {'master_count': 1, 'node_count': 2}


def empty_fields(*fields):
    """Each in a cluster of its own. Those that are made are deleted again."""
    for field in fields:
        form = dict(cluster_form('other', **COUNTS), **{field: None})
        found = say(f'a cluster with an empty {field}', magnum.cluster_create, **form)
        if found:
            made(found.uuid)
            deleted(found.uuid)


def empty_numbers():
    empty_fields('node_count', 'master_count', 'docker_volume_size', 'create_timeout')


def empty_resources():
    empty_fields('flavor_id', 'master_flavor_id', 'fixed_network', 'fixed_subnet', 'keypair')


def empty_others():
    empty_fields('floating_ip_enabled', 'master_lb_enabled', 'merge_labels', 'name', 'cluster_template_id')


def cluster():
    scaled = dict(cluster_form('x')['labels'], auto_scaling_enabled=True, min_node_count=1, max_node_count=3)
    say('a cluster with labels of all kinds', magnum.cluster_create, **cluster_form('scaled', labels=scaled, **COUNTS))
    made('scaled')
    say('show labels of all kinds', magnum.cluster_show, 'scaled')
    deleted('scaled')
    scaled['availability_zone'] = None
    say('a cluster with a label that is null', magnum.cluster_create, **cluster_form('scaled', labels=scaled, **COUNTS))
    say('create a cluster', magnum.cluster_create, **cluster_form('one', **COUNTS))
    made('one')
    say('list clusters', magnum.cluster_list)
    say('show a cluster', magnum.cluster_show, 'one')
    say('update a cluster', magnum.cluster_update, 'one', rollback=False, name='one', node_count=3)


def resize():
    say('resize', magnum.cluster_resize, 'one', 3, nodegroup='default-worker')


def upgrade():
    say('node groups', magnum.nodegroup_list, 'one')
    say('upgrade', magnum.cluster_upgrade, 'one', 'small', max_batch_size=1, nodegroup='default-worker')


def certificate():
    say('the certificate', magnum.certificate_show, 'one')
    say('rotate the certificate', magnum.certificate_rotate, 'one')


def rest():
    say('statistics', magnum.stats_list)
    say('create a quota', magnum.quotas_create, project_id=NORTH, resource='Cluster', hard_limit=5)
    say('an empty quota', magnum.quotas_create, project_id='33' * 16, resource='Cluster', hard_limit=None)
    say('list quotas', magnum.quotas_list)
    say('show a quota', magnum.quotas_show, NORTH, 'Cluster')
    say('delete a quota', magnum.quotas_delete, NORTH, 'Cluster')
    deleted('one')
    say('delete a template', magnum.cluster_template_delete, 'small')


def chapter(tell):
    def told():
        del exchanges[:]
        tell()
        return exchanges
    return told


if __name__ == '__main__':
    peer.emit({'event': 'ready'})
    chapters = (template, empty_numbers, empty_resources, empty_others, cluster, resize, upgrade, certificate, rest)
    peer.serve({tell.__name__: chapter(tell) for tell in chapters})
