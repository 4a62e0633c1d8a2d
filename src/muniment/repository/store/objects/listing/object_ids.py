"""Which id does a new object get, and which kind of object does an id show?

An id has 16 hexadecimal digits: two for the kind, the others the object's counter, scrambled (``keys.scramble``), so
that ids reveal neither count nor order. In valid ids of earlier releases, the others are the repository's number and
the counter; no new id equals one of them.

Source: docs/interface.md, ours 2.
"""

import re

from sqlalchemy.engine import Connection

from muniment.repository import keys
from muniment.repository.store.objects.types.object_types import Catalogue

_ID = re.compile(r"[0-9a-f]{16}")
_DIGITS = {"cabinet": "0c", "folder": "0b", "document": "09", "object": "08"}
_DIGITS_OF_KIND = {
    "document": ("09",),
    "folder": ("0b", "0c"),
    "cabinet": ("0c",),
    "object": ("08", "09", "0b", "0c"),
}
"""Sub-kinds count, too."""


def make(cx: Connection, catalogue: Catalogue, type_name: str, counter: int) -> str:
    return _digits(catalogue, type_name) + keys.scramble(cx, keys.OBJECTS, counter)


def fits(object_id: str, catalogue: Catalogue, type_name: str) -> bool:
    """Judge an id by its digits.

    Raises UnknownType.
    """
    return _ID.fullmatch(object_id) is not None and object_id.startswith(_digits(catalogue, type_name))


def may_be_of(object_id: str, kind: str) -> bool:
    """Judge an id in lower case. A cabinet is also a folder, and all kinds are objects."""
    return _ID.fullmatch(object_id) is not None and object_id.startswith(_DIGITS_OF_KIND[kind])


def kind_of(object_id: str) -> str:
    return next((kind for kind, digits in _DIGITS.items() if object_id.startswith(digits)), "object")


def holds_objects(object_id: str) -> bool:
    return object_id.startswith(_DIGITS_OF_KIND["folder"])


def _digits(catalogue: Catalogue, type_name: str) -> str:
    kind = next((kind for kind in ("cabinet", "folder", "document") if catalogue.is_a(type_name, kind)), "object")
    return _DIGITS[kind]
