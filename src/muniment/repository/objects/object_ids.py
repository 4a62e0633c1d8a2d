"""Which id does a new object get, and what kind of object does an id tell of?

An id is 16 hexadecimal digits: two that tell the kind, 14 that stand for the object's counter (``keys.scramble``). So
ids tell neither a count nor an order. Earlier releases made them of the repository's number and the counter itself:
those ids stay what they are, and no new one equals one of them. Source: docs/interface.md, ours 2.
"""

import re

from sqlalchemy.engine import Connection

from muniment.repository import keys
from muniment.repository.objects.object_types import Catalogue

_ID = re.compile(r"[0-9a-f]{16}")
_DIGITS = {"cabinet": "0c", "folder": "0b", "document": "09", "object": "08"}
_MET_BY = {"document": ("09",), "folder": ("0b", "0c"), "cabinet": ("0c",), "object": ("08", "09", "0b", "0c")}


def make(cx: Connection, catalogue: Catalogue, type_name: str, counter: int) -> str:
    """Spell the id of an object of this type whose counter (``seq``) is this one, in lower case."""
    kind = next((kind for kind in ("cabinet", "folder", "document") if catalogue.is_a(type_name, kind)), "object")
    return _DIGITS[kind] + keys.scramble(cx, keys.OBJECTS, counter)


def may_be_of(object_id: str, kind: str) -> bool:
    """Say whether this is an id, in lower case, of an object of this kind: a cabinet is a folder, all are objects."""
    return _ID.fullmatch(object_id) is not None and object_id.startswith(_MET_BY[kind])


def kind_of(object_id: str) -> str:
    """Say what an object is called: cabinet, folder, document or object."""
    return next((kind for kind, digits in _DIGITS.items() if object_id.startswith(digits)), "object")


def holds_objects(object_id: str) -> bool:
    """Say whether the id is that of a folder or cabinet."""
    return object_id.startswith(_MET_BY["folder"])
