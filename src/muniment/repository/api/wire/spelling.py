"""Names, media types and errors as the wire spells them.

Sources: docs/interface.md, ours 1 (media types, suffixes); given 7 (errors); RFC 9110 12.5.1 (Accept); HAL
(draft-kelly-json-hal-11). Inside the program, names are neutral: no setting changes them.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from urllib.parse import quote, urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground.refusals import NotAcceptable, UnsupportedMediaType
from muniment.repository import bare_names
from muniment.repository.api.wire import format_names
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.search.answering import atom
from muniment.repository.search.aql.spelling import wire_names
from muniment.repository.store.objects.types.object_types import BUILT_IN_NAMES, SYSTEM_PROPERTIES
from muniment.repository.store.permissions.principals import OWNER, WORLD
from muniment.repository.store.relations import relation_types
from muniment.web.answers.responses import ErrorCode, Shape
from muniment.web.requests import accept, bodies

XSI = "http://www.w3.org/2001/XMLSchema-instance"
ATOM = "application/atom+xml"
HAL = "application/hal+json"

PRIVATE: Mapping[str, str] = {"Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
"""The answer is for its caller alone, and its media type follows Accept (RFC 9111 5.2.2)."""

ITEMS: Mapping[str, str] = {
    "links": "link",
    "permitted": "permission",
    "properties": "property",
    "acls": "acl",
    "agents": "index-agent",
    "differences": "difference",
    "operations": "operation",
    "values": "value",
}
"""Texts apart, members of these lists have this name in XML; in other lists, it is ``item``."""

_TEXT_ITEMS: Mapping[str, str] = {
    "batchable-resources": "batchable-resource",
    "non-batchable-resources": "non-batchable-resource",
}
"""Texts in these lists have this name in XML; in other lists, it is ``item``."""

_BARE_LISTS: Mapping[str, str] = {"servers": "server", "headers": "header"}
"""Members stand in XML without an element around them."""

_ATTRIBUTES: Mapping[str, Collection[str]] = {
    "folder-link": ("href", "parent-id", "child-id"),
    "header": ("name", "value"),
    "operation": ("id", "description", "state"),
    "request": ("uri", "method"),
    "response": ("status",),
}
"""By the name of an element: its members that XML writes as attributes. Of a link, they are all.

In an element with any name, those are attributes whose keys begin with ``@``; the member ``#text`` is its text.
"""

_ELEMENTS_TOO: Mapping[str, Collection[str]] = {"operation": ("description", "state")}
"""Those of them that are elements as well, because some clients look for them there."""

_NAMED_MEMBERS: Mapping[str, str] = {"external-variables": "variable-type"}
"""What a member has under this key is its name in XML."""

Written = str | int | float | bool | Sequence["Written"] | Mapping[str, "Written"] | None

read_type, read_property = wire_names.neutral_type, wire_names.neutral_property

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}
)
WELL_KNOWN = "/.well-known/oauth-protected-resource"

_SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")


def write_type(name: str, names: RepositoryNames) -> str:
    return names.type_prefix + name if name in BUILT_IN_NAMES else name


def read_relation_type(name: str, names: RepositoryNames) -> str:
    """Read a built-in type of relations also with the prefix of the built-in object types: it is shown without."""
    bare = name.removeprefix(names.type_prefix)
    return bare if bare in relation_types.BUILT_IN else name


def write_property(name: str, names: RepositoryNames) -> str:
    return names.system_property_prefix + name[2:] if name in SYSTEM_PROPERTIES else name


def read_accessor(accessor: str, names: RepositoryNames) -> str:
    """The owner and the world have the prefix of built-in types."""
    bare = accessor.removeprefix(names.type_prefix)
    return bare if bare in (OWNER, WORLD) else accessor


def write_accessor(accessor: str, names: RepositoryNames) -> str:
    return names.type_prefix + accessor if accessor in (OWNER, WORLD) else accessor


def meant_text(name: str, text: str, options: RepositoryOptions) -> str:
    """Return what a property of this neutral name is compared with if a caller compares it with this text."""
    if name == "a_content_type":
        return format_names.media_type_or_same(text, options.names)
    return bare_names.full_value(name, text, options)


def negotiate(request: Request, offered: Sequence[str]) -> str:
    """Choose what the caller likes best, the first of equals. A suffix of the path, noted by ``web.addresses``, takes
    precedence over Accept.

    Raises NotAcceptable.
    """
    suffix = request.scope.get("muniment.suffix")
    if suffix is not None:
        kinds = [kind for kind in offered if kind.endswith(suffix)]
        if kinds:
            return kinds[0]
    best = accept.best_media_type(request, offered)
    if best is None:
        raise NotAcceptable(f"This address answers in {', '.join(offered)}.")
    return best


def both(names: RepositoryNames) -> tuple[str, ...]:
    """List JSON first."""
    return (f"{names.media_type}+json", f"{names.media_type}+xml", "application/json", "application/xml", HAL)


def feed_types(names: RepositoryNames) -> tuple[str, ...]:
    """List JSON first; in XML a list is an Atom feed."""
    json, xml, *others = both(names)
    return (json, ATOM, xml, *others)


def home_types(names: RepositoryNames) -> tuple[str, ...]:
    """List JSON first."""
    return ("application/home+json", "application/home+xml", *both(names)[:-1])


def check_body(request: Request, readable: Collection[str]) -> None:
    """Check a body's media type; ``*/*`` in ``readable`` stands for all. Nothing is checked if it is empty. text/xml
    counts as application/xml, because old clients send it.

    Raises UnsupportedMediaType.
    """
    media_type = bodies.media_type(request).replace("text/xml", "application/xml")
    if readable and "*/*" not in readable and media_type not in {name.lower() for name in readable}:
        is_other = f"not {media_type[:100]!r}" if media_type else "and the request does not say what its body is"
        raise UnsupportedMediaType(f"This address reads {', '.join(readable)}, {is_other}.")


def document_answer(
    media_type: str,
    root: str,
    document: Mapping[str, Written],
    names: RepositoryNames,
    *,
    attributes: Mapping[str, Mapping[str, str]] | None = None,
) -> bytes:
    if media_type.endswith("json"):
        return msgspec.json.encode(_hal(document) if media_type == HAL else document)
    return xml(root, document, names.vocab_namespace, attributes or {})


def reply(
    media_type: str,
    root: str,
    document: Mapping[str, Written],
    names: RepositoryNames,
    status: int = 200,
    own: str = "",
    *,
    attributes: Mapping[str, Mapping[str, str]] | None = None,
) -> Response:
    """With the status 201, ``own`` is the address of what was made."""
    headers = {"Content-Type": media_type, **PRIVATE}
    if status == 201:
        headers["Location"] = own
    return Response(document_answer(media_type, root, document, names, attributes=attributes), status, headers)


def feed(media_type: str, page: atom.Feed, options: RepositoryOptions) -> bytes:
    """Authors are shown by their bare names, where these mean them."""
    names = options.names
    written_authors = dict.fromkeys([each.author for each in page.entries])
    authors = {each: shown for each in written_authors if (shown := bare_names.shown_name(each, options)) != each}
    if authors:
        entries = [
            msgspec.structs.replace(each, author=authors[each.author]) if each.author in authors else each
            for each in page.entries
        ]
        page = msgspec.structs.replace(page, entries=tuple(entries))
    if not media_type.endswith("json"):
        return atom.as_xml(page, names.vocab_namespace, names.relevance_namespace)
    body = atom.as_json(page, f"{names.media_type}+json")
    return msgspec.json.encode(_hal(msgspec.json.decode(body))) if media_type == HAL else body


def xml(
    root: str, document: Mapping[str, Written], namespace: str, attributes: Mapping[str, Mapping[str, str]]
) -> bytes:
    """Drop characters that XML forbids. ``attributes`` of the root (an empty name) and its children go by name."""
    pieces = ['<?xml version="1.0" encoding="UTF-8"?>\n']
    spaces = {"xmlns": namespace, "xmlns:xsi": XSI}
    _element(pieces, root, document, {**attributes, "": {**spaces, **attributes.get("", {})}})
    return "".join(pieces).encode()


_PLAIN_TYPES: Mapping[str, str] = {
    ATOM: "application/xml",
    "application/home+xml": "application/xml",
    "application/home+json": "application/json",
}
"""An error has this media type, if the caller wants that feed or home document."""


def error_code(code: ErrorCode) -> str:
    """Give a code without ``E_``, which both halves share, that prefix, and upper case."""
    return code.code if code.code.startswith("E_") else f"E_{code.code.upper()}"


def error_shape(names: RepositoryNames) -> Shape:
    """Write JSON, or XML if the caller prefers it (given 7)."""

    def shape(request: Request, code: ErrorCode, sentence: str) -> Response:
        document: dict[str, Written] = {
            "status": code.status,
            "code": error_code(code),
            "message": sentence,
            "details": "",
            "id": request.scope.get("muniment.request_id", ""),
        }
        try:
            media_type = negotiate(request, (*both(names), *_PLAIN_TYPES))
        except NotAcceptable:
            media_type = both(names)[0]
        media_type = _PLAIN_TYPES.get(media_type, media_type)
        headers = {"Content-Type": media_type, "Cache-Control": "no-store"}
        response = Response(document_answer(media_type, "error", document, names), code.status, headers)
        if code.status == 401:
            for challenge in _challenges(request, names):
                response.headers.append("WWW-Authenticate", challenge)
        return response

    return shape


def _challenges(request: Request, names: RepositoryNames) -> Iterator[str]:
    """Yield schemes, each for a header line (RFC 9110 11.6.1).

    Basic is first, because old clients read only one line; a caller may name another in its place, so that no browser
    opens its dialogue.
    """
    realm = names.realm.replace("\\", "\\\\").replace('"', '\\"')
    if request.scope.get("muniment.basic"):
        scheme = request.headers.get(names.unauth_scheme_header, "")
        yield f'{scheme if _SCHEME.fullmatch(scheme) else "Basic"} realm="{realm}", charset="UTF-8"'
    sent_token = request.headers.get("authorization", "")[:7].lower() == "bearer "
    told = ', error="invalid_token"' if sent_token else ""
    if repository := request.path_params.get("repository"):
        told += f', resource_metadata="{_metadata_address(request, names, repository)}"'
    yield f'Bearer realm="{realm}"{told}'


def _metadata_address(request: Request, names: RepositoryNames, repository: str) -> str:
    """Where it stands who lets callers in: at the root of the host (RFC 9728 3.1)."""
    parts = urlsplit(str(request.scope.get("muniment.base") or request.base_url))
    path = f"{WELL_KNOWN}{parts.path.rstrip('/')}/{names.prefix}/repositories/{quote(repository, safe='')}"
    return f"{parts.scheme}://{parts.netloc}{path}"


def _element(
    pieces: list[str], name: str, content: Written, attributes: Mapping[str, Mapping[str, str]], item: str = "item"
) -> None:
    bears = dict(attributes.get("", {}))
    if content is None:
        bears["xsi:nil"] = "true"
    if isinstance(content, Mapping):
        wanted = (
            content if name == "link" else (*_ATTRIBUTES.get(name, ()), *(key for key in content if key[:1] == "@"))
        )
        bears |= {key.removeprefix("@"): _text(value) for key, value in content.items() if key in wanted}
        kept = _ELEMENTS_TOO.get(name, ())
        content = {key: value for key, value in content.items() if key not in wanted or key in kept}
        content = content.get("#text", content)
    pieces.append(f"<{name}" + "".join(f' {key}="{_escape(value)}"' for key, value in bears.items()))
    if content is None or content in ({}, []):
        pieces.append("/>")
        return
    pieces.append(">")
    if isinstance(content, Mapping):
        for key, value in _children(content):
            _element(pieces, key, value, {"": attributes.get(key, {})}, ITEMS.get(key, "item"))
    elif isinstance(content, Sequence) and not isinstance(content, str):
        naming = _NAMED_MEMBERS.get(name, "")
        for member in content:
            if isinstance(member, Mapping) and naming in member:
                inner = {key: value for key, value in member.items() if key != naming}
                _element(pieces, str(member[naming]), inner, {})
                continue
            _element(pieces, item if isinstance(member, Mapping) else _TEXT_ITEMS.get(name, "item"), member, {})
    else:
        pieces.append(_escape(_text(content)))
    pieces.append(f"</{name}>")


def _text(value: Written) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _children(content: Mapping[str, Written]) -> Iterator[tuple[str, Written]]:
    for key, value in content.items():
        members = value if isinstance(value, list) else [value]
        if key in _BARE_LISTS and all(isinstance(member, Mapping) for member in members):
            yield from ((_BARE_LISTS[key], member) for member in members)
        else:
            yield key, value


def _hal(document: Mapping[str, Written]) -> dict[str, Written]:
    links, entries, content = (document.get(key) for key in ("links", "entries", "content"))
    members = {key: value for key, value in document.items() if key not in ("links", "entries")}
    if isinstance(links, Sequence):
        members["_links"] = _hal_links(links)
    if isinstance(entries, Sequence):
        members["_embedded"] = {"entries": [_hal(entry) for entry in entries if isinstance(entry, Mapping)]}
    if isinstance(content, Mapping):
        members["content"] = _hal(content)
    return members


def _hal_links(links: Sequence[Written]) -> dict[str, Written]:
    by_relation: dict[str, list[Written]] = {}
    for link in links:
        if isinstance(link, Mapping):
            target = {key: value for key, value in link.items() if key not in ("rel", "hreftemplate")}
            if "hreftemplate" in link:
                target |= {"href": link["hreftemplate"], "templated": True}
            by_relation.setdefault(str(link["rel"]), []).append(target)
    return {rel: targets if len(targets) > 1 else targets[0] for rel, targets in by_relation.items()}


def _escape(text: str) -> str:
    return _FORBIDDEN.sub("", text).translate(_ESCAPES)
