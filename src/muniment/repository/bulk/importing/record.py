"""Which file of an imported folder became which object?"""

import hashlib
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import (
    Database,
    PreparedStatement,
    repository_column,
    repository_tables,
    required,
    required_columns,
)
from muniment.database.statements import upsert
from muniment.ground import locks
from muniment.ground.clock import Instant
from muniment.repository.refusals import InUse
from muniment.repository.store import leases
from muniment.repository.store.leases import HeldLease, Lease
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.repositories import Repository

imports = sa.Table(
    "imports",
    repository_tables,
    repository_column(primary_key=True),
    sa.Column("source", sa.String(64), primary_key=True),
    sa.Column("path", sa.String(64), primary_key=True),
    required("object_id", sa.String(16)),
    *required_columns(sa.BigInteger, "size", "modified"),
    required("digest", sa.String(64)),
)


_LEASE_SECONDS = 60
_LOST = "Another import of this folder has begun, because this one rested too long."


class ImportRecord(msgspec.Struct, frozen=True):
    """The object, by chronicle id, that a file or folder became.

    ``size`` is in bytes, ``modified`` in nanoseconds, ``digest`` SHA-256 in hexadecimal. A folder has -1, 0 and none.
    """

    object_id: str
    size: int = -1
    modified: int = 0
    digest: str = ""


def key(path: str) -> str:
    """Return 64 characters, whatever the path's bytes and length."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()


@contextmanager
def hold(
    database: Database, folder: Path, repository_id: int, source: str, clock: Callable[[], Instant]
) -> Iterator[HeldLease]:
    """Hold the right to import ``source``, so that no file becomes two objects. Raises InUse, which names the holder.

    A lock file in ``folder`` keeps out other processes of this machine, and ends with its process, so nobody waits for
    a killed import; a lease in the database keeps out other machines.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lease = Lease("import", key(f"{repository_id} {source}"))
    file = folder / f"{lease.subject}.lock"
    with ExitStack() as at_the_end:
        try:
            descriptor = at_the_end.enter_context(locks.hold(file, wait=False))
        except locks.Held as error:
            process = file.read_text(encoding="ascii", errors="replace").strip()
            raise InUse(
                f"This folder is being imported already, by process {process or 'unknown'} of this machine: let that "
                "import finish first."
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode("ascii"), 0)
        place = f"{socket.gethostname()}:{folder.absolute()}"
        tenure = HeldLease(database, lease, place, clock, _LOST, _LEASE_SECONDS)
        if not tenure.holds():
            with database.read() as cx:
                other = leases.holder(cx, lease)
            raise InUse(f"This folder is being imported already, at {other}: let that import finish first.")
        at_the_end.callback(tenure.release)
        yield tenure


def find(cx: Connection, repository_id: int, source: str) -> dict[str, ImportRecord]:
    """Return the records of ``source``, an absolute path, by the ``key`` of each relative path."""
    rows = cx.execute(
        sa.select(imports.c.path, imports.c.object_id, imports.c.size, imports.c.modified, imports.c.digest).where(
            imports.c.repository_id == repository_id, imports.c.source == key(source)
        )
    )
    return {row.path: ImportRecord(row.object_id, row.size, row.modified, row.digest) for row in rows}


def keep_records(cx: Connection, repository_id: int, source: str, records: Mapping[str, ImportRecord]) -> None:
    """Note, in the caller's transaction that makes or changes the objects."""
    folder = key(source)
    rows = [
        {
            "repository_id": repository_id,
            "source": folder,
            "path": key(path),
            "object_id": import_record.object_id,
            "size": import_record.size,
            "modified": import_record.modified,
            "digest": import_record.digest,
        }
        for path, import_record in records.items()
    ]
    if rows:
        _KEEP.run_for_each(cx, rows)


def forget(cx: Connection, repository_id: int, source: str, path_key: str, object_id: str) -> None:
    """Remove a record, unless the path has become another object."""
    cx.execute(
        imports.delete().where(
            imports.c.repository_id == repository_id,
            imports.c.source == key(source),
            imports.c.path == path_key,
            imports.c.object_id == object_id,
        )
    )


_NEW = upsert(imports)
_KEEP = PreparedStatement(
    _NEW.on_conflict_do_update(
        index_elements=["repository_id", "source", "path"],
        set_=_NEW.excluded["object_id", "size", "modified", "digest"],
    )
)


def earlier_cabinet(cx: Connection, repository: Repository, folder: Path) -> StoredObject | None:
    at = imports.c.source == key(str(folder.resolve())), imports.c.path == key("")
    object_id = cx.scalar(sa.select(imports.c.object_id).where(imports.c.repository_id == repository.id, *at))
    return object_id and inventory.rows(cx, repository.id, {object_id}).get(object_id)
