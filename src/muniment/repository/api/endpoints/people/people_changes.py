"""Make, change and remove users, groups and memberships, for callers who administer the directory.

Source: docs/interface.md, ours 9. The directory decides each change.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.events import Event
from muniment.ground.naming import is_storable
from muniment.ground.refusals import Malformed
from muniment.repository import bare_names
from muniment.repository.api.context import Caller, RepositoryContext, enter
from muniment.repository.api.endpoints.people import people
from muniment.repository.api.shapes import object_body
from muniment.repository.api.wire import spelling
from muniment.repository.refusals import NotOfferedYet, NotWritable, UnknownProperty, WrongValue
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.people import Kind, PeopleChanges, PersonChange
from muniment.repository.store.repositories import Repository

_NAMES: Mapping[Kind, tuple[str, str]] = {
    "user": ("user_name", "user_login_name"),
    "group": ("group_name", "group_display_name"),
}
"""The property that holds the id, and the property that holds the second name (``Person``)."""

_OF_USERS = ("user_password", "user_address")
_READ_ONLY = ("r_object_id", "r_modify_date")
_LONGEST_TEXT = 4000
_STATES = range(4)
_ADDRESS = re.compile(r"/repositories/(?P<repository>[^/]+)/(?P<kind>user|group)s/(?P<person>[^/]+)/?\Z")


class PersonBody(msgspec.Struct):
    """The new properties of a user or group, by name."""

    properties: dict[str, Any]


class MemberReference(msgspec.Struct):
    """The address of a user or group of the same repository."""

    href: str


@events.tells("user or group")
async def make(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """Make a {kind} in the directory, as one of its administrators."""
    event, caller, changes = await _enter(request, context, f"{kind} made")
    media_type = context.thing_type(request)
    partition = context.options.default_partition
    person = await _read(request, context, kind, partition)
    if person.id is None and person.second_name:
        person = replace(person, id=_id(kind, person.second_name, partition), second_name=None)
    if person.id is None:
        raise WrongValue(f"{_NAMES[kind][0]!r} is missing: it is name@partition.")
    new_person = await caller.administer(lambda who: changes.add(who, kind, person))
    event.on = new_person.id
    return people.answer_with_person(caller, media_type, new_person, 201)


@events.tells("user or group")
async def change(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """Change a {kind} of the directory, as one of its administrators."""
    event, caller, changes = await _enter(request, context, f"{kind} changed")
    media_type = context.thing_type(request)
    person_id = people.person_at(request, context)
    body = await _read(request, context, kind, person_id.rpartition("@")[2])
    changed_person = await caller.administer(lambda who: changes.change(who, kind, person_id, body))
    event.on = changed_person.id
    return people.answer_with_person(caller, media_type, changed_person)


@events.tells("user or group")
async def remove(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """Remove a {kind} from the directory, as one of its administrators."""
    event, caller, changes = await _enter(request, context, f"{kind} removed")
    person_id = people.person_at(request, context)
    event.on = await caller.administer(lambda who: changes.remove(who, kind, person_id))
    return Response(status_code=204)


@events.tells("user or group")
async def add_member(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """Put a {kind} into a group, as an administrator of the directory."""
    event, caller, changes = await _enter(request, context, f"{kind} added to a group")
    media_type = context.thing_type(request)
    group_id = people.person_at(request, context)
    named_id = _member_id(await object_body.read_body(request, context), kind, caller.repository)
    member_id = bare_names.full_name(named_id, context.options)
    membership = await caller.administer(lambda who: changes.add_member(who, group_id, kind, member_id))
    event.on = f"{membership.member.id} in {membership.group.id}"
    answer = people.answer_with_person(caller, media_type, membership.member)
    answer.status_code = 201
    group_address = people.address_of(caller.here, membership.group)
    answer.headers["Location"] = people.membership_address(group_address, membership.member)
    return answer


@events.tells("user or group")
async def remove_member(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """Take a {kind} out of a group, as an administrator of the directory."""
    event, caller, changes = await _enter(request, context, f"{kind} removed from a group")
    group_id, member_id = people.person_at(request, context), people.last_person(request, context)
    membership = await caller.administer(lambda who: changes.remove_member(who, group_id, kind, member_id))
    event.on = f"{membership.member.id} in {membership.group.id}"
    return Response(status_code=204)


async def _enter(request: Request, context: RepositoryContext, how: str) -> tuple[Event, Caller, PeopleChanges]:
    event = events.begin(request.scope, "user or group", how=how)
    caller = await enter(request, context)
    if context.people_changes is None:
        raise NotOfferedYet("The users and groups of a directory that runs elsewhere are changed there.")
    caller.tell(event)
    return event, caller, context.people_changes


async def _read(request: Request, context: RepositoryContext, kind: Kind, partition: str) -> PersonChange:
    """A name without a partition belongs to ``partition``, if known."""
    names, metadata = context.names, await object_body.read_body(request, context)
    if metadata.type not in ("", kind, names.type_prefix + kind):
        raise WrongValue(f"A {kind} has the type {names.type_prefix + kind!r}.")
    id_property, name_property = _NAMES[kind]
    texts, state = dict[str, str](), None
    for name, value in metadata.properties.items():
        if name in (id_property, name_property, "description") or (kind == "user" and name in _OF_USERS):
            texts[name] = _text(name, value)
        elif kind == "user" and name == "user_state":
            state = _state(value)
        elif name in _READ_ONLY:
            raise NotWritable(f"The property {spelling.write_property(name, names)!r} is set by the directory.")
        elif name != "r_object_type":
            raise UnknownProperty(f"A {kind} has no property {name[:100]!r} that may be set.")
    return PersonChange(
        _id(kind, texts.get(id_property), partition),
        texts.get("description"),
        state,
        texts.get("user_password"),
        texts.get(name_property),
        texts.get("user_address"),
    )


def _text(name: str, value: Given) -> str:
    # No sentence repeats the value: it may be a password.
    text = "" if value is None else value
    if not isinstance(text, str) or not is_storable(text):
        raise WrongValue(f"The value of {name!r} must be a text.")
    if len(text) > _LONGEST_TEXT:
        raise WrongValue(f"The value of {name!r} has more than {_LONGEST_TEXT} characters.")
    return text


def _state(value: Given) -> int:
    number = int(value) if isinstance(value, str) and value in ("0", "1", "2", "3") else value
    if not isinstance(number, int) or isinstance(number, bool) or number not in _STATES:
        raise WrongValue("'user_state' is 0 (active), 1 (disabled), 2 (locked out) or 3 (both).")
    return number


def _id(kind: Kind, whole: str | None, partition: str) -> str | None:
    if whole is None:
        return None
    if "@" not in whole:
        if not partition:
            raise WrongValue(f"{_NAMES[kind][0]!r} is name@partition.")
        whole = f"{whole}@{partition}"
    return unicodedata.normalize("NFC", whole)


def _member_id(reference: object_body.Metadata, kind: Kind, repository: Repository) -> str:
    match = _ADDRESS.search(reference.href.partition("?")[0])
    if match is None or unquote(match["repository"]) != repository.name or match["kind"] != kind:
        raise Malformed(f"'href' must be the address of a {kind} of this repository, not {reference.href[:200]!r}.")
    return unquote(match["person"])
