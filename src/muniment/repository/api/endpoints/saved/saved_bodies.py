"""What does a body, in JSON or XML, say of a saved search, a template, or values for variables?

Source: docs/interface.md, ours 12 and 13.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import Request

from muniment.ground import json_text
from muniment.ground import xml as strangers_xml
from muniment.ground.refusals import Malformed
from muniment.ground.xml import Element
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.shapes import object_body
from muniment.repository.api.wire import spelling
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownProperty, WrongValue
from muniment.repository.search.answering.kept import saved_documents
from muniment.repository.search.answering.kept.search_templates import BOUNDS, SEVERAL, SINGLE, VariableValue
from muniment.repository.search.aql.tree import QueryLimits
from muniment.repository.store.saved.saved_searches import Kind, SavedDocument, SearchChange
from muniment.web.requests import bodies

DESCRIPTIONS: Mapping[Kind, str] = {"search": "title", "template": "subject"}

DOCUMENTS: Mapping[Kind, str] = {"search": "query-document", "template": "query-document-template"}

_SHOWN_ONLY = frozenset(
    {"r_object_id", "r_object_type", "r_creation_date", "r_modify_date", "owner_name", "has_results"}
)
_REFERENCE = re.compile(
    r"/repositories/(?P<repository>[^/]+)/(?P<list>saved-searches|search-templates)/(?P<id>[0-9A-Fa-f]{16})"
    r"(\.json|\.xml)?/?\Z"
)
_AROUND_A_QUERY = 14
"""A body in XML has so many levels beside those of the query's expressions."""


class SavedSearchBody(msgspec.Struct, rename="kebab"):
    """A saved search or a search template: its properties, and its query document as a text or as the document itself.

    ``search-reference`` is the address of another saved search or template, from which the document is taken; so is
    ``href``.
    """

    properties: dict[str, Any] | None = None
    query_document: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    query_document_template: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    search_reference: str | None = None
    href: str | None = None


class VariableBody(msgspec.Struct, rename="kebab"):
    """A value for a variable of a template. Other members of the variable may be sent, too, and have no effect."""

    id: str
    variable_type: str | None = None
    variable_value: str | int | float | bool | None = None
    variable_values: list[str | int | float | bool] | None = None
    from_: str | int | float | None = msgspec.field(default=None, name="from")
    to: str | int | float | None = None


class VariablesBody(msgspec.Struct, rename="kebab"):
    """The values for the variables of a template. A variable that is not among them keeps its own values."""

    external_variables: list[VariableBody] | None = None


class Reference(msgspec.Struct, frozen=True):
    """The document is taken from this one."""

    kind: Kind
    id: str


class SearchDraft(msgspec.Struct, frozen=True):
    """What to set, and from where another search's document is taken."""

    change: SearchChange
    reference: Reference | None


_search_body = msgspec.json.Decoder(SavedSearchBody)
_variables_body = msgspec.json.Decoder(VariablesBody)


async def receive(request: Request, context: RepositoryContext, kind: Kind, repository_name: str) -> SearchDraft:
    """Raises UnsupportedMediaType, TooLarge, TimedOut, Malformed, WrongValue, UnknownProperty, and what
    ``aql.documents.read`` raises.
    """
    bodies.check_encoding(request)
    body = await bodies.raw(request, context.options.max_metadata_bytes)
    names = context.names
    if bodies.media_type(request).endswith("json"):
        values, texts, reference = _of_json(body)
        documents = [saved_documents.from_body(text, names) for text in texts]
    else:
        values, documents, reference = _of_xml(_parse(body, context), names, QueryLimits.of(context.options))
    if len(documents) + bool(reference) > 1:
        raise Malformed("The body has more than one query document, or a reference beside one.")
    return SearchDraft(
        _change(values, kind, documents[0] if documents else None, names),
        _reference(reference, repository_name) if reference else None,
    )


async def values(request: Request, context: RepositoryContext) -> list[VariableValue]:
    """Raises UnsupportedMediaType, TooLarge, TimedOut, Malformed."""
    bodies.check_encoding(request)
    body = await bodies.raw(request, context.options.max_metadata_bytes)
    if bodies.media_type(request).endswith("json"):
        members = json_text.decode(body, _variables_body).external_variables or []
        return [value for member in members if (value := _value(member)) is not None]
    root = _parse(body, context)
    lists = [part for part in root.children if part.name == "external-variables"]
    object_body.check_namespace(root, context.names)
    return [
        value
        for part in lists
        for element in part.children
        if (value := _value_of_xml(element, context.names)) is not None
    ]


def _parse(body: bytes, context: RepositoryContext) -> Element:
    limits = QueryLimits.of(context.options)
    return strangers_xml.parse(body, 2 * limits.depth + _AROUND_A_QUERY, 4 * limits.clauses + 1000)


def _of_json(body: bytes) -> tuple[Mapping[str, object], list[bytes], str]:
    json_body = json_text.decode(body, _search_body)
    texts = []
    for raw in (json_body.query_document, json_body.query_document_template):
        text = b"null" if raw is msgspec.UNSET else bytes(raw)
        if text != b"null":
            texts.append(msgspec.json.decode(text, type=str).encode() if text.startswith(b'"') else text)
    return json_body.properties or {}, texts, json_body.search_reference or json_body.href or ""


def _of_xml(
    root: Element, names: RepositoryNames, limits: QueryLimits
) -> tuple[Mapping[str, object], list[SavedDocument], str]:
    values: dict[str, object] = {}
    documents: list[SavedDocument] = []
    reference = root.attributes.get("search-reference") or root.attributes.get("href", "")
    for part in (root, *root.children):
        object_body.check_namespace(part, names)
    for part in root.children:
        if part.name == "properties":
            values |= object_body.properties(part, names)
        elif part.name in DOCUMENTS.values():
            if len(part.children) > 1 or (part.children and part.text.strip()):
                raise Malformed(f"The element {part.name!r} holds one document ({part.place}).")
            if part.children:
                documents.append(saved_documents.nested(part.children[0], names, limits))
            elif part.text.strip():
                documents.append(saved_documents.from_body(part.text.encode(), names))
    return values, documents, reference


def _change(
    values: Mapping[str, object], kind: Kind, document: SavedDocument | None, names: RepositoryNames
) -> SearchChange:
    properties: dict[str, object] = {}
    for name, value in values.items():
        neutral = spelling.read_property(name, names)
        if neutral not in {"object_name", *DESCRIPTIONS.values(), "r_is_public", *_SHOWN_ONLY}:
            raise UnknownProperty(f"A saved search has no property {name[:100]!r}.")
        properties[neutral] = value
    own = DESCRIPTIONS[kind]
    other = next(name for name in DESCRIPTIONS.values() if name != own)
    return SearchChange(
        _text(properties, "object_name"),
        _text(properties, own if own in properties else other),
        _truth(properties.get("r_is_public")),
        document,
    )


def _text(properties: Mapping[str, object], name: str) -> str | None:
    if name not in properties:
        return None
    value = properties[name]
    if value is not None and not isinstance(value, str):
        raise WrongValue(f"The property {name!r} is one text.")
    return value or ""


def _truth(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise WrongValue("The property 'r_is_public' is true or false.")


def _reference(text: str, repository_name: str) -> Reference:
    match = _REFERENCE.search(text.partition("?")[0])
    if match is None or unquote(match["repository"]) != repository_name:
        raise Malformed(
            f"'search-reference' is the address of a saved search or template of this repository, not {text[:200]!r}."
        )
    return Reference("search" if match["list"] == "saved-searches" else "template", match["id"].lower())


def _value(variable: VariableBody) -> VariableValue | None:
    texts: dict[str, Sequence[str]] = {}
    if variable.variable_value is not None:
        texts[SINGLE] = [_scalar(variable.variable_value)]
    if variable.variable_values is not None:
        texts[SEVERAL] = [_scalar(value) for value in variable.variable_values]
    for end, bound in zip(BOUNDS, (variable.from_, variable.to), strict=True):
        if bound is not None:
            texts[end] = [_scalar(bound)]
    return VariableValue(variable.id, texts, variable.variable_type or "") if texts else None


def _scalar(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _value_of_xml(element: Element, names: RepositoryNames) -> VariableValue | None:
    texts: dict[str, Sequence[str]] = {}
    variable_id = ""
    for part in (element, *element.children):
        object_body.check_namespace(part, names)
    for part in element.children:
        if part.name == "id":
            variable_id = part.text.strip()
        elif part.name in (SINGLE, SEVERAL) and (part.children or element.name == "property-list-variable"):
            texts[SEVERAL] = [item.text for item in part.children]
        elif part.name in (SINGLE, *BOUNDS):
            texts[part.name] = [part.text]
    if not variable_id:
        raise Malformed(f"A variable has an id ({element.place}).")
    return VariableValue(variable_id, texts, element.name) if texts else None
