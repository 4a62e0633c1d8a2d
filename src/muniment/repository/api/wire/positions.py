"""How is a place in the change log told to a caller, and read when they send it back?

A position counts every change, also the changes of objects that the caller may not see. So a position goes out sealed.
Nobody can compare or order two sealed positions, not even two of the same place.
"""

import re
import struct

from muniment.ground.refusals import Malformed
from muniment.repository.keys import BadSeal, Seal
from muniment.repository.refusals import NotPermitted
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.permissions.principals import Principals

HEADER = "Muniment-Position"
"""In an answer, this header holds the position of a write's change, or the position that the index had reached.

In a request, its value ``plain`` asks for a plain position.
"""

_PURPOSE = "position"
_PLAIN = re.compile(r"[0-9]{1,19}\.[0-9]{1,19}")
_PACKED = struct.Struct(">QQ")


def plain_wanted(header: str | None) -> bool:
    """Raises Malformed for any header but ``plain``."""
    if header not in (None, "plain"):
        raise Malformed(f"As a header of a request {HEADER} can only be 'plain'.")
    return header is not None


def spell(seal: Seal, repository_id: int, principals: Principals, position: Position, *, plain: bool) -> str:
    """Write a position for the caller: sealed, or plain for an administrator who asks for that. Raises NotPermitted."""
    if not plain:
        return seal.seal(_PACKED.pack(*position), _PURPOSE, str(repository_id))
    if not principals.administrator:
        raise NotPermitted("Only an administrator may ask for a plain position.")
    return str(position)


def read(seal: Seal, repository_id: int, principals: Principals, text: str) -> Position:
    """Read a position that ``spell`` wrote. It is accepted whichever caller got it, and from any process.

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
