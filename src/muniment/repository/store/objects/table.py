"""The tables of objects and of their types, and what rows of objects hold.

Only this room, ``removal`` and ``exports/rebuilding`` use them.

``properties`` and ``folded`` are JSON objects of lists; ``folded`` has the folded forms that a database cannot make
(``folding.is_plain``). ``further_folders`` is a JSON list of all folders but the first, ``folder_id``: each has a row
in ``folder_links``, by which the folder finds the object.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from muniment.database.connections import BigId, repository_column, repository_tables, required, required_columns
from muniment.ground.clock import Instant
from muniment.repository.folding import folded_forms
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.objects.properties import stored_values, version
from muniment.repository.store.objects.properties.properties import Value
from muniment.repository.store.objects.properties.version import FIRST, Version

_WHERE_DEFAULT: dict[str, Any] = {
    f"{dialect}_where": sa.text("default_acl_id IS NOT NULL") for dialect in ("sqlite", "postgresql")
}

IS_CABINET = sa.text("folder_id IS NULL AND id >= '0c' AND id < '0d'")
"""Other objects that lie in no folder may be many. A query must repeat this text to use the index of cabinets."""

objects = sa.Table(
    "objects",
    repository_tables,
    sa.Column("seq", BigId, primary_key=True),
    required("id", sa.String(16), unique=True),
    repository_column(),
    required("type", sa.String(64)),
    required("name", sa.String(255)),
    *required_columns(sa.String(400), "owner", "owner_key"),
    required("acl_id", sa.ForeignKey("acls.id"), index=True),
    sa.Column("folder_id", sa.ForeignKey("objects.id")),
    required("created", sa.BigInteger),
    required("creator", sa.String(400)),
    required("modified", sa.BigInteger),
    required("modifier", sa.String(400)),
    required("revision", sa.Integer),
    *required_columns(sa.Text, "properties", "media_type"),
    sa.Column("content_key", sa.String(32), index=True),
    required("content_size", sa.BigInteger),
    sa.Column("content_sha256", sa.LargeBinary),
    sa.Column("folded", sa.Text),
    sa.Column("default_acl_id", sa.ForeignKey("acls.id")),
    sa.Column("further_folders", sa.Text),
    sa.Column("content_date", sa.BigInteger),
    sa.Column("chronicle_id", sa.String(16)),
    sa.Column("antecedent_id", sa.String(16)),
    sa.Column("labels", sa.Text),
    required("former", sa.SmallInteger, server_default="0"),
    required("superseded", sa.SmallInteger, server_default="0"),
    sa.Column("comment", sa.Text),
    sa.Column("lock_owner", sa.String(400)),
    sa.Column("lock_owner_key", sa.String(400)),
    sa.Column("locked", sa.BigInteger),
    sa.Index("ix_objects_default_acl", "default_acl_id", **_WHERE_DEFAULT),
    sa.Index("ix_objects_repository", "repository_id", "seq"),
    sa.Index("ix_objects_folder", "folder_id", "former", "name", "seq"),
    # Few objects are in these three indexes: cabinets, those that have a chronicle id, and those that are checked out.
    sa.Index(
        "ix_objects_cabinets",
        *("repository_id", "former", "name", "seq"),
        sqlite_where=IS_CABINET,
        postgresql_where=IS_CABINET,
    ),
    sa.Index(
        "ix_objects_chronicle",
        "chronicle_id",
        "seq",
        sqlite_where=sa.text("chronicle_id IS NOT NULL"),
        postgresql_where=sa.text("chronicle_id IS NOT NULL"),
    ),
    sa.Index(
        "ix_objects_locked",
        "repository_id",
        "lock_owner_key",
        "seq",
        sqlite_where=sa.text("lock_owner_key IS NOT NULL"),
        postgresql_where=sa.text("lock_owner_key IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)

IS_CURRENT = objects.c.former == sa.literal_column("0")

folder_links = sa.Table(
    "folder_links",
    repository_tables,
    sa.Column("object_id", sa.ForeignKey("objects.id"), primary_key=True),
    sa.Column("folder_id", sa.ForeignKey("objects.id"), primary_key=True),
    required("name", sa.String(255)),
    required("seq", sa.BigInteger),
    required("former", sa.SmallInteger),
    sa.Index("ix_folder_links_folder", "folder_id", "former", "name", "seq"),
)
"""Links to further folders. ``name``, ``seq`` and ``former`` repeat the object's columns, so that an index gives the
order of a folder's list.
"""


wastebasket = sa.Table(
    "wastebasket",
    repository_tables,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    required("id", sa.String(16), unique=True),
    repository_column(),
    required("root", sa.String(16), index=True),
    required("name", sa.String(255)),
    required("owner", sa.String(400)),
    required("owner_key", sa.String(400), index=True),
    required("acl_id", sa.BigInteger, index=True),
    sa.Column("default_acl_id", sa.BigInteger, index=True),
    required("deleter", sa.String(400)),
    required("deleter_key", sa.String(400), index=True),
    required("deleted", sa.BigInteger),
    required("expires", sa.BigInteger, index=True),
    required("object", sa.Text),
    required("bytes", sa.BigInteger),
    sa.Column("content_key", sa.String(32), index=True),
    required("content_size", sa.BigInteger),
    sa.Column("content_sha256", sa.LargeBinary),
    sa.Index("ix_wastebasket_repository", "repository_id", "deleted", "seq"),
)
"""``object`` is the StoredObject as JSON, ``root`` the id of the object with which it was deleted (perhaps its own),
``bytes`` the size of all its contents. ``acl_id`` may name an ACL that is gone: deleted objects keep no named ACL from
being removed.
"""


def further_columns() -> Sequence[sa.Column[Any]]:
    return (
        required("is_primary", sa.Boolean),
        required("page", sa.Integer),
        required("media_type", sa.Text),
        required("format", sa.String(255)),
        required("modifier", sa.String(64)),
        required("added", sa.BigInteger),
        required("content_key", sa.String(32), index=True),
        required("content_size", sa.BigInteger),
        required("content_sha256", sa.LargeBinary),
    )


discarded_contents = sa.Table(
    "discarded_contents",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    required("object_id", sa.ForeignKey("wastebasket.id"), index=True),
    *further_columns(),
    sqlite_autoincrement=True,
)


object_types = sa.Table(
    "object_types",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    repository_column(),
    *required_columns(sa.String(64), "name", "parent"),
    required("label", sa.String(255)),
    required("created", sa.BigInteger),
    sa.UniqueConstraint("repository_id", "name"),
)

type_properties = sa.Table(
    "type_properties",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    required("type_id", sa.ForeignKey("object_types.id")),
    required("name", sa.String(64)),
    required("kind", sa.String(10)),
    required("repeating", sa.Boolean),
    required("length", sa.Integer),
    required("label", sa.String(255)),
    *required_columns(sa.Boolean, "searchable", "awaiting_index"),
    # The default and the allowed values, as JSON; empty if there are neither.
    required("rules", sa.Text),
    required("created", sa.BigInteger),
    sa.UniqueConstraint("type_id", "name"),
)


class StoredObject(msgspec.Struct, frozen=True):
    """One object in our neutral names.

    ``owner`` is a user id, ``owner_key`` the key that stands for the owner (``bearers``). ``properties`` are those
    without a field here; a date is an Instant. The object's name is the content's file name, ``content_date`` the
    content's own date, such as a file's modification time.

    A writing function sets ``position``, of the change in the change log, and ``freed``, keys that no row names any
    more: the caller removes their bytes after the commit. In a folder, new objects get ``default_acl_id``, or the
    folder's own ACL.
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
    version: Version = FIRST
    position: Position | None = None
    default_acl_id: int | None = None
    freed: tuple[str, ...] = ()
    further_folders: tuple[str, ...] = ()
    content_date: Instant | None = None

    @property
    def title(self) -> str:
        """The first title of the object; empty without one."""
        return str(next(iter(self.properties.get("title", ())), ""))

    @property
    def folder_ids(self) -> list[str]:
        return [] if self.folder_id is None else [self.folder_id, *self.further_folders]

    @property
    def chronicle_id(self) -> str:
        return self.version.chronicle_id or self.id

    @property
    def former(self) -> bool:
        return self.version.former


class ObjectSummary(msgspec.Struct, frozen=True):
    """What a page of hits shows, and what decides who may see it."""

    seq: int
    id: str
    name: str
    owner: str
    owner_key: str
    acl_id: int
    modified: Instant
    properties: str
    former: int

    @property
    def title(self) -> str:
        """Return the first title, or an empty text."""
        return str(next(iter(stored_values.decode(self.properties).get("title", ())), ""))


_SAME_NAME = [
    column.name
    for column in objects.columns
    if column.name in StoredObject.__struct_fields__ and column.name not in ("default_acl_id", "further_folders")
]

_ids = msgspec.json.Decoder(tuple[str, ...])

_OWN_COLUMNS = len(objects.c) - len(version.columns(FIRST))


def read_row(row: Sequence[Any]) -> StoredObject:
    """Read all columns in order: by number, this takes half the time."""
    *same_name, encoded, media_type, key, size, digest, _folded, default_acl_id, further, dated = row[:_OWN_COLUMNS]
    content = None if key is None else StoredContent(key, size, bytes(digest))
    of_version = version.read(row[_OWN_COLUMNS:])
    optional = (of_version, None, default_acl_id, (), read_ids(further), dated)
    return StoredObject(*[*same_name, stored_values.decode(encoded), media_type, content, *optional])


def row_of(stored: StoredObject) -> dict[str, object]:
    columns = {name: getattr(stored, name) for name in _SAME_NAME}
    texts = {
        "properties": stored_values.encode(stored.properties),
        "folded": fold_texts(stored),
        "default_acl_id": stored.default_acl_id,
        "further_folders": encode_ids(stored.further_folders),
    }
    return columns | texts | content_columns(stored.content) | version.columns(stored.version)


def read_ids(text: str | None) -> tuple[str, ...]:
    return () if text is None else _ids.decode(text)


def encode_ids(ids: Sequence[str]) -> str | None:
    """Return None for no ids."""
    return msgspec.json.encode(list(ids)).decode() if ids else None


def fold_texts(stored: StoredObject) -> str | None:
    """Write JSON of the texts that a database cannot fold itself; return None if there are none."""
    forms = folded_forms(
        {
            **stored.properties,
            "object_name": [stored.name],
            "owner_name": [stored.owner],
            "r_creator_name": [stored.creator],
            "r_modifier": [stored.modifier],
            "a_content_type": [stored.media_type],
            **({} if stored.version is FIRST else version.values(stored.id, stored.version)),
        }
    )
    return msgspec.json.encode(forms).decode() if forms else None


def content_columns(content: StoredContent | None) -> dict[str, object]:
    if content is None:
        return {"content_key": None, "content_size": 0, "content_sha256": None}
    return {"content_key": content.key, "content_size": content.size, "content_sha256": content.sha256}
