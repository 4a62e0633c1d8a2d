"""Who calls, which accessors speak of them, and how much may accessors do?

Source: docs/interface.md, ours 4, for the permissions.
"""

from collections.abc import Mapping
from enum import IntEnum

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.naming import fold_name
from muniment.repository.permissions import bearers
from muniment.repository.permissions.bearers import Identify

OWNER = "owner"
WORLD = "world"


class Permission(IntEnum):
    """How much an accessor may do; each includes those below it (docs/interface.md, ours 4)."""

    NONE = 1
    BROWSE = 2
    READ = 3
    RELATE = 4
    VERSION = 5
    WRITE = 6
    DELETE = 7


class Principals(msgspec.Struct, frozen=True):
    """A caller: their user id, the groups they are in however deep, and whether they administer the repository.

    ``identities`` says what the directory knows the bearer of each of these names by, where it sends that; ``keys``
    under which key each name is kept (``bearers``). ``identify`` asks the directory who bears a name now.
    """

    id: str
    groups: frozenset[str] = frozenset()
    administrator: bool = False
    identities: Mapping[str, str] = {}
    keys: Mapping[str, str] = {}
    identify: Identify = bearers.nobody

    @property
    def key(self) -> str:
        """What the caller's objects, ACLs and kept searches are stored under."""
        return self._key(fold_name(self.id))

    def names(self) -> dict[str, str]:
        """Say every name the caller goes by, folded, each with its bearer's identity, empty where there is none."""
        return {name: self.identities.get(name, "") for name in map(fold_name, (self.id, *self.groups))}

    def accessors(self) -> frozenset[str]:
        """Say every accessor that speaks of them: themselves, their groups, the world."""
        return frozenset((*(self._key(name) for name in self.names() if "@" in name), WORLD))

    def key_for(self, cx: Connection, owner: str, now: Instant) -> str:
        """Say under which key is kept what this user is to own, as the caller names them."""
        name = fold_name(owner)
        if name == fold_name(self.id):
            return self.key
        return bearers.of_names(cx, [name], self.identify, now)[name]

    def is_(self, owner_key: str) -> bool:
        """Say whether what is stored under this key is theirs."""
        return self.key == owner_key

    def kept_under(self, keys: Mapping[str, str]) -> "Principals":
        """Give the caller with the key of each of their names."""
        return msgspec.structs.replace(self, keys=keys)

    def _key(self, name: str) -> str:
        # A name of an identity whose key was not asked for must not pass for its first bearer.
        return self.keys.get(name) or (bearers.key_of(self.identities[name]) if name in self.identities else name)
