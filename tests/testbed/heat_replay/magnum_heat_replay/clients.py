"""The doubles in the place of what the driver makes its clients with."""

import json
import types
from typing import Any

from magnum.common import clients

from magnum_heat_replay import wording, world
from magnum_heat_replay.client import Thing
from magnum_heat_replay.heat import Heat
from magnum_heat_replay.services import Barbican, Cinder, Keystone, Neutron, Nova, Octavia


class Clients(clients.OpenStackClients):
    """Magnum's, with doubles. What it makes of the catalog's answers is its own."""

    def url_for(self, **wanted: Any) -> str:
        world.current().note("catalog.get_endpoint", self._by(), wording.clean(wanted))
        return str(world.current().cloud["endpoints"][wanted["service_type"]])

    def keystone(self) -> Keystone:
        return Keystone(self._by())

    def heat(self) -> Heat:
        return Heat(self._by())

    def neutron(self) -> Neutron:
        return Neutron(self._by())

    def nova(self) -> Nova:
        return Nova(self._by())

    def cinder(self) -> Cinder:
        return Cinder(self._by())

    def octavia(self) -> Octavia:
        return Octavia(self._by())

    def barbican(self) -> Barbican:
        return Barbican(self._by())

    def _by(self) -> str:
        if self.context.trust_id:
            return f"trustee(user_name={self.context.user_name}, trust_id={self.context.trust_id})"
        return "admin" if self.context.is_admin else "user"


def is_octavia_enabled() -> bool:
    """What `magnum.common.keystone` finds out as the service user."""
    Keystone("admin").note("services.list", type="load-balancer")
    return bool(world.current().cloud["octavia"])


class Requests:
    """The part of `requests` that asks the discovery service for an address, or how large a cluster shall be."""

    codes = types.SimpleNamespace(ok=200)

    @staticmethod
    def get(url: str, timeout: int) -> Thing:
        now = world.current()
        now.note("http.get", None, {"url": url, "timeout": timeout})
        if "_config" in url:
            size = {"node": {"value": str(now.cloud["discovery_size"])}}
            return Thing(text=json.dumps(size), status_code=200)
        status = now.cloud.get("discovery_status", 200)
        return Thing(text=now.given["discovery service answers"], status_code=status)
