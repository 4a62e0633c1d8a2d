"""What does a request ask for: at most one resource, and which scopes beside it (RFC 6749 3.3, RFC 8707)?

A scope names the resource as ``resource:<resource+name>`` (given 4.1); the parameter ``resource`` names it by its
address or as ``urn:uuid:<identifier>``. Stored scopes have neutral names, which DirectoryNames spells.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import names as spelling
from muniment.directory.entries import resources
from muniment.directory.entries.oauth_clients import ClientSettings, Made
from muniment.directory.entries.resources import ADMINISTRATION, Resource
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import InvalidScope, InvalidTarget, UnknownResource

SCOPES = ("openid", "profile", "email", "roles", "groups", "roleids", "groupids")
"""By their neutral names, all that can be granted beside a resource."""

_OURS = frozenset(SCOPES[3:])
"""Those that have the prefix of ``DirectoryNames.scope_prefix``."""

_LONGEST = 1000
_RESOURCE = "resource:"
_BY_ID = "urn:uuid:"
_MOST_READINGS = 8
_WITH_PASSWORD = frozenset[Made](("password", "client_credentials"))

AddressFinder: TypeAlias = Callable[[Connection, str], str | None]
"""The identifier of the resource whose API is at an address, beside the addresses that resources have themselves."""


class RequestedScope(msgspec.Struct, frozen=True):
    """What is to be granted. ``scopes`` are some of SCOPES, in their order.

    ``told`` is what the response has to say of it, because the client asked otherwise (RFC 6749 5.1); empty = nothing.
    """

    resource: Resource | None
    scopes: tuple[str, ...]
    told: str = ""

    @property
    def resource_id(self) -> str:
        """As ``tokens.Grant`` has it."""
        return "" if self.resource is None else self.resource.id

    @property
    def text(self) -> str:
        """As ``tokens.Grant.scopes`` has it."""
        return " ".join(self.scopes)


def read(
    cx: Connection,
    names: DirectoryNames,
    settings: ClientSettings,
    made: Made,
    scope: str | None,
    resource: str | None = None,
    find_address: AddressFinder | None = None,
) -> RequestedScope:
    """What is left out is the client's default. With ``openid``, unknown scopes are ignored (OpenID Connect Core
    3.1.2.1).

    Raises InvalidScope, also for what the client may not ask for, and InvalidTarget.
    """
    asked = " ".join(settings.default_scopes) if scope is None else scope
    if len(asked) > _LONGEST:
        raise InvalidScope(f"A scope has at most {_LONGEST} characters.")
    if scope is not None and not scope.strip():
        raise InvalidScope("The scope is empty.")
    named, words = _read_words(cx, names, asked)
    by_parameter = None if resource is None else _by_parameter(cx, resource, find_address)
    if named is not None and by_parameter is not None and named.id != by_parameter.id:
        raise InvalidTarget("The scope and the parameter resource name two resources. A token is for one.")
    granted = tuple(each for each in SCOPES if spell_scope(names, each) in words)
    unknown = set(words).difference(spell_scope(names, each) for each in granted)
    if unknown and scope is not None and "openid" not in granted:
        raise InvalidScope("The scope has a value that this directory does not know.")
    chosen = named or by_parameter or _default(cx, settings)
    require_may_have(names, settings, made, chosen, granted)
    answer = spell(names, chosen, granted)
    is_as_asked = scope is not None and set(words) == set(granted) and (named is None) == (chosen is None)
    return RequestedScope(chosen, granted, "" if is_as_asked else answer)


def require_may_have(
    names: DirectoryNames, settings: ClientSettings, made: Made, resource: Resource | None, scopes: Collection[str]
) -> None:
    """Whether a client with these settings may get ``scopes`` at the ``resource``. Raises InvalidScope."""
    # Whoever has the user's password gets the same by any public client (given 4.1).
    if made != "password":
        _require_allowed(names, settings, resource, scopes)
    _require_marked(settings, made, resource)


def as_now(
    cx: Connection, names: DirectoryNames, settings: ClientSettings, made: Made, asked: RequestedScope
) -> RequestedScope:
    """What was asked for in an earlier snapshot, with its resource as it is now. Raises what ``read`` raises of what
    the client may no longer ask for, and of a resource that lets nobody in.
    """
    resource = asked.resource
    if resource is not None:
        try:
            resource = resources.letting_in(cx, resource.id)
        except UnknownResource as refusal:
            raise InvalidScope("The resource issues no tokens now.") from refusal
    require_may_have(names, settings, made, resource, asked.scopes)
    told = spell(names, resource, asked.scopes) if asked.told else ""
    return msgspec.structs.replace(asked, resource=resource, told=told)


def spell(names: DirectoryNames, resource: Resource | None, scopes: Collection[str]) -> str:
    """As a client reads it: ``scopes`` and the resource's."""
    own = [] if resource is None else [resources.scope(names, resource)]
    return " ".join([*own, *(spell_scope(names, scope) for scope in scopes)])


def spell_scope(names: DirectoryNames, scope: str) -> str:
    """Spell one of SCOPES."""
    return f"{names.scope_prefix}{scope}" if scope in _OURS else scope


def resource_of(cx: Connection, names: DirectoryNames, scope: str) -> Resource:
    """The whole text names it, by its name or identifier. It lets users in. Raises InvalidScope."""
    name = spelling.resource_name(scope)
    try:
        resource = _find(cx, names, name)
    except UnknownResource as unknown:
        raise InvalidScope("The scope names no resource.") from unknown
    try:
        return resources.require_letting_in(resource)
    except UnknownResource as refusal:
        raise InvalidScope(refusal.sentence) from refusal


def _find(cx: Connection, names: DirectoryNames, name: str) -> Resource:
    try:
        return resources.find(cx, names, name)
    except UnknownResource:
        return resources.by_id(cx, name)


def _read_words(cx: Connection, names: DirectoryNames, text: str) -> tuple[Resource | None, Sequence[str]]:
    """Names of resources may hold spaces, which a decoded form has instead of ``+``: the longest name counts."""
    words = [word for word in text.split(" ") if word]
    places = [place for place, word in enumerate(words) if word.startswith(_RESOURCE)]
    if not places:
        return None, words
    begin, others = places[0], words[: places[0]]
    known = {*(spell_scope(names, scope) for scope in SCOPES)}
    ends = [len(words)]
    while ends[-1] > begin + 1 and words[ends[-1] - 1] in known and len(ends) < _MOST_READINGS:
        ends.append(ends[-1] - 1)
    refusals: list[InvalidScope] = []
    for end in ends:
        try:
            return resource_of(cx, names, " ".join(words[begin:end])), [*others, *words[end:]]
        except InvalidScope as refusal:
            refusals.append(refusal)
    if len(places) > 1:
        raise InvalidScope("The scope names two resources. A token is for one.")
    raise refusals[-1]


def _by_parameter(cx: Connection, text: str, find_address: AddressFinder | None) -> Resource:
    if text.lower().startswith(_BY_ID):
        resource_id: str | None = text[len(_BY_ID) :]
    else:
        resource_id = resources.at_address(cx, text)
        if resource_id is None and find_address is not None:
            resource_id = find_address(cx, text)
    try:
        return resources.letting_in(cx, resource_id or "")
    except UnknownResource as refusal:
        raise InvalidTarget("The parameter resource names no resource that issues tokens.") from refusal


def _default(cx: Connection, settings: ClientSettings) -> Resource | None:
    if not settings.default_resource:
        return None
    try:
        return resources.letting_in(cx, settings.default_resource)
    except UnknownResource as refusal:
        raise InvalidTarget("The client's default resource issues no tokens now.") from refusal


def _require_allowed(
    names: DirectoryNames, settings: ClientSettings, resource: Resource | None, scopes: Collection[str]
) -> None:
    """The default resource needs no permission of its own."""
    if not settings.allowed_scopes:
        return
    allowed = set(settings.allowed_scopes)
    may_have = resource is None or resource.id == settings.default_resource
    if resource is not None and not may_have:
        spellings = {resources.scope(names, resource), _RESOURCE + resources.shown_name(names, resource)}
        may_have = not allowed.isdisjoint(spellings | {_RESOURCE + resource.id})
    if not may_have or not allowed.issuperset(spell_scope(names, scope) for scope in scopes):
        raise InvalidScope("The client may not ask for all of this scope: its allowedScopes say what it may.")


def _require_marked(settings: ClientSettings, made: Made, resource: Resource | None) -> None:
    if resource is not None and resource.built_in == ADMINISTRATION and not may_administer(settings, made):
        raise InvalidScope("An administrator must first allow the client to ask for the administration's resource.")


def may_administer(settings: ClientSettings, made: Made) -> bool:
    """Whether a grant that was made so may be for the administration's resource."""
    return settings.may_administer or made in _WITH_PASSWORD
