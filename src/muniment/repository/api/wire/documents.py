"""What do the repository's answers look like in JSON?

The types only describe: endpoints write without them, because settings may change names.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

Properties = Mapping[str, Any]


class LinkDocument(msgspec.Struct):
    """An address that belongs to a thing. ``href`` is a whole address, ``hreftemplate`` a template (RFC 6570)."""

    rel: str
    href: str | msgspec.UnsetType = msgspec.UNSET
    hreftemplate: str | msgspec.UnsetType = msgspec.UNSET
    title: str | msgspec.UnsetType = msgspec.UNSET


class Tagged(msgspec.Struct):
    """A thing whose answers carry an ``ETag``."""


class Linked(msgspec.Struct):
    """A thing with the addresses that belong to it."""

    links: list[LinkDocument]


class Named(Linked):
    """A thing with a name and properties."""

    name: str
    properties: Properties


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


class ProductInfoDocument(Linked):
    """The name and the release of the product; clients compare `major`."""

    name: str
    properties: dict[str, str]


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


class ObjectDocument(Tagged, Named):
    """An object with its properties."""

    type: str
    definition: str


class FolderLinkDocument(Linked, rename="kebab"):
    """A link between a folder and an object that lies in it.

    In a list of an object's links, ``href`` is the address of the folder. In a list of a folder's links, it is the
    address of the object.
    """

    href: str
    parent_id: str
    child_id: str


class DeletedObjectDocument(Named):
    """A deleted object in the wastebasket: who deleted it and when, and until when it can be restored."""

    deleter: str
    deleted: str
    expires: str


class ContentDocument(Named):
    """The description of an object's content, without its bytes."""


class IndexStatusDocument(Linked):
    """The state of an object's text, and the reason if there is no text."""

    state: str
    reason: str
    attempts: int


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


class IndexReportDocument(Linked):
    """What the index agents report.

    ``wanted`` is the time at which a check was last asked for, or null once every agent has begun that check.
    """

    wanted: str | None
    agents: list[AgentReportDocument]


class AclEntryDocument(msgspec.Struct, rename="kebab"):
    """One entry of an ACL: who may do what at most."""

    accessor: str
    basic_permission: str


class AclDocument(Named):
    """An ACL, with those of its entries that the caller may see."""

    id: str
    owner: str
    permitted: list[AclEntryDocument]


class PermissionSetDocument(Linked, rename="kebab"):
    """An object's ACL, and what the caller may do with the object."""

    acl_name: str
    owner: str
    basic_permission: str
    permitted: list[AclEntryDocument]


class DefaultPermissionSetDocument(Linked, rename="kebab"):
    """The ACL that new objects in a folder get, with its entries."""

    acl_name: str
    owner: str
    permitted: list[AclEntryDocument]


class PermissionDocument(Linked, rename="kebab"):
    """What an accessor may do with an object."""

    accessor: str
    basic_permission: str


class FormatDocument(Named):
    """The name of a format of contents, with its media type."""


class PersonDocument(Named):
    """A user or a group."""

    type: str


class SavedSearchDocument(Tagged, rename="kebab"):
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


class SearchTemplateDocument(Tagged, rename="kebab"):
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

    ``published`` is when the thing was made; a hit lacks it. With ``links=false`` there are no links. With
    ``collapse`` a hit says how many copies of it were left out.
    """

    id: str
    title: str
    author: list[Author]
    updated: str
    summary: str
    content: EntryContent
    published: str | msgspec.UnsetType = msgspec.UNSET
    links: list[LinkDocument] | msgspec.UnsetType = msgspec.UNSET
    score: float | msgspec.UnsetType = msgspec.UNSET
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
