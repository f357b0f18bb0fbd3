"""What schemathesis looks for besides its own checks, and what it is told about the API under test.

MAGNUM_TEST_KNOWN holds names that exist there, as JSON: {"clusters": [...], "templates": [...], "groups": [...]}.
Some requests name one of them, so that not everything ends with 404. MAGNUM_TEST_VERSION is the microversion that the
document is about: a request without the header, which speaks 1.1, is none that it could describe.
"""

import json
import os
import re

import schemathesis

KNOWN = json.loads(os.environ["MAGNUM_TEST_KNOWN"])
VERSION = os.environ["MAGNUM_TEST_VERSION"]

# What must not be told to a client: statements, tables, types and paths of the service.
LEAK = re.compile(
    r"(?i)\b(select|insert|update|delete)\b[^\"]{0,80}\b(from|into|set|where)\b.{0,80}[=?`]"
    r"|sqlite|diesel|mysql|postgres|conductor_(operation|driver|cluster)|alembic"
    r"|panicked|unwrap\(|\.rs:\d|thread '|Some\(|None\)|stack backtrace|rabbit|amqp"
    r"|/(root|home|tmp|usr|etc|var|work)/\w"
)


@schemathesis.check
def no_error_of_the_service(ctx, response, case):
    """Nothing that a client can send may end as a failure of the service. Federations are honest: 501."""
    is_federation = response.status_code == 501 and case.operation.path == "/v1/federations"
    assert response.status_code < 500 or is_federation, f"{response.status_code}: {response.text}"


@schemathesis.check
def nothing_internal_is_told(ctx, response, case):
    """What the client itself has sent may come back; nothing else that looks like our inside may."""
    if case.operation.path == "/v1/openapi.json" or response.status_code < 400:
        return
    try:
        errors = response.json()["errors"]
    except (ValueError, KeyError, TypeError):
        raise AssertionError(f"an error without its shape: {response.text}")
    sent = " ".join([response.request.url, str(response.request.body), str(dict(response.request.headers))])
    for error in errors:
        for found in LEAK.finditer(error.get("detail") or error.get("description") or ""):
            assert found.group(0) in sent or "Value: '" in error.get("detail", ""), f"{found.group(0)!r} in {error}"


def pick(names, value):
    """One of the names for every second value, always the same one for the same value."""
    number = sum(str(value).encode("utf-8", "replace"))
    return names[number // 2 % len(names)] if number % 2 and names else value


@schemathesis.hook
def before_call(ctx, case, kwargs):
    case.headers.setdefault("OpenStack-API-Version", f"container-infra {VERSION}")


@schemathesis.hook
def map_path_parameters(ctx, path_parameters):
    if not path_parameters:
        return path_parameters
    path = ctx.operation.path
    changed = dict(path_parameters)
    for name, value in path_parameters.items():
        if name == "group":
            changed[name] = pick(KNOWN["groups"], value)
        elif name == "cluster" or (name == "ident" and path.startswith("/v1/clusters")):
            changed[name] = pick(KNOWN["clusters"], value)
        elif name == "ident" and path.startswith("/v1/clustertemplates"):
            changed[name] = pick(KNOWN["templates"], value)
        elif name == "project":
            changed[name] = pick(["noauth"], value)
        elif name == "resource":
            changed[name] = pick(["Cluster"], value)
    return changed


@schemathesis.hook
def map_body(ctx, body):
    if not isinstance(body, dict):
        return body
    changed = dict(body)
    for name, kind in (("cluster_template_id", "templates"), ("cluster_template", "templates"), ("cluster_uuid", "clusters")):
        if isinstance(changed.get(name), str):
            changed[name] = pick(KNOWN[kind], changed[name])
    return changed
