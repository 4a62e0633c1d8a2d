"""The table of objects, and what its rows hold. Only modules of this room use the table.

``properties`` and ``folded`` are JSON, an object of lists. ``folded`` holds, by property, the folded forms of texts
that a database cannot fold itself (``folding.is_plain``). It is null for most objects.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from muniment.clock import Instant
from muniment.db import BigId, repository_tables
from muniment.repository.change_log.changes import Position
from muniment.repository.content.contract import StoredContent
from muniment.repository.folding import folded_forms
from muniment.repository.objects import writable
from muniment.repository.objects.properties import Value

objects = sa.Table(
    "objects",
    repository_tables,
    sa.Column("seq", BigId, primary_key=True),
    sa.Column("id", sa.String(16), nullable=False, unique=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("type", sa.String(64), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("owner", sa.String(400), nullable=False),
    sa.Column("owner_key", sa.String(400), nullable=False),
    sa.Column("acl_id", sa.ForeignKey("acls.id"), nullable=False, index=True),
    sa.Column("folder_id", sa.ForeignKey("objects.id"), nullable=True),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("creator", sa.String(400), nullable=False),
    sa.Column("modified", sa.BigInteger, nullable=False),
    sa.Column("modifier", sa.String(400), nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("properties", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("content_key", sa.String(32), nullable=True, unique=True),
    sa.Column("content_size", sa.BigInteger, nullable=False),
    sa.Column("content_sha256", sa.LargeBinary, nullable=True),
    sa.Column("folded", sa.Text, nullable=True),
    sa.Index("ix_objects_repository", "repository_id", "seq"),
    sa.Index("ix_objects_folder", "folder_id", "name", "seq"),
    sqlite_autoincrement=True,
)


class StoredObject(msgspec.Struct, frozen=True):
    """One object as it is stored, in our neutral names.

    ``owner`` is the owner as callers see them, ``owner_key`` the key under which their objects are stored.
    ``properties`` holds the title, subject, keywords, authors and the custom properties; a date is an Instant. The file
    name of the content is the object's name. Functions that write return the ``position`` of the change in the log.
    """

    seq: int
    id: str
    repository_id: int
    type: str
    name: str
    owner: str
    owner_key: str
    acl_id: int
    folder_id: str | None
    created: Instant
    creator: str
    modified: Instant
    modifier: str
    revision: int
    properties: dict[str, list[Value]]
    media_type: str
    content: StoredContent | None
    position: Position | None = None


class ObjectSummary(msgspec.Struct, frozen=True):
    """The part of an object that a page of a search shows, and that decides who may see it."""

    seq: int
    id: str
    name: str
    owner: str
    owner_key: str
    acl_id: int
    modified: Instant
    properties: str

    @property
    def title(self) -> str:
        """The first title of the object; empty without one."""
        return str(next(iter(writable.decode(self.properties).get("title", ())), ""))


_SAME_NAME = [column.name for column in objects.columns if column.name in StoredObject.__struct_fields__]
"""The columns that have a field of the same name."""


def read_row(row: Sequence[Any]) -> StoredObject:
    """Read a row of all columns by their numbers: for a page of hits, this takes half the time of reading by names."""
    *same_name, encoded, media_type, key, size, digest, _folded = row
    content = None if key is None else StoredContent(key, size, bytes(digest))
    return StoredObject(*[*same_name, writable.decode(encoded), media_type, content])


def row_of(stored: StoredObject) -> dict[str, object]:
    """Return the columns of a new row."""
    columns = {name: getattr(stored, name) for name in _SAME_NAME}
    texts = {"properties": writable.encode(stored.properties), "folded": fold_texts(stored)}
    return columns | texts | content_columns(stored.content)


def fold_texts(stored: StoredObject) -> str | None:
    """Write the folded forms of the texts that a database cannot fold itself; None without any."""
    forms = folded_forms(
        {
            **stored.properties,
            "object_name": [stored.name],
            "owner_name": [stored.owner],
            "r_creator_name": [stored.creator],
            "r_modifier": [stored.modifier],
            "a_content_type": [stored.media_type],
        }
    )
    return msgspec.json.encode(forms).decode() if forms else None


def content_columns(content: StoredContent | None) -> dict[str, object]:
    """Return the columns that name an object's content."""
    if content is None:
        return {"content_key": None, "content_size": 0, "content_sha256": None}
    return {"content_key": content.key, "content_size": content.size, "content_sha256": content.sha256}
