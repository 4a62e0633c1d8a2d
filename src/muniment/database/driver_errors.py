"""What does a driver's error mean: trouble of the database, or a bug of ours?"""

import sqlite3
from collections.abc import Mapping
from typing import Literal

from sqlalchemy.exc import DBAPIError, OperationalError

Trouble = Literal["busy", "long", "gone", "full", "read-only", "broken"]

_SQLITE: dict[int, Trouble] = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_INTERRUPT: "long",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_IOERR: "broken",
    sqlite3.SQLITE_CANTOPEN: "gone",
}
# Appendix A of PostgreSQL's manual. A key of two characters stands for a whole class of codes.
_POSTGRESQL: dict[str, Trouble] = {
    "40P01": "busy",
    "55P03": "busy",
    "57014": "long",
    "53100": "full",
    "25006": "read-only",
    "58030": "broken",
    "53300": "gone",
    "57P01": "gone",
    "57P02": "gone",
    "57P03": "gone",
    "08": "gone",
}


def is_undone(error: BaseException) -> bool:
    """Whether a transaction that ended so has certainly changed nothing: not if the connection is lost or the disk
    fails.
    """
    cause = error if isinstance(error, DBAPIError) else error.__cause__
    if isinstance(cause, DBAPIError):
        return trouble(cause) not in ("gone", "broken")
    return isinstance(error, Exception)


def is_damaged(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def trouble(error: DBAPIError) -> Trouble | None:
    """None for a bug, and for a damaged file (``is_damaged``)."""
    if isinstance(error.orig, sqlite3.Error):
        return _SQLITE.get(error.orig.sqlite_errorcode & 0xFF)  # the low byte is the primary code
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return _POSTGRESQL.get(state) or _POSTGRESQL.get(state[:2])
    return "gone" if isinstance(error, OperationalError) else None


SENTENCES: Mapping[Trouble, str] = {
    "busy": "The database is busy with other writes.",
    "long": "This takes the database longer than one request may take.",
    "gone": "The database cannot be reached at the moment.",
    "full": "The database cannot be written: its disk is full.",
    "read-only": "The database cannot be written: it is read-only.",
    "broken": "The database cannot be written: its disk reports an error.",
}
