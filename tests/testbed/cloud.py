"""The real Glance, Nova, Neutron or Cinder, each as one process on SQLite, beside the Keystone of openstack.py.

    cloud.py glance|nova|neutron|cinder FOLDER PORT KEYSTONE_PORT

What Magnum's API looks up is there and nothing behind it: no hypervisor, no agents, no volumes, no images' bytes.
Their users (called as they are) and endpoints have to be in Keystone before the first request. Serves until it is
killed.
"""
import importlib.util
import os
import pathlib
import sys

# The services import OpenStack's SDK, which has the name of the file beside this one.
sys.path.pop(0)
spec = importlib.util.spec_from_file_location('testbed_openstack', pathlib.Path(__file__).with_name('openstack.py'))
base = importlib.util.module_from_spec(spec)
spec.loader.exec_module(base)
HOST = base.HOST
database, in_child, write = base.database, base.in_child, base.write
one_at_a_time, serve, service_user = base.one_at_a_time, base.serve, base.service_user


def common(folder, name, keystone_port):
    """What all of them are told."""
    return {
        'DEFAULT': {'use_stderr': 'true', 'transport_url': 'fake://', 'state_path': folder / name},
        'database': {'connection': database(folder, name)},
        'keystone_authtoken': service_user(keystone_port, name),
        'oslo_messaging_notifications': {'driver': 'noop'},
        'oslo_concurrency': {'lock_path': folder / name / 'locks'},
    }


def paste(name, file='api-paste.ini'):
    return f'{sys.prefix}/etc/{name}/{file}'


def tool(name, *words):
    """Runs a service's own administration program."""
    def run():
        main = __import__(f'{name}.cmd.manage', fromlist=['main']).main
        sys.argv = [f'{name}-manage', *map(str, words)]
        return main()
    in_child(run)


def glance(folder, port, keystone_port):
    config = common(folder, 'glance', keystone_port)
    store = folder / 'glance/images'
    store.mkdir(parents=True)
    config['DEFAULT'].update({'enabled_backends': 'file:file', 'worker_self_reference_url': f'http://{HOST}:{port}'})
    config['DEFAULT'].pop('state_path')
    config['paste_deploy'] = {'flavor': 'keystone', 'config_file': paste('glance', 'glance-api-paste.ini')}
    config['glance_store'] = {'default_backend': 'file'}
    for section in ('file', 'os_glance_staging_store', 'os_glance_tasks_store'):
        config[section] = {'filesystem_store_datadir': store}
    file = write(folder / 'glance/etc/glance-api.conf', config)
    tool('glance', '--config-file', file, 'db_sync')
    os.environ['OS_GLANCE_CONFIG_DIR'] = str(folder / 'glance/etc')
    sys.argv = ['glance-api']
    from glance.wsgi import api
    return api.application


def nova(folder, port, keystone_port):
    config = common(folder, 'nova', keystone_port)
    config['DEFAULT'].update({'host': 'nowhere'})
    config['api_database'] = {'connection': database(folder, 'nova-api')}
    config['wsgi'] = {'api_paste_config': paste('nova')}
    config['quota'] = {'key_pairs': -1}
    for section in ('service_user', 'placement', 'neutron', 'cinder'):
        config[section] = service_user(keystone_port, 'nova')
    file = write(folder / 'nova/etc/nova.conf', config)
    for words in (('api_db', 'sync'), ('cell_v2', 'map_cell0', '--database_connection', database(folder, 'nova-cell0')),
                  ('db', 'sync'), ('cell_v2', 'create_cell', '--name', 'cell1')):
        tool('nova', '--config-file', file, *words)
    os.environ.update({'OS_NOVA_CONFIG_DIR': str(folder / 'nova/etc'), 'OS_NOVA_CONFIG_FILES': f'{paste("nova")};nova.conf'})
    sys.argv = ['nova-api']
    from nova.wsgi import osapi_compute
    return osapi_compute.application


def neutron(folder, port, keystone_port):
    config = common(folder, 'neutron', keystone_port)
    config['DEFAULT'].update({
        'core_plugin': 'ml2', 'service_plugins': 'router', 'auth_strategy': 'keystone', 'api_paste_config': paste('neutron'),
        'notify_nova_on_port_status_changes': 'false', 'notify_nova_on_port_data_changes': 'false',
        'dhcp_agent_notification': 'false'})
    config['ml2'] = {'type_drivers': 'flat,local', 'tenant_network_types': 'local', 'mechanism_drivers': '',
                     'extension_drivers': ''}
    config['ml2_type_flat'] = {'flat_networks': '*'}
    config['quotas'] = {f'quota_{kind}': -1 for kind in ('network', 'subnet', 'port')}
    file = write(folder / 'neutron/neutron.conf', config)

    def tables():
        # From the models: Neutron's migrations do not run on SQLite.
        import sqlalchemy
        from neutron.db.migration import cli
        from neutron.db.migration.models import head
        sys.argv = ['neutron-db-manage', '--config-file', file, 'stamp', 'heads']
        cli.CONF(sys.argv[1:], project='neutron')
        engine = sqlalchemy.create_engine(cli.CONF.database.connection)
        head.get_metadata().create_all(engine)
        engine.dispose()
        return cli.main()

    in_child(tables)
    os.environ['OS_NEUTRON_CONFIG_FILES'] = file
    sys.argv = ['neutron-api']
    from neutron.wsgi import api
    return api.application


def cinder(folder, port, keystone_port):
    config = common(folder, 'cinder', keystone_port)
    config['DEFAULT'].update({'host': 'nowhere', 'api_paste_config': paste('cinder'), 'auth_strategy': 'keystone',
                              'resource_query_filters_file': paste('cinder', 'resource_filters.json')})
    file = write(folder / 'cinder/cinder.conf', config)
    tool('cinder', '--config-file', file, 'db', 'sync')
    # Its WSGI module reads the command line, as under a server that hands one on.
    sys.argv = ['cinder-api', '--config-file', file]
    from cinder.wsgi import api
    return api.application


if __name__ == '__main__':
    which, where, own, other = sys.argv[1:]
    make = {'glance': glance, 'nova': nova, 'neutron': neutron, 'cinder': cinder}[which]
    serve(one_at_a_time(make(pathlib.Path(where), int(own), int(other))), int(own))
