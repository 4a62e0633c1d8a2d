"""Which files were not read, or not wholly, and why?"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.database.connections import portions
from muniment.repository.store.extraction import queue
from muniment.repository.store.extraction.queue import IndexStatus, State
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.folders import paths
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

MOST_REASONS = 20

_AT_A_TIME = 500
_EVERYTHING = Principals("", administrator=True)
_WORDS: Mapping[State, str] = {
    "waiting": "waiting",
    "done": "partly read",
    "no-text": "no text",
    "unsupported": "not read",
    "failed": "failed",
}


class NotRead(NamedTuple):
    """The object's id, a path that leads there, and the status."""

    id: str
    path: str
    status: State
    reason: str


def with_paths(cx: Connection, repository: Repository, statuses: Sequence[tuple[str, IndexStatus]]) -> list[NotRead]:
    """An object in no folder has only its name."""
    view, found = RepositoryView.read(cx, repository, _EVERYTHING), list[NotRead]()
    for portion in portions(statuses, _AT_A_TIME):
        stored = inventory.rows(cx, repository.id, [object_id for object_id, _ in portion])
        folders = inventory.rows(cx, repository.id, {each.folder_id for each in stored.values() if each.folder_id})
        places = paths.ancestries(cx, view, list(folders.values()))
        for object_id, status in portion:
            if object_id in stored:
                one = stored[object_id]
                above = places[one.folder_id].paths[:1] if one.folder_id else []
                found.append(NotRead(object_id, "".join(above) + paths.write(one.name), status.state, status.reason))
    return found


def files_not_read(cx: Connection, repository: Repository) -> list[NotRead]:
    found, last = list[NotRead](), -1
    while files := queue.unread(cx, repository.id, last, _AT_A_TIME):
        found += with_paths(cx, repository, [(file.object_id, file.status) for file in files])
        last = files[-1].seq
    return found


def print_counts(counts: Mapping[State, int]) -> None:
    terminal.line(
        f"Text: {counts['done']} read, {counts['no-text']} without any, {counts['unsupported']} unsupported, "
        f"{counts['failed']} failed, {counts['waiting']} waiting"
    )


def print_reasons(reasons: Sequence[tuple[State, str, int]]) -> None:
    for state, reason, count in reasons[:MOST_REASONS]:
        terminal.line(terminal.harmless(f"  {count} {_explained(state, reason)}"))
    if len(reasons) > MOST_REASONS:
        terminal.line(f"  and {len(reasons) - MOST_REASONS} other reasons")


def print_files(files: Iterable[NotRead]) -> None:
    for file in files:
        terminal.line(terminal.harmless(f"  {file.path} ({file.id}) {_explained(file.status, file.reason)}"))


def _explained(state: State, reason: str) -> str:
    return f"{_WORDS[state]}: {reason}" if reason else _WORDS[state]
