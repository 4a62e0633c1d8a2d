"""Ask the directory in this process which users and groups may come to a repository."""

from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.directory.administration import people
from muniment.directory.context import Directory
from muniment.directory.entries import attributes, entries
from muniment.directory.entries.table import Entry, to_entry
from muniment.directory.oauth import access
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry
from muniment.ground.naming import fold_name
from muniment.repository.refusals import UnknownPerson, UnknownProperty
from muniment.repository.store.filters import listed, pages, sql
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.filters.tree import Selection
from muniment.repository.store.people import Kind, ListedPerson, People, PeopleFilter, Person

P = ParamSpec("P")
T = TypeVar("T")


def describe(cx: Connection, names: DirectoryNames, resource_id: str, user_id: str) -> bytes:
    """The member ``user`` of a tokeninfo document, also for disabled and locked users. Raises UnknownEntry."""
    user = people.find(cx, names, resource_id, "user", user_id)
    return msgspec.json.encode({"user": access.describe(cx, names, user)})


SECOND_NAME: Mapping[Kind, str] = {"user": "loginName", "group": "displayName"}
"""The attribute that holds ``Person.second_name`` if it is not the name."""

ADDRESS = "mail"


def to_person(cx: Connection, names: DirectoryNames, kind: Kind, entry: Entry) -> Person:
    """``Person.state`` is left out."""
    return to_people(cx, names, kind, [entry])[0]


def to_people(cx: Connection, names: DirectoryNames, kind: Kind, several: Sequence[Entry]) -> list[Person]:
    texts = attributes.first_texts_of_attributes(cx, [entry.id for entry in several], [SECOND_NAME[kind], ADDRESS])
    return [
        Person(
            *(kind, entries.shown_id(names, entry), entry.uuid, shown, entry.description, entry.modified),
            second_name=texts.get(entry.id, {}).get(SECOND_NAME[kind], shown),
            address=texts.get(entry.id, {}).get(ADDRESS, ""),
        )
        for entry in several
        for shown in (entries.shown_name(names, entry),)
    ]


def find_person(
    cx: Connection, names: DirectoryNames, resource_id: str | None, kind: Kind, person_id: str, group_id: str | None
) -> Person:
    """Without a resource, find any user or group. Raises UnknownEntry."""
    group = None if group_id is None else people.find(cx, names, resource_id, "group", group_id)
    return to_person(cx, names, kind, people.find(cx, names, resource_id, kind, person_id, group))


def page(
    cx: Connection, names: DirectoryNames, which: PeopleFilter, stretch: Stretch, selection: Selection
) -> list[ListedPerson]:
    """Without an order, the people of one partition stand together, ordered by name. Raises UnknownEntry,
    UnknownProperty, WrongValue, BadSort, BadFilter.
    """
    candidates = _candidates(cx, names, which)
    order = pages.Order(
        (
            pages.OrderKey(candidates.partition_id),
            pages.OrderKey(candidates.folded_name),
            pages.OrderKey(candidates.number, kind="integer"),
        )
    )
    rows = pages.fetch(cx, candidates.query, _Properties(which.kind, candidates), order, stretch, selection)
    found = to_people(cx, names, which.kind, [to_entry(row) for row, _ in rows])
    return [ListedPerson(person, place) for person, (_, place) in zip(found, rows, strict=True)]


def count(cx: Connection, names: DirectoryNames, which: PeopleFilter, selection: Selection) -> int:
    """Raises what ``page`` raises."""
    candidates = _candidates(cx, names, which)
    return pages.count_members(cx, candidates.query, _Properties(which.kind, candidates), selection)


class DirectoryPeople(People):
    """Each method reads the database for ``seconds`` at most, and raises Busy."""

    def __init__(self, directory: Directory, seconds: float) -> None:
        self._database, self._names, self._seconds = directory.transactions.database, directory.options.names, seconds

    def page(self, which: PeopleFilter, stretch: Stretch, selection: Selection) -> list[ListedPerson]:
        return self._read(page, which, stretch, selection)

    def count(self, which: PeopleFilter, selection: Selection) -> int:
        return self._read(count, which, selection)

    def find(self, resource_id: str, kind: Kind, person_id: str, group_id: str | None = None) -> Person:
        return self._read(find_person, resource_id, kind, person_id, group_id)

    def describe(self, resource_id: str, user_id: str) -> bytes:
        return self._read(describe, resource_id, user_id)

    def _read(
        self, question: Callable[Concatenate[Connection, DirectoryNames, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with self._database.read(within=self._seconds) as cx:
            try:
                return question(cx, self._names, *args, **kwargs)
            except UnknownEntry as unknown:
                raise UnknownPerson(unknown.sentence) from unknown


def _candidates(cx: Connection, names: DirectoryNames, which: PeopleFilter) -> entries.ChosenEntries:
    resource_id, group_id = which.resource_id, which.group_id
    group = None if group_id is None else people.find(cx, names, resource_id, "group", group_id)
    members = [(people.find(cx, names, resource_id, each.kind, each.id), each.recursive) for each in which.having]
    return people.choose(names, resource_id, which.kind, group, members)


class _Properties:
    def __init__(self, kind: Kind, candidates: entries.ChosenEntries) -> None:
        person_id = listed.single("string", candidates.id, compared=candidates.folded_id, fold=fold_name)
        second_name = _text_of(candidates, SECOND_NAME[kind])
        shown_name = listed.single(
            "string",
            sa.func.coalesce(second_name, candidates.name),
            compared=sa.func.coalesce(sql.plain_folded(second_name), candidates.folded_name),
            fold=fold_name,
        )
        own = ("user_name", "user_login_name") if kind == "user" else ("group_name", "group_display_name")
        self._properties: dict[str, listed.ListedProperty] = {
            own[0]: person_id,
            own[1]: shown_name,
            "description": listed.exact(candidates.description),
            "r_modify_date": listed.single("date", candidates.modified),
        }
        if kind == "user":
            self._properties["user_address"] = listed.plain(sa.func.coalesce(_text_of(candidates, ADDRESS), ""))

    def __call__(self, name: str, /) -> listed.ListedProperty:
        """Raises UnknownProperty."""
        if name not in self._properties:
            raise UnknownProperty(f"This list has no property {name[:100]!r}: it has {', '.join(self._properties)}.")
        return self._properties[name]


def _text_of(candidates: entries.ChosenEntries, attribute: str) -> sa.ColumnElement[str]:
    return attributes.first_text_of_attribute(candidates.number, attribute)
