"""Stacks of earlier attempts: a double of a Heat driver asks a double of Heat for them, as Magnum's does."""

from types import SimpleNamespace
from typing import Any

from magnum_plugin_host import creations

CLUSTER = {"cluster_uuid": "c-1", "is_cluster_stack": True}
GROUP = {"cluster_uuid": "c-1", "is_cluster_stack": False, "worker_nodegroup_name": "pool"}


class Heat:
    """Has stacks, and answers as its client does. Their parameters are texts."""

    def __init__(self) -> None:
        self.stacks = self
        self.made: list[Any] = []

    def create(self, **wanted: Any) -> dict[str, Any]:
        stack = SimpleNamespace(
            id=f"s-{len(self.made)}",
            stack_name=wanted["stack_name"],
            stack_status="CREATE_IN_PROGRESS",
            parameters={name: str(value) for name, value in wanted["parameters"].items()} | {"OS::stack_id": "s"},
        )
        self.made.append(stack)
        return {"stack": {"id": stack.id}}

    def list(self) -> list[Any]:
        return [SimpleNamespace(id=s.id, stack_name=s.stack_name, stack_status=s.stack_status) for s in self.made]

    def get(self, stack_id: str) -> Any:
        return next(stack for stack in self.made if stack.id == stack_id)


class Clients:
    def __init__(self, heat: Heat) -> None:
        self._heat = heat

    def heat(self) -> Any:
        return self._heat


class HeatDriver:
    """Names its stacks at random."""

    def __init__(self) -> None:
        self.random = 0

    def create(self, heat: Heat, name: str, parameters: dict[str, Any]) -> str:
        return str(self._create_stack("context", Clients(heat), name, parameters=parameters)["stack"]["id"])

    def _create_stack(self, context: Any, clients: Any, name: str, parameters: dict[str, Any]) -> Any:
        self.random += 1
        return clients.heat().stacks.create(stack_name=f"{name}-{self.random:012}", parameters=parameters)


def asked_again(attempt: int, *before: tuple[str, dict[str, Any]], name: str = "a", **parameters: Any) -> tuple[Heat, str]:
    """A stack that is asked for by a later attempt, in a Heat with these."""
    heat, driver = Heat(), HeatDriver()
    for one in before:
        driver.create(heat, *one)
    creations.go_on_with(driver, attempt)
    return heat, driver.create(heat, name, parameters or CLUSTER)


def test_a_repeated_attempt_goes_on_with_the_stack_that_is_there() -> None:
    heat, stack = asked_again(2, ("a", CLUSTER))
    assert (len(heat.made), stack) == (1, "s-0")


def test_a_first_attempt_looks_for_none() -> None:
    heat, stack = asked_again(1, ("a", CLUSTER))
    assert (len(heat.made), stack) == (2, "s-1")


def test_a_repeated_attempt_makes_the_stack_that_is_not_there() -> None:
    others = (("a", CLUSTER | {"cluster_uuid": "c-2"}), ("b", CLUSTER), ("a-pool", GROUP))
    heat, stack = asked_again(2, *others)
    assert (len(heat.made), stack) == (4, "s-3")


def test_a_stack_of_another_node_group_is_another_ones() -> None:
    # The driver names stacks by the first nine letters of a group.
    heat, stack = asked_again(2, ("a-pool", GROUP), name="a-pool", **GROUP | {"worker_nodegroup_name": "pool-2"})
    assert (len(heat.made), stack) == (2, "s-1")
    heat, stack = asked_again(2, ("a-pool", GROUP), name="a-pool", **GROUP)
    assert (len(heat.made), stack) == (1, "s-0")


def test_a_stack_that_is_being_deleted_is_nobodys() -> None:
    heat, driver = Heat(), HeatDriver()
    driver.create(heat, "a", CLUSTER)
    heat.made[0].stack_status = "DELETE_IN_PROGRESS"
    creations.go_on_with(driver, 2)
    assert driver.create(heat, "a", CLUSTER) == "s-1"


def test_stacks_that_say_not_whose_they_are_are_left_alone() -> None:
    heat, stack = asked_again(2, ("a", {"size": 1}), name="a", size=1)
    assert (len(heat.made), stack) == (2, "s-1")


def test_a_driver_that_makes_no_stacks_is_left_alone() -> None:
    driver = SimpleNamespace()
    creations.go_on_with(driver, 2)
    assert not vars(driver)
