"""What an attempt that was interrupted has left behind, and keeps a driver from succeeding with the next one.

Only things that the operation itself can have made: the conductor says which attempt it is, and the first repairs nothing.
"""

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from magnum_plugin_host.channel import Message
from magnum_plugin_host.errors import chain

LOG = logging.getLogger(__name__)

CONFLICT = 409


def after_failure(
    message: Message, clients: Callable[[], Any], user_id: str | None, cluster: Any, error: BaseException
) -> bool:
    """Whether something was repaired, so that the call may succeed if it is made again."""
    if message["call"] != "create_cluster" or message.get("attempt", 1) < 2:
        return False
    try:
        return _is_taken_credential(error) and _remove_credential(clients(), user_id, cluster)
    except Exception as failure:
        LOG.warning("what an earlier attempt has left behind cannot be removed: %s", failure)
        return False


def _is_taken_credential(error: BaseException) -> bool:
    """An application credential of this name exists. Keystone shows a secret once, so it is of no more use."""
    for link in chain(error):
        response = getattr(link, "response", None)
        status = getattr(link, "http_status", None) or getattr(response, "status_code", None)
        url = getattr(link, "url", None) or getattr(response, "url", None)
        if status == CONFLICT and isinstance(url, str) and _is_of_credentials(url):
            return True
    return False


def _is_of_credentials(url: str) -> bool:
    return urlsplit(url).path.rstrip("/").endswith("/application_credentials")


def _remove_credential(clients: Any, user_id: str | None, cluster: Any) -> bool:
    """Removes the credential that has the cluster's uuid for a name."""
    keystone = clients.keystone()
    url = f"{keystone.auth_url}/users/{quote(user_id or '')}/application_credentials"
    found = keystone.session.get(url, params={"name": cluster.uuid}).json()["application_credentials"]
    ours = [one["id"] for one in found if one["name"] == cluster.uuid]
    for credential in ours:
        LOG.info("removing the application credential that an earlier attempt has made")
        keystone.session.delete(f"{url}/{quote(credential)}")
    return bool(ours)

