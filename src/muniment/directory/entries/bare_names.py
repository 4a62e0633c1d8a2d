"""Whom does a name mean that may lack its partition?

``name@partition`` is looked for, then the whole text as a name: in the administration's partition, then in the default
partition, then in any, if only one there has this name. It is one statement, whoever exists: an ambiguous name cannot
be told from an unknown one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from muniment.directory.entries.table import (
    ADMINISTRATION,
    PARTITION,
    Kind,
    member_key,
    partition_key,
    rows,
    select_entries,
)
from muniment.directory.options import DirectoryOptions

_QUALIFIED, _IN_ADMINISTRATION, _IN_DEFAULT, _ELSEWHERE = range(4)


def select_meant(*further: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """``parameters`` fills it in, and ``meant`` picks one of its rows, whose last column is not ``further``."""
    is_qualified = sa.and_(rows.c.name_key == _NAME, PARTITION.c.name_key == sa.bindparam("partition"))
    rank = sa.case(
        (is_qualified, _QUALIFIED),
        (PARTITION.c.built_in == ADMINISTRATION, _IN_ADMINISTRATION),
        (PARTITION.c.name_key == sa.bindparam("default_partition"), _IN_DEFAULT),
        else_=_ELSEWHERE,
    )
    whole = sa.bindparam("whole_name", type_=sa.String)
    bears = sa.and_(rows.c.kind == sa.bindparam("kind"), rows.c.name_key.in_([_NAME, whole]))
    # More than two need not be read: of two in any partition, neither is meant.
    query = select_entries(*further, rank).where(bears, sa.or_(is_qualified, rows.c.name_key == whole))
    return query.order_by(rank).limit(2)


def parameters(options: DirectoryOptions, text: str, kind: Kind, *, bare: bool = True) -> dict[str, str]:
    """Without ``bare``, only ``name@partition`` is looked for."""
    name, at, partition = text.rpartition("@")
    names, key = options.names, partition_key(options.names, partition) if at else ""
    # A bare name of a group is looked for in the administration's partition first.
    first = partition_key(names, names.administration_partition) if kind == "group" else ""
    return {
        "name": member_key(names, key, name),
        "partition": key,
        "whole_name": member_key(names, first, text) if bare else "",
        "default_partition": partition_key(options.names, options.default_partition),
        "kind": kind,
    }


def meant(found: Iterable[Sequence[Any]]) -> Sequence[Any] | None:
    """None if there is none, or several and no reason to prefer one."""
    several = list(found)
    if not several or (len(several) > 1 and several[0][-1] == _ELSEWHERE):
        return None
    return several[0]


_NAME = sa.bindparam("name", type_=sa.String)
