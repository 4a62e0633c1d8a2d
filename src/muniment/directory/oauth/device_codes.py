"""Which device waits for a user's word (RFC 8628)?

A device has a device code, a value of ``minting`` of which only the digest is stored, and shows a user code, which a
person types: it is short, so its seal is stored, which needs a key. The first user who types it is the only one who
may decide (decision 0120).
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import directory_tables, required, required_columns
from muniment.database.statements import count_where, upsert
from muniment.directory import minting
from muniment.directory.entries import system
from muniment.directory.oauth.scopes import RequestedScope
from muniment.directory.options import DirectoryOptions
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Overloaded

LIFE_SECONDS = 600
INTERVAL_SECONDS = 5
"""A device waits so long between two questions; each one that comes sooner makes it as much longer."""

MOST_OF_CLIENT = 10_000
MOST_OF_PLACE = 100
"""So many devices of one client may wait, and of these so many at one network address."""

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so that no code is a word, and no digits (RFC 8628 6.1)."""
_LENGTH = 8
_WRONG_CODES = 10
"""A user who has typed so many wrong codes waits, if the setting for passwords says nothing."""

LONGEST_PLACE = 64

Decision = Literal["allowed", "denied"]

_devices = sa.Table(
    "device_codes",
    directory_tables,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    required("user_code", sa.String(43), unique=True),
    required("client_id", sa.BigInteger),
    required("resource_id", sa.String(36)),
    *required_columns(sa.Text, "scopes", "told"),
    required("place", sa.String(LONGEST_PLACE)),
    required("expires", sa.BigInteger, index=True),
    required("interval", sa.Integer),
    sa.Column("asked", sa.BigInteger),
    sa.Column("user_id", sa.BigInteger),
    sa.Column("decision", sa.String(10)),
    sa.Column("ticket", sa.LargeBinary),
    sa.Column("auth_time", sa.BigInteger),
    sa.Index("ix_device_codes_of_client", "client_id", "place", "expires"),
)

_wrong_codes = sa.Table(
    "wrong_user_codes",
    directory_tables,
    sa.Column("user_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    required("count", sa.Integer),
    required("until", sa.BigInteger),
)


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A device that waits until ``expires``, and what its client asks for: ``scopes`` and ``told`` are those of a
    ``RequestedScope``, as text.

    It asked last at ``asked``, and has to leave ``interval`` seconds between two questions. ``user_id`` is who typed
    its user code; the ``ticket`` and ``auth_time`` with which they allowed it are as those of a code.
    """

    digest: bytes
    client_id: int
    resource_id: str
    scopes: str
    told: str
    expires: Instant
    interval: int
    asked: Instant | None
    user_id: int | None
    decision: Decision | None
    ticket: bytes | None
    auth_time: Instant | None


class Started(msgspec.Struct, frozen=True):
    """What the device is told."""

    device_code: str
    user_code: str


def start(cx: Connection, client_id: int, scope: RequestedScope, place: str, now: Instant) -> Started:
    """At one ``place``, a further device of a client ends the oldest that nobody has typed in; where the client has too
    many, it ends that of the place that has most. Raises Overloaded if no place has a crowd that nobody has typed in.
    """
    living = (_devices.c.client_id == client_id, _devices.c.expires > now)
    here = sa.and_(*living, _devices.c.place == place, _devices.c.user_id.is_(None))
    surplus = sa.select(_devices.c.digest).where(here).order_by(_devices.c.expires.desc()).offset(MOST_OF_PLACE - 1)
    # Asked again of each row: somebody may type it in meanwhile.
    cx.execute(_devices.delete().where(_devices.c.digest.in_(surplus), _devices.c.user_id.is_(None)))
    if count_where(cx, *living) >= MOST_OF_CLIENT and not _end_one_of_the_crowd(cx, living):
        raise Overloaded("Too many devices wait for their users.", INTERVAL_SECONDS)
    device_code, digest = minting.mint(system.key(cx, "tokens"), "device")
    user_code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
    values = {
        "digest": digest,
        "user_code": _seal(system.key(cx, "tokens"), user_code),
        "client_id": client_id,
        "resource_id": scope.resource_id,
        "scopes": scope.text,
        "told": scope.told,
        "place": place,
        "expires": now + LIFE_SECONDS * SECOND,
        "interval": INTERVAL_SECONDS,
    }
    cx.execute(_devices.insert(), values)
    return Started(device_code, spell(user_code))


def _end_one_of_the_crowd(cx: Connection, living: Sequence[sa.ColumnElement[bool]]) -> int:
    waiting = (*living, _devices.c.user_id.is_(None))
    crowded = sa.select(_devices.c.place).where(*waiting).group_by(_devices.c.place)
    crowded = crowded.having(sa.func.count() > max(1, MOST_OF_PLACE // 10))
    crowded = crowded.order_by(sa.func.count().desc(), sa.func.min(_devices.c.expires)).limit(1)
    here = sa.and_(*waiting, _devices.c.place == crowded.scalar_subquery())
    oldest = sa.select(_devices.c.digest).where(here).order_by(_devices.c.expires).limit(1)
    oldest = oldest.with_for_update(skip_locked=True)
    unclaimed = _devices.c.digest == oldest.scalar_subquery(), _devices.c.user_id.is_(None)
    return cx.execute(_devices.delete().where(*unclaimed)).rowcount


def spell(user_code: str) -> str:
    """As a person reads it: in two halves."""
    return f"{user_code[:4]}-{user_code[4:]}"


def read(typed: str) -> str:
    """The letters of a user code that somebody typed; empty if it cannot be one."""
    letters = "".join(character for character in typed[:100].upper() if character.isalnum())
    return letters if len(letters) == _LENGTH and set(letters) <= set(_LETTERS) else ""


def parse(cx: Connection, device_code: str) -> bytes | None:
    """The digest, or None if it is no device code of this directory."""
    read = (minting.parse(key, "device", device_code) for key in system.accepted_keys(cx, "tokens"))
    return next((digest for digest in read if digest is not None), None)


def look_up(cx: Connection, digest: bytes, *, lock: bool = False) -> Device | None:
    return _find(cx, _devices.c.digest == digest, lock=lock)


def by_user_code(cx: Connection, user_code: str, *, lock: bool = False) -> Device | None:
    seals = [_seal(key, user_code) for key in system.accepted_keys(cx, "tokens")]
    return _find(cx, _devices.c.user_code.in_(seals), lock=lock)


def change(cx: Connection, device: Device, **values: Any) -> None:
    cx.execute(_devices.update().where(_devices.c.digest == device.digest), values)


def end(cx: Connection, device: Device) -> None:
    """Its device code serves once."""
    cx.execute(_devices.delete().where(_devices.c.digest == device.digest))


def end_of(cx: Connection, client_id: int, resource_id: str | None = None) -> int:
    """All, or those for a resource."""
    ended = _devices.delete().where(_devices.c.client_id == client_id)
    return cx.execute(ended if resource_id is None else ended.where(_devices.c.resource_id == resource_id)).rowcount


def end_at(cx: Connection, resource_id: str) -> int:
    return cx.execute(_devices.delete().where(_devices.c.resource_id == resource_id)).rowcount


def end_every(cx: Connection) -> int:
    return cx.execute(_devices.delete()).rowcount


def pauses(cx: Connection, options: DirectoryOptions, user_id: int, now: Instant) -> bool:
    """Whether a user has typed too many wrong codes. The caller holds the user's row."""
    row = cx.execute(_WRONG, {"user": user_id, "now": now}).one_or_none()
    return row is not None and row[0] >= (options.lockout_failures or _WRONG_CODES)


def count_wrong(cx: Connection, options: DirectoryOptions, user_id: int, now: Instant) -> None:
    """A right one does not end the count, or whoever has a device of their own could guess on."""
    row = cx.execute(_WRONG, {"user": user_id, "now": now}).one_or_none()
    count, until = (0, now + options.lockout_seconds * SECOND) if row is None else row
    cx.execute(_COUNT, {"user_id": user_id, "count": count + 1, "until": until})


def purge(cx: Connection, now: Instant, limit: int) -> int:
    expired = sa.select(_devices.c.digest).where(_devices.c.expires < now).limit(limit)
    return cx.execute(_devices.delete().where(_devices.c.digest.in_(expired))).rowcount


def _find(cx: Connection, which: sa.ColumnElement[bool], *, lock: bool) -> Device | None:
    query = sa.select(*_devices.c[Device.__struct_fields__]).where(which)
    row = cx.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else _device(row._mapping)


def _device(values: Mapping[Any, Any]) -> Device:
    ticket = None if values["ticket"] is None else bytes(values["ticket"])
    return Device(**{**values, "digest": bytes(values["digest"]), "ticket": ticket})


def _seal(key: bytes, user_code: str) -> str:
    return minting.seal(key, "user code", user_code)


_WRONG = sa.select(*_wrong_codes.c["count", "until"]).where(
    _wrong_codes.c.user_id == sa.bindparam("user", type_=sa.BigInteger),
    _wrong_codes.c.until > sa.bindparam("now", type_=sa.BigInteger),
)
_NEW = upsert(_wrong_codes)
_COUNT = _NEW.on_conflict_do_update(
    index_elements=["user_id"], set_={name: _NEW.excluded[name] for name in ("count", "until")}
)
