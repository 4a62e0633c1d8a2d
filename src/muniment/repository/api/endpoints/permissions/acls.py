"""List, show, make, change and remove ACLs. An address names an ACL by its id or its name.

Source: docs/interface.md, ours 4.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.naming import fold_name
from muniment.ground.refusals import Malformed
from muniment.ground.xml import Element
from muniment.repository import bare_names
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.shapes import collections, object_body, representations
from muniment.repository.api.shapes.collections import FeedRequest, ListPage
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.api.wire import spelling
from muniment.repository.bulk import removal
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.refusals import NotOfferedYet, UnknownAcl, WrongValue
from muniment.repository.search.answering.atom import FeedEntry
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.permissions import acl_lists, acls
from muniment.repository.store.permissions.acl_lists import ListedAcl
from muniment.repository.store.permissions.acl_names import AclQuota
from muniment.repository.store.permissions.acls import Acl, AclSummary
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository

_LEVELS = {level.name.lower(): level for level in Permission}
_EXTENDED = ("extend-permissions", "application-permission")


class AclEntryBody(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    """One entry of an ACL: a user, a group, the owner or everybody, and what they may do at most.

    Extended permissions are read so that they can be refused by name.
    """

    accessor: str
    basic_permission: str
    extend_permissions: str | list[str] | None = None
    application_permission: str | list[str] | None = None


class AclProperties(msgspec.Struct):
    """The properties of an ACL that a body may give. ``acl_domain`` is its owner, who must be the one who has it."""

    object_name: str = ""
    description: str | None = None
    acl_domain: str = ""


class AclBody(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    """An ACL with its entries. Its name is in ``name`` or in ``properties``.

    A body that assigns an ACL names it in ``acl-name``. An ACL or a permission set that was read may be sent back: its
    ``id``, ``owner``, ``basic-permission`` and links change nothing, and neither do a ``type`` and a ``definition``.
    """

    name: str = ""
    acl_name: str = ""
    permitted: list[AclEntryBody] | None = None
    properties: AclProperties = msgspec.field(default_factory=AclProperties)
    type: Any = None
    definition: Any = None
    id: Any = None
    owner: Any = None
    basic_permission: Any = None
    links: Any = None
    hal_links: Any = msgspec.field(default=None, name="_links")

    @property
    def object_name(self) -> str:
        """Raises WrongValue if the two differ."""
        if self.name and self.properties.object_name and self.name != self.properties.object_name:
            raise WrongValue("The body gives the ACL two different names.")
        return self.name or self.properties.object_name


_body = msgspec.json.Decoder(AclBody)


class _VisibleAcl(msgspec.Struct, frozen=True):
    acl: Acl
    entries: Mapping[str, Permission]


async def list_all(request: Request, context: RepositoryContext) -> Response:
    """List the ACLs that the caller may see."""
    return await collections.answer_list(request, context, "acls", "ACLs", _acl_page)


@events.tells("acl")
async def make(request: Request, context: RepositoryContext) -> Response:
    """Make an ACL, which the caller owns."""
    event = events.begin(request.scope, "acl", how="made")
    caller, media_type = await enter_for_thing(request, context, event)
    repository = caller.repository
    body = await read_body(request, context)
    name, entries, quota = body.object_name, read_entries(body.permitted or [], context.names), _quota(context)

    def decide(cx: Connection, principals: Principals) -> _VisibleAcl:
        whole = with_whole_names(entries, principals, context.options)
        _check_domain(body, principals.id, context.options)
        now, description = context.clock(), body.properties.description or ""
        acl = acls.add(cx, repository.id, name, principals, whole, now, quota, description=description)
        return _visible(cx, acl, principals)

    new_acl = await caller.write(decide)
    event.on = new_acl.acl.name
    return _answer(caller, media_type, new_acl, 201)


async def read(request: Request, context: RepositoryContext) -> Response:
    """Show an ACL."""
    caller, media_type = await enter_for_thing(request, context)
    repository, name = caller.repository, _acl_name(request)
    acl = await caller.read(
        lambda cx, principals: _visible(cx, acls.find(cx, repository.id, name, principals), principals)
    )
    return _answer(caller, media_type, acl, 200)


@events.tells("acl")
async def change(request: Request, context: RepositoryContext) -> Response:
    """Replace the entries of an ACL, or its description."""
    event = events.begin(request.scope, "acl", how="changed")
    caller, media_type = await enter_for_thing(request, context, event)
    repository = caller.repository
    body = await read_body(request, context)
    description = body.properties.description
    if body.permitted is None and description is None:
        raise WrongValue("Say in 'permitted' who may do how much.")
    entries = None if body.permitted is None else read_entries(body.permitted, context.names)
    name, quota, new_name = _acl_name(request), _quota(context), body.object_name

    def decide(cx: Connection, principals: Principals) -> _VisibleAcl:
        acl = acls.find(cx, repository.id, name, principals)
        if new_name and new_name != acl.name:
            raise WrongValue("An ACL keeps its name.")
        _check_domain(body, acl.owner, context.options)
        now = context.clock()
        if description is not None:
            acl = acls.describe(cx, acl, principals, description, now)
        if entries is not None:
            whole = with_whole_names(entries, principals, context.options)
            acl = acls.change(cx, acl, principals, whole, now, quota)
        return _visible(cx, acl, principals)

    changed_acl = await caller.write(decide)
    event.on = changed_acl.acl.name
    return _answer(caller, media_type, changed_acl, 200)


@events.tells("acl")
async def remove(request: Request, context: RepositoryContext) -> Response:
    """Remove an ACL that no object carries."""
    event = events.begin(request.scope, "acl", how="removed")
    caller = await enter(request, context, event)
    name = _acl_name(request)
    await caller.write(lambda cx, principals: _remove(cx, caller.repository, name, principals))
    event.on = name
    return Response(status_code=204)


async def list_associations(request: Request, context: RepositoryContext) -> Response:
    """List the objects that carry an ACL, and the folders whose new objects get it."""
    name = _acl_name(request)

    def question(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
        acl = acls.find(cx, feed.repository.id, name, principals)
        view, selection = RepositoryView.read(cx, feed.repository, principals), feed.page.selection
        prefix = feed.names.type_prefix
        return feed.listed(
            cx,
            principals,
            f"associations {acl.shown_id}",
            lambda stretch: lists.page_of_acl(cx, view, acl.id, stretch, selection, type_prefix=prefix),
            lambda members: feed.with_objects(cx, view, members, collections.object_entry),
            lambda: lists.count_of_acl(cx, view, acl.id, selection, type_prefix=prefix),
            in_portions=True,
        )

    return await collections.answer_list(request, context, f"acls/{quote(name)}/associations", "Associations", question)


async def has_name(request: Request, context: RepositoryContext) -> bool:
    """Return whether the whole last part, suffix included, names an ACL that the caller may see.

    Raises what ``enter`` raises.
    """
    caller, name = await enter(request, context), _acl_name(request)
    return await caller.read(lambda cx, principals: _has_name(cx, caller.repository, name, principals))


def _has_name(cx: Connection, repository: Repository, name: str, principals: Principals) -> bool:
    try:
        acls.find(cx, repository.id, name, principals)
    except UnknownAcl:
        return False
    return True


def _acl_name(request: Request) -> str:
    text: str = request.path_params["acl"]
    return text


def _quota(context: RepositoryContext) -> AclQuota:
    return AclQuota(context.options.max_acls, context.options.max_acl_entries)


def _acl_page(cx: Connection, principals: Principals, feed: FeedRequest) -> ListPage:
    repository, selection = feed.repository, feed.page.selection

    def entries(members: Sequence[ListedAcl]) -> list[FeedEntry]:
        shown_entries = acl_lists.entries(cx, members, principals) if feed.page.inline else {}
        return [_entry(feed, acl, shown_entries.get(acl.id, {})) for acl, *_ in members]

    return feed.listed(
        cx,
        principals,
        "acls",
        lambda stretch: acl_lists.acl_page(cx, repository.id, principals, stretch, selection),
        entries,
        lambda: acl_lists.count_acls(cx, repository.id, principals, selection),
    )


def _entry(feed: FeedRequest, acl: AclSummary, shown_entries: Mapping[str, Permission]) -> FeedEntry:
    return feed.entry(
        f"{feed.own}/{acl.shown_id}",
        acl.name,
        acl.owner,
        f"{acl.entries} entries" if acl.entries != 1 else "1 entry",
        acl.modified,
        lambda: Thing("acl", representations.acl_document(feed.here, acl, shown_entries, feed.names)),
        published=acl.created,
    )


def _remove(cx: Connection, repository: Repository, name: str, principals: Principals) -> None:
    removal.remove_acl(cx, acls.find(cx, repository.id, name, principals), principals)


def _visible(cx: Connection, acl: Acl, principals: Principals) -> _VisibleAcl:
    return _VisibleAcl(acl, acls.shown_entries(cx, acl, principals))


async def read_body(request: Request, context: RepositoryContext) -> AclBody:
    """Raises UnsupportedMediaType, TooLarge, TimedOut, Malformed, WrongValue."""
    return await object_body.receive(request, context, _body, _from_xml)


def _from_xml(root: Element, names: RepositoryNames) -> AclBody:
    body = AclBody()
    object_body.check_namespace(root, names)
    for name, part in _members(root, AclBody.__struct_encode_fields__, names).items():
        match name:
            case "name":
                body.name = part.text
            case "acl-name":
                body.acl_name = part.text.strip()
            case "permitted":
                body.permitted = [_read_entry(entry, names) for entry in part.children]
            case "properties":
                given = object_body.properties(part, names)
                description = _text(given["description"]) if "description" in given else None
                body.properties = AclProperties(
                    _text(given.get("object_name")), description, _text(given.get("acl_domain"))
                )
    return body


def _members(element: Element, known: Sequence[str], names: RepositoryNames) -> dict[str, Element]:
    """Raises Malformed for an unknown one, or a second one."""
    members: dict[str, Element] = {}
    for part in element.children:
        object_body.check_namespace(part, names)
        if part.name not in known or part.name in members:
            trouble = "comes twice" if part.name in members else f"does not belong in {element.name[:100]!r}"
            raise Malformed(f"The element {part.name[:100]!r} {trouble} ({part.place}).")
        members[part.name] = part
    return members


def _text(value: Given) -> str:
    if value is not None and not isinstance(value, str):
        raise WrongValue("The name, the description and the owner of an ACL are one text each.")
    return value or ""


def _read_entry(entry: Element, names: RepositoryNames) -> AclEntryBody:
    for name in entry.attributes:
        if not name.startswith("{"):
            raise Malformed(f"A permission has no attribute {name[:100]!r} ({entry.place}).")
    parts = _members(entry, AclEntryBody.__struct_encode_fields__, names)
    if "accessor" not in parts or "basic-permission" not in parts:
        raise Malformed(f"A permission has an accessor and a basic-permission ({entry.place}).")
    extended = next((name for name in _EXTENDED if name in parts and (parts[name].children or parts[name].text)), None)
    return AclEntryBody(parts["accessor"].text.strip(), parts["basic-permission"].text.strip(), extended)


def read_entries(bodies_of_entries: Sequence[AclEntryBody], names: RepositoryNames) -> dict[str, Permission]:
    """Raises WrongValue, NotOfferedYet."""
    entries: dict[str, Permission] = {}
    for entry in bodies_of_entries:
        if entry.extend_permissions or entry.application_permission:
            raise NotOfferedYet("Extended and application permissions are not offered yet.")
        level = _LEVELS.get(entry.basic_permission.lower())
        if level is None:
            level_names = ", ".join(name.capitalize() for name in _LEVELS)
            raise WrongValue(f"There is no permission {entry.basic_permission[:40]!r}: it is one of {level_names}.")
        accessor = spelling.read_accessor(entry.accessor, names)
        if accessor in entries:
            raise WrongValue(f"The ACL names {entry.accessor[:100]!r} twice.")
        entries[accessor] = level
    return entries


def _check_domain(body: AclBody, owner: str, options: RepositoryOptions) -> None:
    domain = bare_names.full_name(body.properties.acl_domain, options)
    if domain and fold_name(domain) != fold_name(owner):
        raise WrongValue(f"This ACL belongs to {owner}: 'acl_domain' cannot give it to somebody else.")


def with_whole_names(
    entries: Mapping[str, Permission], principals: Principals, options: RepositoryOptions
) -> dict[str, Permission]:
    """Raises UnknownAccessor for a bare name that nobody bears, and WrongValue if two names are one."""
    whole_names = principals.whole_names(entries, options)
    if len(set(whole_names.values())) < len(entries):
        raise WrongValue("The ACL names one user or group twice.")
    return {whole_names[name]: level for name, level in entries.items()}


def _answer(
    caller: Caller,
    media_type: str,
    answer: _VisibleAcl,
    status: int,
) -> Response:
    here, acl, names = caller.here, answer.acl, caller.names
    document = representations.acl_document(here, acl, answer.entries, names)
    return spelling.reply(media_type, "acl", document, names, status, f"{here}/acls/{acl.shown_id}")
