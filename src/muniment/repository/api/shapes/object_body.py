"""What a body says about an object: its properties and its type, in JSON or XML.

Source: docs/interface.md, ours 2.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar
from urllib.parse import unquote

import msgspec
from starlette.requests import Request

from muniment.ground import json_text
from muniment.ground import xml as strangers_xml
from muniment.ground.refusals import Malformed
from muniment.ground.xml import Element
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.wire import format_names, spelling
from muniment.repository.options import RepositoryNames
from muniment.repository.store.objects.properties.properties import Given, PropertyDefinition, read_values
from muniment.web.requests import bodies

_TYPE = PropertyDefinition("r_object_type", "string")


class Metadata(msgspec.Struct, frozen=True):
    """What a body says about an object. Names in it are neutral: the code's own, not the settings'.

    ``type`` is empty if the body names no type. ``href`` is the address of another object, or empty. With
    ``deep_copy``, a copy of a folder holds copies of what is in it.
    """

    properties: dict[str, Given] = {}
    type: str = ""
    href: str = ""
    deep_copy: bool = True


class JsonReference(msgspec.Struct):
    """The address of another object or folder."""

    href: str


class JsonOptionalReference(msgspec.Struct):
    """The address of a folder, or nothing."""

    href: str = ""


class JsonMetadata(msgspec.Struct):
    """An object's properties by name, and its type.

    With ``href``, the address of an object that is to be copied, these are what differs in the copy. With ``deep-copy``
    (true by default), the copy of a folder holds copies of what is in it.
    """

    properties: dict[str, msgspec.Raw] | None = None
    type: str = ""
    href: str = ""
    deep_copy: bool | None = msgspec.field(default=None, name="deep-copy")


_ADDRESS = re.compile(
    r"/repositories/(?P<repository>[^/]+)/(objects|documents|folders|cabinets)/(?P<id>[0-9A-Fa-f]{16})(\.json|\.xml)?/?\Z"
)
_json_body = msgspec.json.Decoder(JsonMetadata)

B = TypeVar("B")
OfXml: TypeAlias = Callable[[Element, RepositoryNames], B]


def is_one(media_type: str) -> bool:
    return _is_json(media_type) or is_xml(media_type)


async def read_body(request: Request, context: RepositoryContext) -> Metadata:
    """Raises UnsupportedMediaType, TooLarge, TimedOut, and what ``read`` raises."""
    bodies.check_encoding(request)
    body = await bodies.raw(request, context.options.max_metadata_bytes)
    return read(body, bodies.media_type(request), context.names)


async def receive(
    request: Request, context: RepositoryContext, decoder: msgspec.json.Decoder[B], of_xml: OfXml[B]
) -> B:
    """Raises TooLarge, TimedOut, Malformed, and what ``of_xml`` raises."""
    bodies.check_encoding(request)
    body = await bodies.raw(request, context.options.max_metadata_bytes)
    if bodies.media_type(request).endswith("json"):
        return json_text.decode(body, decoder)
    return of_xml(strangers_xml.parse(body), context.names)


def read(body: bytes, media_type: str, names: RepositoryNames) -> Metadata:
    """Another media type is XML if the body begins with ``<``, else JSON.

    Raises Malformed, WrongValue for a type that is no text, and UnknownType for a built-in type without its prefix.
    """
    if is_xml(media_type) or (not _is_json(media_type) and body.lstrip()[:1] == b"<"):
        return _from_xml(body, names)
    json_body = json_text.decode(body, _json_body)
    try:
        properties = {name: msgspec.json.decode(raw) for name, raw in (json_body.properties or {}).items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"The JSON cannot be read: {str(error)[:300]}.") from error
    metadata = _neutral(properties, json_body.type, json_body.href, names)
    return msgspec.structs.replace(metadata, deep_copy=json_body.deep_copy is not False)


def referenced_id(metadata: Metadata, repository_name: str) -> str:
    """Raises Malformed."""
    match = _ADDRESS.search(metadata.href.partition("?")[0])
    if match is None or unquote(match["repository"]) != repository_name:
        raise Malformed(f"'href' must be the address of an object of this repository, not {metadata.href[:200]!r}.")
    return match["id"].lower()


def _from_xml(body: bytes, names: RepositoryNames) -> Metadata:
    root = strangers_xml.parse(body)
    values: dict[str, Given] = {}
    for element in (root, *root.children):
        check_namespace(element, names)
    for part in root.children:
        if part.name == "properties":
            for name, value in properties(part, names).items():
                if name in values:
                    raise Malformed(f"The property {name[:100]!r} comes twice ({part.place}).")
                values[name] = value
    stated_type = root.attributes.get(f"{{{spelling.XSI}}}type", "")
    metadata = _neutral(values, stated_type.rpartition(":")[2], root.attributes.get("href", ""), names)
    texts = [root.attributes.get("deep-copy", ""), *(part.text for part in root.children if part.name == "deep-copy")]
    return msgspec.structs.replace(metadata, deep_copy=all(text.strip().lower() != "false" for text in texts))


def properties(element: Element, names: RepositoryNames) -> dict[str, Given]:
    """An empty child has no value.

    Raises Malformed.
    """
    values: dict[str, Given] = {}
    for child in element.children:
        check_namespace(child, names)
        if child.name in values:
            raise Malformed(f"The property {child.name[:100]!r} comes twice ({child.place}).")
        values[child.name] = _value(child, names)
    return values


def check_namespace(element: Element, names: RepositoryNames) -> None:
    """Check for the vocabulary's namespace, or none, as old clients write.

    Raises Malformed.
    """
    if element.namespace not in ("", names.vocab_namespace):
        raise Malformed(
            f"The element {element.name[:100]!r} is not in the namespace {names.vocab_namespace!r} ({element.place})."
        )


def check_namespaces(element: Element, names: RepositoryNames) -> None:
    """Raises Malformed."""
    check_namespace(element, names)
    for child in element.children:
        check_namespaces(child, names)


def _value(element: Element, names: RepositoryNames) -> Given:
    if _is_nil(element):
        return None
    if not element.children:
        return element.text or None
    for child in element.children:
        check_namespace(child, names)
    if any(child.name != "item" or child.children for child in element.children) or element.text.strip():
        raise Malformed(f"A property holds text, or item elements with text ({element.place}).")
    return [None if _is_nil(child) else child.text for child in element.children]


def _is_nil(element: Element) -> bool:
    return element.attributes.get(f"{{{spelling.XSI}}}nil") in ("true", "1")


def _neutral(values: Mapping[str, Given], stated_type: str, href: str, names: RepositoryNames) -> Metadata:
    neutral = {spelling.read_property(name, names): value for name, value in values.items()}
    if len(neutral) != len(values):
        raise Malformed("The body names a property twice.")
    content_type = neutral.get("a_content_type")
    if isinstance(content_type, str):
        neutral["a_content_type"] = format_names.media_type_or_same(content_type, names)
    if given_type := read_values(_TYPE, neutral.get("r_object_type")):
        neutral["r_object_type"] = stated_type = spelling.read_type(str(given_type[0]), names)
    elif stated_type:
        stated_type = spelling.read_type(stated_type, names)
    return Metadata(neutral, stated_type, href)


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def is_xml(media_type: str) -> bool:
    return media_type in ("application/xml", "text/xml") or media_type.endswith("+xml")
