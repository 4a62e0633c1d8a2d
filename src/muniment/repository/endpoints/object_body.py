"""What a body says about an object: its properties and its type, in JSON or XML.

Source: docs/interface.md, ours 2.
"""

from collections.abc import Mapping

import msgspec
from starlette.requests import Request

from muniment.repository.endpoints import spelling
from muniment.repository.endpoints.context import RepositoryContext
from muniment.repository.objects.properties import Given
from muniment.repository.options import RepositoryNames
from muniment.web import bodies
from muniment.web import xml as strangers_xml
from muniment.web.refusals import Malformed, UnsupportedMediaType
from muniment.web.xml import Element


class Metadata(msgspec.Struct, frozen=True):
    """What a body says about an object, in neutral names; ``type`` is empty when it names none."""

    properties: dict[str, Given] = {}
    type: str = ""


class JsonMetadata(msgspec.Struct):
    """An object's properties by name, and its type; either may be left out."""

    properties: dict[str, msgspec.Raw] = {}
    type: str = ""


_json_body = msgspec.json.Decoder(JsonMetadata)


def is_one(media_type: str) -> bool:
    """Say whether a body of this type is JSON or XML that describes an object."""
    return _is_json(media_type) or _is_xml(media_type)


async def received(request: Request, context: RepositoryContext) -> Metadata:
    """Read a JSON or XML body. Raises UnsupportedMediaType, TooLarge, Malformed."""
    kind = bodies.media_type(request)
    bodies.check_encoding(request)
    if not is_one(kind):
        raise UnsupportedMediaType("Metadata must be application/json or application/xml.")
    return read(await bodies.raw(request, context.options.max_metadata_bytes), kind, context.options.names)


def read(body: bytes, media_type: str, names: RepositoryNames) -> Metadata:
    """Read metadata as JSON or XML, as its type says (or its first character, when it says nothing).

    Raises Malformed, UnknownType (a built-in type without its prefix).
    """
    if _is_xml(media_type) or (not _is_json(media_type) and body.lstrip()[:1] == b"<"):
        return _from_xml(body, names)
    decoded = bodies.decode_json(body, _json_body)
    try:
        given = {name: msgspec.json.decode(raw) for name, raw in decoded.properties.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"The JSON cannot be read: {str(error)[:300]}.") from error
    return _neutral(given, decoded.type, names)


def _from_xml(body: bytes, names: RepositoryNames) -> Metadata:
    root = strangers_xml.parse(body)
    given: dict[str, Given] = {}
    for element in (root, *root.children):
        _check_namespace(element, names)
    for part in root.children:
        if part.name != "properties":
            continue
        for element in part.children:
            _check_namespace(element, names)
            if element.name in given:
                raise Malformed(f"The property {element.name[:100]!r} comes twice ({element.place}).")
            given[element.name] = _value(element)
    stated = root.attributes.get(f"{{{spelling.XSI}}}type", "")
    return _neutral(given, stated.rpartition(":")[2], names)


def _value(element: Element) -> Given:
    if element.attributes.get(f"{{{spelling.XSI}}}nil") in ("true", "1"):
        return None
    if not element.children:
        return element.text
    if any(child.name != "item" or child.children for child in element.children) or element.text.strip():
        raise Malformed(f"A property holds text, or item elements with text ({element.place}).")
    return [child.text for child in element.children]


def _check_namespace(element: Element, names: RepositoryNames) -> None:
    if element.namespace != names.vocab_namespace:
        raise Malformed(
            f"The element {element.name[:100]!r} is not in the namespace {names.vocab_namespace!r} ({element.place})."
        )


def _neutral(given: Mapping[str, Given], stated_type: str, names: RepositoryNames) -> Metadata:
    properties = {spelling.read_property(name, names): value for name, value in given.items()}
    if len(properties) != len(given):
        raise Malformed("The body names a property twice.")
    named = properties.get("r_object_type")
    if isinstance(named, str) and named:
        properties["r_object_type"] = spelling.read_type(named, names)
        return Metadata(properties, str(properties["r_object_type"]))
    return Metadata(properties, spelling.read_type(stated_type, names) if stated_type else "")


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def _is_xml(media_type: str) -> bool:
    return media_type in ("application/xml", "text/xml") or media_type.endswith("+xml")
