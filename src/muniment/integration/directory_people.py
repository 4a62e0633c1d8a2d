"""Ask the directory in this process which users and groups may come to a repository."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.administration import people
from muniment.directory.context import Directory
from muniment.directory.entries import entries
from muniment.directory.entries.table import Entry, to_entry
from muniment.directory.oauth import access
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry
from muniment.ground.naming import fold_name
from muniment.repository.refusals import UnknownPerson, UnknownProperty
from muniment.repository.store.filters import listed, pages
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.filters.tree import Selection
from muniment.repository.store.people import Kind, ListedPerson, People, Person


def describe(cx: Connection, names: DirectoryNames, resource_id: str, user_id: str) -> bytes:
    """The member ``user`` of a tokeninfo document, also for disabled and locked users. Raises UnknownEntry."""
    user = people.find(cx, names, resource_id, "user", user_id)
    return msgspec.json.encode({"user": access.describe(cx, names, user)})


def to_person(names: DirectoryNames, kind: Kind, entry: Entry) -> Person:
    """``Person.state`` is left out."""
    shown_id = entries.shown_id(names, entry)
    return Person(kind, shown_id, entry.uuid, entry.name, entry.description, entry.modified)


class DirectoryPeople(People):
    """Each method reads the database for ``seconds`` at most."""

    def __init__(self, directory: Directory, seconds: float) -> None:
        self._database, self._names, self._seconds = directory.transactions.database, directory.options.names, seconds

    def page(
        self, resource_id: str, kind: Kind, group_id: str | None, stretch: Stretch, selection: Selection
    ) -> list[ListedPerson]:
        """Without an order, the people of one partition stand together, ordered by name. Raises UnknownPerson,
        UnknownProperty, WrongValue, BadSort, Busy.
        """
        with self._read() as cx:
            candidates = self._candidates(cx, resource_id, kind, group_id)
            order = pages.Order(
                (
                    pages.OrderKey(candidates.partition_id),
                    pages.OrderKey(candidates.folded_name),
                    pages.OrderKey(candidates.number, kind="integer"),
                )
            )
            rows = pages.fetch(cx, candidates.query, _Properties(kind, candidates), order, stretch, selection)
            return [ListedPerson(to_person(self._names, kind, to_entry(row)), place) for row, place in rows]

    def count(self, resource_id: str, kind: Kind, group_id: str | None, selection: Selection) -> int:
        """Raises what ``page`` raises."""
        with self._read() as cx:
            candidates = self._candidates(cx, resource_id, kind, group_id)
            return pages.count_members(cx, candidates.query, _Properties(kind, candidates), selection)

    def find(self, resource_id: str, kind: Kind, person_id: str, group_id: str | None = None) -> Person:
        """Raises UnknownPerson, Busy."""
        with self._read() as cx:
            group = self._group(cx, resource_id, group_id)
            return to_person(self._names, kind, people.find(cx, self._names, resource_id, kind, person_id, group))

    def describe(self, resource_id: str, user_id: str) -> bytes:
        """Raises UnknownPerson, Busy."""
        with self._read() as cx:
            return describe(cx, self._names, resource_id, user_id)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._database.read(within=self._seconds) as cx:
            try:
                yield cx
            except UnknownEntry as unknown:
                raise UnknownPerson(unknown.sentence) from unknown

    def _candidates(self, cx: Connection, resource_id: str, kind: Kind, group_id: str | None) -> entries.ChosenEntries:
        return people.choose(self._names, resource_id, kind, self._group(cx, resource_id, group_id))

    def _group(self, cx: Connection, resource_id: str, group_id: str | None) -> Entry | None:
        return None if group_id is None else people.find(cx, self._names, resource_id, "group", group_id)


class _Properties:
    def __init__(self, kind: Kind, candidates: entries.ChosenEntries) -> None:
        person_id = listed.single("string", candidates.id, compared=candidates.folded_id, fold=fold_name)
        short_name = listed.single("string", candidates.name, compared=candidates.folded_name, fold=fold_name)
        own = ("user_name", "user_login_name") if kind == "user" else ("group_name", "group_display_name")
        self._properties: Mapping[str, listed.ListedProperty] = {
            own[0]: person_id,
            own[1]: short_name,
            "description": listed.exact(candidates.description),
            "r_modify_date": listed.single("date", candidates.modified),
        }

    def __call__(self, name: str, /) -> listed.ListedProperty:
        """Raises UnknownProperty."""
        if name not in self._properties:
            raise UnknownProperty(f"This list has no property {name[:100]!r}: it has {', '.join(self._properties)}.")
        return self._properties[name]
