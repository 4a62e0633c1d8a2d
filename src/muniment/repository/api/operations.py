"""What does an address take and give?"""

import enum
import re
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import msgspec

from muniment.repository.api.context import Answering, RepositoryContext
from muniment.repository.api.shapes.object_body import JsonMetadata
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.api.wire.documents import FeedDocument, HomeDocument, Tagged
from muniment.repository.options import RepositoryNames
from muniment.web.addresses import (
    BINARY,
    Address,
    AnswerDescription,
    Content,
    CredentialKind,
    Operation,
    Parameter,
    Schema,
    first_sentence,
)
from muniment.web.answers.responses import Table

BELOW = "/repositories/{repository}"


class Form(enum.Enum):
    """A body or an answer that no type describes."""

    BYTES = enum.auto()
    QUERY = enum.auto()
    CREATION = enum.auto()
    """What makes an object: metadata, or metadata and content in parts, or content alone if the address has a name."""


class QueryDocument(msgspec.Struct):
    """A query document in JSON (docs/aql.md)."""


Described = type[Any] | tuple[type[Any], ...] | Form | None
"""The first of several types says in which media types they come."""

_HAL: Schema = {"type": "object", "description": "The same in HAL: `_links` by relation, entries in `_embedded`."}
_PARTS: Schema = {
    "type": "object",
    "description": "Metadata, then content: parts are known by order and media type, not by name.",
}
_RELATED: Schema = {
    "type": "object",
    "description": "The same first, then attachments; `cid:` and the Content-ID of its part names each of them.",
}
_ROOTS = {
    "ArchiveBody": "archived-contents",
    "AssistBody": "assist-values",
    "CapabilitiesDocument": "batch-capabilities",
    "DefaultPermissionSetDocument": "permission-set",
    "HomeDocument": "resources",
    "JsonOptionalReference": "an object's kind",
    "JsonReference": "an object's kind",
    "ObjectDocument": "an object's kind",
    "OffersDocument": "assist-values",
    "VariablesBody": "search-template",
}
_UNCHANGED = AnswerDescription(304, "The caller has this representation already.", headers=(parameters.ETAG,))


@dataclass(frozen=True)
class Row:
    """One method of an address: ``at`` has its name and the path.

    ``gives`` and ``takes`` say what the answer and the body are, None stands for no body. ``status`` is that of an
    answer that is no refusal; 400 means that there is none. Without ``parameters``, a GET takes those of a list or of a
    single thing, and any other method none. ``root`` is the root element in XML, if it is not named after the type.
    ``related`` says that the body may also come with attachments, as multipart/related.
    """

    at: str
    endpoint: Answering
    gives: Described = None
    takes: Described = None
    _: KW_ONLY
    parameters: tuple[Parameter, ...] | None = None
    status: int = 0
    root: str = ""
    related: bool = False

    def operation(self, names: RepositoryNames) -> Operation[RepositoryContext]:
        given = self.root or _root(self.gives)
        root = given if self.takes in (JsonMetadata, Form.CREATION) else self.root or _root(self.takes)
        taken = self._default_parameters() if self.parameters is None else self.parameters
        return Operation(
            self.endpoint,
            parameters=tuple(parameter for parameter in taken if not parameter.refused),
            refused={parameter.name: parameter.refused for parameter in taken if parameter.refused},
            body={**content(self.takes, names, root), **({"multipart/related": _RELATED} if self.related else {})},
            answers=self._answers(taken, content(self.gives, names, given)),
        )

    def _default_parameters(self) -> tuple[Parameter, ...]:
        if not self.at.startswith("GET"):
            return ()
        if self.gives is FeedDocument:
            return parameters.LIST
        return (*parameters.SINGLE, parameters.IF_NONE_MATCH) if _is_tagged(self.gives) else parameters.SINGLE

    def _answers(self, taken: tuple[Parameter, ...], given: Content) -> tuple[AnswerDescription, ...]:
        status, conditional = self.status or (200 if given else 204), parameters.IF_NONE_MATCH in taken
        if status == 400:
            return ()
        headers = (
            *((parameters.LOCATION,) if status == 201 else ()),
            *((parameters.ETAG,) if conditional or _is_tagged(self.gives) else ()),
            *((parameters.POSITION,) if parameters.PLAIN_POSITION in taken else ()),
            *((parameters.PARTIAL,) if parameters.REPOSITORIES in taken else ()),
            *(parameters.RELAXED if parameters.WORDS in taken and self.gives is FeedDocument else ()),
        )
        answers = [AnswerDescription(status, _meaning(self.gives), given, headers)]
        if parameters.RANGE in taken:
            answers.append(AnswerDescription(206, "The range that was asked for.", given, headers))
        return (*answers, _UNCHANGED) if conditional else tuple(answers)


class Family:
    """Rows with the same refusals, and credentials ``of`` one kind: None is a caller's."""

    def __init__(self, refusals: Table, *rows: Row, of: CredentialKind | None = None) -> None:
        self.refusals = refusals
        self.rows = rows
        self.credentials = of


Addresses = list[Address[RepositoryContext]]


def addresses(families: Iterable[Family], names: RepositoryNames, *, below: str = BELOW) -> Addresses:
    described = Addresses()
    for family in families:
        by_path = dict[str, dict[str, Operation[RepositoryContext]]]()
        for row in family.rows:
            method, _, path = row.at.partition(" ")
            by_path.setdefault(below + path, {})[method] = row.operation(names)
        described += [
            Address(path, operations, family.refusals, credentials=family.credentials)
            for path, operations in by_path.items()
        ]
    return described


def content(described: Described, names: RepositoryNames, root: str = "") -> Content:
    """``root`` is the root element in XML."""
    if described is None:
        return {}
    if described is Form.BYTES:
        return {"*/*": BINARY}
    if described is Form.CREATION:
        parts = dict.fromkeys(("multipart/form-data", "multipart/mixed"), _PARTS)
        return {**content(JsonMetadata, names, root), **parts, "*/*": BINARY}
    json: tuple[str, ...] = (f"{names.media_type}+json", "application/json")
    xml: tuple[str, ...] = (f"{names.media_type}+xml", "application/xml")
    space = f"in the namespace {names.vocab_namespace}"
    if described is Form.QUERY:
        text = _text(f"The same query document in XML: `search` {space} (docs/aql.md).")
        return {**dict.fromkeys((*json, spelling.HAL), QueryDocument), **dict.fromkeys((*xml, "text/xml"), text)}
    text = _text(f"The same elements: `{root or _root(described)}` {space}.")
    first = _types(described)[0]
    if first is HomeDocument:
        return {name: described if name.endswith("json") else text for name in spelling.home_types(names)}
    if first is FeedDocument:
        xml, text = (spelling.ATOM, *xml), _text("An Atom feed (RFC 4287).")
    return {**dict.fromkeys(json, described), **dict.fromkeys(xml, text), spelling.HAL: _HAL}


def _types(described: Described) -> tuple[type[Any], ...]:
    if isinstance(described, tuple):
        return described
    return (described,) if isinstance(described, type) else ()


def _is_tagged(described: Described) -> bool:
    return any(issubclass(kind, Tagged) for kind in _types(described))


def _meaning(described: Described) -> str:
    if described is None:
        return "It is done."
    return " Or: ".join(first_sentence(kind) for kind in _types(described)) or "The bytes."


def _root(described: Described) -> str:
    """``SavedSearchDocument`` has the root `saved-search` in XML."""
    name = "".join(kind.__name__ for kind in _types(described)[:1])
    words = re.findall("[A-Z][a-z]*", name.removesuffix("Document").removesuffix("Body"))
    return _ROOTS.get(name, "-".join(words).lower())


def _text(meaning: str) -> Schema:
    return {"type": "string", "description": meaning}
