"""A host for the tests of one file, and one for a test that harms it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conductor import Connection, Host


@pytest.fixture(scope="session")
def shared_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("host"))
    host.ready()
    yield host
    host.stop()


@pytest.fixture
def about(shared_host: Host) -> dict[str, Any]:
    return shared_host.about


@pytest.fixture
def connection(shared_host: Host) -> Iterator[Connection]:
    connection = shared_host.connect()
    yield connection
    connection.close()


@pytest.fixture
def own_host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    host.ready()
    yield host
    host.stop()
