"""Which key stands for a user or a group in the repository's rows?

A name can pass to another user, an identity cannot: so each identity is bound to one key, for good. The first bearer's
key is the folded name itself; that of others has no ``@``, so that it cannot be a name. An import gives all former
bearers of a name new here such keys: the folded name is for the present bearer.

A name without a row waits for its first bearer; a row without an identity, of an import that knows former bearers, for
``settle`` or the first call of its bearer (decision 0019).
"""

import hashlib
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import portions, repository_tables, required
from muniment.database.statements import upsert
from muniment.ground.clock import Instant

bearers = sa.Table(
    "bearers",
    repository_tables,
    sa.Column("key", sa.String(400), primary_key=True),
    required("name", sa.String(400), index=True),
    sa.Column("identity", sa.String(200), unique=True),
    required("bound", sa.BigInteger),
)

Identify: TypeAlias = Callable[[Collection[str]], Mapping[str, str]]
"""Asks the directory for the identities of names that have a bearer now."""

LONGEST_IDENTITY = 200

_NOBODY = "nobody:"
_AT_A_TIME = 500
_REMEMBERED = 100_000
_TRIES = 3


class SettledNames(NamedTuple):
    """So many names were bound to a bearer, and so many to nobody."""

    borne: int
    unborne: int


class Bearing(NamedTuple):
    """``former`` is 0 for the last known bearer of the name; the earlier are numbered from 1, the first one first."""

    name: str
    identity: str = ""
    former: int = 0


class KeyCache:
    """A process's memory: a binding never changes, so no entry goes stale."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}
        self._changing = threading.Lock()

    def lacks(self, names: Mapping[str, str]) -> dict[str, str]:
        return {name: identity for name, identity in names.items() if identity and identity not in self._keys}

    def keep(self, keys: Mapping[str, str]) -> None:
        """Remember committed keys only."""
        with self._changing:
            if len(self._keys) + len(keys) > _REMEMBERED:
                self._keys.clear()
            self._keys.update(keys)

    def of(self, names: Mapping[str, str]) -> dict[str, str] | None:
        """Return None if one has no identity or no remembered key."""
        keys = {name: self._keys.get(identity, "") for name, identity in names.items()}
        return keys if all(keys.values()) else None


def nobody(_names: Collection[str]) -> Mapping[str, str]:
    """Stand in for a directory in another installation, which cannot be asked."""
    return {}


def key_of(identity: str) -> str:
    """Make a key, for a bearer whose key is not the folded name itself."""
    return f"id:{hashlib.sha256(identity.encode()).hexdigest()[:40]}"


def bound_keys(cx: Connection, identities: Collection[str]) -> dict[str, str]:
    by_identity: dict[str, str] = {}
    for portion in portions(sorted(identities)):
        rows = cx.execute(sa.select(bearers.c.identity, bearers.c.key).where(bearers.c.identity.in_(portion)))
        by_identity.update((row.identity, row.key) for row in rows)
    return by_identity


def keys(cx: Connection, names: Mapping[str, str]) -> dict[str, str]:
    """Look up folded names, 500 in each statement; an empty identity is one that the directory does not send.

    A name without an identity is its own key if that is not bound yet, or its bearer is the only one that the name has
    had. Otherwise it gets a key that nobody has.
    """
    return {name: key for name, key, _ in _look_up(cx, names)}


def bind(cx: Connection, names: Mapping[str, str], now: Instant) -> dict[str, str]:
    """Bind for good; ``names`` maps folded names to identities."""
    for _ in range(_TRIES):
        rows = _look_up(cx, names)
        waiting = [(name, key) for name, key, is_bound in rows if not is_bound and names[name]]
        if not waiting:
            return {name: key for name, key, _ in rows}
        for name, key in waiting:
            _claim(cx, name, key, names[name], now)
    # Another transaction has bound these names: its keys are visible by now, or follow from the rows.
    return keys(cx, names)


def of_names(cx: Connection, names: Collection[str], identify: Identify, now: Instant) -> dict[str, str]:
    """Return the keys for something new of the present bearers of folded names; if the directory knows none, of the
    last known one, or the first to come.
    """
    identities = {name: identity for name, identity in identify(names).items() if is_identity(identity)}
    by_name = bind(cx, identities, now) if identities else {}
    unbound = [name for name in names if name not in by_name]
    for portion in portions(sorted(unbound)):
        rows = cx.execute(sa.select(bearers.c.name, bearers.c.key).where(bearers.c.name.in_(portion)).order_by(*_ORDER))
        by_name.update((row.name, row.key) for row in rows)
    return {name: by_name.get(name, name) for name in names}


def keys_in_list(
    cx: Connection, names: Collection[str], present: Collection[str], identify: Identify, now: Instant
) -> dict[str, str]:
    """Let a name that the list has now (``present`` keys) keep its key, and so its bearer; the others get those of
    ``of_names``.
    """
    by_name = {name: key for key, name in ({key: key for key in present} | names_of_keys(cx, present)).items()}
    new = of_names(cx, [name for name in names if name not in by_name], identify, now)
    return {name: by_name[name] if name in by_name else new[name] for name in names}


def names_of_keys(cx: Connection, some_keys: Iterable[str]) -> dict[str, str]:
    """Look up keys that are no names themselves; without any, no statement is sent."""
    by_key: dict[str, str] = {}
    for portion in portions(sorted(key for key in set(some_keys) if key.startswith("id:"))):
        rows = cx.execute(sa.select(bearers.c.key, bearers.c.name).where(bearers.c.key.in_(portion)))
        by_key.update((row.key, row.name) for row in rows)
    return by_key


def keys_of_name(cx: Connection, name: str) -> list[str]:
    """Return the keys of all known bearers of a folded name, the last one at the end; if none is known, the name
    itself.
    """
    rows = cx.scalars(sa.select(bearers.c.key).where(bearers.c.name == name).order_by(*_ORDER)).all()
    return list(rows) or [name]


def bearings(cx: Connection, some_keys: Iterable[str]) -> dict[str, Bearing]:
    """Always answer for a key that is a name, for any other only if it has a bearer."""
    every = set(some_keys)
    names = {key: key for key in every if not key.startswith("id:")} | names_of_keys(cx, every)
    rows_of: dict[str, list[tuple[str, str]]] = {}
    for portion in portions(sorted(set(names.values()))):
        query = sa.select(bearers.c.name, bearers.c.key, bearers.c.identity).where(bearers.c.name.in_(portion))
        for row in cx.execute(query.order_by(*_ORDER)):
            rows_of.setdefault(row.name, []).append((row.key, row.identity or ""))
    by_key: dict[str, Bearing] = {}
    for key, name in names.items():
        rows = rows_of.get(name, [])
        found = [(number, identity) for number, (each, identity) in enumerate(rows, 1) if each == key]
        number, identity = found[0] if found else (0, "")
        by_key[key] = Bearing(name, identity, 0 if number == len(rows) else number)
    return by_key


def add_former(cx: Connection, former: Bearing, now: Instant) -> str:
    """Bind a former bearer; the present one gets another key."""
    insert = upsert(bearers)
    key = key_of(former.identity)
    # This low ``bound`` orders the former bearer before all that are known here. The key that is the name itself
    # waits for the present bearer.
    row = {"key": key, "name": former.name, "identity": former.identity, "bound": former.former}
    cx.execute(insert.values(**row).on_conflict_do_nothing())
    if not cx.execute(sa.select(bearers.c.key).where(bearers.c.name == former.name, bearers.c.key != key)).first():
        waiting = {"key": former.name, "name": former.name, "identity": None, "bound": now}
        cx.execute(insert.values(**waiting).on_conflict_do_nothing())
    return key


def settle(cx: Connection, identify: Identify, now: Instant, limit: int = _AT_A_TIME) -> SettledNames:
    """Bind at most ``limit`` names whose rows have no identity: to the present bearer, or to nobody, so that a later
    one inherits nothing. Returns (0, 0) when none is left.
    """
    query = sa.select(bearers.c.key).where(bearers.c.identity.is_(None)).order_by(bearers.c.key).limit(limit)
    waiting = cx.scalars(query).all()
    if not waiting:
        return SettledNames(0, 0)
    identities = identify(waiting)
    key_by_identity, unborne = bound_keys(cx, identities.values()), 0
    for name in waiting:
        identity = identities.get(name, "")
        if not is_identity(identity) or identity in key_by_identity:
            identity = _NOBODY + str(uuid.uuid4())
            unborne += 1
        key_by_identity[identity] = name
        cx.execute(bearers.update().where(_waits(name)).values(identity=identity, bound=now))
    return SettledNames(len(waiting) - unborne, unborne)


def is_identity(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and 0 < len(text) <= LONGEST_IDENTITY and text.isprintable()


def _look_up(cx: Connection, names: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    of_identity: dict[str, str] = {}
    of_name: dict[str, dict[str, str | None]] = {}
    for portion in portions(sorted(names)):
        identities = [names[name] for name in portion if names[name]]
        either = sa.or_(bearers.c.identity.in_(identities), bearers.c.name.in_(portion))
        for row in cx.execute(sa.select(bearers).where(either)):
            of_name.setdefault(row.name, {})[row.key] = row.identity
            if row.identity is not None:
                of_identity[row.identity] = row.key
    return [
        (name, of_identity.get(identity) or _key(name, identity, of_name.get(name, {})), identity in of_identity)
        for name, identity in names.items()
    ]


def _key(name: str, identity: str, identity_of_key: Mapping[str, str | None]) -> str:
    first_identity = identity_of_key.get(name)
    if first_identity is None:
        return name
    if identity:
        return key_of(identity)
    is_only_bearer = len(identity_of_key) == 1 and not first_identity.startswith(_NOBODY)
    return name if is_only_bearer else key_of(f"name:{name}")


def _claim(cx: Connection, name: str, key: str, identity: str, now: Instant) -> None:
    """Bind, unless another transaction does so first."""
    other_bearer = sa.exists().where(_other_bearers.c.identity == identity)
    binding = {"identity": identity, "bound": now}
    if not cx.execute(bearers.update().where(_waits(key), ~other_bearer).values(binding)).rowcount:
        cx.execute(upsert(bearers).values(key=key, name=name, **binding).on_conflict_do_nothing())


def _waits(key: str) -> sa.ColumnElement[bool]:
    return sa.and_(bearers.c.key == key, bearers.c.identity.is_(None))


_other_bearers = bearers.alias()
_ORDER: tuple[sa.ColumnElement[Any], ...] = (bearers.c.bound, bearers.c.key)
