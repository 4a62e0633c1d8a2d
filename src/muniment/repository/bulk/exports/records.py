"""What do the lines of an export say? No setting changes the names of fields.

A moment is in microseconds since 1970 UTC. A field with its default is left out. docs/export.md describes the files to
strangers.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from muniment.ground.clock import EARLIEST, LATEST, Instant
from muniment.repository.store.objects.properties.properties import PropertyKind, Value
from muniment.repository.store.objects.types.type_forms import AllowedForm, Several
from muniment.repository.store.relations.comments import LONGEST_TEXT
from muniment.repository.store.saved.saved_searches import Spelling, WrittenNames

_Count = Annotated[int, Meta(ge=0, lt=2**31)]
_Moment = Annotated[Instant, Meta(ge=EARLIEST, le=LATEST)]
_Size = Annotated[int, Meta(ge=0, lt=2**62)]
_ShortName = Annotated[str, Meta(max_length=64)]
_LongName = Annotated[str, Meta(max_length=255)]
_Name = Annotated[str, Meta(max_length=400)]
_Text = Annotated[str, Meta(max_length=1000)]
_Id = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")]
_ObjectId = Annotated[str, Meta(pattern=r"^0[89bc][0-9a-f]{14}\Z")]
_AclId = Annotated[str, Meta(pattern=r"^45[0-9a-f]{14}\Z")]
_Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]

PermissionName = Literal["none", "browse", "read", "relate", "version", "write", "delete"]


class ExportLine(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A line of one of the files."""


class FormerBearer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """Somebody who had the name before others did.

    If ``former`` is 0, the name is not known, and ``name`` is a key.
    """

    name: _Name
    former: _Count


NamedBearer: TypeAlias = _Name | FormerBearer


class BearerLine(ExportLine, frozen=True):
    """``identity`` is what the directory calls a user or group for good. ``former`` is 0 for the last known bearer of
    the name; the earlier are numbered from 1, the first one first.
    """

    name: _Name
    former: _Count = 0
    identity: Annotated[str, Meta(max_length=200)] = ""


class PropertyLine(ExportLine, frozen=True):
    """A string has at most ``length`` characters; None means the usual limit."""

    name: _ShortName
    kind: PropertyKind
    repeating: bool = False
    length: int | None = None
    label: _Text = ""
    searchable: bool = True
    default: Several = None
    allowed: list[AllowedForm] = []
    is_open: bool = msgspec.field(default=False, name="open")
    depends_on: _ShortName = ""


class TypeLine(ExportLine, frozen=True):
    """A custom type; it comes after its parent."""

    name: _ShortName
    parent: _ShortName
    label: _Text = ""
    properties: list[PropertyLine] = []


class RelationTypeLine(ExportLine, frozen=True):
    """A type that was added to the repository."""

    name: _ShortName
    description: _Text = ""


class EntryLine(ExportLine, frozen=True):
    """The accessor is ``owner``, ``world``, or a user or group."""

    accessor: NamedBearer
    permission: PermissionName


class AclLine(ExportLine, frozen=True):
    """An ACL with its entries.

    An ACL without a ``name`` is a set of entries that was put on objects directly. If it is ``apart``, no object that
    is made later shares it.
    """

    id: _AclId
    name: Annotated[str, Meta(max_length=120)] = ""
    owner: _Name = ""
    owner_key: NamedBearer | None = None
    common: bool = False
    apart: bool = False
    entries: list[EntryLine] = []
    created: _Moment = 0
    modified: _Moment = 0
    description: _Text = ""


class ContentOfLine(ExportLine, frozen=True):
    """The folder holds the bytes under their SHA-256 digest."""

    sha256: _Digest
    size: _Size


class FurtherContentLine(ContentOfLine, frozen=True, kw_only=True):
    """A further page of the primary content if ``primary``, or else a rendition.

    ``format`` is None if it follows from the media type.
    """

    primary: bool = False
    page: _Count = 0
    media_type: _Text = ""
    format: _LongName | None = None
    modifier: _ShortName = ""
    added: _Moment = 0


class LockLine(ExportLine, frozen=True):
    """Who has an object checked out."""

    owner: _Name
    since: _Moment
    owner_key: NamedBearer | None = None


class ObjectLine(ExportLine, frozen=True, kw_only=True):
    """An object. ``folders`` begins with the folder of the first link.

    ``owner_key`` is None if ``owner`` names the owner. ``chronicle``, ``antecedent``, ``labels``, ``superseded`` and
    ``comment`` say which version the object is.
    """

    id: _ObjectId
    type: _ShortName
    name: _LongName
    owner: _Name
    owner_key: NamedBearer | None = None
    acl: _AclId
    default_acl: _AclId | None = None
    folders: Annotated[list[_ObjectId], Meta(max_length=100)] = []
    created: _Moment
    creator: _Name
    modified: _Moment
    modifier: _Name
    revision: _Count
    properties: dict[str, list[Value]] = {}
    media_type: Annotated[str, Meta(max_length=4000)] = ""
    content_date: _Moment | None = None
    content: ContentOfLine | None = None
    further_contents: Annotated[list[FurtherContentLine], Meta(max_length=400)] = []
    chronicle: _ObjectId | None = None
    antecedent: _ObjectId | None = None
    labels: Annotated[list[_Name], Meta(max_length=100)] = []
    superseded: bool = False
    comment: _Text = ""
    lock: LockLine | None = None

    @property
    def contents(self) -> list[ContentOfLine]:
        """The main one comes first."""
        return [*([self.content] if self.content else []), *self.further_contents]


class RelationLine(ExportLine, frozen=True):
    """A relation of two objects."""

    id: _Id
    name: _ShortName
    parent: _ObjectId
    child: _ObjectId
    maker: _Name
    created: _Moment
    maker_key: NamedBearer | None = None


class CommentLine(ExportLine, frozen=True):
    """A comment. It comes after the comment to which it replies."""

    id: _Id
    object: _ObjectId
    author: _Name
    created: _Moment
    modified: _Moment
    revision: _Count
    text: Annotated[str, Meta(max_length=LONGEST_TEXT)]
    replies_to: _Id | None = None
    author_key: NamedBearer | None = None


class SavedSearchLine(ExportLine, frozen=True, kw_only=True):
    """A saved search or a search template. ``document`` is the query document as it is stored, in Base64.

    ``question`` is the address of the search page that asked the document.
    """

    id: _Id
    kind: Literal["search", "template"]
    name: _LongName
    description: _Text = ""
    owner: _Name
    owner_key: NamedBearer | None = None
    public: bool = False
    created: _Moment
    modified: _Moment
    revision: _Count
    spelling: Spelling
    names: WrittenNames
    format: _Count
    document: bytes
    question: str = ""


OBJECTS = "objects.jsonl"
"""An import reads this file twice: an object may lie in a folder that comes after it."""

BEARERS = "bearers.jsonl"

FILES: dict[str, type[ExportLine]] = {
    BEARERS: BearerLine,
    "types.jsonl": TypeLine,
    "relation-types.jsonl": RelationTypeLine,
    "acls.jsonl": AclLine,
    OBJECTS: ObjectLine,
    "relations.jsonl": RelationLine,
    "comments.jsonl": CommentLine,
    "saved-searches.jsonl": SavedSearchLine,
}
