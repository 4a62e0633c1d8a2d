"""The repositories of this installation. One resource of a directory guards each of them."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.db import BigId, PreparedStatement, repository_tables
from muniment.repository.cursors import Stretch
from muniment.repository.refusals import NameTaken, UnknownRepository

repositories = sa.Table(
    "repositories",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("name", sa.String(120), nullable=False, unique=True),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("resource_id", sa.String(36), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    # Ids are never used again: cursors and positions of a removed repository must not work in a new one.
    sqlite_autoincrement=True,
)


_GUARD = PreparedStatement(sa.select(repositories.c.resource_id).where(repositories.c.id == sa.bindparam("repository")))
_NAMED = sa.select(repositories).where(repositories.c.name == sa.bindparam("name"))


class Repository(msgspec.Struct, frozen=True):
    """One repository. ``resource_id`` is the directory resource that a caller's token must be for."""

    id: int
    name: str
    description: str
    resource_id: str
    created: Instant


def add(cx: Connection, name: str, resource_id: str, description: str, now: Instant) -> Repository:
    """Make a repository. Raises NameTaken."""
    if cx.execute(sa.select(repositories.c.id).where(repositories.c.name == name)).first():
        raise NameTaken(f"There is a repository {name!r} already.")
    row = cx.execute(
        repositories.insert()
        .values(name=name, description=description, resource_id=resource_id, created=now)
        .returning(repositories)
    ).one()
    return Repository(*row)


def find(cx: Connection, name: str) -> Repository:
    """Find a repository by its name. Raises UnknownRepository."""
    row = cx.execute(_NAMED, {"name": name}).first()
    if row is None:
        raise UnknownRepository(f"There is no repository {name[:100]!r}.")
    return Repository(*row)


def every(cx: Connection) -> list[Repository]:
    """List the repositories by name."""
    return [Repository(*row) for row in cx.execute(sa.select(repositories).order_by(repositories.c.name))]


def page(cx: Connection, stretch: Stretch) -> list[Repository]:
    """List a part of the repositories, by name."""
    ordered = sa.select(repositories).order_by(repositories.c.name).offset(stretch.offset).limit(stretch.limit)
    if stretch.after is not None:
        ordered = ordered.where(repositories.c.name > stretch.after[0])
    return [Repository(*row) for row in cx.execute(ordered)]


def count(cx: Connection) -> int:
    """Count the repositories."""
    number: int = cx.execute(sa.select(sa.func.count()).select_from(repositories)).scalar_one()
    return number


def guarded_by(cx: Connection, resource_id: str) -> list[Repository]:
    """List the repositories that a resource guards, by name."""
    ordered = sa.select(repositories).where(repositories.c.resource_id == resource_id).order_by(repositories.c.name)
    return [Repository(*row) for row in cx.execute(ordered)]


def still_guards(cx: Connection, repository: Repository) -> bool:
    """Say whether a repository is still guarded by the resource that it had when it was read."""
    row = _GUARD.first(cx, repository=repository.id)
    return row is not None and row[0] == repository.resource_id


def guard(cx: Connection, repository: Repository, resource_id: str) -> None:
    """Let another resource guard a repository; with none ("") nobody can enter."""
    cx.execute(repositories.update().where(repositories.c.id == repository.id).values(resource_id=resource_id))


def remove(cx: Connection, repository: Repository) -> None:
    """Remove a repository that is empty."""
    cx.execute(repositories.delete().where(repositories.c.id == repository.id))
