"""What an attempt that was interrupted has left behind, and keeps a driver from succeeding with the next one.

Only things that the operation itself can have made: the conductor says which attempt it is, and the first removes nothing
that anybody could still be at work with.
"""

import logging
from collections.abc import Callable
from typing import Any

from magnum_plugin_host import helm_releases
from magnum_plugin_host.channel import Message
from magnum_plugin_host.credentials import Credentials, is_taken
from magnum_plugin_host.errors import chain

LOG = logging.getLogger(__name__)


class Repairs:
    """Those of one call."""

    def __init__(self, message: Message, clients: Callable[[], Any], user_id: str | None, cluster: Any) -> None:
        self._attempt: int = message.get("attempt", 1)
        self._is_repeated_create = message["call"] == "create_cluster" and self._attempt > 1
        self._clients, self._user_id = clients, user_id
        self._cluster = cluster
        self._replaced: list[str] = []

    def before(self) -> None:
        """Notes what the call makes again. Credentials of magnum-capi-helm have names that end at random."""
        if self._is_repeated_create:
            try:
                self._replaced = self._credentials().beginning_with(f"magnum-{self._cluster.uuid}-")
            except Exception as failure:
                LOG.warning("what an earlier attempt has left behind cannot be read: %s", failure)

    def after_success(self) -> None:
        """Removes what the call has made again."""
        if self._replaced:
            try:
                self._credentials().remove(self._replaced)
            except Exception as failure:
                LOG.warning("what an earlier attempt has left behind cannot be removed: %s", failure)

    def after_failure(self, error: BaseException) -> bool:
        """Whether something was repaired, so that the call may succeed if it is made again."""
        try:
            for link in chain(error):
                if self._is_repeated_create and is_taken(link):
                    return self._free_name()
                if release := helm_releases.locked_by(link):
                    return helm_releases.unlock(release, self._attempt)
        except Exception as failure:
            LOG.warning("what an earlier attempt has left behind cannot be removed: %s", failure)
        return False

    def _credentials(self) -> Credentials:
        return Credentials(self._clients(), self._user_id)

    def _free_name(self) -> bool:
        """Removes the credential that has the cluster's uuid for a name. Keystone shows a secret once, so it is of no more
        use."""
        credentials = self._credentials()
        taken = credentials.called(self._cluster.uuid)
        credentials.remove(taken)
        return bool(taken)
