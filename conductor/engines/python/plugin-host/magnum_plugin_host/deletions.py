"""Deletions in Heat, whose answers Magnum's conductor understands, and no driver does.

A stack that is gone already has been deleted. Magnum's conductor takes the first one of a cluster for the whole cluster
and leaves the others in Heat; here the driver goes on with them. One that Heat is at work on cannot be deleted now.
"""

import logging
from typing import Any

from magnum_plugin_host import errors

LOG = logging.getLogger(__name__)

DELETIONS = ("delete_cluster", "delete_nodegroup")
"""Calls that delete stacks."""


def go_on_without(driver: Any) -> list[str | None]:
    """Has a driver of Heat go on when a stack that it deletes is gone. Returns those stacks, as it comes upon them."""
    gone: list[str | None] = []
    delete = getattr(driver, "_delete_stack", None)
    if delete is None:
        return gone

    def delete_if_there(context: Any, clients: Any, stack_id: str | None) -> None:
        try:
            delete(context, clients, stack_id)
        except Exception as error:
            if not errors.is_of(error, "heatclient.exc.HTTPNotFound"):
                raise
            LOG.info("the stack %s is gone already", stack_id)
            gone.append(stack_id)

    driver._delete_stack = delete_if_there
    return gone


def is_busy(call: str, error: BaseException) -> bool:
    """Whether the call may succeed when Heat has ended what it is at."""
    return call in DELETIONS and errors.is_of(error, "heatclient.exc.HTTPConflict")
