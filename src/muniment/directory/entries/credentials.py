"""Find and store the data that decides a sign-in: a user's password hash, and the results of earlier sign-ins."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement
from muniment.directory import version_stamps
from muniment.directory.entries.table import (
    CLIENTS,
    ENTRY_FIELDS,
    ENTRY_ID,
    NAMED_IN_PARTITION,
    Entry,
    entry_table,
    partition_key,
    rows,
    select_entries,
    to_entry,
)
from muniment.directory.options import DirectoryNames
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name


class Credentials(msgspec.Struct, frozen=True):
    """A user with the data that decides a sign-in. ``pauses`` writes and reads ``tries`` and ``places``."""

    user: Entry
    password_hash: str | None
    tries: str
    places: str


def find(cx: Connection, names: DirectoryNames, user_id: str) -> Credentials | None:
    """The function runs the same statement for known and unknown users."""
    name, at, partition = user_id.rpartition("@")
    partition = partition_key(names, partition) if at else ""
    return _credentials(cx.execute(_CREDENTIALS_BY_NAME, {"name": fold_name(name), "partition": partition}).first())


def find_of_client(cx: Connection, name: str) -> tuple[Credentials, str] | None:
    """Find an OAuth client by its name. Return it with the directory's generation, or None for an unknown name.

    One statement reads both.
    """
    row = _CLIENT.first(cx, name=fold_name(name), partition=f"@{CLIENTS}")
    return None if row is None else (Credentials(to_entry(row), *row[len(ENTRY_FIELDS) : -1]), row[-1])


def lock(cx: Connection, user_id: int | None, *, shared: bool = False) -> Credentials | None:
    """Lock a user's row until the commit, and return the user.

    If ``user_id`` is None, the first entry's row is locked and None is returned, so that an unknown user takes as long
    as a known one. With ``shared``, other decisions may lock the row with ``shared`` at the same time, but none can
    change it. A client is locked with ``shared``, because many users sign in with the same client at one time.
    """
    credentials = _credentials(
        cx.execute(_CREDENTIALS.with_for_update(of=rows, read=shared), {"entry": user_id}).first()
    )
    return None if user_id is None else credentials


def note_sign_in(cx: Connection, user_id: int | None, tries: str, places: str, now: Instant) -> None:
    """Store the results of a user's sign-ins, as ``pauses`` encodes them.

    It always writes one row. So the time that it takes does not show which users exist. With ``user_id`` None it writes
    to the first entry, where the results mean nothing.
    """
    cx.execute(_NOTE_SIGN_IN, {"entry": user_id, "new_tries": tries, "new_places": places, "now": now})


def _credentials(row: Sequence[Any] | None) -> Credentials | None:
    return None if row is None else Credentials(to_entry(row), *row[len(ENTRY_FIELDS) :])


_SIGN_IN = rows.c["password_hash", "tries", "places"]
_CREDENTIALS_BY_NAME = select_entries(*_SIGN_IN).where(NAMED_IN_PARTITION, rows.c.kind == "user")
_CLIENT = PreparedStatement(_CREDENTIALS_BY_NAME.add_columns(version_stamps.GENERATION))
_ENTRY_OR_FIRST = sa.func.coalesce(ENTRY_ID, sa.select(sa.func.min(entry_table.alias().c.id)).scalar_subquery())
_CREDENTIALS = select_entries(*_SIGN_IN).where(rows.c.id == _ENTRY_OR_FIRST)
_NOW = sa.bindparam("now", type_=sa.BigInteger)
_NOTE = {"tries": sa.bindparam("new_tries"), "places": sa.bindparam("new_places"), "attempted": _NOW}
_NOTE_SIGN_IN = entry_table.update().where(entry_table.c.id == _ENTRY_OR_FIRST).values(_NOTE)
