"""Magnum's library without database and broker, set up in the order that it needs.

The options first: a driver may read them while it is imported. Releases 22 and 23 are known to work.
"""

import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from magnum_plugin_host import left_out, remote_objects

# Imported lazily by the library and the drivers; imported here once, no call has to.
LAZY = (
    "certifi",
    "dogpile.cache.backends.memory",
    "dogpile.cache.backends.null",
    "encodings.idna",
    "heatclient.v1.client",
    "idna",
    "keystoneauth1.loading._plugins.identity.v3",
    "keystoneclient.v3.client",
    "magnum.common.clients",
    "magnum.conductor.handlers.common.cert_manager",
    "magnum.conductor.utils",
    "openstack.block_storage.v3._proxy",
    "openstack.compute.v2._proxy",
    "openstack.connection",
    "openstack.identity.v3._proxy",
    "openstack.image.v2._proxy",
    "openstack.key_manager.v1._proxy",
    "openstack.load_balancer.v2._proxy",
    "openstack.network.v2._proxy",
    "pyparsing",
)

# Large, and imported lazily by one library: imported here once that is imported.
LAZY_OF = {"sherlock": ("kubernetes.client", "kubernetes.config")}


def set_up(arguments: Sequence[str]) -> str:
    """Prepares the library; ``arguments`` are those of oslo.config. Returns Magnum's version."""
    warnings.simplefilter("ignore")
    # A resolver for programs that eventlet has patched, which this one is not: 7 MiB.
    os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
    left_out.leave_out()
    from oslo_log import log

    # Registers Magnum's options.
    conf = importlib.import_module("magnum.conf").CONF
    log.register_options(conf)
    # Registers [keystone_authtoken], where Magnum 23 looks for auth_url.
    importlib.import_module("keystonemiddleware.auth_token")
    version: str = importlib.import_module("magnum.version").version_info.release_string()
    # The files that the conductor has read, and no others.
    conf(
        list(arguments),
        project="magnum",
        prog="magnum-conductor",
        version=version,
        default_config_files=[],
        default_config_dirs=[],
    )
    _log_to_standard_error(conf, log)
    remote_objects.install()
    _without_database()
    importlib.import_module("magnum.common.policy").init()
    importlib.import_module("magnum.common.cert_manager").get_backend()
    _register_service_login(conf)
    return version


def preload() -> None:
    """Imports what the calls would import otherwise, each for itself. The drivers are imported already."""
    of_drivers = [name for library, names in LAZY_OF.items() if library in sys.modules for name in names]
    for name in (*LAZY, *of_drivers):
        try:
            importlib.import_module(name)
        except Exception:
            # Not every release and every driver has each of them; who needs it imports it again and says so.
            continue
    _read_yaml_in_c()
    _open_a_key()


def _read_yaml_in_c() -> None:
    """Drivers read a kubeconfig in each call: PyYAML's loader in C takes a tenth of the time, and reads the same."""
    import yaml

    if yaml.__with_libyaml__:
        setattr(yaml, "SafeLoader", yaml.CSafeLoader)


def _open_a_key() -> None:
    """OpenSSL looks for its decoders when it opens the first key, and keeps what it has found: 7 MiB and 50 ms for each
    worker that does it by itself."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    # The smallest that can be made: it is thrown away.
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    password = b"none"
    encryption = serialization.BestAvailableEncryption(password)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    serialization.load_pem_private_key(pem, password)


def _log_to_standard_error(conf: Any, log: ModuleType) -> None:
    """The log files of magnum.conf belong to the conductor, which reads our standard error."""
    overrides = {
        "log_file": None,
        "log_dir": None,
        "use_syslog": False,
        "use_journal": False,
        "use_json": False,
        "use_stderr": True,
        # The syslog number of the level first, as in sd-daemon(3): the conductor finds the level by it.
        "logging_context_format_string": "%(name)s [%(request_id)s] %(message)s",
        "logging_default_format_string": "%(name)s %(message)s",
        "logging_exception_prefix": "",
        "logging_debug_format_suffix": "",
    }
    for option, value in overrides.items():
        conf.set_override(option, value)
    log.setup(conf, "magnum")
    importlib.import_module("magnum_plugin_host.log_lines").install()


def _without_database() -> None:
    """A driver that goes around the objects gets an error that says so."""
    database = _NoDatabase()
    for cls in vars(importlib.import_module("magnum.objects")).values():
        if isinstance(cls, type) and hasattr(cls, "dbapi"):
            cls.dbapi = database
    setattr(importlib.import_module("magnum.db.api"), "IMPL", database)


class _NoDatabase:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"a driver in the plug-in host has no database, and asked it for {name}")


def _register_service_login(conf: Any) -> None:
    """Registers ``[keystone_auth] auth_url``: Magnum 23 prefers it, but registers it with the first login only."""
    loading = importlib.import_module("keystoneauth1.loading")
    try:
        loading.load_auth_from_conf_options(conf, "keystone_auth")
    except Exception as error:
        print(f"<4>the section [keystone_auth] cannot be used: {error}", file=sys.stderr)
