"""Find and store what decides a sign-in: a user's password hash, and the results of earlier sign-ins."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement
from muniment.directory import version_stamps
from muniment.directory.entries import bare_names, oauth_clients
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.entries.table import (
    CLIENTS,
    ENTRY_FIELDS,
    ENTRY_ID,
    NAMED_IN_PARTITION,
    Entry,
    entry_table,
    rows,
    select_entries,
    to_entry,
)
from muniment.directory.options import DirectoryOptions
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name


class Credentials(msgspec.Struct, frozen=True):
    """``pauses`` writes and reads ``tries`` and ``places``."""

    user: Entry
    password_hash: str | None
    tries: str
    places: str


def find(cx: Connection, options: DirectoryOptions, user_id: str, *, bare: bool = False) -> Credentials | None:
    """With ``bare``, the partition may be left out (``bare_names``). Known, unknown and ambiguous users take the same
    statement.
    """
    parameters = bare_names.parameters(options, user_id, "user", bare=bare)
    row = bare_names.meant(cx.execute(_CREDENTIALS_BY_NAME, parameters))
    return None if row is None else _credentials(row[:-1])


class ClientCredentials(NamedTuple):
    """One statement reads the client, its settings and the directory's generation."""

    user: Entry
    secret_hash: str | None
    settings: ClientSettings
    generation: str


def find_of_client(cx: Connection, name: str) -> ClientCredentials | None:
    row = _CLIENT.first(cx, name=fold_name(name), partition=f"@{CLIENTS}")
    if row is None:
        return None
    settings = oauth_clients.to_settings(row[-1 - oauth_clients.WIDTH : -1])
    return ClientCredentials(to_entry(row), row[len(ENTRY_FIELDS)], settings, row[-1])


def by_id(cx: Connection, user_id: int) -> Credentials | None:
    return _credentials(cx.execute(_CREDENTIALS, {"entry": user_id}).first())


def lock(cx: Connection, user_id: int | None, *, shared: bool = False) -> Credentials | None:
    """Lock a user's row until the commit.

    None locks the first entry's, so that an unknown user takes as long as a known one. Several may lock with
    ``shared``, while none changes the row: many users sign in with one client at one time.
    """
    credentials = _credentials(_LOCK[shared].first(cx, entry=user_id))
    return None if user_id is None else credentials


def hold_users(cx: Connection, user_ids: Collection[int]) -> set[int]:
    """Those of them who are there and do not change before the commit; on SQLite nobody does."""
    if cx.dialect.name == "sqlite":
        return set(user_ids)
    return {row[0] for row in _HOLD.all(cx, users=sorted(user_ids))}


def note_sign_in(
    cx: Connection, user_id: int | None, tries: str, places: str, now: Instant, *, succeeded: bool = False
) -> None:
    """``pauses`` encodes the results.

    It always writes one row, for None the first entry's, where they mean nothing: so its time does not show which users
    exist.
    """
    values = {"new_tries": tries, "new_places": places, "now": now, "success": now if succeeded else None}
    cx.execute(_NOTE_SIGN_IN, {"entry": user_id, **values})


def _credentials(row: Sequence[Any] | None) -> Credentials | None:
    return None if row is None else Credentials(to_entry(row), *row[len(ENTRY_FIELDS) :])


_SIGN_IN = rows.c["password_hash", "tries", "places"]
_CREDENTIALS_BY_NAME = bare_names.select_meant(*_SIGN_IN)
_OF_CLIENT = oauth_clients.with_settings(
    select_entries(rows.c.password_hash).where(NAMED_IN_PARTITION, rows.c.kind == "user")
)
_CLIENT = PreparedStatement(_OF_CLIENT.add_columns(version_stamps.GENERATION))
_ENTRY_OR_FIRST = sa.func.coalesce(ENTRY_ID, sa.select(sa.func.min(entry_table.alias().c.id)).scalar_subquery())
_CREDENTIALS = select_entries(*_SIGN_IN).where(rows.c.id == _ENTRY_OR_FIRST)
_LOCK = {shared: PreparedStatement(_CREDENTIALS.with_for_update(of=rows, read=shared)) for shared in (False, True)}
_HOLD = PreparedStatement(
    sa.select(rows.c.id)
    .where(rows.c.id.in_(sa.bindparam("users", expanding=True)))
    .with_for_update(read=True, skip_locked=True)
)
_NOW = sa.bindparam("now", type_=sa.BigInteger)
_SIGNED_IN = sa.func.coalesce(sa.bindparam("success", type_=sa.BigInteger), entry_table.c.signed_in)
_NOTE = {
    "signed_in": _SIGNED_IN,
    "tries": sa.bindparam("new_tries"),
    "places": sa.bindparam("new_places"),
    "attempted": _NOW,
}
_NOTE_SIGN_IN = entry_table.update().where(entry_table.c.id == _ENTRY_OR_FIRST).values(_NOTE)
