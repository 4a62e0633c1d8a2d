"""Under which key is kept what a user owns, and what a user or group is permitted?

A name may be given again, an identity never is: a removed user's namesake has another one. So each identity has one key
here, for good. The first bearer of a name has the name itself as key, folded, as all rows had before identities were
kept; each later bearer has a key that no name can be spelled like, for it has no ``@``.

A name without a row here was never proved. What is stored under it waits for its first bearer. A row without an
identity is from before this room was made, and waits for ``settle`` or for its bearer's first proof (decision 0019).
"""

import hashlib
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.db import repository_tables

bearers = sa.Table(
    "bearers",
    repository_tables,
    sa.Column("key", sa.String(400), primary_key=True),
    sa.Column("name", sa.String(400), nullable=False, index=True),
    sa.Column("identity", sa.String(200), nullable=True, unique=True),
    sa.Column("bound", sa.BigInteger, nullable=False),
)

Identify: TypeAlias = Callable[[Collection[str]], Mapping[str, str]]
"""Asks the directory who bears these names now: the identity of each name that somebody bears."""

LONGEST_IDENTITY = 200

_NOBODY = "nobody:"
_AT_A_TIME = 500
_REMEMBERED = 100_000
_TRIES = 3


class SettledNames(NamedTuple):
    """How many names were bound to somebody, and how many to nobody."""

    borne: int
    unborne: int


class KeyMemory:
    """One process's memory of the keys of identities. A binding never changes, so none grows old."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}
        self._changing = threading.Lock()

    def lacks(self, names: Mapping[str, str]) -> dict[str, str]:
        """Say which of these names, each with its identity, have one whose key is not remembered."""
        return {name: identity for name, identity in names.items() if identity and identity not in self._keys}

    def keep(self, keys: Mapping[str, str]) -> None:
        """Remember these keys by identity; only what is committed may be remembered."""
        with self._changing:
            if len(self._keys) + len(keys) > _REMEMBERED:
                self._keys.clear()
            self._keys.update(keys)

    def of(self, names: Mapping[str, str]) -> dict[str, str] | None:
        """Say the key of each of these names; None where one is to be asked for: of no identity, or not remembered."""
        found = {name: self._keys.get(identity, "") for name, identity in names.items()}
        return found if all(found.values()) else None


def nobody(_names: Collection[str]) -> Mapping[str, str]:
    """Know of nobody who bears these names: a directory elsewhere cannot be asked."""
    return {}


def key_of(identity: str) -> str:
    """Say the key of a bearer whose name was another's before."""
    return f"id:{hashlib.sha256(identity.encode()).hexdigest()[:40]}"


def bound_keys(cx: Connection, identities: Collection[str]) -> dict[str, str]:
    """Say the key of each of these identities that has one."""
    found: dict[str, str] = {}
    for some in _portions(identities):
        rows = cx.execute(sa.select(bearers.c.identity, bearers.c.key).where(bearers.c.identity.in_(some)))
        found.update((row.identity, row.key) for row in rows)
    return found


def keys(cx: Connection, names: Mapping[str, str]) -> dict[str, str]:
    """Say under which key each of these folded names is kept: one statement for 500 names.

    Each comes with its bearer's identity, or with an empty text from a directory that sends none. A bearer without an
    identity is taken for the one the name is bound to, if nobody else ever bore it.
    """
    return {name: key for name, key, _ in _found(cx, names)}


def bind(cx: Connection, names: Mapping[str, str], now: Instant) -> dict[str, str]:
    """Keep for good which key each of these folded names has, each borne by an identity, and say it."""
    for _ in range(_TRIES):
        found = _found(cx, names)
        waiting = [(name, key) for name, key, is_bound in found if not is_bound and names[name]]
        if not waiting:
            return {name: key for name, key, _ in found}
        for name, key in waiting:
            _claim(cx, name, key, names[name], now)
    # Another transaction bound what this one tried to: its choice is known by now, or follows from the rows there are.
    return keys(cx, names)


def of_names(cx: Connection, names: Collection[str], identify: Identify, now: Instant) -> dict[str, str]:
    """Say under which key something new for each of these folded names is to be kept: for whoever bears the name now.

    Where the directory cannot say, or nobody bears the name, that is its last known bearer; a name that nobody bore yet
    is kept for its first.
    """
    identities = {name: identity for name, identity in identify(names).items() if is_identity(identity)}
    found = bind(cx, identities, now) if identities else {}
    others = [name for name in names if name not in found]
    for some in _portions(others):
        rows = cx.execute(sa.select(bearers.c.name, bearers.c.key).where(bearers.c.name.in_(some)).order_by(*_ORDER))
        found.update((row.name, row.key) for row in rows)
    return {name: found.get(name, name) for name in names}


def keys_in_list(
    cx: Connection, names: Collection[str], present: Collection[str], identify: Identify, now: Instant
) -> dict[str, str]:
    """Say the key of each of these folded names in a list that is sent back changed, where these keys are present.

    A name that is there already goes on meaning the same bearer; the others are as ``of_names`` says.
    """
    kept = {name: key for key, name in ({key: key for key in present} | names_of_keys(cx, present)).items()}
    new = of_names(cx, [name for name in names if name not in kept], identify, now)
    return {name: kept[name] if name in kept else new[name] for name in names}


def names_of_keys(cx: Connection, some_keys: Iterable[str]) -> dict[str, str]:
    """Say the name behind each of these keys, where it is another text: a statement only if there is such a key."""
    found: dict[str, str] = {}
    for some in _portions(key for key in set(some_keys) if key.startswith("id:")):
        rows = cx.execute(sa.select(bearers.c.key, bearers.c.name).where(bearers.c.key.in_(some)))
        found.update((row.key, row.name) for row in rows)
    return found


def keys_of_name(cx: Connection, name: str) -> list[str]:
    """Say the key of everybody who ever bore this folded name, the last known bearer's last."""
    rows = cx.execute(sa.select(bearers.c.key).where(bearers.c.name == name).order_by(*_ORDER)).scalars().all()
    return list(rows) or [name]


def settle(cx: Connection, identify: Identify, now: Instant, limit: int = _AT_A_TIME) -> SettledNames:
    """Bind names from before this room was made to whoever bears them now, or to nobody; none at the end.

    A later bearer of a name that nobody bears now inherits nothing.
    """
    wanted = sa.select(bearers.c.key).where(bearers.c.identity.is_(None)).order_by(bearers.c.key).limit(limit)
    waiting = cx.execute(wanted).scalars().all()
    if not waiting:
        return SettledNames(0, 0)
    identities = identify(waiting)
    taken, unborne = bound_keys(cx, identities.values()), 0
    for name in waiting:
        identity = identities.get(name, "")
        if not is_identity(identity) or identity in taken:
            identity = _NOBODY + str(uuid.uuid4())
            unborne += 1
        taken[identity] = name
        cx.execute(bearers.update().where(_waits(name)).values(identity=identity, bound=now))
    return SettledNames(len(waiting) - unborne, unborne)


def is_identity(text: object) -> TypeGuard[str]:
    """Say whether what a directory sends as an identity is one."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_IDENTITY and text.isprintable()


def _found(cx: Connection, names: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """Give each name with its key, and whether that is its identity's for good."""
    of_identity: dict[str, str] = {}
    of_name: dict[str, dict[str, str | None]] = {}
    for some in _portions(names):
        identities = [names[name] for name in some if names[name]]
        either = sa.or_(bearers.c.identity.in_(identities), bearers.c.name.in_(some))
        for row in cx.execute(sa.select(bearers).where(either)):
            of_name.setdefault(row.name, {})[row.key] = row.identity
            if row.identity is not None:
                of_identity[row.identity] = row.key
    return [
        (name, of_identity.get(identity) or _key(name, identity, of_name.get(name, {})), identity in of_identity)
        for name, identity in names.items()
    ]


def _key(name: str, identity: str, borne: Mapping[str, str | None]) -> str:
    """Say the key of a bearer who is not bound yet, from the identities that bore the name, by key."""
    first = borne.get(name)
    if first is None:
        return name
    if identity:
        return key_of(identity)
    alone = len(borne) == 1 and not first.startswith(_NOBODY)
    return name if alone else key_of(f"name:{name}")


def _claim(cx: Connection, name: str, key: str, identity: str, now: Instant) -> None:
    """Bind a key, unless another transaction is quicker."""
    elsewhere = sa.exists().where(_others.c.identity == identity)
    given = {"identity": identity, "bound": now}
    if not cx.execute(bearers.update().where(_waits(key), ~elsewhere).values(given)).rowcount:
        insert = postgresql.insert(bearers) if cx.dialect.name == "postgresql" else sqlite.insert(bearers)
        cx.execute(insert.values(key=key, name=name, **given).on_conflict_do_nothing())


def _waits(key: str) -> sa.ColumnElement[bool]:
    return sa.and_(bearers.c.key == key, bearers.c.identity.is_(None))


def _portions(some: Iterable[str]) -> Iterator[Sequence[str]]:
    wanted = sorted(some)
    for begin in range(0, len(wanted), _AT_A_TIME):
        yield wanted[begin : begin + _AT_A_TIME]


_others = bearers.alias()
_ORDER: tuple[sa.ColumnElement[Any], ...] = (bearers.c.bound, bearers.c.key)
