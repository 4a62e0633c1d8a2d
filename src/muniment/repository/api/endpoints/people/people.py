"""The users and groups whom a repository's access role lets in, and the user who asks.

Source: docs/interface.md, ours 9.
"""

from urllib.parse import quote

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository import bare_names
from muniment.repository.api.context import Caller, RepositoryContext, enter
from muniment.repository.api.shapes import collections, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import ObjectBody, Thing
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import NotOfferedYet, NotPermitted, UnknownPerson
from muniment.repository.search.answering.atom import FeedEntry, Link
from muniment.repository.store.objects.folders import folders
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.people import Kind, MemberFilter, People, PeopleFilter, Person
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

_DIGITS = {"user": "11", "group": "12"}


async def list_people(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """List {kind}s whom the repository lets in, directly in a group if the address names one."""
    caller, people = await enter(request, context), of_directory(context)
    group_id = person_at(request, context) if "person" in request.path_params else None
    path = f"groups/{quote(group_id, safe='@')}/{kind}s" if group_id else f"{kind}s"
    which = PeopleFilter(caller.repository.resource_id, kind, group_id, _having(request, context))
    feed = collections.feed_request(request, context, caller, path, f"{kind.capitalize()}s")
    return await collections.answer_with_list(
        feed, lambda cx, principals, feed: _people_page(cx, feed, people, principals, which)
    )


def _having(request: Request, context: RepositoryContext) -> tuple[MemberFilter, ...]:
    values = parameters.read(request)
    recursive = parameters.truth(values, parameters.RECURSIVE.name)
    named: list[tuple[Kind, str]] = [
        ("user", values.get(parameters.USER_NAME.name, "")),
        ("group", values.get(parameters.GROUP_NAME.name, "")),
    ]
    return tuple(
        MemberFilter(kind, bare_names.full_name(name, context.options), recursive) for kind, name in named if name
    )


async def read(request: Request, context: RepositoryContext, kind: Kind) -> Response:
    """Show a {kind} whom the repository lets in, directly in a group if the address names two."""
    caller = await enter(request, context)
    media_type = context.thing_type(request)
    return answer_with_person(caller, media_type, await find_person(request, context, caller, kind))


async def find_person(request: Request, context: RepositoryContext, caller: Caller, kind: Kind) -> Person:
    """Find the user or group that the address names. Callers who administer the directory find those, too, whom the
    repository does not let in.

    Raises UnknownPerson, NotOfferedYet, and what ``Caller.read_long`` raises.
    """
    people, person_id = of_directory(context), last_person(request, context)
    group_id = person_at(request, context) if "member" in request.path_params else None
    try:
        return await caller.read_long(
            lambda _cx, _principals: people.find(caller.repository.resource_id, kind, person_id, group_id)
        )
    except UnknownPerson as unknown:
        changes = context.people_changes
        if changes is None:
            raise
        try:
            return await caller.administer(lambda who: changes.find(who, kind, person_id, group_id))
        except NotPermitted:
            raise unknown from None


async def current_user(request: Request, context: RepositoryContext) -> Response:
    """Show the user who asks."""
    caller, people = await enter(request, context), of_directory(context)
    media_type = context.thing_type(request)
    person = await caller.read_long(
        lambda _cx, principals: people.find(caller.repository.resource_id, "user", principals.id)
    )
    return answer_with_person(caller, media_type, person)


async def home(request: Request, context: RepositoryContext) -> Response:
    """Show the cabinet that is a user's home."""
    caller = await enter(request, context)
    repository, names, user = caller.repository, context.names, await find_person(request, context, caller, "user")
    media_type, values = context.thing_type(request), parameters.read(request)
    view = representations.read_view(values, names)
    links = parameters.truth(values, "links", default=True)

    def read(cx: Connection, principals: Principals) -> ObjectBody:
        seen = RepositoryView.read(cx, repository, principals)
        return collections.object_bodies(cx, seen, [folders.home(cx, seen, user)])[0]

    whole = await caller.read_long(read)
    return representations.object_answer(request, caller, media_type, whole, view=view, links=links, root="folder")


async def has_name(request: Request, context: RepositoryContext) -> bool:
    """Return whether the whole last part, suffix included, is a user's or group's id.

    Raises what ``find_person`` raises.
    """
    caller = await enter(request, context)
    place = request.path_params.get("member") or request.path_params["person"]
    kind: Kind = "group" if request.scope["path"].removesuffix(f"/{place}").endswith("/groups") else "user"
    try:
        await find_person(request, context, caller, kind)
    except UnknownPerson:
        return False
    return True


def last_person(request: Request, context: RepositoryContext) -> str:
    """Return the member if the address is that of a membership."""
    return person_at(request, context, "member" if "member" in request.path_params else "person")


def person_at(request: Request, context: RepositoryContext, part: str = "person") -> str:
    """Return the id of the user or group that a part of the address names, perhaps by the bare name."""
    return bare_names.full_name(request.path_params[part], context.options)


def of_directory(context: RepositoryContext) -> People:
    """Raises NotOfferedYet if it runs elsewhere and no file has secrets for it."""
    if context.people is None:
        raise NotOfferedYet(
            "The users and groups of a directory that runs elsewhere are offered once "
            "'repository.resource_secrets_file' has the secret of this repository's resource."
        )
    return context.people


def principals_of(cx: Connection, context: RepositoryContext, repository: Repository, user_id: str) -> Principals:
    """Include groups, as of now.

    Raises UnknownPerson, NotOfferedYet.
    """
    described = of_directory(context).describe(repository.resource_id, user_id)
    principals = context.callers.principals(described)
    return principals.with_keys(name_keys.keys(cx, principals.names))


def _people_page(
    cx: Connection, feed: FeedRequest, people: People, principals: Principals, which: PeopleFilter
) -> ListPage:
    group_id, selection, here = which.group_id, feed.page.selection, feed.here

    def entry(person: Person) -> FeedEntry:
        own, summary = address_of(here, person), person.description or person.id
        shown = feed.entry(
            own,
            bare_names.shown_name(person.id, feed.context.options),
            "Muniment",
            summary,
            person.modified,
            lambda: _thing(here, person, feed.names, feed.media_type),
        )
        if group_id is None:
            return shown
        membership = membership_address(group_address(here, group_id), person)
        return msgspec.structs.replace(shown, links=(Link(f"{feed.names.linkrel_base}/delete", membership),))

    return feed.listed(
        cx,
        principals,
        f"{which.kind}s {group_id or ''} {which.having or ''}",
        lambda stretch: people.page(which, stretch, selection),
        lambda members: [entry(person) for person, _ in members],
        lambda: people.count(which, selection),
    )


def answer_with_person(caller: Caller, media_type: str, person: Person, status: int = 200) -> Response:
    """With 201, Location has the person's address."""
    names, here = caller.names, caller.here
    return _thing(here, person, names, media_type).reply(media_type, names, status, address_of(here, person))


def _thing(here: str, person: Person, names: RepositoryNames, media_type: str) -> Thing:
    own, base, type_name = address_of(here, person), names.linkrel_base, names.type_prefix + person.kind
    links = [("self", own), ("edit", own), (f"{base}/delete", own)]
    if person.kind == "user":
        links += [(f"{base}/default-folder", f"{own}/home"), (f"{base}/permission-set", f"{own}/permission-set")]
    else:
        links += [(f"{base}/users", f"{own}/users"), (f"{base}/groups", f"{own}/groups")]
    document: dict[str, Written] = {
        "name": person.kind,
        "type": type_name,
        "properties": person_properties(person, names),
        "links": [{"rel": rel, "href": href} for rel, href in links],
    }
    if media_type.endswith("xml"):
        document = {"properties": document["properties"], "links": document["links"]}
    return Thing(person.kind, document, {"": {"xsi:type": type_name}})


def person_properties(person: Person, names: RepositoryNames) -> dict[str, Written]:
    # Ids of the repository have 16 digits. The first 14 digits of an identity, which is a UUID, are unique enough.
    identity = _DIGITS[person.kind] + person.identity.replace("-", "")[:14]
    properties: dict[str, Written] = {
        spelling.write_property("r_object_id", names): identity,
        "description": person.description,
    }
    if person.kind == "user":
        properties |= {"user_name": person.id, "user_login_name": person.second_name, "user_address": person.address}
        return properties if person.state is None else properties | {"user_state": person.state}
    return properties | {"group_name": person.id, "group_display_name": person.second_name}


def address_of(here: str, person: Person) -> str:
    if person.kind == "user":
        return representations.user_address(here, person.id)
    return group_address(here, person.id)


def group_address(here: str, group_id: str) -> str:
    return f"{here}/groups/{quote(group_id, safe='@')}"


def membership_address(group: str, member: Person) -> str:
    return f"{group}/{member.kind}s/{quote(member.id, safe='@')}"
