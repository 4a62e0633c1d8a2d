"""What do the repository's bodies and answers look like in JSON, and in which media types do they come?

The types here only describe bodies and answers. Endpoints write their answers without them, because settings may change
the names.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from muniment.repository.endpoints import spelling
from muniment.repository.options import RepositoryNames
from muniment.web.addresses import BINARY, Content, ErrorShape, Schema

Properties = Mapping[str, Any]


class LinkDocument(msgspec.Struct):
    """An address that belongs to a thing. ``href`` is a whole address, ``hreftemplate`` a template (RFC 6570)."""

    rel: str
    href: str | msgspec.UnsetType = msgspec.UNSET
    hreftemplate: str | msgspec.UnsetType = msgspec.UNSET
    title: str | msgspec.UnsetType = msgspec.UNSET


class ResourceHints(msgspec.Struct):
    """The methods of an address, and the media types in which its GET is answered."""

    allow: list[str]
    representations: list[str]


class HomeResource(msgspec.Struct):
    """An address of the home document."""

    href: str
    hints: ResourceHints


class HomeDocument(msgspec.Struct):
    """The addresses with which a client begins, by link relation."""

    resources: dict[str, HomeResource]


class ProductInfoDocument(msgspec.Struct):
    """The name and the release of the product; clients compare ``major``."""

    name: str
    properties: dict[str, str]
    links: list[LinkDocument]


class ServerDocument(msgspec.Struct):
    """A server that serves a repository."""

    name: str
    host: str
    version: str
    docbroker: str


class RepositoryDocument(msgspec.Struct):
    """A repository, and where its services are."""

    id: int
    name: str
    description: str
    servers: list[ServerDocument]
    links: list[LinkDocument] | msgspec.UnsetType = msgspec.UNSET


class ObjectDocument(msgspec.Struct):
    """An object with its properties."""

    name: str
    type: str
    definition: str
    properties: Properties
    links: list[LinkDocument]


class FolderLinkDocument(msgspec.Struct, rename="kebab"):
    """A link between a folder and an object that lies in it.

    In a list of an object's links, ``href`` is the address of the folder. In a list of a folder's links, it is the
    address of the object.
    """

    href: str
    parent_id: str
    child_id: str
    links: list[LinkDocument]


class DeletedObjectDocument(msgspec.Struct):
    """A deleted object in the wastebasket: who deleted it and when, and until when it can be restored."""

    name: str
    properties: Properties
    deleter: str
    deleted: str
    expires: str
    links: list[LinkDocument]


class ContentDocument(msgspec.Struct):
    """The description of an object's content, without its bytes."""

    name: str
    properties: Properties
    links: list[LinkDocument]


class IndexStatusDocument(msgspec.Struct):
    """The state of an object's text, and the reason if there is no text."""

    state: str
    reason: str
    attempts: int
    links: list[LinkDocument]


class IndexDifferenceDocument(msgspec.Struct):
    """An object whose document in the index is not what the database makes of the object.

    ``fault`` is the kind of fault, ``parts`` are the parts that differ.
    """

    id: str
    fault: str
    parts: list[str]
    repaired: bool


class IndexCheckDocument(msgspec.Struct):
    """The findings of one check of an index; ``ended`` is null while it is under way."""

    sound: bool
    began: str
    ended: str | None
    ranges: int
    objects: int
    documents: int
    missing: int
    extra: int
    stale: int
    doubled: int
    waiting: int
    unindexed: int
    noted: int
    repaired: int
    differences: list[IndexDifferenceDocument]


class AgentReportDocument(msgspec.Struct, rename="kebab"):
    """What one index agent reports: its last check, and the check that is under way."""

    agent: str
    report: IndexCheckDocument | None
    under_way: IndexCheckDocument | None


class IndexReportDocument(msgspec.Struct):
    """What the index agents report.

    ``wanted`` is the time at which a check was last asked for, or null once every agent has begun that check.
    """

    wanted: str | None
    agents: list[AgentReportDocument]
    links: list[LinkDocument]


class AclEntryDocument(msgspec.Struct, rename="kebab"):
    """One entry of an ACL: who may do what at most."""

    accessor: str
    basic_permission: str


class AclDocument(msgspec.Struct):
    """An ACL, with those of its entries that the caller may see."""

    id: str
    name: str
    owner: str
    properties: Properties
    permitted: list[AclEntryDocument]
    links: list[LinkDocument]


class PermissionSetDocument(msgspec.Struct, rename="kebab"):
    """An object's ACL, and what the caller may do with the object."""

    acl_name: str
    owner: str
    basic_permission: str
    permitted: list[AclEntryDocument]
    links: list[LinkDocument]


class DefaultPermissionSetDocument(msgspec.Struct, rename="kebab"):
    """The ACL that new objects in a folder get, with its entries."""

    acl_name: str
    owner: str
    permitted: list[AclEntryDocument]
    links: list[LinkDocument]


class PermissionDocument(msgspec.Struct, rename="kebab"):
    """What an accessor may do with an object."""

    accessor: str
    basic_permission: str
    links: list[LinkDocument]


class FormatDocument(msgspec.Struct):
    """The name of a format of contents, with its media type."""

    name: str
    properties: Properties
    links: list[LinkDocument]


class PersonDocument(msgspec.Struct):
    """A user or a group."""

    name: str
    type: str
    properties: Properties
    links: list[LinkDocument]


class SavedSearchDocument(msgspec.Struct, rename="kebab"):
    """A saved search. Its query document is a text, in XML or JSON like the answer."""

    name: str
    properties: Properties
    query_document: str
    links: list[LinkDocument] | msgspec.UnsetType = msgspec.UNSET


class VariableDocument(msgspec.Struct, rename="kebab"):
    """A variable of a search template, with the values that are used if a caller gives no others."""

    variable_type: str
    id: str
    expression_type: str
    data_type: str
    property_name: str | msgspec.UnsetType = msgspec.UNSET
    operator: str | msgspec.UnsetType = msgspec.UNSET
    variable_value: str | msgspec.UnsetType = msgspec.UNSET
    variable_values: list[str] | msgspec.UnsetType = msgspec.UNSET
    from_: str | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="from")
    to: str | msgspec.UnsetType = msgspec.UNSET


class SearchTemplateDocument(msgspec.Struct, rename="kebab"):
    """A search template: a query document as a text, and its variables."""

    name: str
    properties: Properties
    query_document_template: str
    external_variables: list[VariableDocument]
    links: list[LinkDocument] | msgspec.UnsetType = msgspec.UNSET


class Author(msgspec.Struct):
    """The name of the author of a feed or an entry. For an object, ``uri`` is the address of its owner."""

    name: str
    uri: str | msgspec.UnsetType = msgspec.UNSET


class EntryContent(msgspec.Struct, rename="kebab"):
    """The address and the media type of what an entry describes. With ``inline=true``, the thing itself stands here."""

    src: str | msgspec.UnsetType = msgspec.UNSET
    type: str | msgspec.UnsetType = msgspec.UNSET
    content_type: str | msgspec.UnsetType = msgspec.UNSET


class EntryDocument(msgspec.Struct):
    """One member of a feed. A hit of a search has a score, and the words that matched.

    With ``links=false`` there are no links. With ``collapse`` a hit says how many copies of it were left out.
    """

    id: str
    title: str
    author: list[Author]
    updated: str
    summary: str
    content: EntryContent
    links: list[LinkDocument] | msgspec.UnsetType = msgspec.UNSET
    score: str | msgspec.UnsetType = msgspec.UNSET
    terms: list[str] | msgspec.UnsetType = msgspec.UNSET
    marks: "list[MarkDocument] | msgspec.UnsetType" = msgspec.UNSET
    copies: int | msgspec.UnsetType = msgspec.UNSET


class MarkDocument(msgspec.Struct):
    """A matching piece of a summary: the numbers of its first character and of the character after its last one,
    counted from 0.
    """

    start: int
    end: int


class FeedDocument(msgspec.Struct, rename="kebab"):
    """One page of a list or a search. ``partial`` says that not all of the searched repositories answered."""

    id: str
    title: str
    author: list[Author]
    updated: str
    page: int
    items_per_page: int
    links: list[LinkDocument]
    entries: list[EntryDocument]
    total: int | msgspec.UnsetType = msgspec.UNSET
    partial: bool | msgspec.UnsetType = msgspec.UNSET


class SuggestionDocument(msgspec.Struct):
    """A question, and the number of objects that the caller finds if all its words must match."""

    text: str
    hits: int


class SuggestionsDocument(msgspec.Struct):
    """Questions that complete what the caller has typed, and the question that they may have meant instead."""

    completions: list[SuggestionDocument]
    correction: SuggestionDocument | msgspec.UnsetType = msgspec.UNSET


class ErrorDocument(msgspec.Struct):
    """An error of the repository."""

    status: int
    code: str
    message: str
    details: str
    id: str


_HAL: Schema = {"type": "object", "description": "The same in HAL: `_links` by relation, entries in `_embedded`."}

_QUERY: Schema = {"type": "object", "description": "The same query document in JSON (docs/aql.md)."}


class Documents:
    """Describes bodies and answers by media type, for one set of names."""

    def __init__(self, names: RepositoryNames) -> None:
        self._names = names
        self._json = (f"{names.media_type}+json", "application/json")
        self._xml = (f"{names.media_type}+xml", "application/xml")
        self.errors = ErrorShape(
            "repository", spelling.error_shape(names), self.thing(ErrorDocument, "error"), spelling.error_code
        )
        self.feed: Content = {
            **dict.fromkeys(self._json, FeedDocument),
            **dict.fromkeys((spelling.ATOM, *self._xml), self._text("An Atom feed (RFC 4287).")),
            spelling.HAL: _HAL,
        }
        self.thing_or_feed: Content = {**self.feed, **{key: {"type": "object"} for key in self._json}}
        self.query: Content = {
            **dict.fromkeys(
                (*self._xml, "text/xml"),
                self._text(f"A query document: `search` in the namespace {names.vocab_namespace} (docs/aql.md)."),
            ),
            **dict.fromkeys((*self._json, spelling.HAL), _QUERY),
        }

    def thing(self, kind: type[Any], root: str) -> Content:
        """Describe a body or an answer that is a single thing: its media types, each with its schema."""
        meaning = f"The same elements: `{root}` in the namespace {self._names.vocab_namespace}."
        return {
            **dict.fromkeys(self._json, kind),
            **dict.fromkeys(self._xml, self._text(meaning)),
            spelling.HAL: _HAL,
        }

    def thing_or_rows(self, kind: type[Any], root: str) -> Content:
        """Describe an answer that is a single thing, or a feed of the rows that a statement selects."""
        either = dict.fromkeys(self._json, (kind, FeedDocument))
        return {**self.thing(kind, root), **either}

    def home(self, kind: type[Any]) -> Content:
        """Describe the answer with the home document: its media types, each with its schema."""
        meaning = f"The same elements: `resources` in the namespace {self._names.vocab_namespace}."
        by_media_type = {media_type: media_type.endswith("json") for media_type in spelling.home_types(self._names)}
        return {media_type: kind if is_json else self._text(meaning) for media_type, is_json in by_media_type.items()}

    def creation(self, metadata: type[Any]) -> Content:
        """Describe the bodies that make an object: metadata alone; metadata and content in parts; or, if the address
        gives a name, content alone."""
        parts: Schema = {
            "type": "object",
            "description": "Metadata, then content: parts are known by order and media type, not by name.",
        }
        return {
            **self.thing(metadata, "an object's kind"),
            **dict.fromkeys(("multipart/form-data", "multipart/mixed"), parts),
            "*/*": BINARY,
        }

    @staticmethod
    def _text(meaning: str) -> Schema:
        return {"type": "string", "description": meaning}
