#!/usr/bin/env -S python3 -SE
"""A driver whose behaviour a test writes into the cluster's labels, and whose calls a test can read back.

Label `scripted_<call>` (create, update, delete, resize, upgrade, create_nodegroup, …) of a cluster:

    ok                 done at once (also without a label)
    in_progress        returns *_IN_PROGRESS; the next observation finds the cluster complete
    wait               waits until the file `go-<cluster>` exists in the record's folder
    transient:N        the first N calls fail for a transient reason
    exit75:N           the same, by exit status
    permanent          fails for good
    garbage            prints something that is no answer
    flood              prints good lines without end
    flood_line         prints one line without end
    crash              kills itself
    hang               never ends
    stubborn           never ends, nor does its child, and both are deaf to SIGTERM; their process ids are in
                       the file `pids-<cluster>` of the record's folder
    silent             ends well without an answer

Label `scripted_says`: a line for standard error in each call.
Label `scripted_delay`: seconds that each create, update and delete takes, else MAGNUM_TEST_DELAY.

MAGNUM_TEST_CONDUCTOR: who calls, for the record.

Record, in the folder MAGNUM_TEST_RECORD: `calls`, one JSON line when a call begins and one when it ends, with both clocks
and with what it says when it fails, and `built/<cluster>`, with the number of nodes, while a cluster exists. A lock per cluster shows whether two calls for one cluster ever run
at the same time, whoever makes them: the kernel drops it when its holder dies.
"""
import fcntl
import json
import os
import signal
import sys
import time

RECORD = os.environ['MAGNUM_TEST_RECORD']

# A random search asks for groups of a thousand million nodes; to name each would take its time.
MOST_NODES = 1000

# What it says when it fails.
BUSY = 'the cloud is busy'
NO_FLAVOR = 'no such flavor: m1.nano'


def write(line):
    text = json.dumps(dict(line, pid=os.getpid(), at=time.monotonic(), wall=time.time())) + '\n'
    record = os.open(os.path.join(RECORD, 'calls'), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(record, text.encode())  # one write: lines of several processes do not mix
    os.close(record)


def answer(line):
    print(json.dumps(line), flush=True)


def observe(request):
    for seen in request['clusters']:
        cluster = seen['cluster']
        word = cluster['status'].split('_')[0]
        built = os.path.exists(os.path.join(RECORD, 'built', cluster['uuid']))
        exists = built or word == 'DELETE'
        answer({'cluster': cluster['uuid'], 'result': {
            'cluster': {'status': word + ('_COMPLETE' if exists else '_FAILED')},
            'node_groups': [{'uuid': group['uuid'], 'status': word + '_COMPLETE'} for group in seen['node_groups']]}})


def calls_so_far(call, cluster):
    try:
        with open(os.path.join(RECORD, 'calls')) as record:
            lines = [json.loads(line) for line in record]
    except FileNotFoundError:
        return 0
    return sum(1 for line in lines if (line['event'], line['call'], line['cluster']) == ('begin', call, cluster))


def main():
    request = json.load(sys.stdin)
    call = request['call']
    if call == 'observe':
        return observe(request)
    if call == 'api':
        return answer({'result': {'status': 200, 'body': {'query': request['query'], 'token': request['context']['auth_token']}}})
    cluster, operation = request['cluster']['uuid'], request['operation']
    about = {'call': call, 'cluster': cluster, 'operation': operation, 'attempt': request['attempt'],
             'conductor': os.environ.get('MAGNUM_TEST_CONDUCTOR'), 'token': request['context'].get('auth_token'),
             'traceparent': os.environ.get('TRACEPARENT'), 'tracestate': os.environ.get('TRACESTATE'),
             'nodes': sum(group['node_count'] for group in request['node_groups']),
             'removes': request.get('nodes_to_remove')}

    os.makedirs(os.path.join(RECORD, 'locks'), exist_ok=True)
    os.makedirs(os.path.join(RECORD, 'built'), exist_ok=True)
    lock = open(os.path.join(RECORD, 'locks', cluster), 'w')
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        write(dict(about, event='overlap'))
    write(dict(about, event='begin'))

    if call == 'scale':
        # Other names at each asking.
        names = ['node-%d-%d' % (calls_so_far(call, cluster), number) for number in range(min(request['surplus'], MOST_NODES))]
        write(dict(about, event='end', outcome='chosen', removes=names))
        return answer({'result': {'nodes': names}})

    says = request['cluster']['labels'].get('scripted_says')
    if says:
        print(says, file=sys.stderr)
    behaviour, _, count = (request['cluster']['labels'].get('scripted_' + call) or 'ok').partition(':')
    time.sleep(float(request['cluster']['labels'].get('scripted_delay') or os.environ.get('MAGNUM_TEST_DELAY') or 0))
    done = {'create': 'CREATE', 'delete': 'DELETE'}.get(call, 'UPDATE')
    status = done + '_COMPLETE'
    if behaviour == 'wait':
        while not os.path.exists(os.path.join(RECORD, 'go-' + cluster)):
            time.sleep(0.02)
    elif behaviour in ('transient', 'exit75') and calls_so_far(call, cluster) <= int(count):
        write(dict(about, event='end', outcome='transient', says=BUSY))
        if behaviour == 'exit75':
            print(BUSY, file=sys.stderr)
            sys.exit(75)
        return answer({'error': BUSY, 'class': 'transient'})
    elif behaviour == 'permanent':
        write(dict(about, event='end', outcome='permanent', says=NO_FLAVOR))
        return answer({'error': NO_FLAVOR, 'class': 'permanent'})
    elif behaviour == 'garbage':
        print('Traceback: this is not an answer', flush=True)
        return None
    elif behaviour == 'flood':
        while True:
            answer({'progress': 'x' * 65536})
    elif behaviour == 'flood_line':
        while True:
            print('x' * 65536, end='', flush=True)
    elif behaviour == 'crash':
        os.kill(os.getpid(), signal.SIGSEGV)
    elif behaviour == 'hang':
        while True:
            time.sleep(60)
    elif behaviour == 'stubborn':
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = os.fork()
        if child:
            with open(os.path.join(RECORD, 'pids-' + cluster), 'w') as pids:
                pids.write('%d %d' % (os.getpid(), child))
        while True:
            time.sleep(60)
    elif behaviour == 'silent':
        return None
    elif behaviour == 'in_progress':
        status = done + '_IN_PROGRESS'

    mark = os.path.join(RECORD, 'built', cluster)
    if call == 'delete':
        if os.path.exists(mark):
            os.unlink(mark)
    else:
        with open(mark, 'w') as built:
            built.write(str(about['nodes']))
    write(dict(about, event='end', outcome=status))
    answer({'progress': 'built', 'percent': 100})
    if call == 'rotate_credential' and not status.endswith('_IN_PROGRESS'):
        return answer({'result': {}})
    return answer({'result': {
        'cluster': {'status': status, 'stack_id': 'scripted-' + cluster, 'api_address': 'https://192.0.2.1:6443'},
        'node_groups': [seen(group, call, request, status) for group in request['node_groups']]}})


def seen(group, call, request, status):
    """How a node group is after a call: the one that the call is about, or all of them, as the cluster."""
    target = request.get('node_group')
    if target is not None and group['uuid'] != target:
        return {'uuid': group['uuid']}
    if call == 'create_nodegroup':
        status = status.replace('UPDATE', 'CREATE')
    if call == 'delete_nodegroup':
        return {'uuid': group['uuid'], 'status': status.replace('UPDATE', 'DELETE')}
    addresses = ['192.0.2.%d' % (n + 10) for n in range(min(group['node_count'], MOST_NODES))]
    after = {'uuid': group['uuid'], 'status': status, 'node_addresses': addresses}
    return dict(after, image_id=request['new_template']['image_id']) if call == 'upgrade' else after


main()
