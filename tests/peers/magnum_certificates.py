"""The real Magnum's certificates: makes them, signs with them, keeps them, with the options of a magnum.conf.

    magnum_certificates.py CONFIG

    {"do": "generate", "cluster", "name", "project", "user", "is_admin"}
                                                    -> {"ca", "magnum", "etcd_ca", "front_proxy_ca"}: references
    {"do": "get", "ref", "project"}                 -> {"certificate", "key"}; the key decrypted
    {"do": "ca", "refs", "name", "project", "type"} -> PEM
    {"do": "sign", "refs", "name", "project", "type", "csr"} -> PEM
    {"do": "delete", "ref", "project"}              -> null
"""
import sys
import types
import warnings

warnings.simplefilter('ignore')

from magnum.common import context as magnum_context  # noqa: E402
from magnum.common import cert_manager as backends  # noqa: E402
from magnum.conductor.handlers.common import cert_manager  # noqa: E402
import magnum.conf  # noqa: E402
from oslo_config import cfg  # noqa: E402

import peer  # noqa: E402

NAMES = {'ca': 'ca_cert_ref', 'magnum': 'magnum_cert_ref', 'etcd_ca': 'etcd_ca_cert_ref',
         'front_proxy_ca': 'front_proxy_ca_cert_ref'}


def context(request):
    return magnum_context.RequestContext(project_id=request['project'], user_id=request.get('user'),
                                         is_admin=request.get('is_admin', False))


def cluster(request):
    refs = request.get('refs') or {}
    columns = {column: refs.get(name) for name, column in NAMES.items()}
    return types.SimpleNamespace(uuid=request.get('cluster', 'u-1'), name=request['name'], **columns)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def generate(request):
    made = cluster(request)
    cert_manager.generate_certificates_to_cluster(made, context=context(request))
    return {name: getattr(made, column) for name, column in NAMES.items()}


def get(request):
    cert = backends.get_backend().CertManager.get_cert(request['ref'], context=context(request))
    return {'certificate': text(cert.get_certificate()), 'key': text(cert.get_decrypted_private_key())}


def ca(request):
    cert = cert_manager.get_cluster_ca_certificate(cluster(request), context=context(request),
                                                   ca_cert_type=request['type'])
    return text(cert.get_certificate())


def sign(request):
    return text(cert_manager.sign_node_certificate(cluster(request), request['csr'], request['type'],
                                                   context=context(request)))


def delete(request):
    backends.get_backend().CertManager.delete_cert(request['ref'], context=context(request))


magnum.conf.CONF([], project='magnum', default_config_files=[sys.argv[1]])
assert cfg.CONF is magnum.conf.CONF
peer.emit({'event': 'ready'})
peer.serve({function.__name__: (lambda function: lambda **request: function(request))(function)
            for function in (generate, get, ca, sign, delete)})
