"""Find and store what decides a sign-in: a user's password hash, and the results of earlier sign-ins."""

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
    """``pauses`` writes and reads ``tries`` and ``places``."""

    user: Entry
    password_hash: str | None
    tries: str
    places: str


def find(cx: Connection, names: DirectoryNames, user_id: str) -> Credentials | None:
    """Known and unknown users take the same statement."""
    name, at, partition = user_id.rpartition("@")
    partition = partition_key(names, partition) if at else ""
    return _credentials(cx.execute(_CREDENTIALS_BY_NAME, {"name": fold_name(name), "partition": partition}).first())


def find_of_client(cx: Connection, name: str) -> tuple[Credentials, str] | None:
    """The directory's generation comes from the same statement."""
    row = _CLIENT.first(cx, name=fold_name(name), partition=f"@{CLIENTS}")
    return None if row is None else (Credentials(to_entry(row), *row[len(ENTRY_FIELDS) : -1]), row[-1])


def lock(cx: Connection, user_id: int | None, *, shared: bool = False) -> Credentials | None:
    """Lock a user's row until the commit.

    None locks the first entry's, so that an unknown user takes as long as a known one. Several may lock with
    ``shared``, while none changes the row: many users sign in with one client at one time.
    """
    credentials = _credentials(
        cx.execute(_CREDENTIALS.with_for_update(of=rows, read=shared), {"entry": user_id}).first()
    )
    return None if user_id is None else credentials


def note_sign_in(cx: Connection, user_id: int | None, tries: str, places: str, now: Instant) -> None:
    """``pauses`` encodes the results.

    It always writes one row, for None the first entry's, where they mean nothing: so its time does not show which users
    exist.
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
