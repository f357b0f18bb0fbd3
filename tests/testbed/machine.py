"""A Debian machine on which a document is followed: what is installed on this one, and none of its files touched.

    machine.py FOLDER CHECKOUT PROGRAMS COMMANDS

RabbitMQ and MariaDB from their packages and Keystone, Glance, Nova and Neutron listen on their usual ports of `controller`,
which is this machine. COMMANDS is a file with a JSON list of [place, command]; they are typed into one shell, root's, in
CHECKOUT, where `target/dist` has PROGRAMS. Ends with the status of the first command that failed, and prints the seconds
that each took. FOLDER is an empty one: the machine's files are mounted there.

The machine is a set of namespaces: files are those of the real one with a layer in memory over them, processes and the
network are its own and end with it. systemd does not run there: `systemctl` is one of ours (systemctl.py), which does what
the units say as far as they need it. Needs root; anybody else has to be somebody whom sudo asks for no password.
"""
import fcntl
import json
import os
import pathlib
import shlex
import socket
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# OpenStack's SDK has the name of a file beside this one.
sys.path.pop(0)
NAME = 'controller'
PORTS = {'keystone': 5000, 'glance': 9292, 'nova': 8774, 'neutron': 9696}
# The layer keeps what servers write; little of it is ever used.
LAYER = 'size=3g,mode=755'
START_WITHIN = 300


def enter():
    """Starts this program again in namespaces of its own."""
    as_root = [] if os.geteuid() == 0 else ['sudo', '--non-interactive', '--']
    namespaces = ['--mount', '--net', '--pid', '--uts', '--ipc', '--fork', '--kill-child', '--propagation', 'private']
    command = [*as_root, 'unshare', *namespaces, sys.executable, __file__, '--inside', *sys.argv[1:]]
    os.execvp(command[0], command)


def run(*words):
    subprocess.run(words, check=True)


def mount(*words):
    run('mount', *map(str, words))


def overlay(below, layer, name, at):
    for part in ('upper', 'work'):
        (layer / name / part).mkdir(parents=True)
    mount('-t', 'overlay', '-o', f'lowerdir={below},upperdir={layer}/{name}/upper,workdir={layer}/{name}/work', name, at)


def build_root(layer, checkout, programs):
    """The files of this machine under a layer of our own, and the checkout with what its build would leave."""
    mount('-t', 'tmpfs', '-o', LAYER, 'layer', layer)
    root = layer / 'root'
    root.mkdir()
    overlay('/', layer, 'machine', root)
    # It may be on another file system than `/`.
    overlay(checkout, layer, 'checkout', f'{root}{checkout}')
    mount('--rbind', '/dev', root / 'dev')
    mount('-t', 'proc', 'proc', root / 'proc')
    for fresh in ('run', 'tmp', 'var/lib/mysql', 'var/lib/rabbitmq', 'var/log/rabbitmq'):
        mount('-t', 'tmpfs', '-o', 'mode=1777' if fresh == 'tmp' else 'mode=755', 'fresh', root / fresh)
    built = pathlib.Path(f'{root}{checkout}/target/dist')
    built.mkdir(parents=True, exist_ok=True)
    for program in pathlib.Path(programs).glob('magnum-*'):
        if os.access(program, os.X_OK) and program.is_file():
            # Symbols are most of a program of the tests, and the layer is in memory.
            run('strip', '--strip-debug', '-o', str(built / program.name), str(program))
    os.chroot(root)
    os.chdir(checkout)


def raise_loopback():
    """`ip link set lo up`, which a machine may not have."""
    SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = struct.pack('16sh', b'lo', 0)
        flags = struct.unpack('16sh', fcntl.ioctl(asked, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(asked, SIOCSIFFLAGS, struct.pack('16sh', b'lo', flags | IFF_UP))


def serve(name, command, **options):
    log = open(f'/var/log/{name}.log', 'wb')
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options)


def wait(name, process, is_ready):
    end = time.monotonic() + START_WITHIN
    while not is_ready():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f'{name} does not start:\n' + pathlib.Path(f'/var/log/{name}.log').read_text()[-4000:])
        time.sleep(0.1)


def listens(port):
    def is_ready():
        with socket.socket() as asked:
            return asked.connect_ex(('127.0.0.1', port)) == 0
    return is_ready


def mariadb():
    run('install', '-d', '-o', 'mysql', '/run/mysqld', '/var/lib/mysql')
    run('mariadb-install-db', '--user=mysql', '--skip-test-db', '--skip-log-bin', '--cross-bootstrap', '--skip-name-resolve',
        '--auth-root-authentication-method=socket', '--datadir=/var/lib/mysql')
    return serve('mariadb', ['mariadbd', '--user=mysql'])


def rabbitmq():
    run('install', '-d', '-o', 'rabbitmq', '-g', 'rabbitmq', '/var/lib/rabbitmq', '/var/log/rabbitmq')
    environment = {**os.environ, 'HOME': '/var/lib/rabbitmq', 'RABBITMQ_NODENAME': f'rabbit@{NAME}'}
    return serve('rabbitmq', ['runuser', '-u', 'rabbitmq', '--', '/usr/lib/rabbitmq/bin/rabbitmq-server'], env=environment)


def openstack(name):
    folder = pathlib.Path('/var/lib/openstack')
    folder.mkdir(exist_ok=True)
    script, other = ('openstack.py', 9311) if name == 'keystone' else ('cloud.py', PORTS['keystone'])
    return serve(name, [sys.executable, HERE / script, name, folder, str(PORTS[name]), str(other)])


def start_servers():
    """All of them at once: most of a start is waiting for files and importing."""
    started = {name: openstack(name) for name in PORTS}
    started['rabbitmq'] = rabbitmq()
    started['mariadb'] = mariadb()
    for name, port in PORTS.items():
        wait(name, started[name], listens(port))
    wait('mariadb', started['mariadb'], listens(3306))
    wait('rabbitmq', started['rabbitmq'], listens(5672))


def furnish(password):
    """What a cloud has before Magnum comes: its services in the catalog, an image, a flavor, a network, somebody's key. And
    not what the tests' Keystone has for Magnum."""
    import openstack as sdk
    cloud = sdk.connect(cloud='admin')
    identity = cloud.identity
    identity.delete_user(identity.find_user('magnum'))
    service_project, roles = identity.find_project('service'), ('admin', 'service')
    paths = {'glance': ('image', ''), 'nova': ('compute', '/v2.1'), 'neutron': ('network', '')}
    for name, (kind, path) in paths.items():
        user = identity.create_user(name=name, password=password, domain_id='default')
        for role in roles:
            identity.assign_project_role_to_user(service_project, user, identity.find_role(role))
        service = identity.create_service(name=name, type=kind)
        for interface in ('public', 'internal', 'admin'):
            identity.create_endpoint(service_id=service.id, interface=interface, region_id='RegionOne',
                                     url=f'http://{NAME}:{PORTS[name]}{path}')
    # The catalog comes with the token.
    cloud = sdk.connect(cloud='admin')
    cloud.image.create_image('ubuntu', visibility='public', disk_format='raw', container_format='bare', os_distro='ubuntu',
                             allow_duplicates=True)
    cloud.compute.create_flavor(name='small', ram=2048, vcpus=1, disk=20)
    cloud.network.create_network(name='public', is_router_external=True, provider_network_type='flat',
                                 provider_physical_network='public')
    key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl nobody'
    cloud.compute.create_keypair(name='mine', public_key=key)


def clouds(password):
    """Two entries of a person's `clouds.yaml`: the administrator, and a member of a project."""
    def entry(user, project):
        return {'auth': {'auth_url': f'http://{NAME}:5000/v3', 'username': user, 'password': password,
                         'project_name': project, 'user_domain_name': 'Default', 'project_domain_name': 'Default'},
                'region_name': 'RegionOne', 'identity_api_version': '3'}
    folder = pathlib.Path('/etc/openstack')
    folder.mkdir(exist_ok=True)
    (folder / 'clouds.yaml').write_text(json.dumps({'clouds': {'admin': entry('admin', 'admin')}}))


def follow(commands):
    """Types them into one shell and returns its status."""
    lines = ['set -o pipefail', 'typed() { ended=$?; echo "-- $SECONDS s"; [ $ended -eq 0 ] || exit $ended; }']
    for place, command in commands:
        lines += [f'echo; echo {shlex.quote(f"== {place}: {command}")}', 'SECONDS=0', command, 'typed']
    path = f'/usr/local/testbed:{os.environ["PATH"]}'
    environment = {'PATH': path, 'HOME': '/root', 'LANG': 'C.UTF-8', 'OS_CLOUD': 'admin'}
    return subprocess.run(['bash', '-c', '\n'.join(lines)], env=environment).returncode


def main(folder, checkout, programs, commands):
    began = time.monotonic()
    commands = json.loads(pathlib.Path(commands).read_text())
    build_root(pathlib.Path(folder), checkout, programs)
    socket.sethostname(NAME)
    raise_loopback()
    with open('/etc/hosts', 'w') as hosts:
        hosts.write(f'127.0.0.1 localhost {NAME}\n')
    own = pathlib.Path('/usr/local/testbed')
    own.mkdir(exist_ok=True)
    (own / 'systemctl').symlink_to(HERE / 'systemctl.py')
    # Of the peers' environment this command alone: Python's services have the names of ours.
    (own / 'openstack').symlink_to(pathlib.Path(sys.executable).with_name('openstack'))
    password = 'openstack-secret'
    clouds(password)
    start_servers()
    os.environ['OS_CLOUD'] = 'admin'
    furnish(password)
    print(f'the machine is there after {time.monotonic() - began:.0f} s', flush=True)
    sys.exit(follow(commands))


if __name__ == '__main__':
    if sys.argv[1] == '--inside':
        main(*sys.argv[2:])
    enter()
