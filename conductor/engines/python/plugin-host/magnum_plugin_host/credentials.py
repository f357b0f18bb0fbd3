"""Application credentials that earlier attempts of a create have made in Keystone, by their names."""

import logging
from typing import Any
from urllib.parse import quote, urlsplit

LOG = logging.getLogger(__name__)

CONFLICT = 409


class Credentials:
    """Those of a user."""

    def __init__(self, clients: Any, user_id: str | None) -> None:
        keystone = clients.keystone()
        self._session = keystone.session
        self._url = f"{keystone.auth_url}/users/{quote(user_id or '')}/application_credentials"

    def called(self, name: str) -> list[str]:
        """The ids of those with this name: one at most."""
        found = self._session.get(self._url, params={"name": name}).json()["application_credentials"]
        return [one["id"] for one in found if one["name"] == name]

    def beginning_with(self, prefix: str) -> list[str]:
        """The ids of those whose names begin so."""
        found = self._session.get(self._url).json()["application_credentials"]
        return [one["id"] for one in found if one["name"].startswith(prefix)]

    def remove(self, ids: list[str]) -> None:
        """Removes them."""
        for credential in ids:
            LOG.info("removing the application credential that an earlier attempt has made")
            self._session.delete(f"{self._url}/{quote(credential)}")


def is_taken(error: BaseException) -> bool:
    """Whether a credential could not be made because there is one of this name."""
    response = getattr(error, "response", None)
    status = getattr(error, "http_status", None) or getattr(response, "status_code", None)
    url = getattr(error, "url", None) or getattr(response, "url", None)
    return status == CONFLICT and isinstance(url, str) and _is_of_credentials(url)


def _is_of_credentials(url: str) -> bool:
    return urlsplit(url).path.rstrip("/").endswith("/application_credentials")
