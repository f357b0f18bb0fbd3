"""What the double of a cloud has from the start: people, images, flavors, networks, volume types."""

from dataclasses import dataclass
from typing import Any

PROJECT = "a" * 32


@dataclass(frozen=True)
class Person:
    """Who a token belongs to."""

    id: str
    name: str
    project: str
    roles: tuple[str, ...]


PEOPLE = {
    "tok-alice": Person("1" * 32, "alice", PROJECT, ("member", "reader")),
    "tok-carol": Person("3" * 32, "carol", PROJECT, ("member", "reader")),
    "tok-magnum": Person("7" * 32, "magnum", "e" * 32, ("admin", "service")),
}
"""People by their token; a login with a password gets the same one."""

NET = "0000000b-2222-4222-8222-222222222222"
EXTERNAL_NET = "0000000a-2222-4222-8222-222222222222"
UBUNTU = "00000001-1111-4111-8111-111111111111"
UBUNTU_NEWER = "00000002-1111-4111-8111-111111111111"


def _image(number: int, name: str, **properties: str) -> dict[str, Any]:
    return {
        "id": f"0000000{number}-1111-4111-8111-111111111111",
        "name": name,
        "status": "active",
        "visibility": "public",
        "tags": [],
        "container_format": "bare",
        "disk_format": "qcow2",
        "min_disk": 0,
        "min_ram": 0,
        "protected": False,
        "size": 1,
        "owner": "d" * 32,
        "checksum": "0" * 32,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "os_hidden": False,
        "file": "/v2/images/x/file",
        "schema": "/v2/schemas/image",
        "self": "/v2/images/x",
        **properties,
    }


IMAGES = [
    _image(1, "ubuntu-kube-1.33", os_distro="ubuntu", kube_version="v1.33.4"),
    _image(2, "ubuntu-kube-1.34", os_distro="ubuntu", kube_version="v1.34.1", hw_disk_bus="scsi"),
    _image(4, "flatcar-kube-1.33", os_distro="flatcar", kube_version="1.33.4"),
    _image(5, "ubuntu-plain", os_distro="ubuntu"),
    _image(3, "fcos", os_distro="fedora-coreos"),
]


def _flavor(number: int, name: str, ram: int, vcpus: int, disk: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "name": name,
        "ram": ram,
        "vcpus": vcpus,
        "disk": disk,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "swap": 0,
        "OS-FLV-DISABLED:disabled": False,
        "rxtx_factor": 1.0,
        "os-flavor-access:is_public": True,
        "links": [],
        "description": None,
        "extra_specs": {},
    }


FLAVORS = [
    _flavor(1, "m1.tiny", 512, 1, 5),
    _flavor(2, "m1.onecpu", 4096, 1, 20),
    _flavor(3, "m1.medium", 4096, 2, 40),
    _flavor(4, "m1.large", 8192, 4, 80),
]

NETWORKS = [
    {
        "id": ident,
        "name": name,
        "router:external": external,
        "status": "ACTIVE",
        "admin_state_up": True,
        "shared": False,
        "subnets": [],
        "project_id": "d" * 32,
        "mtu": 1500,
    }
    for ident, name, external in ((EXTERNAL_NET, "public", True), (NET, "private", False))
]

SUBNETS = [
    {
        "id": "0000000b-3333-4333-8333-333333333333",
        "name": "private-subnet",
        "network_id": NET,
        "cidr": "10.0.0.0/24",
        "ip_version": 4,
    }
]

VOLUME_TYPES = [
    {"id": ident, "name": name, "description": "", "is_public": True, "extra_specs": {}}
    for ident, name in (("t1", "fast_SSD"), ("t2", "slow"))
]
"""The last one is the default."""

SERVICES = {
    "identity": "/identity",
    "image": "/image",
    "compute": "/compute/v2.1",
    "network": "/network",
    "block-storage": "/volume/v3",
    "load-balancer": "/load-balancer",
    "container-infra": "/magnum",
    "sharev2": "/share/v2",
}
"""The catalog: where each service is. Registered with Keystone are all but the last two."""

REGISTERED = set(SERVICES) - {"container-infra", "sharev2"} | {"orchestration"}
