"""Objects and ACLs as the wire shows them, in JSON or XML.

Source: docs/interface.md, ours 2 (objects), ours 3 (contents), ours 4 (permission sets).
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground.clock import timestamp
from muniment.ground.refusals import Malformed
from muniment.repository.api.context import Caller
from muniment.repository.api.wire import format_names, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownProperty, VersionConflict
from muniment.repository.store.objects.contents.further_contents import ObjectContent
from muniment.repository.store.objects.folders import paths
from muniment.repository.store.objects.inventory import values
from muniment.repository.store.objects.listing.object_ids import kind_of
from muniment.repository.store.objects.properties.properties import PropertyDefinition, Value
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.permissions.acls import Acl, AclSummary
from muniment.repository.store.permissions.principals import Permission
from muniment.repository.store.relations.relations import Relation

_ALWAYS_SHOWN = ("r_object_id", "r_object_type", "object_name")
_SHOWN_EMPTY = ("title", "subject", "authors", "keywords", "r_lock_owner", "log_entry")
"""Properties that are shown without a value, too: old clients read them without asking whether they are there."""

_MOST_VIEWED = 1000


RELATION_PROPERTIES: Mapping[str, Callable[[Relation], Written]] = {
    "r_object_id": lambda relation: relation.id,
    "relation_name": lambda relation: relation.name,
    "parent_id": lambda relation: relation.parent_id,
    "child_id": lambda relation: relation.child_id,
    "r_creator_name": lambda relation: relation.maker,
    "r_creation_date": lambda relation: timestamp(relation.created, utc="+00:00"),
}


class Thing(msgspec.Struct, frozen=True):
    """``root`` is the element in XML; ``attributes`` are as in ``spelling.xml``."""

    root: str
    document: dict[str, Written]
    attributes: Mapping[str, Mapping[str, str]] = {}

    def written(self, media_type: str, names: RepositoryNames) -> bytes:
        return spelling.document_answer(media_type, self.root, self.document, names, attributes=self.attributes)

    def reply(self, media_type: str, names: RepositoryNames, status: int = 200, own: str = "") -> Response:
        return spelling.reply(media_type, self.root, self.document, names, status, own, attributes=self.attributes)

    def tagged_reply(
        self, request: Request, media_type: str, names: RepositoryNames, revision: int, status: int, own: str
    ) -> Response:
        """Answer 200, 201 with its address, or 304."""
        body = self.written(media_type, names)
        etag = f'"{revision}-{hashlib.sha256(body).hexdigest()[:16]}"'
        headers = {"ETag": etag, **spelling.PRIVATE}
        if status == 201:
            headers["Location"] = own
        if request.method in ("GET", "HEAD") and matches(request, "if-none-match", etag):
            return Response(status_code=304, headers=headers)
        return Response(body, status, {**headers, "Content-Type": media_type})

    def without(self, media_type: str, *members: str) -> "Thing":
        """Copy without these members in XML, where the root names it."""
        if not media_type.endswith("xml"):
            return self
        document = {name: member for name, member in self.document.items() if name not in members}
        return msgspec.structs.replace(self, document=document)


class View(msgspec.Struct, frozen=True):
    """Which properties of an object are shown: by default, all that have a value, and some without.

    With ``every``, those without a value are shown, too. If ``properties`` is given, only properties with these neutral
    names are shown. Id, type and name are always shown.
    """

    every: bool = False
    properties: frozenset[str] | None = None


class ObjectBody(msgspec.Struct, frozen=True):
    """An object, with what is shown beside its row."""

    stored: StoredObject
    catalogue: Catalogue
    acl_name: str
    index_status: str
    place: paths.Ancestry = paths.NOWHERE
    computed: Mapping[str, list[Value]] = {}


def object_answer(
    request: Request,
    caller: Caller,
    media_type: str,
    whole: ObjectBody,
    status: int = 200,
    *,
    position: Mapping[str, str] = MappingProxyType({}),
    as_object: bool = False,
    view: View = View(),  # noqa: B008 - it does not change
    links: bool = True,
    root: str = "",
) -> Response:
    """Answer with an object: 200, 201 with its address, or 304 when the caller has it already.

    ``position`` is the header that ``Caller.change`` returned. With ``as_object``, the object is shown as at
    ``objects/{id}``, the address for objects of any kind. Otherwise it is shown as at the address for its kind, such
    as ``folders/{id}``. ``root`` is the root element in XML, if it is not named after the kind.

    Raises UnknownProperty if the view names a property that no type has.
    """
    names, here, stored = caller.names, caller.here, whole.stored
    kind = "object" if as_object else kind_of(stored.id)
    own = f"{here}/{kind}s/{stored.id}"
    thing = object_thing(here, whole, names, media_type, kind, view, links=links)
    thing = msgspec.structs.replace(thing, root=root or thing.root)
    response = thing.tagged_reply(request, media_type, names, stored.revision, status, own)
    response.headers.update(position)
    return response


def object_thing(
    here: str,
    whole: ObjectBody,
    names: RepositoryNames,
    media_type: str,
    kind: str,
    view: View,
    *,
    links: bool = True,
) -> Thing:
    """Raises UnknownProperty."""
    type_name = spelling.write_type(whole.stored.type, names)
    definition = f"{here}/types/{quote(type_name)}"
    properties = object_properties(whole, names, view)
    document: dict[str, Written] = {
        "name": kind,
        "type": type_name,
        "definition": definition,
        "properties": properties,
    }
    if media_type.endswith("xml"):
        document = {"properties": {name: None if value == [] else value for name, value in properties.items()}}
    if links:
        document["links"] = object_links(here, whole, names, kind)
    attributes = {
        "": {"xsi:type": type_name, "definition": definition},
        "properties": {"xsi:type": f"{type_name}-properties"},
    }
    return Thing(kind, document, attributes)


def object_links(here: str, whole: ObjectBody, names: RepositoryNames, kind: str) -> list[Written]:
    """List the links of an object shown as one of this kind (docs/interface.md, ours 2)."""
    stored, actual_kind = whole.stored, kind_of(whole.stored.id)
    own, thing = f"{here}/{kind}s/{stored.id}", f"{here}/objects/{stored.id}"
    links = [("self", own), ("edit", own), (f"{names.linkrel_base}/delete", own)]
    if kind == "object":
        links.append(("canonical", f"{here}/{actual_kind}s/{stored.id}"))
    if actual_kind in ("folder", "cabinet"):
        folder_address = f"{here}/folders/{stored.id}"
        parts = ("folders", "documents", "objects", "child-links")
        links += [(f"{names.linkrel_base}/{part}", f"{folder_address}/{part}") for part in parts]
        links.append((f"{names.own_linkrel_base}/default-permission-set", f"{folder_address}/default-permission-set"))
    else:
        links += [
            ("contents", f"{thing}/contents"),
            (f"{names.linkrel_base}/primary-content", f"{thing}/contents/content"),
            (f"{names.linkrel_base}/content-media", f"{thing}/content-media"),
            *_version_links(thing, here, stored, names),
            (f"{names.own_linkrel_base}/index-status", f"{thing}/index-status"),
            (f"{names.own_linkrel_base}/similar", f"{thing}/similar"),
        ]
    if actual_kind != "cabinet":
        links.append((f"{names.linkrel_base}/parent-links", f"{thing}/parent-links"))
    parents = [
        {"rel": "parent", "href": f"{here}/{kind_of(folder_id)}s/{folder_id}", "title": folder_id}
        for folder_id in stored.folder_ids
    ]
    cabinets = whole.computed.get("i_cabinet_id", []) if actual_kind != "cabinet" else []
    further = [
        *((f"{names.linkrel_base}/cabinet", f"{here}/cabinets/{cabinet_id}") for cabinet_id in cabinets),
        (f"{names.linkrel_base}/permission-set", f"{thing}/permission-set"),
        (f"{names.linkrel_base}/permissions", f"{thing}/permissions"),
        (f"{names.linkrel_base}/relations", f"{here}/relations?related-object-id={stored.id}&related-object-role=any"),
        (f"{names.linkrel_base}/object-aspects", f"{thing}/aspects"),
        (f"{names.linkrel_base}/comments", f"{thing}/comments"),
    ]
    before, after = ([{"rel": rel, "href": href} for rel, href in some] for some in (links, further))
    return [*before, *parents, *after]


def _version_links(thing: str, here: str, stored: StoredObject, names: RepositoryNames) -> list[tuple[str, str]]:
    """List the links to versions, check-out and check-in (docs/interface.md, ours 17)."""
    base, lock, versions = names.linkrel_base, f"{thing}/lock", f"{thing}/versions"
    links = [(f"{base}/checkout", lock)]
    if stored.version.lock is not None:
        policies = {"next-major": "next-major", "next-minor": "next-minor", "branch": "branch-version"}
        links = [(f"{base}/cancel-checkout", lock)]
        links += [(f"{base}/checkin-{name}", f"{versions}?version-policy={each}") for name, each in policies.items()]
    links += [("version-history", versions), (f"{base}/current-version", f"{versions}/current")]
    if stored.version.antecedent_id is not None:
        links.append(("predecessor-version", f"{here}/objects/{stored.version.antecedent_id}"))
    return links


@lru_cache(maxsize=1000)
def user_address(here: str, user_id: str) -> str:
    return f"{here}/users/{quote(user_id, safe='@')}"


def content_query(content: ObjectContent, names: RepositoryNames) -> str:
    """Return an empty text for the main content."""
    place = content.place
    if place.is_main:
        return ""
    values = {"page": str(place.page), "primary": "true" if place.is_primary else "false"}
    if not place.is_primary:
        values = {"format": format_names.name(place.format, names), **values}
    if place.modifier:
        values["modifier"] = place.modifier
    return f"?{urlencode(values)}"


def content_document(
    here: str,
    stored: StoredObject,
    content: ObjectContent,
    names: RepositoryNames,
    view: View = View(),  # noqa: B008 - it does not change
) -> dict[str, Written]:
    """Describe a content (docs/interface.md, ours 3).

    Raises UnknownProperty.
    """
    thing, some = f"{here}/objects/{stored.id}", content_properties(stored, content, names)
    query = content_query(content, names)
    if view.properties is not None:
        if unknown := sorted(view.properties - some.keys()):
            raise UnknownProperty(f"A content has no property {unknown[0][:100]!r}.")
        some = {name: value for name, value in some.items() if name in view.properties or name in _ALWAYS_SHOWN}
    return {
        "name": "content",
        "properties": {spelling.write_property(name, names): value for name, value in some.items()},
        "links": [
            {"rel": "self", "href": f"{thing}/contents/content{query}"},
            {"rel": "edit", "href": f"{thing}/contents/content{query}"},
            {"rel": f"{names.linkrel_base}/delete", "href": f"{thing}/contents/content{query}"},
            {"rel": "parent", "href": thing},
            {"rel": "enclosure", "href": f"{thing}/content-media{query}", "title": "LOCAL"},
            {"rel": f"{names.linkrel_base}/content-media", "href": f"{thing}/content-media{query}"},
        ],
    }


def content_properties(stored: StoredObject, content: ObjectContent, names: RepositoryNames) -> dict[str, str | int]:
    return {
        "object_name": stored.name,
        "r_object_id": _content_id(content),
        "format_name": format_names.name(content.media_type, names),
        "mime_type": content.media_type,
        "full_content_size": content.content.size,
        "sha256": content.content.sha256.hex(),
        "page": content.place.page,
        "is_primary": "true" if content.place.is_primary else "false",
        "page_modifier": content.place.modifier,
    }


def _content_id(content: ObjectContent) -> str:
    """It shows neither the order of contents, nor how many there are."""
    if content.place.is_main:
        return f"06{content.object_id[2:]}"
    return f"06{hashlib.sha256(repr((content.object_id, *content.place)).encode()).hexdigest()[:14]}"


def acl_document(
    here: str, acl: Acl | AclSummary, entries: Mapping[str, Permission], names: RepositoryNames
) -> dict[str, Written]:
    """``entries`` are those that the caller may see."""
    own = f"{here}/acls/{acl.shown_id}"
    return {
        "id": acl.shown_id,
        "name": acl.name,
        "owner": acl.owner,
        "properties": {
            "object_name": acl.name,
            "owner_name": acl.owner,
            "acl_domain": acl.owner,
            "description": acl.description,
            spelling.write_property("r_object_id", names): acl.shown_id,
        },
        "permitted": acl_entry_documents(entries, names),
        "links": [
            {"rel": "self", "href": own},
            {"rel": "edit", "href": own},
            {"rel": f"{names.linkrel_base}/associations", "href": f"{own}/associations"},
        ],
    }


def acl_entry_documents(entries: Mapping[str, Permission], names: RepositoryNames) -> list[Written]:
    """List entries as in permission sets (docs/interface.md, ours 4)."""
    return [
        {"accessor": spelling.write_accessor(accessor, names), "basic-permission": level.name.capitalize()}
        for accessor, level in entries.items()
    ]


def matches(request: Request, header: str, etag: str) -> bool:
    """Compare as RFC 9110 13.1 says: weak tags count for If-None-Match only."""
    value = request.headers.get(header, "").strip()
    if not value:
        return False
    tags = [tag.strip() for tag in value.split(",")]
    if header == "if-none-match":
        tags = [tag.removeprefix("W/") for tag in tags]
    return value == "*" or etag in tags


def expected_version(request: Request) -> int | None:
    """Read If-Match; None if any revision will do.

    Raises VersionConflict if the tag cannot be that of an object.
    """
    tag = request.headers.get("if-match", "").strip()
    if tag in ("", "*"):
        return None
    version = tag.strip('"').partition("-")[0]
    if not (version.isascii() and version.isdecimal() and len(version) < 10):
        raise VersionConflict("The tag in If-Match is none of this object's.")
    return int(version)


def identifier(request: Request) -> str:
    object_id: str = request.path_params["id"]
    return object_id.lower()[:40]


def read_view(values: Mapping[str, str], names: RepositoryNames) -> View:
    """Read `:default`, `:all`, or properties. Raises Malformed."""
    text = values.get("view", "").strip()
    if text in ("", ":default"):
        return View()
    if text == ":all":
        return View(every=True)
    wire_names = [name.strip() for name in text.split(",")]
    if text.startswith(":") or not all(wire_names) or len(wire_names) > _MOST_VIEWED:
        raise Malformed(f"The parameter 'view' is :default, :all or a list of properties, not {text[:40]!r}.")
    return View(properties=frozenset(spelling.read_property(name, names) for name in wire_names))


def object_properties(whole: ObjectBody, names: RepositoryNames, view: View) -> dict[str, Written]:
    """Spell what the view shows.

    Raises UnknownProperty.
    """
    definitions = whole.catalogue.properties_of(whole.stored.type)
    some = values(whole.stored, whole.catalogue, whole.acl_name)
    some["r_index_status"] = [whole.index_status]
    some |= paths.values(whole.place) | {name: of_name for name, of_name in whole.computed.items() if of_name}
    if whole.stored.media_type:
        some["a_content_type"] = [format_names.name(whole.stored.media_type, names)]
    some = {name: [] for name in _SHOWN_EMPTY} | some
    some["r_object_type"] = [spelling.write_type(whole.stored.type, names)]
    some = {**{name: some[name] for name in _ALWAYS_SHOWN}, **some}
    if view.properties is not None:
        for name in view.properties:
            whole.catalogue.property(name)
        some = {name: each for name, each in some.items() if name in view.properties or name in _ALWAYS_SHOWN}
    elif view.every:
        some |= {name: [] for name in definitions if name not in some}
    return {spelling.write_property(name, names): _property(definitions[name], each) for name, each in some.items()}


def _property(definition: PropertyDefinition, of_object: list[Value]) -> Written:
    if not of_object:  # no value is written as the system in the field writes it
        if definition.repeating:
            return []
        return "" if definition.kind in ("string", "id") else None
    values: list[Written] = [*of_object]
    if definition.kind == "date":
        values = [timestamp(value, utc="+00:00") if isinstance(value, int) else value for value in of_object]
    return values if definition.repeating else values[0]
