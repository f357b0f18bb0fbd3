"""The double of Heat's client: names of methods and of their arguments are those of the real one."""

import copy
from typing import Any

from heatclient import exc as heat_errors
from magnum.drivers.k8s_fedora_coreos_v1 import driver

from magnum_heat_replay import wording, world
from magnum_heat_replay.client import Client, Thing

TEMPLATE = driver.Driver().get_template_definition().template_path
"""The driver's top template: a parsed one does not tell where it is from."""


class Heat(Client):
    """Stacks, and their resources."""

    service = "heat"

    @property
    def stacks(self) -> "Stacks":
        return Stacks(self._by)

    @property
    def resources(self) -> "Resources":
        return Resources(self._by)


class Stacks(Client):
    """`heat.stacks`."""

    service = "heat.stacks"

    def create(self, **arguments: Any) -> dict[str, Any]:
        self.note("create", **wording.stack(arguments, TEMPLATE))
        self._fail()
        return {"stack": {"id": world.current().given["new stack id"]}}

    def update(self, stack_id: str | None, **arguments: Any) -> None:
        self.note("update", **wording.stack(arguments, TEMPLATE), stack_id=stack_id)
        self._fail()

    def delete(self, stack_id: str | None) -> None:
        self.note("delete", stack_id=stack_id)
        self._fail()

    def get(self, stack_id: str | None, resolve_outputs: bool = True) -> Thing:
        self.note("get", stack_id=stack_id, **({} if resolve_outputs else {"resolve_outputs": False}))
        found = copy.deepcopy(world.current().given["stacks"].get(stack_id))
        if found is None:
            raise heat_errors.HTTPNotFound()
        if not resolve_outputs:
            del found["outputs"]
        return Thing(**found)

    @staticmethod
    def _fail() -> None:
        problem = world.current().cloud.get("heat_error")
        if problem:
            raise getattr(heat_errors, problem)("recorded failure")


class Resources(Client):
    """`heat.resources`."""

    service = "heat.resources"

    def get(self, stack_id: str | None, resource_name: str) -> Thing:
        self.note("get", stack_id=stack_id, resource_name=resource_name)
        return Thing(attributes=world.current().given["resources of the stack"][resource_name])

    def list(self, stack_id: str | None, **arguments: Any) -> list[Thing]:
        self.note("list", stack_id=stack_id, **arguments)
        found = world.current().cloud.get("stack_lbs", [])
        return [Thing(physical_resource_id=one) for one in found]
