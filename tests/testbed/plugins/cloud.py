"""The double of a cloud: the requests that the drivers make of Keystone, Glance, Nova, Neutron, Cinder and Octavia."""

import copy
import re
import threading
from collections.abc import Callable
from typing import Any

from effects import Log
from inventory import FLAVORS, IMAGES, NETWORKS, PEOPLE, REGISTERED, SERVICES, SUBNETS, VOLUME_TYPES, Person
from servers import Handler, serve

Row = dict[str, Any]


class Cloud:
    """What can be made and removed in the cloud, and the faults that a test has ordered."""

    def __init__(self, log: Log) -> None:
        self.log = log
        # Requests whose path this matches wait, and so many do.
        self.held = ""
        self.waiting = 0
        self.change = threading.Condition()
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self.credentials: dict[str, Row] = {}
        self.server_groups: dict[str, Row] = {}
        self.load_balancers: dict[str, Row] = {}
        self.floating_ips: dict[str, Row] = {}
        # Of the next thing that is made.
        self.number = 1
        # (regular expression of the path, status)
        self.faults: list[tuple[str, int]] = []
        # Where services of the catalog are that are none of these doubles.
        self.elsewhere: dict[str, str] = {}

    def state(self) -> Any:
        """All that a later `restore` brings back."""
        return copy.deepcopy(
            (self.credentials, self.server_groups, self.load_balancers, self.floating_ips, self.number)
        )

    def restore(self, state: Any) -> None:
        """As it was at `state`, without faults."""
        self.reset()
        (self.credentials, self.server_groups, self.load_balancers, self.floating_ips, self.number) = copy.deepcopy(
            state
        )

    def hold(self, pattern: str) -> None:
        """Has requests wait before anything comes of them, from now on those whose path matches; an empty pattern lets all
        go, those of clients too that are gone by then."""
        with self.change:
            self.held = pattern
            self.change.notify_all()

    def wait(self, path: str) -> None:
        """Waits as long as this path is held."""
        with self.change:
            while self.held and re.search(self.held, path):
                self.waiting += 1
                self.change.wait()
                self.waiting -= 1

    def new_id(self, kind: str) -> str:
        """The id of something new."""
        number, self.number = self.number, self.number + 1
        return f"{kind}-{number:04d}"


class Api(Handler):
    """The services, each below a path of its own."""

    cloud: Cloud

    def handle_request(self, path: str, query: dict[str, str], body: Any) -> None:
        self.query, self.body = query, body
        self.caller = PEOPLE.get(self.headers.get("X-Auth-Token") or "")
        caller = self.caller.name if self.caller else None
        cloud = self.cloud
        cloud.wait(path)
        cloud.log.add("cloud", method=self.command, path=path, query=query, body=body, caller=caller)
        with cloud.log.lock:
            status = next((status for pattern, status in cloud.faults if re.search(pattern, path)), None)
            if status is not None:
                return self.fail(status, "as told")
            for pattern, methods, answer in ROUTES:
                found = re.fullmatch(pattern, path)
                if found and self.command in methods:
                    return answer(self, *found.groups())
        self.fail(404, f"no {path}")

    def fail(self, status: int, message: str) -> None:
        """Replies with an error as Keystone and others write it."""
        self.reply(status, {"error": {"code": status, "message": message, "title": "error"}})

    @property
    def base(self) -> str:
        """The cloud's URL."""
        return f"http://{self.headers['Host']}"

    def wanted(self, name: str, value: Any) -> bool:
        """Whether the query asks for things whose `name` is `value`, or for any."""
        return self.query.get(name, str(value)).lower() == str(value).lower()

    # Keystone

    def identity(self, *_: str) -> None:
        version = {
            "id": "v3.14",
            "status": "stable",
            "updated": "2020-04-07T00:00:00Z",
            "media-types": [],
            "links": [{"rel": "self", "href": f"{self.base}/identity/v3/"}],
        }
        if self.path.rstrip("/").endswith("v3"):
            self.reply(200, {"version": version})
        else:
            self.reply(300, {"versions": {"values": [version]}})

    def login(self) -> None:
        identity = self.body["auth"]["identity"]
        if "token" in identity["methods"]:
            token = identity["token"]["id"]
        else:
            token = f"tok-{identity['password']['user'].get('name')}"
        if token not in PEOPLE:
            return self.fail(401, "no")
        self.reply(201, self.token(PEOPLE[token]), {"X-Subject-Token": token})

    def validate(self) -> None:
        token = self.headers.get("X-Subject-Token") or ""
        if token not in PEOPLE:
            return self.fail(404, "no such token")
        self.reply(200, self.token(PEOPLE[token]), {"X-Subject-Token": token})

    def catalog(self) -> None:
        token = self.headers.get("X-Auth-Token") or ""
        if token not in PEOPLE:
            return self.fail(401, "no")
        self.reply(200, {"catalog": self.token(PEOPLE[token])["token"]["catalog"], "links": {}})

    def token(self, person: Person) -> Row:
        domain = {"id": "default", "name": "Default"}
        catalog = [
            {
                "type": service,
                "name": service,
                "id": service,
                "endpoints": [
                    {
                        "id": service + interface,
                        "interface": interface,
                        "region": "RegionOne",
                        "region_id": "RegionOne",
                        "url": self.cloud.elsewhere.get(service) or self.base + path,
                    }
                    for interface in ("public", "internal", "admin")
                ],
            }
            for service, path in SERVICES.items()
        ]
        return {
            "token": {
                "methods": ["password"],
                "issued_at": "2026-01-01T00:00:00.000000Z",
                "expires_at": "2099-01-01T00:00:00.000000Z",
                "is_domain": False,
                "audit_ids": ["x"],
                "user": {"id": person.id, "name": person.name, "domain": domain, "password_expires_at": None},
                "project": {"id": person.project, "name": "p", "domain": domain},
                "roles": [{"id": role, "name": role} for role in person.roles],
                "catalog": catalog,
            }
        }

    def regions(self) -> None:
        region: Row = {"id": "RegionOne", "description": "", "parent_region_id": None, "links": {}}
        self.reply(200, {"regions": [region], "links": {}})

    def services(self) -> None:
        kind = self.query.get("type")
        found = [{"id": kind, "type": kind, "name": kind, "enabled": True, "links": {}}] if kind in REGISTERED else []
        self.reply(200, {"services": found, "links": {}})

    def credentials(self, user: str) -> None:
        mine = [one for one in self.cloud.credentials.values() if one["user_id"] == user]
        if self.command == "GET":
            found = [one for one in mine if self.wanted("name", one["name"])]
            return self.reply(200, {"application_credentials": found, "links": {}})
        asked = self.body["application_credential"]
        if any(one["name"] == asked["name"] for one in mine):
            return self.fail(409, "duplicate")
        made = {
            "id": self.cloud.new_id("cred"),
            "name": asked["name"],
            "description": asked.get("description"),
            "user_id": user,
            "project_id": self.caller.project if self.caller else None,
            "roles": [],
            "unrestricted": asked.get("unrestricted", False),
            "expires_at": None,
            "links": {},
        }
        self.cloud.credentials[made["id"]] = made
        self.reply(201, {"application_credential": {**made, "secret": f"secret-of-{made['id']}"}})

    def credential(self, _user: str, ident: str) -> None:
        if ident not in self.cloud.credentials:
            return self.fail(404, "no credential")
        if self.command == "DELETE":
            del self.cloud.credentials[ident]
            return self.reply(204)
        self.reply(200, {"application_credential": self.cloud.credentials[ident]})

    # Glance, Nova

    def image_versions(self, *_: str) -> None:
        links = [{"rel": "self", "href": f"{self.base}/image/v2/"}]
        self.reply(300, {"versions": [{"id": "v2.15", "status": "CURRENT", "links": links}]})

    def image(self, ident: str) -> None:
        found = [one for one in IMAGES if one["id"] == ident]
        if not found:
            return self.fail(404, "no image")
        self.reply(200, found[0])

    def images(self) -> None:
        found = [one for one in IMAGES if self.wanted("name", one["name"])]
        if self.query.get("os_hidden") == "True":
            found = []
        self.reply(200, {"images": found, "first": "/v2/images", "schema": ""})

    def compute_version(self, *_: str) -> None:
        version = {
            "id": "v2.1",
            "status": "CURRENT",
            "version": "2.96",
            "min_version": "2.1",
            "updated": "2013-07-23T11:33:21Z",
            "media-types": [],
            "links": [{"rel": "self", "href": f"{self.base}/compute/v2.1/"}],
        }
        self.reply(200, {"version": version})

    def flavors(self) -> None:
        ram = int(self.query.get("minRam") or 0)
        # One page has them all.
        found = [] if "marker" in self.query else [one for one in FLAVORS if one["ram"] >= ram]
        self.reply(200, {"flavors": found})

    def keypair(self, name: str) -> None:
        keypair = {
            "name": name,
            "type": "ssh",
            "public_key": "ssh-ed25519 AAAA",
            "id": 1,
            "fingerprint": "00",
            "user_id": "1",
            "deleted": False,
            "created_at": None,
            "updated_at": None,
            "deleted_at": None,
        }
        self.reply(200, {"keypair": keypair})

    def server_groups(self) -> None:
        groups = self.cloud.server_groups
        if self.command == "GET":
            return self.reply(200, {"server_groups": list(groups.values())})
        made = {
            **self.body["server_group"],
            "id": self.cloud.new_id("sg"),
            "members": [],
            "metadata": {},
            "project_id": self.caller.project if self.caller else None,
            "user_id": self.caller.id if self.caller else None,
        }
        groups[made["id"]] = made
        self.reply(200, {"server_group": made})

    def server_group(self, ident: str) -> None:
        self.reply(204 if self.cloud.server_groups.pop(ident, None) else 404)

    # Neutron

    def network_versions(self, *_: str) -> None:
        links = [{"rel": "self", "href": f"{self.base}/network/v2.0/"}]
        self.reply(200, {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]})

    def networks(self) -> None:
        names = ("router:external", "name", "id")
        self.reply(200, {"networks": [net for net in NETWORKS if all(self.wanted(name, net[name]) for name in names)]})

    def subnets(self) -> None:
        found = [net for net in SUBNETS if all(self.wanted(name, net[name]) for name in ("name", "id"))]
        self.reply(200, {"subnets": found})

    def floating_ips(self) -> None:
        found = [one for one in self.cloud.floating_ips.values() if self.wanted("port_id", one["port_id"])]
        self.reply(200, {"floatingips": found})

    def floating_ip(self, ident: str) -> None:
        self.reply(204 if self.cloud.floating_ips.pop(ident, None) else 404)

    # Cinder, Octavia

    def volume_versions(self, *_: str) -> None:
        version = {
            "id": "v3.0",
            "status": "CURRENT",
            "version": "3.71",
            "min_version": "3.0",
            "updated": "x",
            "media-types": [],
            "links": [{"rel": "self", "href": f"{self.base}/volume/v3/"}],
        }
        self.reply(300, {"versions": [version]})

    def volume_types(self) -> None:
        self.reply(200, {"volume_types": [] if "marker" in self.query else VOLUME_TYPES})

    def default_volume_type(self) -> None:
        self.reply(200, {"volume_type": VOLUME_TYPES[-1]})

    def load_balancer_versions(self, *_: str) -> None:
        links = [{"rel": "self", "href": f"{self.base}/load-balancer/v2"}]
        version = {"id": "v2.27", "status": "CURRENT", "updated": "2023-01-01T00:00:00Z", "links": links}
        self.reply(200, {"versions": [version]})

    def load_balancers(self) -> None:
        self.reply(200, {"loadbalancers": list(self.cloud.load_balancers.values())})

    def load_balancer(self, ident: str) -> None:
        self.cloud.load_balancers.pop(ident, None)
        self.reply(204)


Route = tuple[str, tuple[str, ...], Callable[..., None]]
READ, CREATE, DELETE = ("GET", "HEAD"), ("POST",), ("DELETE",)
USER = r"/identity/v3/users/([^/]+)"
BALANCER = r"/load-balancer(?:/v2|/v2\.0)/lbaas/loadbalancers"
ROUTES: list[Route] = [
    (r"/identity(/v3)?", READ, Api.identity),
    (r"/identity/v3/auth/tokens", CREATE, Api.login),
    (r"/identity/v3/auth/tokens", READ, Api.validate),
    (r"/identity/v3/auth/catalog", READ, Api.catalog),
    (r"/identity/v3/regions", READ, Api.regions),
    (r"/identity/v3/services", READ, Api.services),
    (USER + r"/application_credentials", READ + CREATE, Api.credentials),
    (USER + r"/application_credentials/([^/]+)", READ + DELETE, Api.credential),
    (r"/image(/v2|/versions)?", READ, Api.image_versions),
    (r"/image/v2/images/([^/]+)", READ, Api.image),
    (r"/image/v2/images", READ, Api.images),
    (r"/compute(/v2\.1)?", READ, Api.compute_version),
    (r"/compute/v2\.1/flavors/detail", READ, Api.flavors),
    (r"/compute/v2\.1/os-keypairs/([^/]+)", READ, Api.keypair),
    (r"/compute/v2\.1/os-server-groups", READ + CREATE, Api.server_groups),
    (r"/compute/v2\.1/os-server-groups/([^/]+)", DELETE, Api.server_group),
    (r"/network(/v2\.0)?", READ, Api.network_versions),
    (r"/network/v2\.0/networks", READ, Api.networks),
    (r"/network/v2\.0/subnets", READ, Api.subnets),
    (r"/network/v2\.0/floatingips", READ, Api.floating_ips),
    (r"/network/v2\.0/floatingips/([^/]+)", DELETE, Api.floating_ip),
    (r"/volume(/v3)?", READ, Api.volume_versions),
    (r"/volume/v3/types", READ, Api.volume_types),
    (r"/volume/v3/types/default", READ, Api.default_volume_type),
    (r"/load-balancer(/v2|/v2\.0)?", READ, Api.load_balancer_versions),
    (BALANCER, READ, Api.load_balancers),
    (BALANCER + r"/([^/]+)", DELETE, Api.load_balancer),
]


def start(cloud: Cloud) -> str:
    """Serves a cloud; returns its URL."""
    return serve(type("CloudApi", (Api,), {"cloud": cloud}))
