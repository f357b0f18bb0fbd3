"""Arguments of calls in the form of the recordings: without random parts, keys, places, and whole templates."""

import hashlib
import json
import os
import pathlib
import re
from typing import Any
from urllib.parse import unquote
from urllib.request import url2pathname

import magnum.drivers

DRIVERS = os.path.realpath(os.path.dirname(magnum.drivers.__file__))

PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----(\\n|\n|%0A).*?-----END \1-----(\\n|\n|%0A)?", re.DOTALL)
NAMES_PLACES = "<names places>"
"""Instead of the digest of a file that is different wherever Magnum lies."""

RANDOM_END = re.compile(r"-[a-z2-7]{12}$")


def clean(value: Any) -> Any:
    """A value that JSON can tell, with keys and certificates by their kinds."""
    if isinstance(value, dict):
        return {name: clean(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [clean(one) for one in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value.decode() if isinstance(value, bytes) else str(value)
    return PEM.sub(lambda found: f"<pem {found[1]}, newline {json.dumps(found[2])}>", text)


def stack(arguments: dict[str, Any], template: str) -> dict[str, Any]:
    """What a stack is made of, or changed to. Its files are told by names and digests."""
    told = dict(arguments)
    if "files" in told:
        told["files"] = _digests(told["files"])
    if "template" in told:
        told["template"] = f"<parsed {file_name(template)}>"
    if "environment_files" in told:
        told["environment_files"] = [file_name(url) for url in told["environment_files"]]
    if "stack_name" in told:
        told["stack_name"] = RANDOM_END.sub("-<12 random>", told["stack_name"])
    return dict(clean(told))


def file_name(url: str) -> str:
    """A file of Magnum's drivers, by its name below their folder."""
    path = url2pathname(unquote(url.split("://", 1)[-1]))
    return str(pathlib.PurePath(os.path.relpath(os.path.realpath(path), DRIVERS)))


def _digests(files: dict[str, str | bytes]) -> dict[str, str]:
    return {file_name(url): _digest(content) for url, content in files.items()}


def _digest(content: str | bytes) -> str:
    text = content if isinstance(content, bytes) else content.encode()
    # A template that includes others names them by where they lie.
    return NAMES_PLACES if DRIVERS.encode() in text else hashlib.sha256(text).hexdigest()
