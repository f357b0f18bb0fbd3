"""Stacks that an earlier attempt of an operation has asked Heat for.

An attempt may end between Heat's answer and the row that names the stack: its conductor is killed, or the answer is lost.
Magnum's driver asks for another stack then, under a name with another random end, and nobody deletes the first one. Here a
repeated attempt goes on with the stack that has the same beginning of a name and the same parameters that say whose it is.
"""

import logging
from collections.abc import Iterator
from typing import Any

LOG = logging.getLogger(__name__)

RANDOM_END = 12
"""Letters that Magnum's driver ends the name of each stack with."""

WHOSE = ("cluster_uuid", "is_cluster_stack", "master_nodegroup_name", "worker_nodegroup_name")
"""Parameters that say which cluster, or which of its node groups, a stack is."""


def go_on_with(driver: Any, attempt: int) -> None:
    """Has a driver of Heat make no second stack in a repeated attempt."""
    make = getattr(driver, "_create_stack", None)
    if make is None or attempt < 2:
        return

    def make_or_go_on(context: Any, clients: Any, *others: Any, **named: Any) -> Any:
        # The same client each time, for as long as `clients` lives.
        stacks = clients.heat().stacks
        create = stacks.create

        def create_or_find(**wanted: Any) -> Any:
            for stack in _made_before(stacks, wanted):
                LOG.info("going on with the stack %s, which an earlier attempt has made", stack.id)
                return {"stack": {"id": stack.id}}
            return create(**wanted)

        stacks.create = create_or_find
        return make(context, clients, *others, **named)

    driver._create_stack = make_or_go_on


def _made_before(stacks: Any, wanted: dict[str, Any]) -> Iterator[Any]:
    beginning = wanted["stack_name"][:-RANDOM_END]
    given = wanted["parameters"]
    whose = {name: str(given[name]) for name in WHOSE if name in given}
    if "cluster_uuid" not in whose:
        return
    for listed in stacks.list():
        name = listed.stack_name
        if name[:-RANDOM_END] != beginning or listed.stack_status.startswith("DELETE_"):
            continue
        stack = stacks.get(listed.id)
        if whose.items() <= stack.parameters.items():
            yield stack
