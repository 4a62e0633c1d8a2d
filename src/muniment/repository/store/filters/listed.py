"""The properties by which lists are filtered and sorted, each as an SQL expression."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import sqlalchemy as sa

from muniment.repository.folding import fold
from muniment.repository.refusals import UnknownProperty
from muniment.repository.store.filters import sql

Kind: TypeAlias = Literal["string", "integer", "double", "boolean", "date", "id"]
"""A truth value is compared as 1 or 0, a date as an Instant."""

Test: TypeAlias = Callable[[sa.ColumnElement[Any]], sa.ColumnElement[bool]]

SORTED = 255


@dataclass(frozen=True)
class ListedProperty:
    """A property of the members of a list.

    ``value`` is the value that the list is sorted by, and ``compared`` the value that a sort without case uses: for a
    text, usually its folded form. Both are None if no list can be sorted by the property. ``match`` makes the condition
    that at least one value of the property meets a test; the condition is never null. ``names`` is given if a value can
    have several names, as an ACL can. ``names`` makes the condition that a text is one of the names. A property with
    ``names`` can only be tested for equality with a text, and by patterns. With ``indexed``, a database index holds
    ``value``. ``whole`` stands for all values of a property without a ``value``: equal values are equal in it.
    """

    kind: Kind
    match: Callable[[Test], sa.ColumnElement[bool]]
    value: sa.ColumnElement[Any] | None = None
    compared: sa.ColumnElement[Any] | None = None
    nullable: bool = False
    fold: Callable[[str], str] = fold
    names: Callable[[str], sa.ColumnElement[bool]] | None = None
    indexed: bool = False
    whole: sa.ColumnElement[Any] | None = None


class PropertiesOf(Protocol):
    """Finds the properties of a list's members by name."""

    def __call__(self, name: str, /) -> ListedProperty:
        """Raises UnknownProperty."""


def among(properties: Mapping[str, ListedProperty], whole: str = "This list") -> PropertiesOf:
    def find(name: str) -> ListedProperty:
        if name not in properties:
            raise UnknownProperty(f"{whole} has no property {name[:100]!r}: it has {', '.join(properties)}.")
        return properties[name]

    return find


def single(
    kind: Kind,
    value: sa.ColumnElement[Any],
    *,
    compared: sa.ColumnElement[Any] | None = None,
    nullable: bool = False,
    fold: Callable[[str], str] = fold,
    indexed: bool = False,
) -> ListedProperty:
    """Make a property of one value, or with ``nullable`` of at most one."""
    looked_at = value if compared is None else compared

    def match(test: Test) -> sa.ColumnElement[bool]:
        condition = test(looked_at)
        return sa.func.coalesce(condition, sa.false()) if nullable else condition

    return ListedProperty(kind, match, value, looked_at, nullable, fold, indexed=indexed)


def exact(value: sa.ColumnElement[str]) -> ListedProperty:
    return single("string", value, fold=str)


def plain(value: sa.ColumnElement[str]) -> ListedProperty:
    return single("string", value, compared=sql.plain_folded(value))


def several(
    kind: Kind, rows: sa.TableValuedAlias, value: sa.ColumnElement[Any], whole: sa.ColumnElement[Any]
) -> ListedProperty:
    """Make a property whose values are ``value`` of each of ``rows``."""

    def match(test: Test) -> sa.ColumnElement[bool]:
        return sa.exists(sa.select(sa.literal_column("1")).select_from(rows).where(test(value)))

    return ListedProperty(kind, match, whole=whole)


def naming(
    names: Callable[[str], sa.ColumnElement[bool]],
    match: Callable[[Test], sa.ColumnElement[bool]],
    whole: sa.ColumnElement[Any],
) -> ListedProperty:
    """Make a property whose value can have several names (``ListedProperty.names``). ``match`` tests any of them."""
    return ListedProperty("string", match, names=names, whole=whole)
