"""The drivers of an environment: what has the entry point `magnum.drivers`, and what can be learned of it."""

import importlib
import time
from dataclasses import dataclass
from importlib import metadata
from typing import Any

GROUP = "magnum.drivers"

OPTIONAL_METHODS = (
    "update_cluster_status",
    "get_monitor",
    "get_scale_manager",
    "pre_delete_cluster",
    "rotate_ca_certificate",
    "rotate_credential",
    "validate_master_resize",
    "validate_master_size",
)
"""Methods that a driver need not have: overriding one hints at a capability."""


@dataclass
class Loaded:
    """A driver's class, or why there is none."""

    entry_point: metadata.EntryPoint
    cls: Any = None
    error: str | None = None
    import_s: float = 0.0


def load(wanted: list[str]) -> dict[str, Loaded]:
    """Imports the entry points of these names, or all; each by itself, so that a broken one harms no other."""
    found = {point.name: point for point in metadata.entry_points(group=GROUP)}
    return {name: _load(found[name]) for name in sorted(found) if not wanted or name in wanted}


def _load(point: metadata.EntryPoint) -> Loaded:
    loaded = Loaded(point)
    start = time.monotonic()
    try:
        loaded.cls = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, too
        loaded.error = describe_error(error)
    loaded.import_s = round(time.monotonic() - start, 3)
    return loaded


def describe_error(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def describe(name: str, loaded: Loaded) -> dict[str, Any]:
    """What is known of a driver. Makes an instance, and constructors may read files and start threads: to be called in
    a process that ends soon."""
    distribution = loaded.entry_point.dist
    about: dict[str, Any] = {
        "name": name,
        "target": loaded.entry_point.value,
        "package": distribution.name if distribution else None,
        "version": distribution.version if distribution else None,
        "import_s": loaded.import_s,
        "error": loaded.error,
    }
    if loaded.cls is not None:
        base = importlib.import_module("magnum.drivers.common.driver").Driver
        about["beta"] = bool(getattr(loaded.cls, "beta", False))
        about["overrides"] = [
            method
            for method in OPTIONAL_METHODS
            if getattr(loaded.cls, method, None) is not getattr(base, method, None)
        ]
        try:
            about |= _probe(loaded.cls())
        except BaseException as error:
            about["error"] = describe_error(error)
    return about


def _probe(driver: Any) -> dict[str, Any]:
    return {
        "provides": [
            {key: str(kind[key]) for key in ("server_type", "os", "coe")} for kind in driver.provides
        ],
        "master_sizes": [count for count in (1, 2, 3) if _accepts(driver.validate_master_size, count)],
        "resizes_masters": _accepts(driver.validate_master_resize, 3),
    }


def _accepts(check: Any, count: int) -> bool:
    try:
        check(count)
    except Exception:
        return False
    return True
