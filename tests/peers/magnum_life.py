"""A user's life with Magnum, through python-magnumclient, and what was said on the way.

    magnum_life.py API_URL     (the API's endpoint, ending in /v1)

Each action of the script is a chapter; its answer is a list of exchanges: {"step", "asked", "status", "body"}. What
differs from run to run is named in order of appearance (uuids), or replaced by its kind (times, request ids).
Certificates are shown by what they say.
"""
import re
import sys
import time

import peer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtensionOID, NameOID
from keystoneauth1 import session as sessions
from keystoneauth1 import token_endpoint
from magnumclient import exceptions
from magnumclient.v1.client import Client

API = sys.argv[1]
NORTH = '11' * 16
PATIENCE = 60
UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')
TIME = re.compile(r'\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*([+-]\d\d:\d\d|Z)?')

exchanges = []
names = {}
recording = ['']


class Names:
    """Gives what is random a name that is not."""

    def text(self, text):
        if text.startswith('-----BEGIN CERTIFICATE-----'):
            return certificate(text)
        # What a conductor adds to a failure for Magnum's developers.
        text = text.split('\nTraceback (most recent call last):')[0].rstrip('\n')
        text = re.sub('req-' + UUID.pattern, '<request>', text.replace(API.removesuffix('/v1'), '<api>'))
        text = UUID.sub(lambda found: names.setdefault(found[0], '<uuid %d>' % (len(names) + 1)), text)
        return TIME.sub('<time>', text)

    def of(self, value, key=None):
        if isinstance(value, dict):
            return {self.text(name): self.of(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.of(inner) for inner in value]
        if key == 'report_count':
            return '<count>'
        return self.text(value) if isinstance(value, str) else value


def certificate(pem):
    found = x509.load_pem_x509_certificate(pem.encode())
    extensions = {one.oid: one for one in found.extensions}
    usage = extensions.get(ExtensionOID.KEY_USAGE)
    basic = extensions.get(ExtensionOID.BASIC_CONSTRAINTS)
    return {
        'subject': found.subject.rfc4514_string(), 'issuer': found.issuer.rfc4514_string(),
        'days': (found.not_valid_after_utc - found.not_valid_before_utc).days, 'algorithm': found.signature_algorithm_oid._name,
        'key': found.public_key().key_size, 'ca': bool(basic and basic.value.ca), 'path_length': basic.value.path_length if basic else None,
        'usage': sorted(name for name in ('digital_signature', 'key_encipherment', 'key_cert_sign', 'crl_sign', 'content_commitment')
                        if usage and getattr(usage.value, name)),
        'extensions': {one.oid._name: 'critical' if one.critical else 'there' for one in found.extensions},
        'pieces': pem.count('-----BEGIN')}


def heard(response, *args, **kwargs):
    if not recording[0] or not response.url.startswith(API):
        return
    try:
        body = response.json() if response.content else None
    except ValueError:
        body = response.text
    name = Names()
    exchanges.append({'step': recording[0], 'asked': '%s %s' % (response.request.method, name.text(response.url.removeprefix(API))),
                      'status': response.status_code, 'body': name.of(body)})


def client(person):
    # The headers tell an API without Keystone what the token tells one with it; the latter overwrites them.
    roles = 'admin,member,reader' if person == 'chief' else 'member,reader'
    identity = {'X-Project-Id': NORTH, 'X-User-Id': person.encode().hex().ljust(32, '0'), 'X-Roles': roles}
    http = sessions.Session(auth=token_endpoint.Token(API, 'token-of-' + person), additional_headers=identity)
    http.session.hooks['response'].append(heard)
    return Client(session=http, endpoint_override=API, api_version='latest')


anna, chief = client('anna'), client('chief')


def say(step, question, *args, **kwargs):
    """Asks and records. A fault is an answer, too; how the client understands it is recorded with it."""
    recording[0] = step
    try:
        return question(*args, **kwargs)
    except exceptions.ClientException as error:
        exchanges.append({'step': step, 'asked': 'raised', 'status': type(error).__name__, 'body': Names().text(str(error))})
        return None
    finally:
        recording[0] = ''


def chapter(tell):
    def told(**kwargs):
        del exchanges[:]
        tell(**kwargs)
        return list(exchanges)
    told.__name__ = tell.__name__
    return told


def wait(what, condition):
    """Until the condition holds; what is seen on the way is not recorded."""
    end = time.monotonic() + PATIENCE
    seen = None
    while time.monotonic() < end:
        try:
            seen = condition()
        except exceptions.ClientException as error:
            seen = error
        if seen is True:
            return
        time.sleep(0.2)
    raise TimeoutError('waited %d s for %s; last seen: %r' % (PATIENCE, what, seen))


def wait_status(name, status):
    def reached():
        cluster = anna.clusters.get(name)
        return cluster.status == status or (cluster.status, cluster.status_reason)
    wait('%s to be %s' % (name, status), reached)


def wait_group(cluster, group, **wanted):
    def reached():
        found = anna.nodegroups.get(cluster, group).to_dict()
        seen = {key: found.get(key) for key in wanted}
        return seen == wanted or found
    wait('node group %s to have %s' % (group, wanted), reached)


def wait_gone(question, *args):
    def gone():
        try:
            return question(*args).status
        except exceptions.NotFound:
            return True
    wait('%s to be gone' % (args,), gone)


def template(name, **more):
    return dict({'name': name, 'image_id': 'ubuntu-24.04', 'keypair_id': 'key', 'external_network_id': 'public', 'coe': 'kubernetes',
                 'flavor_id': 'm1.small', 'master_flavor_id': 'm1.small', 'network_driver': 'calico', 'server_type': 'vm',
                 'dns_nameserver': '8.8.8.8', 'docker_storage_driver': 'overlay2', 'labels': {'tier': 'gold'}}, **more)


def cluster(name, **more):
    return dict({'name': name, 'cluster_template_id': 'small', 'create_timeout': 60, 'discovery_url': None, 'keypair': None,
                 'master_count': 1, 'node_count': 2}, **more)


@chapter
def templates():
    say('create', anna.cluster_templates.create, **template('small'))
    say('create for the upgrade', anna.cluster_templates.create, **template('newer', image_id='ubuntu-26.04'))
    say('list', anna.cluster_templates.list)
    say('list in detail', anna.cluster_templates.list, detail=True)
    say('list by pages', anna.cluster_templates.list, limit=1)
    say('show', anna.cluster_templates.get, 'small')
    say('update', anna.cluster_templates.update, 'newer', [
        {'op': 'replace', 'path': '/dns_nameserver', 'value': '9.9.9.9'}, {'op': 'add', 'path': '/labels/added', 'value': 'yes'},
        {'op': 'remove', 'path': '/labels/tier'}])
    say('update to public, not allowed', anna.cluster_templates.update, 'newer', [{'op': 'replace', 'path': '/public', 'value': True}])
    say('update what is not there', anna.cluster_templates.update, 'nobody', [{'op': 'replace', 'path': '/name', 'value': 'x'}])
    say('create with an unknown image', anna.cluster_templates.create, **template('bad', image_id='no-such-image'))
    say('create with an image of no system', anna.cluster_templates.create, **template('bad', image_id='unknown-system'))
    say('create with a bad network driver', anna.cluster_templates.create, **template('bad', network_driver='pigeons'))
    say('create for all, not allowed', anna.cluster_templates.create, **template('bad', public=True))
    say('create for all', chief.cluster_templates.create, **template('public', public=True))
    say('delete', chief.cluster_templates.delete, 'public')
    say('show what is gone', anna.cluster_templates.get, 'public')


@chapter
def create():
    say('create', anna.clusters.create, **cluster('one', labels={'own': 'label'}, merge_labels=True))
    wait_status('one', 'CREATE_COMPLETE')
    say('show', anna.clusters.get, 'one')
    say('list', anna.clusters.list)
    say('list in detail', anna.clusters.list, detail=True)
    say('delete a template in use', anna.cluster_templates.delete, 'small')
    say('create with an unknown template', anna.clusters.create, **cluster('bad', cluster_template_id='nobody'))
    say('create without masters', anna.clusters.create, **cluster('bad', master_count=0))
    say('create with a bad name', anna.clusters.create, **cluster('1 bad'))
    say('show what is not there', anna.clusters.get, 'nobody')
    say('delete what is not there', anna.clusters.delete, 'nobody')


@chapter
def cloud():
    """What an API asks Nova before it accepts."""
    say('a template with an unknown flavor', anna.cluster_templates.create, **template('bad', flavor_id='m9.huge'))
    say('a cluster with an unknown flavor', anna.clusters.create, **cluster('bad', flavor_id='m9.huge'))
    say('a cluster with an unknown keypair', anna.clusters.create, **cluster('bad', keypair='nobody'))


@chapter
def update():
    say('update', anna.clusters.update, 'one', [{'op': 'replace', 'path': '/node_count', 'value': 3}])
    wait_status('one', 'UPDATE_COMPLETE')
    say('show', anna.clusters.get, 'one')
    say('update the name', anna.clusters.update, 'one', [{'op': 'replace', 'path': '/name', 'value': 'other'}])
    say('update to less than nothing', anna.clusters.update, 'one', [{'op': 'replace', 'path': '/node_count', 'value': -1}])
    say('update what is not there', anna.clusters.update, 'nobody', [{'op': 'replace', 'path': '/node_count', 'value': 1}])


@chapter
def resize():
    say('resize', anna.clusters.resize, 'one', 1)
    wait_group('one', 'default-worker', node_count=1, status='UPDATE_COMPLETE')
    wait_status('one', 'UPDATE_COMPLETE')
    say('show', anna.clusters.get, 'one')
    say('show the group', anna.nodegroups.get, 'one', 'default-worker')
    say('resize an unknown group', anna.clusters.resize, 'one', 1, nodegroup='nobody')
    say('resize to less than nothing', anna.clusters.resize, 'one', -1)


@chapter
def node_groups():
    say('list', anna.nodegroups.list, 'one')
    say('show', anna.nodegroups.get, 'one', 'default-master')
    say('create', anna.nodegroups.create, 'one', name='gpu', node_count=2, min_node_count=1, max_node_count=4, role='gpu',
        labels={'accelerator': 'yes'}, node_labels={'disk': 'fast'},
        node_taints=[{'key': 'gpu', 'value': 'true', 'effect': 'NoSchedule'}])
    wait_group('one', 'gpu', status='CREATE_COMPLETE')
    wait_status('one', 'UPDATE_COMPLETE')
    say('show the new one', anna.nodegroups.get, 'one', 'gpu')
    say('create it again', anna.nodegroups.create, 'one', name='gpu', node_count=1, role='gpu')
    say('create a master', anna.nodegroups.create, 'one', name='m', node_count=1, role='master')
    say('list by role', anna.nodegroups.list, 'one', role='gpu')
    say('list in detail', anna.nodegroups.list, 'one', detail=True)
    say('show the cluster', anna.clusters.get, 'one')
    say('update', anna.nodegroups.update, 'one', 'gpu', [{'op': 'replace', 'path': '/max_node_count', 'value': 5}])
    wait_group('one', 'gpu', max_node_count=5, status='UPDATE_COMPLETE')
    wait_status('one', 'UPDATE_COMPLETE')
    say('show the updated one', anna.nodegroups.get, 'one', 'gpu')
    say('update to nonsense', anna.nodegroups.update, 'one', 'gpu', [{'op': 'replace', 'path': '/max_node_count', 'value': 1}])
    say('resize above its maximum', anna.clusters.resize, 'one', 9, nodegroup='gpu')
    say('delete a default one', anna.nodegroups.delete, 'one', 'default-worker')
    say('delete', anna.nodegroups.delete, 'one', 'gpu')
    wait_gone(anna.nodegroups.get, 'one', 'gpu')
    wait_status('one', 'UPDATE_COMPLETE')
    say('list what is left', anna.nodegroups.list, 'one')


@chapter
def upgrade():
    say('upgrade', anna.clusters.upgrade, 'one', 'newer', max_batch_size=1, nodegroup='default-worker')
    wait_status('one', 'UPDATE_COMPLETE')
    say('show', anna.clusters.get, 'one')
    say('show the group', anna.nodegroups.get, 'one', 'default-worker')
    say('upgrade to an unknown template', anna.clusters.upgrade, 'one', 'nobody')


def request(organisation='system:masters'):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, 'admin'),
                         x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation)])
    usage = x509.KeyUsage(digital_signature=True, key_encipherment=True, content_commitment=False, data_encipherment=False,
                          key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False)
    csr = x509.CertificateSigningRequestBuilder().subject_name(subject).add_extension(usage, critical=True)
    csr = csr.sign(key, hashes.SHA256())
    return csr.public_bytes(serialization.Encoding.PEM).decode()


def authority(cluster):
    """The CA of a cluster, unrecorded: to see whether it changes."""
    return anna.certificates.get(cluster).pem


@chapter
def certificates():
    uuid = anna.clusters.get('one').uuid
    say('show', anna.certificates.get, uuid)
    say('show the one of etcd', anna.http_client.json_request, 'GET', '/v1/certificates/%s?ca_cert_type=etcd' % uuid)
    csr = request()
    signed = say('sign', anna.certificates.create, cluster_uuid=uuid, csr=csr)
    for one in exchanges:
        # A key of this moment: that it comes back is seen here, and that is all to see of it.
        if isinstance(one['body'], dict) and one['body'].get('csr'):
            one['body']['csr'] = one['body']['csr'] == csr
    if signed is not None:
        issuer = x509.load_pem_x509_certificate(authority(uuid).encode())
        x509.load_pem_x509_certificate(signed.pem.encode()).verify_directly_issued_by(issuer)
    say('sign nonsense', anna.certificates.create, cluster_uuid=uuid, csr='nonsense')
    say('show that of nobody', anna.certificates.get, 'nobody')
    before = authority(uuid)
    say('rotate', anna.certificates.rotate_ca, cluster_uuid=uuid)
    wait_status('one', 'UPDATE_COMPLETE')
    exchanges.append({'step': 'rotate', 'asked': 'whether the CA is another one', 'status': 0, 'body': authority(uuid) != before})
    say('show after the rotation', anna.certificates.get, uuid)
    say('show after the rotation', anna.clusters.get, 'one')


@chapter
def credentials():
    say('rotate', anna.credentials.update, 'one')
    wait_status('one', 'UPDATE_COMPLETE')
    say('rotate those of nobody', anna.credentials.update, 'nobody')


@chapter
def quotas():
    say('show without one', anna.quotas.get, NORTH, 'Cluster')
    say('create', chief.quotas.create, project_id=NORTH, resource='Cluster', hard_limit=1)
    say('create it again', chief.quotas.create, project_id=NORTH, resource='Cluster', hard_limit=1)
    say('create for nobody', chief.quotas.create, project_id='nobody', resource='Cluster', hard_limit=1)
    say('create, not allowed', anna.quotas.create, project_id=NORTH, resource='Cluster', hard_limit=100)
    say('show', chief.quotas.get, NORTH, 'Cluster')
    say('show', anna.quotas.get, NORTH, 'Cluster')
    say('list', chief.quotas.list, all_tenants=True)
    say('a cluster too many', anna.clusters.create, **cluster('bad'))
    say('update', chief.quotas.update, NORTH, 'Cluster', {'project_id': NORTH, 'resource': 'Cluster', 'hard_limit': 5})
    say('delete', chief.quotas.delete, NORTH, 'Cluster')
    say('delete it again', chief.quotas.delete, NORTH, 'Cluster')


@chapter
def statistics():
    say('of the own project', anna.stats.list, project_id=NORTH)
    say('of another project', anna.stats.list, project_id='22' * 16)
    say('of all', chief.stats.list)
    say('of all, not allowed', anna.stats.list)


@chapter
def services():
    wait('a second heartbeat', lambda: chief.mservices.list()[0].updated_at is not None)
    say('list', chief.mservices.list)
    say('list, not allowed', anna.mservices.list)


@chapter
def failing():
    say('create', anna.clusters.create, **cluster('broken', labels={'scripted_create': 'permanent'}))
    wait_status('broken', 'CREATE_FAILED')
    say('show', anna.clusters.get, 'broken')
    say('update', anna.clusters.update, 'broken', [{'op': 'replace', 'path': '/node_count', 'value': 3}])
    say('delete', anna.clusters.delete, 'broken')
    wait_gone(anna.clusters.get, 'broken')


@chapter
def delete():
    say('delete', anna.clusters.delete, 'one')
    wait_gone(anna.clusters.get, 'one')
    say('show', anna.clusters.get, 'one')
    say('show its groups', anna.nodegroups.list, 'one')
    say('list', anna.clusters.list)
    say('delete a template', anna.cluster_templates.delete, 'small')
    say('delete a template', anna.cluster_templates.delete, 'newer')
    say('list the templates', anna.cluster_templates.list)


peer.emit({'event': 'ready'})
peer.serve({told.__name__: told for told in (
    templates, create, cloud, update, resize, node_groups, upgrade, certificates, credentials, quotas, statistics, services, failing,
    delete)})
