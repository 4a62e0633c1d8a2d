"""Names, media types and errors as the wire spells them.

Sources: docs/interface.md, ours 1 (media types, suffixes); given 7 (errors); RFC 9110 12.5.1 (Accept). Names come
from the settings; within they are our neutral ones.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository.aql import as_xml
from muniment.repository.objects.object_types import BUILT_IN_NAMES, SYSTEM_PROPERTIES
from muniment.repository.options import RepositoryNames
from muniment.repository.permissions.principals import OWNER, WORLD
from muniment.web.refusals import NotAcceptable
from muniment.web.responses import ErrorCode, Shape

XSI = "http://www.w3.org/2001/XMLSchema-instance"

ITEMS: Mapping[str, str] = {
    "links": "link",
    "permitted": "permission",
    "properties": "property",
    "acls": "acl",
}
"""What the members of a list are called in XML; elsewhere ``item``."""

Written = str | int | float | bool | Sequence["Written"] | Mapping[str, "Written"] | None
"""What a document of the wire is made of, before it is JSON or XML."""

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}
)
_SUFFIX = re.compile(r"/[0-9A-Fa-f]{16}\.(json|xml)\Z")
_LONGEST_ACCEPT = 4000
_QUALITY = re.compile(r"(0(\.[0-9]{0,3})?|1(\.0{0,3})?)")


def read_type(name: str, names: RepositoryNames) -> str:
    """Translate a type's name on the wire. Raises UnknownType for a built-in one without its prefix."""
    return as_xml.neutral_type(name, names)


def write_type(name: str, names: RepositoryNames) -> str:
    """Spell a type's name for the wire."""
    return names.type_prefix + name if name in BUILT_IN_NAMES else name


def read_property(name: str, names: RepositoryNames) -> str:
    """Translate a property's name on the wire."""
    return as_xml.neutral_property(name, names)


def write_property(name: str, names: RepositoryNames) -> str:
    """Spell a property's name for the wire."""
    return names.system_property_prefix + name[2:] if name in SYSTEM_PROPERTIES else name


def read_accessor(accessor: str, names: RepositoryNames) -> str:
    """Translate an accessor on the wire: the owner and the world bear the prefix of the built-in types."""
    bare = accessor.removeprefix(names.type_prefix)
    return bare if bare in (OWNER, WORLD) else accessor


def write_accessor(accessor: str, names: RepositoryNames) -> str:
    """Spell an accessor for the wire."""
    return names.type_prefix + accessor if accessor in (OWNER, WORLD) else accessor


def negotiate(request: Request, offered: Sequence[str]) -> str:
    """Choose the media type of the answer: the one the caller likes best, of equals the one offered first.

    A path that ends in an id and ``.json`` or ``.xml`` has chosen already. Raises NotAcceptable.
    """
    suffix = _SUFFIX.search(request.scope["path"][-22:])
    if suffix:
        kinds = [kind for kind in offered if kind.endswith(suffix[1])]
        if kinds:
            return kinds[0]
    accept = ",".join(request.headers.getlist("accept")).strip()
    best = _best(accept[:_LONGEST_ACCEPT], tuple(offered)) if accept else offered[0]
    if best is None:
        raise NotAcceptable(f"This address answers in {', '.join(offered)}.")
    return best


def both(names: RepositoryNames) -> tuple[str, ...]:
    """Name the media types of a single thing, JSON first."""
    return (f"{names.media_type}+json", f"{names.media_type}+xml", "application/json", "application/xml")


def answer(
    media_type: str,
    root: str,
    document: Mapping[str, Written],
    names: RepositoryNames,
    *,
    attributes: Mapping[str, Mapping[str, str]] | None = None,
) -> bytes:
    """Write a document in the chosen media type. ``attributes`` is as in ``xml``."""
    if media_type.endswith("json"):
        return msgspec.json.encode(document)
    return xml(root, document, names.vocab_namespace, attributes or {})


def xml(
    root: str, document: Mapping[str, Written], namespace: str, attributes: Mapping[str, Mapping[str, str]]
) -> bytes:
    """Write a document as XML 1.0 in UTF-8; characters that XML forbids are dropped.

    ``attributes`` says what the root (the empty name) and its children bear.
    """
    pieces = ['<?xml version="1.0" encoding="UTF-8"?>\n']
    spaces = {"xmlns": namespace, "xmlns:xsi": XSI}
    _element(pieces, root, document, {**attributes, "": {**spaces, **attributes.get("", {})}})
    return "".join(pieces).encode()


def error_code(said: ErrorCode) -> str:
    """Spell the code of an error as the repository does: the shared ones get its prefix."""
    return said.code if said.code.startswith("E_") else f"E_{said.code.upper()}"


def error_shape(names: RepositoryNames) -> Shape:
    """Make the shape of the repository's errors: JSON, or XML where the caller prefers it (given 7)."""

    def shape(request: Request, said: ErrorCode, sentence: str) -> Response:
        document: dict[str, Written] = {
            "status": said.status,
            "code": error_code(said),
            "message": sentence,
            "details": "",
            "id": request.scope.get("muniment.request_id", ""),
        }
        try:
            media_type = negotiate(request, (*both(names), "application/atom+xml"))
        except NotAcceptable:
            media_type = both(names)[0]
        if media_type == "application/atom+xml":
            media_type = "application/xml"
        headers = {"Content-Type": media_type, "Cache-Control": "no-store"}
        if said.status == 401:
            shown = ', error="invalid_token"' if request.headers.get("authorization") else ""
            headers["WWW-Authenticate"] = f'Bearer realm="repository"{shown}'
        return Response(answer(media_type, "error", document, names), said.status, headers)

    return shape


def _element(
    pieces: list[str], name: str, content: Written, attributes: Mapping[str, Mapping[str, str]], item: str = "item"
) -> None:
    bears = dict(attributes.get("", {}))
    if content is None:
        bears["xsi:nil"] = "true"
    if name == "link" and isinstance(content, Mapping):
        bears |= {key: str(value) for key, value in content.items()}
        content = {}
    pieces.append(f"<{name}" + "".join(f' {key}="{_escaped(value)}"' for key, value in bears.items()))
    if content is None or content in ({}, []):
        pieces.append("/>")
        return
    pieces.append(">")
    if isinstance(content, Mapping):
        for key, value in content.items():
            _element(pieces, key, value, {"": attributes.get(key, {})}, ITEMS.get(key, "item"))
    elif isinstance(content, Sequence) and not isinstance(content, str):
        for member in content:
            _element(pieces, item if isinstance(member, Mapping) else "item", member, {})
    elif isinstance(content, bool):
        pieces.append("true" if content else "false")
    else:
        pieces.append(_escaped(str(content)))
    pieces.append(f"</{name}>")


def _escaped(text: str) -> str:
    return _FORBIDDEN.sub("", text).translate(_ESCAPES)


@lru_cache(maxsize=100)
def _best(accept: str, offered: tuple[str, ...]) -> str | None:
    """Choose what the header likes best; None when it likes nothing of it."""
    ranges = [_range(written) for written in accept.split(",")]
    best = max(offered, key=lambda kind: _liked(kind, ranges))
    return best if _liked(best, ranges) > 0 else None


def _range(written: str) -> tuple[str, float]:
    kind, *parameters = (part.strip().lower() for part in written.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            value = value.strip(" \t")
            return kind, float(value) if _QUALITY.fullmatch(value) else 0.0
    return kind, 1.0


def _liked(kind: str, ranges: Sequence[tuple[str, float]]) -> float:
    family = kind.partition("/")[0] + "/*"
    for pattern in (kind, family, "*/*"):
        found = [quality for wanted, quality in ranges if wanted == pattern or _suffixed(wanted, pattern, kind)]
        if found:
            return max(found)
    return 0.0


def _suffixed(wanted: str, pattern: str, kind: str) -> bool:
    return pattern == kind and wanted.startswith("application/*+") and kind.endswith(wanted[len("application/*") :])
