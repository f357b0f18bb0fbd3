"""Doubles of the clients of the other services, as far as the driver uses them."""

from typing import Any

from novaclient import exceptions as nova_errors
from osc_lib import exceptions as client_errors

from magnum_heat_replay import world
from magnum_heat_replay.client import Client, Thing


class Neutron(Client):
    """Networks, subnets and floating IPs."""

    service = "neutron"

    def list_networks(self, **wanted: Any) -> dict[str, Any]:
        self.note("list_networks", **wanted)
        return {"networks": _matching(world.current().given["networks"], wanted)}

    def list_subnets(self, **wanted: Any) -> dict[str, Any]:
        self.note("list_subnets", **wanted)
        return {"subnets": _matching(world.current().given["subnets"], wanted)}

    def list_floatingips(self, **wanted: Any) -> dict[str, Any]:
        self.note("list_floatingips", **wanted)
        found = world.current().cloud.get("fips", [])
        return {"floatingips": [one for one in found if one["port_id"] == wanted["port_id"]]}

    def delete_floatingip(self, floatingip: str) -> None:
        self.note("delete_floatingip", id=floatingip)


def _matching(things: list[dict[str, Any]], wanted: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in things if all(one.get(name) == value for name, value in wanted.items())]


class Nova(Client):
    """Key pairs."""

    service = "nova"

    @property
    def keypairs(self) -> "Nova":
        return self

    def get(self, name: str | None) -> Thing:
        self.note("keypairs.get", name=name)
        if name == "gone":
            raise nova_errors.NotFound(404)
        return Thing(public_key=world.current().given["key pairs"]["kp"])


class Cinder(Client):
    """Volume types."""

    service = "cinder"

    @property
    def volume_types(self) -> "Cinder":
        return self

    def list(self) -> list[Thing]:
        self.note("volume_types.list")
        return [Thing(name=name) for name in world.current().given["volume types"]]


class Octavia(Client):
    """Load balancers. One that is deleted is gone at once, unless the world has them stuck."""

    service = "octavia"

    def load_balancer_list(self) -> dict[str, Any]:
        self.note("load_balancer_list")
        deleted = world.current().deleted_load_balancers
        return {"loadbalancers": [one for one in self._all() if one["id"] not in deleted]}

    def load_balancer_show(self, lb: str) -> dict[str, Any]:
        self.note("load_balancer_show", id=lb)
        for one in self._all():
            if one["id"] == lb:
                return one
        raise client_errors.NotFound(404)

    def load_balancer_delete(self, lb: str, **arguments: Any) -> None:
        self.note("load_balancer_delete", **arguments, id=lb)
        if not world.current().cloud.get("lb_stuck"):
            world.current().deleted_load_balancers.add(lb)

    @staticmethod
    def _all() -> list[dict[str, Any]]:
        return list(world.current().cloud.get("lbs", []))


class Barbican(Client):
    """Any call of any member; what it answers has every attribute, too."""

    service = "barbican"

    def __init__(self, by: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(by)
        self._path = path

    def __getattr__(self, name: str) -> "Barbican":
        return Barbican(self._by, (*self._path, name))

    def __call__(self, *positional: Any, **arguments: Any) -> "Barbican":
        if positional:
            arguments["positional"] = positional
        self.note(".".join(self._path), **arguments)
        return Barbican(self._by, ("<answer>",))


class Keystone(Client):
    """Regions, and users and trusts of clusters."""

    service = "keystone"

    @property
    def auth_url(self) -> str:
        return str(world.current().cloud["endpoints"]["identity"])

    @property
    def trustee_domain_id(self) -> str:
        # The database layer of Magnum's own conductor asks this, too: the recordings leave that out.
        if self._by != "admin":
            self.note("trustee_domain_id")
        return str(world.current().given["trustee domain"])

    def get_validate_region_name(self, region_name: str) -> str:
        self.note("get_validate_region_name", region_name=region_name)
        return region_name

    def delete_trust(self, context: Any, cluster: Any) -> None:
        self.note("delete_trust", trust_id=cluster.trust_id)

    def delete_trustee(self, trustee_id: str) -> None:
        self.note("delete_trustee", user_id=trustee_id)
