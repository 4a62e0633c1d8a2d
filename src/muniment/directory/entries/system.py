"""Store and read the system attributes, and the keys with which this directory signs its own values.

Nothing reads an attribute that is not in ``KNOWN``, so whoever sets one must confirm its name.
"""

import secrets
import weakref
from collections.abc import Iterator, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from muniment.database.connections import PreparedStatement, directory_tables, required, required_columns
from muniment.directory import audit
from muniment.directory.refusals import BadAttribute, UnknownAttribute
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name, is_storable

READ_AGAIN_SECONDS = 5
"""So often does each process read the keys again."""

ENFORCE_SSL = "directory.auth.EnforceSSL"

_MAX_NAME = 200
_MAX_VALUE = 4000

_attributes = sa.Table(
    "system_attributes",
    directory_tables,
    sa.Column("name_key", sa.String(600), primary_key=True),
    required("name", sa.String(_MAX_NAME)),
    *required_columns(sa.Text, "value", "friendly_name"),
    required("modified", sa.BigInteger),
)

_keys = sa.Table(
    "keys",
    directory_tables,
    sa.Column("purpose", sa.String(20), primary_key=True),
    required("key", sa.LargeBinary),
)

_NEXT, _FORMER = "/next", "/former"
"""What follows a purpose in the name of a further key."""

_read_keys: weakref.WeakKeyDictionary[Engine, dict[str, bytes]] = weakref.WeakKeyDictionary()


class SystemAttribute(msgspec.Struct, frozen=True):
    """A setting that is stored in the directory itself."""

    name: str
    value: str
    modified: Instant
    friendly_name: str = ""


class KnownAttribute(msgspec.Struct, frozen=True):
    """A system attribute that this release reads."""

    name: str
    values: tuple[str, ...]
    meaning: str
    warnings: Mapping[str, str]


KNOWN = (
    KnownAttribute(
        ENFORCE_SSL,
        ("true", "false"),
        "Whether the directory, and every request with credentials, requires TLS. By default they do (given 5.4).",
        {
            "false": "From the next request on, passwords and tokens may travel unencrypted over plain HTTP, where "
            "'web.http_port' opens it. Use this for development only."
        },
    ),
)


def known_attribute(name: str) -> KnownAttribute | None:
    """Upper and lower case are equal."""
    return next((each for each in KNOWN if fold_name(each.name) == fold_name(name.strip())), None)


def warning(name: str, value: str) -> str:
    attribute = known_attribute(name)
    return "" if attribute is None else attribute.warnings.get(value.strip().casefold(), "")


def get(cx: Connection, name: str) -> str | None:
    """In the name, upper and lower case are equal."""
    return cx.scalar(sa.select(_attributes.c.value).where(_attributes.c.name_key == fold_name(name)))


def find(cx: Connection, name: str) -> SystemAttribute | None:
    row = cx.execute(_ATTRIBUTES.where(_attributes.c.name_key == fold_name(name.strip()))).first()
    return None if row is None else SystemAttribute(*row)


def all_system_attributes(cx: Connection) -> list[SystemAttribute]:
    return [SystemAttribute(*row) for row in cx.execute(_ATTRIBUTES.order_by(_attributes.c.name_key))]


def put(
    cx: Connection, name: str, value: str, now: Instant, *, free: bool = False, friendly_name: str | None = None
) -> None:
    """``friendly_name`` is shown to people; None leaves it as it is.

    Raises BadAttribute for a name or value that is not allowed, or that a known attribute does not take, and, without
    ``free``, UnknownAttribute for a name that nothing reads.
    """
    name, value = name.strip(), value.strip()
    attribute = known_attribute(name)
    if attribute is not None:
        name, value = attribute.name, value.casefold()
        if value not in attribute.values:
            raise BadAttribute(f"{attribute.name} is {' or '.join(attribute.values)}, not {value[:40]!r}.")
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise BadAttribute(f"A system attribute's name has 1 to {_MAX_NAME} printable characters.")
    if len(value) > _MAX_VALUE or "\x00" in value or not value.isprintable():
        raise BadAttribute(f"A system attribute's value has at most {_MAX_VALUE} printable characters.")
    if friendly_name is not None and (len(friendly_name) > _MAX_VALUE or not is_storable(friendly_name)):
        raise BadAttribute(f"A system attribute's friendly name has at most {_MAX_VALUE} characters.")
    if attribute is None and not free:
        names = ", ".join(known_one.name for known_one in KNOWN)
        raise UnknownAttribute(f"No part of this release reads a system attribute {name!r}. It reads: {names}.")
    former = get(cx, name)
    # This is one statement. So two callers can set the same attribute at one moment, and neither fails.
    values = {"value": value, "friendly_name": friendly_name or "", "modified": now}
    cx.execute(_PUT if friendly_name is None else _PUT_NAMED, {"name_key": fold_name(name), "name": name, **values})
    before = {} if former is None else {"value": _shown(name, former)}
    target = audit.Target("system attribute", name)
    audit.record(cx, "system attribute set", target, before, {"value": _shown(name, value)})


def add(cx: Connection, name: str, value: str, now: Instant, *, free: bool = False) -> None:
    """Raises what ``put`` raises, and BadAttribute if it is set already."""
    if get(cx, name.strip()) is not None:
        raise BadAttribute(f"{name.strip()} is set already: change it in the list.")
    put(cx, name, value, now, free=free)


def remove(cx: Connection, name: str) -> bool:
    gone = _attributes.delete().where(_attributes.c.name_key == fold_name(name.strip()))
    row = cx.execute(gone.returning(_attributes.c.name, _attributes.c.value)).first()
    if row is not None:
        target = audit.Target("system attribute", row.name)
        audit.record(cx, "system attribute removed", target, {"value": _shown(*row)})
    return row is not None


def _shown(name: str, value: str) -> str:
    """For the audit: what nobody here reads may be a secret."""
    return value if known_attribute(name) is not None else "set"


def enforce_ssl(cx: Connection) -> bool:
    """TLS is required unless the attribute is ``false``, in any case (given 5.4)."""
    return (get(cx, ENFORCE_SSL) or "").strip().casefold() != "false"


def key(cx: Connection, purpose: str) -> bytes:
    """A purpose's 32 bytes. A missing key is made at random, if ``cx`` can write.

    One from a snapshot is remembered until ``remember_keys`` reads them again; one from a write transaction is not, as
    that may have made it and be rolled back.
    """
    keys_by_purpose = _read_keys.setdefault(cx.engine, {})
    if purpose in keys_by_purpose:
        return keys_by_purpose[purpose]
    row = _KEY.first(cx, purpose=purpose)
    if row is None:
        _make_key(cx, purpose)
        return key(cx, purpose)
    if _only_reads(cx):
        keys_by_purpose[purpose] = bytes(row[0])
    return bytes(row[0])


def accepted_keys(cx: Connection, purpose: str) -> Iterator[bytes]:
    """The key of a purpose, and then those whose values are taken, too: the next one, and the former one."""
    yield key(cx, purpose)
    known = _read_keys.get(cx.engine, {})
    yield from (known[name] for name in (purpose + _NEXT, purpose + _FORMER) if name in known)


def remember_keys(cx: Connection) -> None:
    """So decisions that write need not read them. ``cx`` must be a snapshot. Called again every few seconds, it lets a
    process go on while keys are changed.
    """
    _read_keys[cx.engine] = {purpose: bytes(value) for purpose, value in cx.execute(sa.select(_keys))}


def prepare_key(cx: Connection, purpose: str) -> None:
    """Make the next key. From when every process has read it, ``promote_key`` may let it be used."""
    _remove(cx, purpose + _NEXT)
    _make_key(cx, purpose + _NEXT)


def promote_key(cx: Connection, purpose: str, *, keep_former: bool) -> None:
    """The next key becomes the key; values of the former one are taken as long as it is kept."""
    current = cx.execute(sa.select(_keys.c.key).where(_keys.c.purpose == purpose)).scalar_one()
    following = cx.execute(sa.select(_keys.c.key).where(_keys.c.purpose == purpose + _NEXT)).scalar_one()
    for name in (purpose, purpose + _NEXT, purpose + _FORMER):
        _remove(cx, name)
    kept = [{"purpose": purpose, "key": bytes(following)}]
    if keep_former:
        kept.append({"purpose": purpose + _FORMER, "key": bytes(current)})
    cx.execute(_keys.insert(), kept)
    audit.record(cx, "key changed", audit.Target("key", purpose))


def _remove(cx: Connection, name: str) -> None:
    cx.execute(_keys.delete().where(_keys.c.purpose == name))


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
_ATTRIBUTES = sa.select(*_attributes.c["name", "value", "modified", "friendly_name"])
_WRITE = (
    "INSERT INTO system_attributes (name_key, name, value, friendly_name, modified) "
    "VALUES (:name_key, :name, :value, :friendly_name, :modified) "
    "ON CONFLICT (name_key) DO UPDATE SET name = excluded.name, value = excluded.value, modified = excluded.modified"
)
_PUT, _PUT_NAMED = (
    sa.text(_WRITE + more).bindparams(sa.bindparam("modified", type_=sa.BigInteger))
    for more in ("", ", friendly_name = excluded.friendly_name")
)
