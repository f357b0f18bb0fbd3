"""Rows made, read, changed and removed by real Magnum's own objects, on the database of the configuration file.

    magnum_rows.py CONFIG_FILE

Works as Magnum 22 and as Magnum 23, whichever package Python finds.
"""
import sys

import peer
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from oslo_utils import encodeutils

NORTH = '11' * 16
ANNA = 'anna'.encode().hex().ljust(32, '0')
IMAGE = '0c6bd6d8-4ac2-4e5e-9f24-0d5d1e4f8d6f'

CONF = peer.setup(sys.argv[1])
from magnum.common import context as contexts  # noqa: E402
from magnum import objects  # noqa: E402
from magnum.conductor.handlers.common import cert_manager  # noqa: E402
from magnum.objects import base, fields  # noqa: E402

CONTEXT = contexts.make_context(project_id=NORTH, user_id=ANNA, user_name='anna', roles=['member', 'reader'], is_admin=False)
ADMIN = contexts.make_admin_context(all_tenants=True)


def make_template(name, **more):
    template = objects.ClusterTemplate(
        CONTEXT, project_id=NORTH, user_id=ANNA, name=name, image_id=IMAGE, flavor_id='m1.small', master_flavor_id='m1.small',
        keypair_id='key', external_network_id='public', network_driver='calico', dns_nameserver='8.8.8.8', cluster_distro='ubuntu',
        coe='kubernetes', server_type='vm', labels={'note': 'UTF-8: żółć 雲 🚀'}, registry_enabled=False, tls_disabled=False,
        public=False, hidden=False, master_lb_enabled=False, floating_ip_enabled=True, volume_driver=None, docker_volume_size=None,
        docker_storage_driver=None, **dict({'driver': 'scripted'}, **more))
    template.create()
    return template.uuid


def make_cluster(name, template, status='CREATE_COMPLETE', certificates=True, **more):
    """A cluster as a conductor leaves it, with two node groups and certificates."""
    cluster = objects.Cluster(
        CONTEXT, project_id=NORTH, user_id=ANNA, name=name, cluster_template_id=template, keypair='key', labels={'tier': 'gold'},
        flavor_id='m1.small', master_flavor_id='m1.small', create_timeout=60, status=status, status_reason='as it was',
        floating_ip_enabled=True, master_lb_enabled=False, fixed_network=None, fixed_subnet=None, docker_volume_size=None,
        api_address='https://192.0.2.7:6443', coe_version='v1.31.4', health_status='HEALTHY', health_status_reason={'api': 'ok'},
        stack_id='older-' + name, **more)
    cluster.create()
    if certificates:
        cert_manager.generate_certificates_to_cluster(cluster, context=CONTEXT)
        cluster.save()
    for role, count in (('master', 1), ('worker', 2)):
        group = objects.NodeGroup(
            CONTEXT, name='default-' + role, cluster_id=cluster.uuid, project_id=NORTH, role=role, node_count=count, flavor_id='m1.small',
            image_id=IMAGE, labels={'tier': 'gold'}, is_default=True, status=status, min_node_count=0, stack_id=cluster.stack_id,
            node_addresses=['192.0.2.%d' % (n + 20) for n in range(count)])
        if role == 'worker' and 'node_taints' in objects.NodeGroup.fields:
            group.node_labels = {'disk': 'fast'}
            group.node_taints = [{'key': 'gpu', 'value': 'true', 'effect': 'NoSchedule'}]
        group.create()
    return cluster.uuid


def make_others(cluster):
    """One row of every other table."""
    objects.Quota(CONTEXT, project_id=NORTH, resource='Cluster', hard_limit=10).create()
    service = objects.MagnumService(CONTEXT, host='older-controller', binary='magnum-conductor')
    service.create()
    service.report_state_up()
    objects.Federation(CONTEXT, name='fed', project_id=NORTH, hostcluster_id=cluster, member_ids=[], status='CREATE_COMPLETE',
                       properties={'dns-zone': 'example.com.'}).create()


def data(thing):
    fields_of = thing.obj_to_primitive()['magnum_object.data']
    return {name: value for name, value in fields_of.items() if name != 'cluster_template'}


def read():
    """Everything, through Magnum's objects."""
    clusters = objects.Cluster.list(ADMIN)
    return {
        'templates': [data(one) for one in objects.ClusterTemplate.list(ADMIN)],
        'clusters': [data(one) for one in clusters],
        'node_groups': [data(one) for cluster in clusters for one in objects.NodeGroup.list(ADMIN, cluster.uuid)],
        'key_pairs': [data(one) for one in objects.X509KeyPair.list(ADMIN)],
        'quotas': [data(one) for one in objects.Quota.list(ADMIN)],
        'services': [data(one) for one in objects.MagnumService.list(ADMIN)],
        'federations': [data(one) for one in objects.Federation.list(ADMIN)],
        'stats': data(objects.Stats.get_cluster_stats(ADMIN)),
    }


def change(cluster):
    """Saves another value into a cluster and its node groups, as a conductor does."""
    found = objects.Cluster.get_by_uuid(CONTEXT, cluster)
    found.status = fields.ClusterStatus.UPDATE_COMPLETE
    found.health_status_reason = {'api': 'ok', 'said': 'by Python'}
    found.save()
    for group in found.nodegroups:
        group.node_count += 1
        group.status = fields.ClusterStatus.UPDATE_COMPLETE
        group.save()


def remove(cluster):
    """What the conductor does with a cluster that is gone."""
    found = objects.Cluster.get_by_uuid(CONTEXT, cluster)
    cert_manager.delete_certificates_from_cluster(found, context=CONTEXT)
    for group in found.nodegroups:
        group.destroy()
    found.destroy()


def certificates(cluster):
    """Has Magnum's own manager read a cluster's four certificates, and open their keys."""
    found = objects.Cluster.get_by_uuid(CONTEXT, cluster)
    subjects = {}
    for ref in ('ca_cert_ref', 'magnum_cert_ref', 'etcd_ca_cert_ref', 'front_proxy_ca_cert_ref'):
        pair = cert_manager.cert_manager.get_backend().CertManager.get_cert(
            getattr(found, ref), resource_ref=found.uuid, context=CONTEXT)
        certificate = x509.load_pem_x509_certificate(encodeutils.safe_encode(pair.get_certificate()))
        key = serialization.load_pem_private_key(
            encodeutils.safe_encode(pair.get_private_key()), encodeutils.safe_encode(pair.get_private_key_passphrase()))
        assert key.public_key() == certificate.public_key(), 'the key of %s is not that of its certificate' % ref
        subjects[ref] = certificate.subject.rfc4514_string()
    return subjects


def release():
    return {'Cluster': objects.Cluster.VERSION, 'NodeGroup': objects.NodeGroup.VERSION, 'base': base.MagnumObject.OBJ_PROJECT_NAMESPACE}


peer.emit({'event': 'ready'})
peer.serve({action.__name__: action for action in (make_template, make_cluster, make_others, read, change, remove, certificates, release)})
