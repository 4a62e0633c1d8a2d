"""Who calls, which accessors apply to them, and which permissions are there?

Source: docs/interface.md, ours 4, for the permissions.
"""

from collections.abc import Collection, Mapping
from enum import IntEnum
from functools import cached_property

import msgspec
from sqlalchemy.engine import Connection

from muniment.database.audit import Actor
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository import bare_names
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import UnknownAccessor
from muniment.repository.store.permissions import name_keys

OWNER = "owner"
WORLD = "world"


class Permission(IntEnum):
    """Each level includes those below (docs/interface.md, ours 4)."""

    NONE = 1
    BROWSE = 2
    READ = 3
    RELATE = 4
    VERSION = 5
    WRITE = 6
    DELETE = 7


class Principals(msgspec.Struct, frozen=True, dict=True):
    """``groups`` are all, however deep.

    ``identities`` are those of their names that the directory has sent, ``keys`` those under which rows are stored
    (``bearers``); ``identify`` asks who bears a name now.
    """

    id: str
    groups: frozenset[str] = frozenset()
    administrator: bool = False
    identities: Mapping[str, str] = {}
    keys: Mapping[str, str] = {}
    identify: name_keys.Identify = name_keys.nobody

    @cached_property
    def key(self) -> str:
        return self._key(fold_name(self.id))

    @cached_property
    def names(self) -> dict[str, str]:
        """Return the folded names of the caller and their groups; an identity may be empty."""
        return {name: self.identities.get(name, "") for name in map(fold_name, (self.id, *self.groups))}

    @cached_property
    def accessors(self) -> frozenset[str]:
        return frozenset((*(self._key(name) for name in self.names if "@" in name), WORLD))

    def actor(self, place: str) -> Actor:
        """For the audit; what the directory says of a token names no client."""
        return Actor(self.id, place, self.identities.get(fold_name(self.id)))

    def whole_names(self, names: Collection[str], options: RepositoryOptions) -> dict[str, str]:
        """Return the id that each of these names means.

        A bare name must be borne now: otherwise the next bearer would get what was meant for somebody of another
        partition. Raises UnknownAccessor.
        """
        whole = {name: bare_names.full_name(name, options) for name in names}
        bare = {fold_name(person_id): name for name, person_id in whole.items() if person_id != name}
        if bare and (unknown := sorted(bare.keys() - self.identify(bare.keys()).keys())):
            raise UnknownAccessor(f"{bare[unknown[0]][:100]!r} is no user or group there: write name@partition.")
        return whole

    def key_for(self, cx: Connection, owner: str, now: Instant) -> str:
        """Return the key under which something new is stored for ``owner``."""
        name = fold_name(owner)
        if name == fold_name(self.id):
            return self.key
        return name_keys.of_names(cx, [name], self.identify, now)[name]

    def is_(self, owner_key: str) -> bool:
        return self.key == owner_key

    def with_keys(self, keys: Mapping[str, str]) -> "Principals":
        """Return the same object for equal keys at the next call."""
        keyed: Principals | None = vars(self).get("_keyed")
        if keyed is None or keyed.keys != keys:
            keyed = msgspec.structs.replace(self, keys=keys)
            vars(self)["_keyed"] = keyed
        return keyed

    def bound(self, memory: name_keys.KeyCache) -> "Principals | None":
        """Return None if an identity was not sent, or ``memory`` lacks its key. A binding never changes, so the result
        is remembered.
        """
        remembered: tuple[name_keys.KeyCache, Principals] | None = vars(self).get("_bound")
        if remembered is not None and remembered[0] is memory:
            return remembered[1]
        keys = memory.of(self.names)
        if keys is None:
            return None
        caller = self.with_keys(keys)
        vars(self)["_bound"] = memory, caller
        return caller

    def _key(self, name: str) -> str:
        # A name whose identity has no known key must not pass for the name's first bearer.
        return self.keys.get(name) or (name_keys.key_of(self.identities[name]) if name in self.identities else name)
