"""What an interrupted create has left behind: found by a server that lists and deletes credentials as Keystone does."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from magnum_plugin_host.repairs import Repairs

CLUSTER = SimpleNamespace(uuid="c0000000-0000-4000-8000-000000000001")


class Credentials(HTTPServer):
    """Application credentials of the user `alice`, by id, with their names."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.names = {"1": CLUSTER.uuid, "2": "somebody-elses"}
        self.asked: list[str] = []

    def clients(self) -> Any:
        auth_url = f"http://127.0.0.1:{self.server_address[1]}/v3"
        keystone = SimpleNamespace(auth_url=auth_url, session=requests.Session())
        return SimpleNamespace(keystone=lambda: keystone)

    def taken(self) -> requests.HTTPError:
        return http_error(409, self.clients().keystone().auth_url + "/users/alice/application_credentials")


class Handler(BaseHTTPRequestHandler):
    server: Credentials

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        name = parse_qs(urlsplit(self.path).query).get("name")
        found = [{"id": i, "name": n} for i, n in self.server.names.items() if name in (None, [n])]
        self.reply(200, json.dumps({"application_credentials": found}))

    def do_DELETE(self) -> None:
        self.server.asked.append(self.path)
        del self.server.names[self.path.rpartition("/")[2]]
        self.reply(204, "")

    def reply(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def keystone() -> Iterator[Credentials]:
    server = Credentials()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def http_error(status: int, url: str) -> requests.HTTPError:
    response = requests.Response()
    response.status_code, response.url = status, url
    return requests.HTTPError(str(status), response=response)


def message(**values: Any) -> dict[str, Any]:
    return {"call": "create_cluster", "attempt": 2, **values}


def repaired(keystone: Credentials, error: BaseException, **values: Any) -> bool:
    return Repairs(message(**values), keystone.clients, "alice", CLUSTER).after_failure(error)


def test_the_credential_of_an_earlier_attempt_is_removed_and_no_other(keystone: Credentials) -> None:
    error = RuntimeError("as a driver wraps it")
    error.__cause__ = keystone.taken()
    assert repaired(keystone, error)
    assert keystone.names == {"2": "somebody-elses"}
    assert keystone.asked[1:] == ["/v3/users/alice/application_credentials/1"]


def test_a_first_attempt_and_other_calls_repair_nothing(keystone: Credentials) -> None:
    assert not repaired(keystone, keystone.taken(), attempt=1)
    assert not repaired(keystone, keystone.taken(), call="rotate_credential")
    assert keystone.asked == []


def test_another_conflict_is_nobodys_leftover(keystone: Credentials) -> None:
    assert not repaired(keystone, http_error(409, "http://cloud.test/v3/users"))
    assert not repaired(keystone, http_error(403, "http://cloud.test/v3/users/alice/application_credentials"))
    assert not repaired(keystone, ValueError("409"))
    assert keystone.asked == []


def test_a_name_that_is_not_found_is_no_repair(keystone: Credentials) -> None:
    del keystone.names["1"]
    assert not repaired(keystone, keystone.taken())


def test_a_repair_that_fails_leaves_the_failure_as_it_is(keystone: Credentials) -> None:
    error = keystone.taken()
    keystone.names["1"] = CLUSTER.uuid
    broken = SimpleNamespace(keystone=lambda: SimpleNamespace(auth_url="http://127.0.0.1:1", session=requests.Session()))
    assert not Repairs(message(), lambda: broken, "alice", CLUSTER).after_failure(error)


def test_credentials_that_a_repeated_create_has_made_again_are_removed_when_it_has_succeeded(keystone: Credentials) -> None:
    keystone.names |= {"3": f"magnum-{CLUSTER.uuid}-11111111", "4": "magnum-of-another-cluster"}
    repairs = Repairs(message(), keystone.clients, "alice", CLUSTER)
    repairs.before()
    keystone.names["5"] = f"magnum-{CLUSTER.uuid}-22222222"
    assert "3" in keystone.names, "until the call has ended, the cluster may need it"
    repairs.after_success()
    assert sorted(keystone.names) == ["1", "2", "4", "5"]


def test_a_first_create_asks_for_no_credentials(keystone: Credentials) -> None:
    repairs = Repairs(message(attempt=1), keystone.clients, "alice", CLUSTER)
    repairs.before()
    repairs.after_success()
    assert keystone.asked == []
