"""What does a filter of a list look for? What a folded text begins with; ``*`` stands for any text.

The conditions hold parameters, so that a statement is compiled once; ``NamePattern.parameters`` fills them in.
"""

import re

import msgspec
import sqlalchemy as sa

from muniment.ground.naming import fold_name

_LAST = "\U0010ffff"
"""It stands behind all characters, and no name holds it."""
_ESCAPE = "/"


class NamePattern(msgspec.Struct, frozen=True):
    """``begins`` is empty if no index can answer; without further ``pieces`` an index answers alone."""

    begins: str
    pieces: tuple[str, ...]

    def fits(self, folded: str) -> bool:
        """Whether a whole name meets the pattern."""
        place = len(self.begins)
        if not folded.startswith(self.begins):
            return False
        for piece in self.pieces:
            place = folded.find(piece, place) + len(piece)
            if place < len(piece):
                return False
        return True

    def parameters(self, length: int) -> dict[str, str]:
        """``length`` is that of the cut columns."""
        like = "%".join(map(_escape, (self.begins, *self.pieces))) + "%"
        cut = self.begins[:length]
        return {
            "begins": self.begins,
            "ends": self.begins + _LAST,
            "cut_begins": cut,
            "cut_ends": cut + _LAST,
            "like": like,
        }


def read(text: str) -> NamePattern | None:
    """None if it finds everything."""
    begins, *pieces = fold_name(text.strip()).split("*")
    wanted = tuple(piece for piece in pieces if piece)
    return NamePattern(begins, wanted) if begins or wanted else None


def in_range(folded: sa.ColumnElement[str], *, cut: bool = False, begun: bool = False) -> sa.ColumnElement[bool]:
    """What an index can answer, of whole texts or of those that are cut to a length. If a list that is in this order
    is ``begun``, the caller's condition says where it goes on: of two lower bounds, SQLite takes the first.
    """
    begins, ends = ("cut_begins", "cut_ends") if cut else ("begins", "ends")
    is_before_end = folded < sa.bindparam(ends, type_=sa.String)
    return is_before_end if begun else sa.and_(folded >= sa.bindparam(begins, type_=sa.String), is_before_end)


def is_like(folded: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    return folded.like(sa.bindparam("like", type_=sa.String), escape=_ESCAPE)


def _escape(text: str) -> str:
    return re.sub(f"[%_{_ESCAPE}]", lambda found: _ESCAPE + found[0], text)
