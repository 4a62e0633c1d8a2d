"""The users and groups whom a repository's access role lets in, and the user who asks.

Source: docs/interface.md, ours 9. They are read from the directory.
"""

from collections.abc import Sequence
from urllib.parse import quote

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.cursors import CursorBinding
from muniment.repository.endpoints import collections, representations, spelling
from muniment.repository.endpoints.collections import FeedRequest, ListPage
from muniment.repository.endpoints.context import ENTERING, Answering, Caller, RepositoryContext, address, enter
from muniment.repository.endpoints.representations import Thing
from muniment.repository.endpoints.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.people import Kind, ListedPerson, People, Person
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import NotOfferedYet, UnknownPerson
from muniment.repository.repositories import Repository
from muniment.repository.search.atom import FeedEntry
from muniment.web.responses import ErrorCode, Table

TABLE: Table = {**ENTERING, **collections.SELECTING, UnknownPerson: ErrorCode(404, "E_UNKNOWN_PERSON")}

_DIGITS = {"user": "11", "group": "12"}


def lister(kind: Kind, *, of_group: bool = False) -> Answering:
    """Make the GET that lists users or groups. With ``of_group``, it lists the direct members of the group that the
    address names."""

    async def list_people(request: Request, context: RepositoryContext) -> Response:
        caller, people = await enter(request, context), _people(context)
        group_id = request.path_params["person"] if of_group else None
        here = address(request, context, caller.repository)
        own = f"{here}/groups/{quote(group_id, safe='@')}/{kind}s" if group_id else f"{here}/{kind}s"
        feed = collections.feed_request(request, context, own, f"{kind.capitalize()}s")
        return await collections.answer(
            caller,
            feed,
            lambda cx, principals, part: _people_page(
                cx, part, caller.repository, people, principals, kind, group_id, here
            ),
        )

    return list_people


def reader(kind: Kind) -> Answering:
    """Make the GET of one user or group."""

    async def read(request: Request, context: RepositoryContext) -> Response:
        caller, people = await enter(request, context), _people(context)
        media_type = spelling.negotiate(request, spelling.both(context.options.names))
        name = request.path_params["person"]
        person = await caller.read_long(lambda _cx, _principals: people.find(caller.repository.resource_id, kind, name))
        return _answer(request, context, caller, media_type, person)

    return read


async def current_user(request: Request, context: RepositoryContext) -> Response:
    """GET currentuser: the user who asks."""
    caller, people = await enter(request, context), _people(context)
    media_type = spelling.negotiate(request, spelling.both(context.options.names))
    person = await caller.read_long(
        lambda _cx, principals: people.find(caller.repository.resource_id, "user", principals.id)
    )
    return _answer(request, context, caller, media_type, person)


async def has_name(request: Request, context: RepositoryContext) -> bool:
    """Say whether the repository lets in a user or group with exactly the id in the address. Raises as ``enter``."""
    caller, people, person_id = await enter(request, context), _people(context), request.path_params["person"]
    kind: Kind = "group" if request.scope["path"].removesuffix(f"/{person_id}").endswith("/groups") else "user"

    def find(_cx: Connection, _principals: Principals) -> bool:
        try:
            people.find(caller.repository.resource_id, kind, person_id)
        except UnknownPerson:
            return False
        return True

    return await caller.read_long(find)


def _people(context: RepositoryContext) -> People:
    if context.people is None:
        raise NotOfferedYet("The users and groups of a directory that runs elsewhere are not offered yet.")
    return context.people


def _people_page(
    cx: Connection,
    feed: FeedRequest,
    repository: Repository,
    people: People,
    principals: Principals,
    kind: Kind,
    group_id: str | None,
    here: str,
) -> ListPage:
    resource_id, selection = repository.resource_id, feed.page.selection

    def entries(members: Sequence[ListedPerson]) -> list[FeedEntry]:
        feed_entries = []
        for person, _ in members:
            summary = person.description or person.id
            entry = collections.plain_entry(_address(here, person), person.id, "Muniment", summary, person.modified)
            if feed.page.inline:
                entry = feed.with_thing(entry, _thing(here, person, feed.names, feed.media_type))
            feed_entries.append(entry)
        return feed_entries

    return collections.page(
        cx,
        CursorBinding(repository.id, principals.key, f"{kind}s {group_id or ''}", selection.text),
        feed.page,
        lambda stretch: people.page(resource_id, kind, group_id, stretch, selection),
        entries,
        lambda: people.count(resource_id, kind, group_id, selection),
    )


def _answer(request: Request, context: RepositoryContext, caller: Caller, media_type: str, person: Person) -> Response:
    names, here = context.options.names, address(request, context, caller.repository)
    body = _thing(here, person, names, media_type).written(media_type, names)
    headers = {"Content-Type": media_type, **spelling.PRIVATE}
    return Response(body, headers=headers)


def _thing(here: str, person: Person, names: RepositoryNames, media_type: str) -> Thing:
    own, base, type_name = _address(here, person), names.linkrel_base, names.type_prefix + person.kind
    links = [("self", own)]
    properties: dict[str, Written] = {
        # Ids of the repository have 16 digits; the first 14 of an identity, which is a UUID, are as unique.
        spelling.write_property("r_object_id", names): _DIGITS[person.kind] + person.identity.replace("-", "")[:14],
        "description": person.description,
    }
    if person.kind == "user":
        properties |= {"user_name": person.id, "user_login_name": person.short_name}
    else:
        properties |= {"group_name": person.id, "group_display_name": person.short_name}
        links += [(f"{base}/users", f"{own}/users"), (f"{base}/groups", f"{own}/groups")]
    document: dict[str, Written] = {
        "name": person.kind,
        "type": type_name,
        "properties": properties,
        "links": [{"rel": rel, "href": href} for rel, href in links],
    }
    if media_type.endswith("xml"):
        document = {"properties": document["properties"], "links": document["links"]}
    return Thing(person.kind, document, {"": {"xsi:type": type_name}})


def _address(here: str, person: Person) -> str:
    if person.kind == "user":
        return representations.user_address(here, person.id)
    return f"{here}/groups/{quote(person.id, safe='@')}"
