"""Real Magnum's object classes, used in two ways on one database: directly, and through a conductor.

    magnum_objects.py CONFIG_FILE

Each request says `way`: "direct" (the class reads and writes the database itself) or "rpc" (object indirection, as in
`magnum-api`). Objects are kept by name; an argument {"$": "name"} stands for one.

Requests:
  methods  every class of Magnum with its remotable methods: the parameters of class methods, names of the others
  new      name, class, context, fields: a new object, all fields changed
  call     way, class, method, context, args, kwargs, and optionally keep (a name for the returned object)
  act      way, name, method: a method of a kept object, and what the object looks like afterwards
  set      name, fields: changes some fields of a kept object
  load     way, name: touches a cluster's template, so that it is inside of the object
  key      way, uuid, context: the private key of a pair, opened as the API opens it to sign
  plant    objects (primitives): their rows, with the same numbers and times
  rows     every row of Magnum's tables, as it stands there
"""
import inspect
import sys
import time

import peer

CONF = peer.setup(sys.argv[1])
from magnum.common import context as contexts  # noqa: E402
from magnum import objects  # noqa: E402
from magnum.db.sqlalchemy import api, models  # noqa: E402
from magnum.objects import base  # noqa: E402

OBJECTS = {}
RPC = base.MagnumObjectIndirectionAPI()


def go(way):
    base.MagnumObject.indirection_api = {'direct': None, 'rpc': RPC}[way]


def classes():
    registered = base.MagnumObjectRegistry.obj_classes()
    return {name: versions[0] for name, versions in registered.items() if versions[0].__module__.startswith('magnum.objects')}


def methods():
    found = {}
    for name, of_class in classes().items():
        by_class, by_object = {}, []
        for method in dir(of_class):
            function = inspect.getattr_static(of_class, method)
            is_class_method = isinstance(function, classmethod)
            if is_class_method:
                function = function.__func__
            if not getattr(function, 'remotable', False):
                continue
            if is_class_method:
                # Without the class and the context.
                parameters = list(inspect.signature(function.original_fn).parameters.values())[2:]
                by_class[method] = {
                    'required': [p.name for p in parameters if p.default is inspect.Parameter.empty],
                    'optional': [p.name for p in parameters if p.default is not inspect.Parameter.empty]}
            else:
                by_object.append(method)
        found[name] = {'class': by_class, 'instance': by_object}
    return found


def describe(value):
    if isinstance(value, base.MagnumObject):
        primitive = value.obj_to_primitive()
        if 'magnum_object.changes' in primitive:
            primitive['magnum_object.changes'].sort()
        return primitive
    if isinstance(value, (list, tuple)):
        return [describe(item) for item in value]
    return value


def given(value):
    if isinstance(value, dict) and '$' in value:
        return OBJECTS[value['$']]
    return value


def new(name, context, fields, **more):
    OBJECTS[name] = getattr(objects, more['class'])(contexts.make_context(**context), **fields)


def do(way, method):
    """On SQLite a transaction of Magnum that reads first and writes then fails at once when another program has written in
    between, as our conductor may. Nothing of it has happened then."""
    go(way)
    for _ in range(100):
        try:
            return method()
        except Exception as error:
            if way != 'direct' or 'database is locked' not in str(error):
                raise
            time.sleep(0.05)
    return method()


def call(way, method, context, args, kwargs, keep=None, **more):
    made = contexts.make_context(**context)
    function = getattr(getattr(objects, more['class']), method)
    result = do(way, lambda: function(
        made, *[given(value) for value in args], **{name: given(value) for name, value in kwargs.items()}))
    if keep:
        OBJECTS[keep] = result
    return describe(result)


def act(way, name, method):
    target = OBJECTS[name]
    result = do(way, getattr(target, method))
    return {'result': describe(result), 'object': describe(target), 'changed': sorted(target.obj_what_changed())}


def set_fields(name, fields):
    for field, value in fields.items():
        setattr(OBJECTS[name], field, value)


def load(way, name):
    go(way)
    return describe(OBJECTS[name].cluster_template)


def key(way, uuid, context):
    from magnum.common.cert_manager import x509keypair_cert_manager as manager
    go(way)
    opened = manager.CertManager.get_cert(uuid, context=contexts.make_context(**context)).get_decrypted_private_key()
    return opened.decode() if isinstance(opened, bytes) else opened


def plant(objects):
    go('direct')
    for primitive in objects:
        made = base.MagnumObject.obj_from_primitive(primitive, contexts.make_admin_context())
        made.obj_reset_changes()
        made._changed_fields = {field for field in primitive['magnum_object.data'] if field != 'cluster_template'}
        made.create()


def rows():
    found = {}
    with api._session_for_read() as session:
        for model in (models.Cluster, models.ClusterTemplate, models.NodeGroup, models.X509KeyPair, models.Quota,
                      models.Federation, models.MagnumService):
            columns = model.__table__.columns.keys()
            found[model.__tablename__] = [{column: getattr(row, column) for column in columns}
                                          for row in session.query(model).order_by(model.id)]
    return found


peer.emit({'event': 'ready'})
actions = (methods, new, call, act, load, key, plant, rows)
peer.serve({**{action.__name__: action for action in actions}, 'set': set_fields})
