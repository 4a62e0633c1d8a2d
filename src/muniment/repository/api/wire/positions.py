"""How is a place in the change log told to a caller, and read when they send it back?

A position counts every change, also of objects that the caller may not see: so it goes out sealed. Nobody can compare
or order two, not even of the same place.
"""

import re
import struct

from muniment.ground.refusals import Malformed
from muniment.repository.keys import BadSeal, Seal
from muniment.repository.refusals import NotPermitted
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.permissions.principals import Principals

HEADER = "Muniment-Position"
"""An answer has the position of its change, or of the index. In a request, ``plain`` asks for a plain position."""

_PURPOSE = "position"
_PLAIN = re.compile(r"[0-9]{1,19}\.[0-9]{1,19}")
_PACKED = struct.Struct(">QQ")


def plain_wanted(header: str | None) -> bool:
    """Raises Malformed for any header but ``plain``."""
    if header not in (None, "plain"):
        raise Malformed(f"As a header of a request {HEADER} can only be 'plain'.")
    return header is not None


def spell(seal: Seal, repository_id: int, principals: Principals, position: Position, *, plain: bool) -> str:
    """Seal, unless an administrator asks for a plain one.

    Raises NotPermitted.
    """
    if not plain:
        return seal.seal(_PACKED.pack(*position), _PURPOSE, str(repository_id))
    if not principals.administrator:
        raise NotPermitted("Only an administrator may ask for a plain position.")
    return str(position)


def read(seal: Seal, repository_id: int, principals: Principals, text: str) -> Position:
    """Read a position, whichever caller and process got it.

    Raises Malformed, and NotPermitted for a plain position from a caller who is no administrator.
    """
    if _PLAIN.fullmatch(text):
        if not principals.administrator:
            raise NotPermitted("Only an administrator may send a plain position in 'wait-for'.")
        return Position.parse(text)
    try:
        return Position(*_PACKED.unpack(seal.open(text, _PURPOSE, str(repository_id))))
    except (BadSeal, struct.error) as error:
        raise Malformed(
            f"The parameter 'wait-for' must be a position of this repository, as {HEADER} states it."
        ) from error
