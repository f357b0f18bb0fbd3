"""The real oslo.config with the options of the real Magnum: what it reads from files, as text.

{"do": "read", "files": [...], "options": [[section, name], ...]} answers one text per option, null where it is
not set, and false where no such option exists.
"""
import importlib.util
import pathlib

import peer

RUN = pathlib.Path(__file__).parent.parent / '.run'


def trust_of_magnum_22():
    """Magnum's module with the options of [trust], which 23 has not any more."""
    path = RUN / 'magnum-22' / 'magnum' / 'conf' / 'trust.py'
    spec = importlib.util.spec_from_file_location('magnum_22_trust', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def registered():
    """A fresh reader with all options of Magnum and of the libraries that it configures."""
    from oslo_config import cfg
    from oslo_db import options as oslo_db
    from oslo_log import log
    from oslo_messaging import opts as oslo_messaging
    from oslo_middleware import opts as oslo_middleware
    from oslo_policy import opts as oslo_policy
    from keystoneauth1 import loading as keystoneauth
    from keystonemiddleware import opts as keystonemiddleware
    import magnum.conf
    from magnum.common import config as magnum_config

    # What Magnum puts in the place of oslo's own when it starts.
    magnum_config.set_cors_middleware_defaults()

    conf = cfg.ConfigOpts()
    log.register_options(conf)
    lists = [oslo_messaging.list_opts(), oslo_middleware.list_opts(), oslo_policy.list_opts(),
             oslo_db.list_opts(), keystonemiddleware.list_auth_token_opts()]
    for group, options in (pair for options in lists for pair in options):
        # Required options of features that nobody here uses would refuse every file.
        conf.register_opts([option for option in options if not option.required], group=getattr(group, 'name', group))
    # What the plug-in for passwords reads; keystoneauth registers it when it is used.
    for group in ('keystone_auth', 'keystone_authtoken'):
        for option in keystoneauth.get_auth_plugin_conf_options('password'):
            option.required = False
            conf.register_opt(option, group=group)
    # Magnum's own are in its global reader; copy them, so that each request starts afresh.
    known = magnum.conf.CONF
    for entry in known._opts.values():
        conf.register_opt(entry['opt'])
    for name, group in known._groups.items():
        conf.register_opts([entry['opt'] for entry in group._opts.values()], group=name)
    trust_of_magnum_22().register_opts(conf)
    return conf


def text(option, value):
    if value is None or (value == [] and option.multi):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return '%g' % value
    if isinstance(value, list):
        return (', ' if option.multi else ',').join(value)
    return str(value)


def read(files, options):
    conf = registered()
    arguments = [word for file in files for word in ('--config-file', file)]
    conf(arguments, project='magnum', default_config_files=[], default_config_dirs=[])
    found = []
    for section, name in options:
        entries = conf._opts if section == 'DEFAULT' else getattr(conf._groups.get(section), '_opts', {})
        if name not in entries:
            found.append(False)
        else:
            value = conf[name] if section == 'DEFAULT' else conf[section][name]
            found.append(text(entries[name]['opt'], value))
    return found


registered()
peer.emit({'event': 'ready'})
peer.serve({'read': read})
