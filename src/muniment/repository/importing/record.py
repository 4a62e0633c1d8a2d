"""What was imported from which folder: so that an import can be resumed, and run again for what has changed."""

import hashlib
import os
from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from muniment.db import repository_tables

imports = sa.Table(
    "imports",
    repository_tables,
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), primary_key=True),
    sa.Column("source", sa.String(64), primary_key=True),
    sa.Column("path", sa.String(64), primary_key=True),
    sa.Column("object_id", sa.String(16), nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("modified", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
)


class ImportRecord(msgspec.Struct, frozen=True):
    """The object a file or folder became. ``modified`` is the file's own time in nanoseconds, ``digest`` its SHA-256.

    A folder has size -1, time 0 and no digest.
    """

    object_id: str
    size: int = -1
    modified: int = 0
    digest: str = ""


def key(path: str) -> str:
    """Name a path as the table keeps it: whatever its bytes and length are, 64 characters."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()


def find(cx: Connection, repository_id: int, source: str) -> dict[str, ImportRecord]:
    """Read what came from the folder ``source`` (an absolute path) before: key of the relative path to object."""
    rows = cx.execute(
        sa.select(imports.c.path, imports.c.object_id, imports.c.size, imports.c.modified, imports.c.digest).where(
            imports.c.repository_id == repository_id, imports.c.source == key(source)
        )
    )
    return {row.path: ImportRecord(row.object_id, row.size, row.modified, row.digest) for row in rows}


def keep(cx: Connection, repository_id: int, source: str, became: Mapping[str, ImportRecord]) -> None:
    """Note, in the transaction that made or changed the objects, what the file at each path has become."""
    folder = key(source)
    rows = [
        {
            "repository_id": repository_id,
            "source": folder,
            "path": key(path),
            "object_id": imported.object_id,
            "size": imported.size,
            "modified": imported.modified,
            "digest": imported.digest,
        }
        for path, imported in became.items()
    ]
    if rows:
        cx.execute(_KEEP[cx.dialect.name], rows)


def _keep(insert: postgresql.Insert | sqlite.Insert) -> sa.Executable:
    fresh = {name: insert.excluded[name] for name in ("object_id", "size", "modified", "digest")}
    return insert.on_conflict_do_update(index_elements=["repository_id", "source", "path"], set_=fresh)


_KEEP = {"postgresql": _keep(postgresql.insert(imports)), "sqlite": _keep(sqlite.insert(imports))}
