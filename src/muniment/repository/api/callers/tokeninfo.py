"""What does a tokeninfo document say about a caller: their user id, their groups, whether they are an administrator?

Source: given 2.6, 2.7.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import structlog

from muniment.ground.caches import Cache
from muniment.ground.naming import MalformedName, fold_name, read_dn
from muniment.ground.refusals import Refusal
from muniment.repository.refusals import DirectoryUnavailable, NotSignedIn
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.name_keys import Identify
from muniment.repository.store.permissions.principals import Principals

_REMEMBERED_BYTES = 4_000_000

log = structlog.get_logger("muniment.repository.callers")


class _Value(msgspec.Struct):
    name: str
    values: list[str | int | float | bool | None] = []


class _User(msgspec.Struct):
    id: str
    values: list[_Value] = []


class _Tokeninfo(msgspec.Struct):
    user: _User


_tokeninfo = msgspec.json.Decoder(_Tokeninfo)


class Attributes(NamedTuple):
    """The directory's names for the attributes that we read."""

    identity: str = "entryUUID"
    groups: str = "memberOf"
    group_identities: str = "memberOfUUID"


ATTRIBUTES = Attributes()


class TokeninfoReader:
    """``administrators`` are users and groups (`name@partition`) who hold every permission; ``dn_suffix`` ends the
    directory's distinguished names.
    """

    def __init__(
        self, administrators: Sequence[str], dn_suffix: str, attributes: Attributes, identify: Identify
    ) -> None:
        self._administrators = frozenset(fold_name(name) for name in administrators)
        self._suffix = dn_suffix
        self._attributes = attributes
        self._identify = identify
        self._read: Cache[bytes, Principals] = Cache(_REMEMBERED_BYTES)

    def principals(self, document: bytes) -> Principals:
        """Raises DirectoryUnavailable if it cannot be read."""
        return self._read.answer(document, lambda: self._principals(document), len(document))

    def _principals(self, document: bytes) -> Principals:
        try:
            user = _tokeninfo.decode(document).user
        except (ValueError, RecursionError) as error:  # msgspec's own errors, and that of a text that is not UTF-8
            log.warning("tokeninfo unreadable", reason=str(error)[:200])
            raise DirectoryUnavailable("The directory's answer about the token cannot be read.") from error
        caller = fold_name(user.id)  # for comparison; the principals keep the directory's spelling
        values = {value.name: value.values for value in user.values}
        places = values.get(self._attributes.groups, [])
        of_groups = values.get(self._attributes.group_identities, [])
        # If the lists differ in length, no identity can be matched to its group: all are ignored.
        pairs = zip(places, of_groups if len(of_groups) == len(places) else [""] * len(places), strict=True)
        groups = {
            group: identity
            for place, identity in pairs
            if isinstance(place, str) and (group := _group(place, self._suffix)) is not None
        }
        own_identities = values.get(self._attributes.identity, [])
        identities = {**groups, caller: own_identities[0] if len(own_identities) == 1 else ""}
        return Principals(
            user.id,
            frozenset(groups),
            not self._administrators.isdisjoint(identities),
            {name: identity for name, identity in identities.items() if name_keys.is_identity(identity)},
            identify=self._identify,
        )


def refusal_of(status: int) -> Refusal:
    """Translate a status of tokeninfo (given 7)."""
    if status == 410:
        return NotSignedIn("The token has expired or was revoked.")
    if status == 401:
        return NotSignedIn("The token does not give access to this repository.")
    log.warning("directory unavailable", status=status)
    return DirectoryUnavailable("The directory that knows the callers cannot say whose token this is.")


@lru_cache(maxsize=10_000)
def _group(location: str, suffix: str) -> str | None:
    try:
        parts, ending = _folded_parts(location), _folded_parts(suffix)
    except MalformedName:
        return None
    cut = len(parts) - len(ending)
    if cut < 2 or parts[cut:] != ending:
        return None
    (group_kind, group), (partition_kind, partition) = parts[0], parts[cut - 1]
    if (group_kind, partition_kind) != ("cn", "ou"):
        return None
    return fold_name(f"{group}@{partition}")


def _folded_parts(location: str) -> list[tuple[str, str]]:
    return [(kind, fold_name(value)) for kind, value in read_dn(location)]
