"""The repositories that are kept here, each guarded by one resource of a directory."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.db import BigId, Instant, repository_tables
from muniment.repository.refusals import NameTaken, UnknownRepository

repositories = sa.Table(
    "repositories",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("name", sa.String(120), nullable=False, unique=True),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("resource_id", sa.String(36), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
)


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


def named(cx: Connection, name: str) -> Repository:
    """Find a repository by its name. Raises UnknownRepository."""
    row = cx.execute(_NAMED, {"name": name}).first()
    if row is None:
        raise UnknownRepository(f"There is no repository {name[:100]!r}.")
    return Repository(*row)


def every(cx: Connection) -> list[Repository]:
    """List the repositories by name."""
    return [Repository(*row) for row in cx.execute(sa.select(repositories).order_by(repositories.c.name))]
