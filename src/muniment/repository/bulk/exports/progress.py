"""How far has an import of an export come?

Each unfinished import has a row, which the transactions that store lines update: so a killed import goes on after the
last stored line. While the row is there, nobody can enter the repository.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import repository_column, repository_tables, required, required_columns
from muniment.repository.bulk.exports.lines import LinePlace
from muniment.repository.refusals import InUse
from muniment.repository.store.repositories import Repository

unfinished_imports = sa.Table(
    "unfinished_imports",
    repository_tables,
    repository_column(primary_key=True),
    required("export", sa.String(64)),
    required("resource_id", sa.String(36)),
    required("stage", sa.String(20)),
    *required_columns(sa.BigInteger, "line", "offset"),
)


class UnfinishedImport(NamedTuple):
    """``export`` is the digest of the manifest, ``resource_id`` the guard that the repository is to get."""

    export: str
    resource_id: str
    stage: str
    place: LinePlace


def unfinished_import_of(cx: Connection, repository: Repository) -> UnfinishedImport | None:
    row = cx.execute(sa.select(unfinished_imports).where(_is(repository))).first()
    if row is None:
        return None
    return UnfinishedImport(row.export, row.resource_id, row.stage, LinePlace(row.line, row.offset))


def is_begun(cx: Connection, repository: Repository) -> bool:
    return unfinished_import_of(cx, repository) is not None


def begin(cx: Connection, repository: Repository, new: UnfinishedImport) -> None:
    cx.execute(unfinished_imports.insert().values(repository_id=repository.id, **_columns(new)))


def advance(cx: Connection, repository: Repository, former: UnfinishedImport, new: UnfinishedImport) -> None:
    """Raises InUse if another process has noted a step since ``former``."""
    at = (unfinished_imports.c.stage == former.stage, unfinished_imports.c.line == former.place.line)
    update = unfinished_imports.update().where(_is(repository), *at).values(**_columns(new))
    if not cx.execute(update).rowcount:
        raise InUse("Another process imports the same export: let one of them finish.")


def end(cx: Connection, repository: Repository) -> None:
    cx.execute(unfinished_imports.delete().where(_is(repository)))


def _is(repository: Repository) -> sa.ColumnElement[bool]:
    return unfinished_imports.c.repository_id == repository.id


def _columns(state: UnfinishedImport) -> dict[str, object]:
    return {
        "export": state.export,
        "resource_id": state.resource_id,
        "stage": state.stage,
        "line": state.place.line,
        "offset": state.place.offset,
    }
