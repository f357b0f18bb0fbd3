"""What Magnum's library imports and no driver needs: 25 MiB of a host.

SQLAlchemy, since a host has no database, and what pecan, the framework of Magnum's API, would write pages with. pecan goes
without what is not there when it is imported, and a class of contexts asks for nothing but a decorator of the module that
starts transactions. A driver that imports one of them itself gets it, as everywhere.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

FOR_PAGES = ("jinja2", "pygments", "sqlalchemy")
TRANSACTIONS = "oslo_db.sqlalchemy.enginefacade"


def leave_out() -> None:
    """Before the first import of the library."""
    modules: dict[str, Any] = sys.modules
    absent = [name for name in FOR_PAGES if name not in modules]
    modules.update(dict.fromkeys(absent))  # None: an import says that there is no such module
    try:
        importlib.import_module("pecan")
    except ImportError:
        pass  # a library without it; who needs it says so
    finally:
        for name in absent:
            del modules[name]
    modules.setdefault(TRANSACTIONS, _Transactions(TRANSACTIONS))


class _Transactions(ModuleType):
    """As much of the module as a class of contexts needs. Who asks for more gets the module."""

    @staticmethod
    def transaction_context_provider(cls: type) -> type:
        """Contexts here have no transactions."""
        return cls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # asked for by the import system
        if sys.modules.get(TRANSACTIONS) is self:
            del sys.modules[TRANSACTIONS]
        return getattr(importlib.import_module(TRANSACTIONS), name)
