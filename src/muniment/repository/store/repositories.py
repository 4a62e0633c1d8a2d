"""Which repositories does this installation have?"""

from collections.abc import Collection
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import BigId, PreparedStatement, repository_tables, required
from muniment.ground.clock import Instant
from muniment.ground.naming import disguise
from muniment.repository import audit
from muniment.repository.refusals import NameTaken, UnknownProperty, UnknownRepository, WrongValue
from muniment.repository.store.filters import cursors, listed, pages, tree

LONGEST = 120

repositories = sa.Table(
    "repositories",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    required("name", sa.String(LONGEST), unique=True),
    required("description", sa.Text),
    required("resource_id", sa.String(36)),
    required("created", sa.BigInteger),
    required("language", sa.String(20), server_default=""),
    # Ids are never used again: cursors and positions of a removed repository must not work in a new one.
    sqlite_autoincrement=True,
)


_GUARD = PreparedStatement(sa.select(repositories.c.resource_id).where(repositories.c.id == sa.bindparam("repository")))
_NAMES = PreparedStatement(
    sa.select(repositories)
    .where(repositories.c.name.in_(sa.bindparam("names", expanding=True)))
    .order_by(repositories.c.name)
)
_GUARDED = PreparedStatement(
    sa.select(repositories)
    .where(repositories.c.resource_id.in_(sa.bindparam("guards", expanding=True)))
    .order_by(repositories.c.name)
    .limit(sa.bindparam("most"))
)
_BY_NAME = pages.Order((pages.OrderKey(repositories.c.name),), indexed=True)
_OPEN = sa.select(repositories).where(repositories.c.resource_id != "")
_NAMED = sa.select(repositories).where(repositories.c.name == sa.bindparam("name"))


class Repository(msgspec.Struct, frozen=True):
    """``resource_id`` is its guard: the resource whose tokens open it.

    ``language``, such as ``German``, is of the word stems in its index; empty means that of the installation.
    """

    id: int
    name: str
    description: str
    resource_id: str
    created: Instant
    language: str = ""

    @property
    def target(self) -> audit.Target:
        """For the audit."""
        return audit.Target("repository", self.name)


def check_name(name: str) -> None:
    """An address and the parameter ``repositories`` of a search must reach a name: ``.`` and ``..`` stand for none
    there (RFC 3986 5.2.4), an empty name in a command for every repository. Raises WrongValue.
    """
    printable = 0 < len(name) <= LONGEST and name == name.strip() and name.isprintable()
    if not printable or name in (".", ".."):
        raise WrongValue(
            f"A repository's name has 1 to {LONGEST} printable characters, no space at either end, and is neither '.' "
            "nor '..'."
        )
    if what := disguise(name):
        raise WrongValue(f"A repository's name may not hold {what}.")


def check_free(cx: Connection, name: str) -> None:
    if cx.execute(_NAMED, {"name": name}).first():
        raise NameTaken(f"There is a repository {name!r} already.")


def add(cx: Connection, name: str, resource_id: str, description: str, now: Instant, language: str = "") -> Repository:
    """Raises NameTaken, WrongValue."""
    check_name(name)
    check_free(cx, name)
    row = cx.execute(
        repositories.insert()
        .values(name=name, description=description, resource_id=resource_id, created=now, language=language)
        .returning(repositories)
    ).one()
    new = Repository(*row)
    guard = audit.Right("guard", resource_id, name, "", resource_id)
    audit.record(cx, "repository made", new.target, None, {"guard": resource_id}, rights=[guard])
    return new


def set_language(cx: Connection, repository: Repository, language: str) -> None:
    """The index agent then makes its index anew. Empty means that of the installation."""
    cx.execute(repositories.update().where(repositories.c.id == repository.id).values(language=language))
    former, new = {"language": repository.language}, {"language": language}
    audit.record(cx, "repository changed", repository.target, former, new)


def find(cx: Connection, name: str) -> Repository:
    """Raises UnknownRepository."""
    row = cx.execute(_NAMED, {"name": name}).first()
    if row is None:
        raise unknown(name)
    return Repository(*row)


def find_open(cx: Connection, name: str) -> Repository:
    """Find a repository with a guard: one that is being imported or removed does not exist for callers.

    Raises UnknownRepository.
    """
    repository = find(cx, name)
    if not repository.resource_id:
        raise unknown(name)
    return repository


def unknown(name: str) -> UnknownRepository:
    """Refuse one that does not exist, or must look as if it did not."""
    return UnknownRepository(f"There is no repository {name[:100]!r}.")


def lock(cx: Connection, repository: Repository) -> None:
    """Take turns to decide about the whole repository, such as which folder lies in which. Who changes objects without
    this does not wait for it.
    """
    row = sa.select(repositories.c.id).where(repositories.c.id == repository.id)
    cx.execute(row.with_for_update(key_share=True))


def all_repositories(cx: Connection) -> list[Repository]:
    """List all by name."""
    return _by_name(cx)


def by_names(cx: Connection, names: Collection[str]) -> list[Repository]:
    """List them by name."""
    return [Repository(*row) for row in _NAMES.all(cx, names=list(names))]


def first_of_each_guard(cx: Connection, limit: int) -> list[Repository]:
    """List, by name, the first repository of each guard."""
    first = sa.select(sa.func.min(repositories.c.name)).where(repositories.c.resource_id != "")
    return _by_name(cx, repositories.c.name.in_(first.group_by(repositories.c.resource_id)), limit=limit)


def guarded_by_any(cx: Connection, resource_ids: Collection[str], limit: int) -> list[Repository]:
    """List them by name."""
    return [Repository(*row) for row in _GUARDED.all(cx, guards=list(resource_ids), most=limit)]


def _by_name(cx: Connection, *where: sa.ColumnElement[bool], limit: int | None = None) -> list[Repository]:
    query = sa.select(repositories).where(*where).order_by(repositories.c.name).limit(limit)
    return [Repository(*row) for row in cx.execute(query)]


class ListedRepository(NamedTuple):
    """A repository of a list."""

    repository: Repository
    place: cursors.Place


def repository_page(
    cx: Connection, stretch: cursors.Stretch, selection: tree.Selection = tree.EVERYTHING
) -> list[ListedRepository]:
    """List those that have a guard, by name unless sorted.

    Raises UnknownProperty, WrongValue, BadSort.
    """
    rows = pages.fetch(cx, _OPEN, _property, _BY_NAME, stretch, selection)
    return [ListedRepository(Repository(*row[: len(repositories.c)]), place) for row, place in rows]


def count_repositories(cx: Connection, selection: tree.Selection = tree.EVERYTHING) -> int:
    """Count those that have a guard.

    Raises UnknownProperty, WrongValue.
    """
    return pages.count_members(cx, _OPEN, _property, selection)


def _property(name: str) -> listed.ListedProperty:
    # Anybody may list the names of repositories, and nothing else of them.
    if name != "name":
        raise UnknownProperty(f"The list of repositories has no property {name[:100]!r}: it has 'name'.")
    return listed.exact(repositories.c.name)


def guarded_by(cx: Connection, resource_id: str) -> list[Repository]:
    """List them by name."""
    return _by_name(cx, repositories.c.resource_id == resource_id)


def still_guards(cx: Connection, repository: Repository) -> bool:
    row = _GUARD.first(cx, repository=repository.id)
    return row is not None and row[0] == repository.resource_id


def guard(cx: Connection, repository: Repository, resource_id: str) -> None:
    """Change the guard. With an empty ``resource_id``, nobody can enter."""
    cx.execute(repositories.update().where(repositories.c.id == repository.id).values(resource_id=resource_id))
    former = repository.resource_id
    if resource_id != former:
        rights = [audit.Right("guard", resource_id, repository.name, former, resource_id)]
        audit.record(cx, "guard changed", repository.target, {"guard": former}, {"guard": resource_id}, rights=rights)


def remove(cx: Connection, repository: Repository) -> None:
    """Remove the row of an empty repository."""
    cx.execute(repositories.delete().where(repositories.c.id == repository.id))
    audit.record(cx, "repository removed", repository.target)
