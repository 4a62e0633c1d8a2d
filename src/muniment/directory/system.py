"""The system attributes, the requirement of TLS, and the keys with which this directory signs its own values.

Source: given 5.4. TLS is required unless the system attribute ``directory.auth.EnforceSSL`` is ``false``.
"""

import secrets
import weakref

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from muniment.clock import Instant
from muniment.db import PreparedStatement, directory_tables
from muniment.directory.refusals import BadAttribute
from muniment.naming import fold_name

ENFORCE_SSL = "directory.auth.EnforceSSL"

_MAX_NAME = 200
_MAX_VALUE = 4000

_attributes = sa.Table(
    "system_attributes",
    directory_tables,
    sa.Column("name_key", sa.String(600), primary_key=True),
    sa.Column("name", sa.String(_MAX_NAME), nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("modified", sa.BigInteger, nullable=False),
)

_keys = sa.Table(
    "keys",
    directory_tables,
    sa.Column("purpose", sa.String(20), primary_key=True),
    sa.Column("key", sa.LargeBinary, nullable=False),
)

_read_keys: weakref.WeakKeyDictionary[Engine, dict[str, bytes]] = weakref.WeakKeyDictionary()


class SystemAttribute(msgspec.Struct, frozen=True):
    """A setting that is stored in the directory itself."""

    name: str
    value: str
    modified: Instant


def get(cx: Connection, name: str) -> str | None:
    """Read one attribute's value; the name may be in any case."""
    return cx.execute(sa.select(_attributes.c.value).where(_attributes.c.name_key == fold_name(name))).scalar()


def every(cx: Connection) -> list[SystemAttribute]:
    """List the attributes by name."""
    columns = (_attributes.c.name, _attributes.c.value, _attributes.c.modified)
    return [SystemAttribute(*row) for row in cx.execute(sa.select(*columns).order_by(_attributes.c.name_key))]


def put(cx: Connection, name: str, value: str, now: Instant) -> None:
    """Set an attribute, new or not. Raises BadAttribute."""
    name, value = name.strip(), value.strip()
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise BadAttribute(f"A system attribute's name has 1 to {_MAX_NAME} printable characters.")
    if len(value) > _MAX_VALUE or "\x00" in value or not value.isprintable():
        raise BadAttribute(f"A system attribute's value has at most {_MAX_VALUE} printable characters.")
    # One statement: when two set the same attribute at one moment, neither fails.
    cx.execute(_PUT, {"name_key": fold_name(name), "name": name, "value": value, "modified": now})


def add(cx: Connection, name: str, value: str, now: Instant) -> None:
    """Set an attribute that is not set yet. Raises BadAttribute."""
    if get(cx, name.strip()) is not None:
        raise BadAttribute(f"{name.strip()} is set already: change it in the list.")
    put(cx, name, value, now)


def remove(cx: Connection, name: str) -> None:
    """Unset an attribute, if it is set."""
    cx.execute(_attributes.delete().where(_attributes.c.name_key == fold_name(name)))


def enforce_ssl(cx: Connection) -> bool:
    """Say whether TLS is required (given 5.4): yes, unless the attribute is ``false``, in any case."""
    return (get(cx, ENFORCE_SSL) or "").strip().casefold() != "false"


def key(cx: Connection, purpose: str) -> bytes:
    """Return the 32-byte key of a purpose; make it at random if there is none (then ``cx`` must be able to write).

    A key never changes, so a key read from a snapshot is remembered as long as the engine lives. A key read in a write
    transaction is not, because the transaction may have made it and may still be rolled back.
    """
    remembered = _read_keys.setdefault(cx.engine, {})
    if purpose in remembered:
        return remembered[purpose]
    row = _KEY.first(cx, purpose=purpose)
    if row is None:
        _make_key(cx, purpose)
        return key(cx, purpose)
    if _only_reads(cx):
        remembered[purpose] = bytes(row[0])
    return bytes(row[0])


def _make_key(cx: Connection, purpose: str) -> None:
    cx.execute(
        sa.text("INSERT INTO keys (purpose, key) VALUES (:purpose, :key) ON CONFLICT DO NOTHING").bindparams(
            sa.bindparam("key", type_=sa.LargeBinary)
        ),
        {"purpose": purpose, "key": secrets.token_bytes(32)},
    )


def _only_reads(cx: Connection) -> bool:
    options = cx.get_execution_options()
    if cx.dialect.name == "sqlite":
        return not options.get("muniment_write", False)
    return bool(options.get("postgresql_readonly", False))


_KEY = PreparedStatement(sa.select(_keys.c.key).where(_keys.c.purpose == sa.bindparam("purpose")))
_PUT = sa.text(
    "INSERT INTO system_attributes (name_key, name, value, modified) VALUES (:name_key, :name, :value, :modified) "
    "ON CONFLICT (name_key) DO UPDATE SET name = excluded.name, value = excluded.value, modified = excluded.modified"
).bindparams(sa.bindparam("modified", type_=sa.BigInteger))
