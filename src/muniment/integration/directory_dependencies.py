"""What do the repositories know of the directory's entries? The rules of ``guards``, for the directory's addresses."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.directory.context import Dependencies
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import Entry
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import CannotKnow
from muniment.ground.clock import Instant
from muniment.integration import guards, people_elsewhere, person_removal
from muniment.integration.person_removal import Holdings


class RepositoryDependencies(Dependencies):
    """``holdings`` is asked at each change: None if the repositories run apart. ``repositories`` is how their addresses
    begin.
    """

    def __init__(
        self,
        directory: Database,
        names: DirectoryNames,
        clock: Callable[[], Instant],
        holdings: Callable[[], Holdings | None],
        repositories: str = "",
    ) -> None:
        self._repositories = repositories
        self._directory, self._names, self._clock, self._holdings = directory, names, clock, holdings

    def rename(self, cx: Connection, entry: Entry, name: str, now: Instant) -> Entry:
        holdings = self._holdings()
        client_settings = {} if holdings is None else holdings.client_settings
        with _advised():
            return guards.rename(cx, _snapshot(holdings), self._names, entry, name, now, client_settings)

    def remove_person(
        self, kind: Literal["user", "group"], person_id: str, check_right: Callable[[Connection], None]
    ) -> None:
        person_removal.remove(
            self._directory, self._holdings(), self._names, kind, person_id, self._clock, check_right=check_right
        )

    def remove_resource(self, cx: Connection, resource: Resource, now: Instant) -> SessionCount:
        with _advised():
            return guards.remove_resource(cx, _snapshot(self._holdings()), resource, now)

    def check_tokens(self, cx: Connection, resource: Resource) -> None:
        guards.check_tokens(cx, _snapshot(self._holdings()), resource)

    def guard_at(self, _cx: Connection, address: str) -> str | None:
        snapshot = _snapshot(self._holdings())
        if snapshot is None or not address.startswith(self._repositories):
            return None
        return guards.guard_at(snapshot, address.removeprefix(self._repositories))

    def check_client(self, cx: Connection, entry: Entry) -> None:
        holdings = self._holdings()
        guards.check_client(cx, {} if holdings is None else holdings.client_settings, entry)

    def whom_it_lets_in(self, cx: Connection, resource: Resource, question: Mapping[str, Any]) -> dict[str, Any]:
        return people_elsewhere.answer(cx, self._names, resource.id, question)


@contextmanager
def _advised() -> Iterator[None]:
    try:
        yield
    except CannotKnow as refusal:
        raise CannotKnow(f"{refusal.sentence} If none does, use the command line with --force.") from refusal


def _snapshot(holdings: Holdings | None) -> guards.Snapshot | None:
    return None if holdings is None else holdings.database.read
