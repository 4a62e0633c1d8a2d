"""Objects, ACLs and types as the wire shows them, in JSON or XML, and lists of them as feeds.

Sources: given 2.9 (feeds); docs/interface.md, ours 1 (types), ours 2 (objects), ours 3 (contents),
ours 4 (permission sets), ours 5 (lists).
"""

import hashlib
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.clock import Instant, timestamp
from muniment.repository.cursors import Part
from muniment.repository.endpoints import spelling
from muniment.repository.endpoints.context import RepositoryContext
from muniment.repository.endpoints.parameters import LIST, TYPED_LIST
from muniment.repository.endpoints.spelling import Written
from muniment.repository.objects.object_ids import kind_of
from muniment.repository.objects.object_types import Catalogue, ObjectType
from muniment.repository.objects.objects import StoredObject, values
from muniment.repository.objects.properties import PropertyDefinition, Value
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.permissions.acls import Acl
from muniment.repository.permissions.principals import Permission
from muniment.repository.refusals import NotOfferedYet, VersionConflict
from muniment.repository.search import atom
from muniment.web import bodies
from muniment.web.addresses import Parameter
from muniment.web.refusals import Malformed

_LATER = ("view", "filter", "sort", "inline", "links", "locations", "facet")


class ObjectBody(msgspec.Struct, frozen=True):
    """An object with what else its representation needs."""

    stored: StoredObject
    catalogue: Catalogue
    acl_name: str
    index_status: str


class Page(msgspec.Struct, frozen=True):
    """Which part of a list is wanted, of members of which type, and whether they are to be counted."""

    part: Part
    include_total: bool
    object_type: str | None


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list: its entries, the cursor of the next one (None for the last), and how many there are in all
    where that was asked for."""

    entries: Sequence[atom.FeedEntry]
    following: str | None
    total: int | None = None


def object_answer(
    request: Request, context: RepositoryContext, media_type: str, here: str, shown: ObjectBody, status: int = 200
) -> Response:
    """Answer with an object: 200, 201 with its address, or 304 when the caller has it already."""
    names, stored = context.options.names, shown.stored
    kind = kind_of(stored.id)
    own = f"{here}/{kind}s/{stored.id}"
    type_name = spelling.write_type(stored.type, names)
    definition = f"{here}/types/{quote(type_name)}"
    document: dict[str, Written] = {
        "name": kind,
        "type": type_name,
        "definition": definition,
        "properties": _properties(shown, names),
        "links": object_links(here, stored, names),
    }
    if media_type.endswith("xml"):
        document = {"properties": document["properties"], "links": document["links"]}
    attributes = {
        "": {"xsi:type": type_name, "definition": definition},
        "properties": {"xsi:type": f"{type_name}-properties"},
    }
    body = spelling.answer(media_type, kind, document, names, attributes=attributes)
    etag = f'"{stored.revision}-{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
    if status == 201:
        headers["Location"] = own
    if request.method in ("GET", "HEAD") and matches(request, "if-none-match", etag):
        return Response(status_code=304, headers=headers)
    return Response(body, status, {**headers, "Content-Type": media_type})


def object_links(here: str, stored: StoredObject, names: RepositoryNames) -> list[Written]:
    """List the addresses that belong to an object (docs/interface.md, ours 2)."""
    kind = kind_of(stored.id)
    own, thing = f"{here}/{kind}s/{stored.id}", f"{here}/objects/{stored.id}"
    found = [("self", own), ("edit", own), ("canonical", thing), (f"{names.linkrel_base}/delete", own)]
    if kind in ("folder", "cabinet"):
        below = f"{here}/folders/{stored.id}"
        found += [(f"{names.linkrel_base}/{part}", f"{below}/{part}") for part in ("folders", "documents", "objects")]
    else:
        found += [
            ("contents", f"{thing}/contents"),
            (f"{names.linkrel_base}/primary-content", f"{thing}/contents/content"),
            (f"{names.linkrel_base}/content-media", f"{thing}/content-media"),
            (f"{names.linkrel_base}/index-status", f"{thing}/index-status"),
        ]
    if stored.folder_id is not None:
        found.append(("parent", f"{here}/{kind_of(stored.folder_id)}s/{stored.folder_id}"))
    found.append((f"{names.linkrel_base}/permission-set", f"{thing}/permission-set"))
    return [{"rel": rel, "href": href} for rel, href in found]


def content_document(here: str, stored: StoredObject, names: RepositoryNames) -> dict[str, Written]:
    """Describe an object's content (docs/interface.md, ours 3)."""
    thing = f"{here}/objects/{stored.id}"
    return {
        "name": "content",
        "properties": {
            "object_name": stored.name,
            spelling.write_property("r_object_id", names): "06" + stored.id[2:],
            "format_name": stored.media_type,
            "full_content_size": stored.content.size if stored.content else 0,
            "sha256": stored.content.sha256.hex() if stored.content else None,
        },
        "links": [
            {"rel": "self", "href": f"{thing}/contents/content"},
            {"rel": "parent", "href": thing},
            {"rel": "enclosure", "href": f"{thing}/content-media", "title": "LOCAL"},
            {"rel": f"{names.linkrel_base}/content-media", "href": f"{thing}/content-media"},
        ],
    }


def acl_document(here: str, acl: Acl, entries: Mapping[str, Permission], names: RepositoryNames) -> dict[str, Written]:
    """Describe an ACL with those of its entries that may be seen."""
    own = f"{here}/acls/{acl.shown_id}"
    return {
        "id": acl.shown_id,
        "name": acl.name,
        "owner": acl.owner,
        "permitted": permitted(entries, names),
        "links": [{"rel": "self", "href": own}, {"rel": "edit", "href": own}],
    }


def permitted(entries: Mapping[str, Permission], names: RepositoryNames) -> list[Written]:
    """List ACL entries as permission sets show them (docs/interface.md, ours 4)."""
    return [
        {"accessor": spelling.write_accessor(accessor, names), "basic-permission": level.name.capitalize()}
        for accessor, level in entries.items()
    ]


def type_document(here: str, kind: ObjectType, catalogue: Catalogue, names: RepositoryNames) -> dict[str, Written]:
    """Describe an object type with all its properties, inherited ones first."""
    own = f"{here}/types/{quote(spelling.write_type(kind.name, names))}"
    links: list[Written] = [{"rel": "self", "href": own}]
    if kind.parent is not None:
        parent = spelling.write_type(kind.parent, names)
        links.append({"rel": "parent", "href": f"{here}/types/{quote(parent)}"})
    return {
        "name": spelling.write_type(kind.name, names),
        "label": kind.name,
        "parent": spelling.write_type(kind.parent, names) if kind.parent else None,
        "properties": [
            {
                "name": spelling.write_property(definition.name, names),
                "type": definition.kind,
                "repeating": definition.repeating,
                "writable": definition.writable,
            }
            for definition in catalogue.properties_of(kind.name).values()
        ],
        "links": links,
    }


def matches(request: Request, header: str, etag: str) -> bool:
    """Say whether a conditional header names this tag (RFC 9110 13.1); weak tags count for If-None-Match only."""
    given = request.headers.get(header, "").strip()
    tags = [tag.strip() for tag in given.split(",")]
    if header == "if-none-match":
        tags = [tag.removeprefix("W/") for tag in tags]
    return given == "*" or etag in tags


def expected_version(request: Request) -> int | None:
    """Read from If-Match the version the caller has seen; None when any will do. Raises VersionConflict."""
    given = request.headers.get("if-match", "").strip()
    if given in ("", "*"):
        return None
    version = given.strip('"').partition("-")[0]
    if not (version.isascii() and version.isdecimal() and len(version) < 10):
        raise VersionConflict("The tag in If-Match is none of this object's.")
    return int(version)


def identifier(request: Request) -> str:
    """Say which object the address names, without a suffix that only chooses the format."""
    object_id: str = request.path_params["id"]
    return object_id.removesuffix(".json").removesuffix(".xml").lower()[:40]


def page(request: Request, options: RepositoryOptions, *, typed: bool = False) -> Page:
    """Read a list's parameters, with ``typed`` also the type of its members.

    Raises Malformed, NotOfferedYet, UnknownType (only with ``typed``).
    """
    given = parameters(request, TYPED_LIST if typed else LIST, later=_LATER)
    size = _number(given, "items-per-page", options.items_per_page, options.max_items_per_page)
    number = _number(given, "page", 1, 10**9)
    cursor = given.get("cursor")
    if cursor is None and number * size > options.max_page_offset:
        raise Malformed(
            f"Page {number} lies past member {options.max_page_offset}, the deepest that a bare page number reaches: "
            "follow 'next' from page to page."
        )
    total = given.get("include-total", "false")
    if total not in ("true", "false"):
        raise Malformed(f"The parameter 'include-total' is true or false, not {total[:40]!r}.")
    named = given.get("object-type")
    return Page(
        Part(number, size, cursor), total == "true", spelling.read_type(named, options.names) if named else None
    )


def parameters(request: Request, known: Sequence[Parameter], later: Sequence[str] = ()) -> dict[str, str]:
    """Read the address's query. Raises NotOfferedYet for a parameter that comes later, Malformed for an unknown one."""
    given, names = bodies.query(request), {parameter.name for parameter in known}
    for name in given:
        if name in later:
            raise NotOfferedYet(f"The parameter {name!r} is not offered yet.")
        if name not in names:
            raise Malformed(f"This address has no parameter {name[:100]!r}.")
    return given


def feed_answer(
    request: Request, context: RepositoryContext, title: str, own: str, wanted: Page, listed: ListPage
) -> Response:
    """Answer with one page of a list (docs/interface.md, ours 5)."""
    names = context.options.names
    media_type = feed_type(request, names)
    feed = atom.Feed(
        id=own,
        title=title,
        author="Muniment",
        updated=context.clock(),
        page=wanted.part.number,
        items_per_page=wanted.part.size,
        links=tuple(_page_links(own, wanted, listed, context.options)),
        entries=tuple(listed.entries),
        total=listed.total,
    )
    if media_type.endswith("json"):
        body = atom.as_json(feed, spelling.both(names)[0])
    else:
        body = atom.as_xml(feed, names.vocab_namespace, names.relevance_namespace)
    return Response(body, headers={"Content-Type": media_type, "Cache-Control": "private, no-cache", "Vary": "Accept"})


def _page_links(own: str, wanted: Page, listed: ListPage, options: RepositoryOptions) -> list[atom.Link]:
    """Link to this page and to others. Only ``next`` has a cursor; what a bare number does not reach is left out."""
    part, total, reach = wanted.part, listed.total, options.max_page_offset // wanted.part.size

    def link(rel: str, number: int, cursor: str | None = None) -> atom.Link:
        asked = {"items-per-page": str(part.size), "page": str(number)}
        if wanted.include_total:
            asked["include-total"] = "true"
        if wanted.object_type:
            asked["object-type"] = spelling.write_type(wanted.object_type, options.names)
        if cursor is not None:
            asked["cursor"] = cursor
        return atom.Link(rel, f"{own}?{urlencode(asked)}")

    links = [link("self", part.number, part.cursor)]
    if listed.following is not None:
        links.append(link("next", part.number + 1, listed.following))
    if 1 < part.number <= reach + 1:
        links.append(link("previous", part.number - 1))
    if listed.following is not None or part.number > 1:
        links.append(link("first", 1))
        if total is not None and (last := max(1, -(-total // part.size))) <= reach:
            links.append(link("last", last))
    return links


def feed_type(request: Request, names: RepositoryNames) -> str:
    """Choose the media type of a list. Raises NotAcceptable."""
    return spelling.negotiate(request, (*spelling.both(names), "application/atom+xml"))


def object_entry(here: str, stored: StoredObject, names: RepositoryNames) -> atom.FeedEntry:
    """Make an object's entry in a list."""
    own = f"{here}/{kind_of(stored.id)}s/{stored.id}"
    summary = f"{spelling.write_type(stored.type, names)} {stored.id}"
    return atom.FeedEntry(own, stored.name, stored.owner, summary, stored.modified, own)


def plain_entry(own: str, title: str, author: str, summary: str, updated: Instant) -> atom.FeedEntry:
    """Make the entry of something that is no object."""
    return atom.FeedEntry(own, title, author, summary, updated, own)


def _properties(shown: ObjectBody, names: RepositoryNames) -> dict[str, Written]:
    known = shown.catalogue.properties_of(shown.stored.type)
    found = values(shown.stored, shown.catalogue, shown.acl_name)
    found["r_index_status"] = [shown.index_status]
    found["r_object_type"] = [spelling.write_type(shown.stored.type, names)]
    first = {name: found[name] for name in ("r_object_id", "r_object_type", "object_name")}
    return {
        spelling.write_property(name, names): _property(known[name], some) for name, some in {**first, **found}.items()
    }


def _property(definition: PropertyDefinition, found: list[Value]) -> Written:
    shown: list[Written] = [
        timestamp(value, utc="+00:00") if definition.kind == "date" and isinstance(value, int) else value
        for value in found
    ]
    return shown if definition.repeating else shown[0]


def _number(given: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 12 and 1 <= int(text) <= most):
        raise Malformed(f"The parameter {name!r} is a number from 1 to {most}, not {text[:40]!r}.")
    return int(text)
