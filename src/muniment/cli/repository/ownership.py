"""What does a user own, and who gets it?"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Annotated

import typer

from muniment.cli import terminal
from muniment.directory.entries import entries
from muniment.ground.naming import fold_name
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.integration import guards, person_removal
from muniment.integration.person_removal import Departure, Holdings
from muniment.repository.bulk import ownership
from muniment.repository.store import repositories


def open_holdings(data: DataFolder) -> AbstractContextManager[Holdings | None]:
    """Yields None if the repositories run apart."""
    return _open(data) if data.together else nullcontext()


class Progress:
    """Shows a gift's count for each repository, and a warning if its index makes no progress."""

    def __init__(self, data: DataFolder, bars: terminal.Bars) -> None:
        self._limit = data.settings.repository.max_pending_changes
        self._bars = bars

    def reach(self, repository: str, count: int) -> None:
        self._bars.reach(f"Giving what is in {repository}", count)

    def index_stands_still(self, repository: str) -> None:
        terminal.errors.print(
            f"The index of {repository} stands still: start 'muniment serve' or 'muniment agent'. "
            "The gift goes on without waiting. Until the index has caught up, searches there may answer 503 "
            f"(E_INDEX_BEHIND beyond {self._limit} changes)."
        )


def print_departure(data: DataFolder, name: str, departure: Departure, given_to: str, removal: str) -> None:
    """``removal`` says what depended on the entry."""
    if given_to:
        terminal.line(f"Given to {given_to}: {spell(departure.gifts)}.")
    terminal.line(removal)
    if not data.together:
        terminal.line(f"This command cannot see what {name} owned, or could do, in a repository elsewhere.")
    belongings = departure.belongings
    if belongings.objects or belongings.acls or belongings.searches:
        terminal.line(
            f"{name} owned {belongings.objects} objects of {belongings.bytes} bytes, {belongings.acls} ACLs, "
            f"and {belongings.searches} saved searches. "
            "No later user of this name inherits it."
        )
        terminal.line(f"Give it away with: muniment repository give NAME@PARTITION --left-by {name}")
    if belongings.comments or belongings.relations:
        terminal.line(
            f"{name} wrote {belongings.comments} comments and made {belongings.relations} relations. "
            "They stay under this name; no later user of it may change them."
        )
    if belongings.checkouts:
        terminal.line(
            f"{name} had {belongings.checkouts} objects checked out. "
            "An administrator of the repository can cancel each check-out."
        )
    if departure.named_by:
        terminal.line(f"{departure.named_by} ACLs named {name}; they no longer do.")


def spell(counts: Sequence[ownership.GiftCount]) -> str:
    gift_rows = [
        f"{count.repository}: {count.objects} objects, {count.acls} ACLs, {count.searches} saved searches"
        for count in counts
    ]
    return "; ".join(gift_rows) or "nothing"


def give_command(
    data: DataFolder,
    to: Annotated[str, typer.Argument(metavar="NAME@PARTITION", help="The new owner.")],
    object_ids: Annotated[list[str] | None, typer.Argument(metavar="OBJECT_ID...")] = None,
    all_of: Annotated[str, typer.Option(metavar="USER", help="All that this user owns, with their ACLs.")] = "",
    left_by_user: Annotated[
        str, typer.Option("--left-by", metavar="USER", help="All that removed users of this name owned.")
    ] = "",
    repository_name: Annotated[str, typer.Option("--repository", "-r", help="Only in this repository.")] = "",
) -> None:
    """Give objects, or all that a user owns, to another user. Searches soon find the new owner."""
    if sum(map(bool, (object_ids, all_of, left_by_user))) != 1:
        raise Failure("Name objects, or --all-of USER, or --left-by USER: exactly one of the three.", Exit.USAGE)
    with _open(data) as holdings:
        if data.together:
            with data.read("directory") as cx:
                entries.find_user(cx, data.settings.directory.names, to)
        if object_ids:
            _give_these(data, holdings, repository_name or initialise.REPOSITORY, object_ids, to)
            return
        if all_of:
            with holdings.database.begin() as cx:
                keys = [ownership.key_of(cx, all_of, holdings.identify, data.now)]
        else:
            folded_name = fold_name(left_by_user)
            identity = holdings.identify([folded_name]).get(folded_name, "") if data.together else None
            with holdings.database.read() as cx:
                keys = ownership.former_keys(cx, left_by_user, identity)
        with terminal.Bars() as bars:
            counts = person_removal.give(
                holdings, keys, to, lambda: data.now, Progress(data, bars), only=repository_name
            )
    terminal.line(f"Given to {to}: {spell(counts)}.")


def _give_these(data: DataFolder, holdings: Holdings, repository_name: str, object_ids: Sequence[str], to: str) -> None:
    if len(object_ids) > (limit := ownership.most_at_once(holdings.max_pending)):
        raise Failure(
            f"Name at most {limit} objects: all are given in one commit, which the index must take in at once.",
            Exit.USAGE,
        )
    with holdings.database.begin() as cx:
        receiver = ownership.Receiver(to, ownership.key_of(cx, to, holdings.identify, data.now))
        repository = repositories.find(cx, repository_name)
        count = ownership.give_these(
            cx, repository, object_ids, receiver, holdings.acting, data.now, holdings.max_pending
        )
    terminal.line(f"Given to {to}: {count} objects.")


@contextmanager
def _open(data: DataFolder) -> Iterator[Holdings]:
    with data.database("repository") as database:
        yield Holdings(
            database,
            partial(backends.reader, data.installation),
            data.identify,
            initialise.administrator(data),
            data.settings.repository.max_pending_changes,
            guards.read_client_settings(data.settings.repository),
        )
