"""Which types can a relation have? A few are built in; administrators add others.

Source: docs/interface.md, ours 20.
"""

import re
from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from muniment.database.connections import repository_column, repository_tables, required
from muniment.database.statements import count_where
from muniment.ground.clock import Instant
from muniment.ground.naming import is_storable
from muniment.repository import audit
from muniment.repository.refusals import InUse, NameTaken, NotPermitted, UnknownRelationType, WrongValue
from muniment.repository.store.permissions.principals import Principals

relation_types = sa.Table(
    "relation_types",
    repository_tables,
    repository_column(primary_key=True),
    sa.Column("name", sa.String(64), primary_key=True),
    required("description", sa.String(250)),
    required("created", sa.BigInteger),
)

BUILT_IN: Mapping[str, str] = {
    "annotation": "The child says something about the parent.",
    "peer": "The two belong together, neither above the other.",
    "translation_of": "The child says in another language what the parent says.",
}

MAX_TYPES = 100

LONGEST_DESCRIPTION = 250

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


class RelationType(msgspec.Struct, frozen=True):
    """A type of relations, and what it means."""

    name: str
    description: str


def all_relation_types(cx: Connection, repository_id: int) -> list[RelationType]:
    """List built-in and added types by name."""
    query = sa.select(relation_types).where(relation_types.c.repository_id == repository_id)
    added = {row.name: row.description for row in cx.execute(query)}
    return [RelationType(name, description) for name, description in sorted({**BUILT_IN, **added}.items())]


def find(cx: Connection, repository_id: int, name: str, *, lock: bool = False) -> RelationType:
    """Return a type; with ``lock`` it cannot be removed before the commit.

    Raises UnknownRelationType.
    """
    if name in BUILT_IN:
        return RelationType(name, BUILT_IN[name])
    query = sa.select(relation_types).where(_of(repository_id, name))
    row = cx.execute(query.with_for_update(read=True) if lock else query).first()
    if row is None:
        raise UnknownRelationType(f"There is no relation type {name[:100]!r}.")
    return RelationType(row.name, row.description)


def add(cx: Connection, repository_id: int, new: RelationType, principals: Principals, now: Instant) -> RelationType:
    """Raises NotPermitted, WrongValue, NameTaken."""
    _check_administrator(principals)
    if not _NAME.fullmatch(new.name):
        raise WrongValue(
            "The name of a relation type begins with a letter and has up to 64 letters, digits and underscores."
        )
    if len(new.description) > LONGEST_DESCRIPTION or not is_storable(new.description):
        raise WrongValue(f"The description of a relation type has at most {LONGEST_DESCRIPTION} characters.")
    if count_where(cx, relation_types.c.repository_id == repository_id) >= MAX_TYPES:
        raise WrongValue(f"A repository has at most {MAX_TYPES} relation types of its own.")
    if new.name in BUILT_IN or cx.execute(sa.select(sa.literal(1)).where(_of(repository_id, new.name))).first():
        raise _name_taken(new.name)
    try:
        cx.execute(relation_types.insert().values(repository_id=repository_id, created=now, **_columns(new)))
    except IntegrityError as error:
        raise _name_taken(new.name) from error
    audit.record(cx, "relation type made", _target(new.name), None, {"description": new.description})
    return new


def remove(cx: Connection, repository_id: int, name: str, principals: Principals) -> None:
    """Remove an added type that no relation has, as the caller makes sure.

    Raises NotPermitted, UnknownRelationType, InUse (if the type is built in).
    """
    former = find(cx, repository_id, name)
    _check_administrator(principals)
    if name in BUILT_IN:
        raise InUse(f"The relation type {name!r} is built in.")
    cx.execute(relation_types.delete().where(_of(repository_id, name)))
    audit.record(cx, "relation type removed", _target(name), {"description": former.description})


def _target(name: str) -> audit.Target:
    return audit.Target("relation type", name)


def _of(repository_id: int, name: str) -> sa.ColumnElement[bool]:
    return sa.and_(relation_types.c.repository_id == repository_id, relation_types.c.name == name)


def _columns(new: RelationType) -> dict[str, str]:
    return {"name": new.name, "description": new.description}


def _check_administrator(principals: Principals) -> None:
    if not principals.administrator:
        raise NotPermitted("Only administrators may add and remove relation types.")


def _name_taken(name: str) -> NameTaken:
    return NameTaken(f"There is a relation type {name!r} already.")
