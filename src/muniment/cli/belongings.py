"""What a removed user or group leaves behind: print it, give it to another user, and take the name out of ACLs."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Annotated, NamedTuple

import typer
from sqlalchemy.engine import Connection

from muniment import initialise
from muniment.cli import terminal
from muniment.cli.index_pace import IndexPace
from muniment.data_folder import DataFolder
from muniment.db import Database
from muniment.exit_codes import Exit, Failure
from muniment.naming import fold_name
from muniment.repository import repositories
from muniment.repository.change_log import changes
from muniment.repository.change_log.changes import Position
from muniment.repository.objects import objects, usage
from muniment.repository.permissions import acls, bearers
from muniment.repository.permissions.principals import Principals
from muniment.repository.refusals import IndexBehind
from muniment.repository.repositories import Repository

_AT_A_TIME = 500
_STANDING_SECONDS = 30.0
"""How long the index may stand still before we go on without it. A running agent moves it several times a second."""


class GiftCount(NamedTuple):
    """How many objects and ACLs of one repository were given."""

    repository: str
    objects: int
    acls: int


def key_of(data: DataFolder, name: str) -> str:
    """Return the key of the present bearer of a name. Where the directory runs here, the key stays theirs for good."""
    folded = fold_name(name)
    with data.database("repository") as database, database.begin() as cx:
        return bearers.of_names(cx, [folded], data.identify, data.now)[folded]


def left_by(data: DataFolder, name: str) -> list[str]:
    """Return the keys of all former bearers of a name, without the present one."""
    folded = fold_name(name)
    with data.database("repository") as database, database.read() as cx:
        every = bearers.keys_of_name(cx, folded)
        identity = data.identify([folded]).get(folded, "")
        present = bearers.bound_keys(cx, [identity]).get(identity) if data.together else every[-1]
    return [key for key in every if key != present]


def describe_owned(data: DataFolder, key: str) -> str:
    """Describe in one line what the bearer of a key owns; empty when they own nothing."""
    with data.database("repository") as database, database.read() as cx:
        amount, lists = usage.of(cx, key), sum(acls.count_by_owner(cx, [key]).values())
    return f"{amount.objects} objects of {amount.bytes} bytes, and {lists} ACLs" if amount.objects or lists else ""


def spell(counts: Sequence[GiftCount]) -> str:
    """Write in one line how much was given in which repository."""
    return "; ".join(f"{count.repository}: {count.objects} objects, {count.acls} ACLs" for count in counts) or "nothing"


def prepare_removal(data: DataFolder, name: str, give_to: str = "") -> Callable[[], None]:
    """Prepare the removal of a user or group; with ``give_to``, first give what they own to that user.

    Call the returned function after the removal: it takes them out of the ACLs and prints what they leave behind. Their
    name is bound to them first. So no later bearer of the name inherits anything, even if the command stops half-way.
    """
    if not data.together:
        return lambda: terminal.line(f"This command cannot see what {name} owns or may do in a repository elsewhere.")
    key = key_of(data, name)
    if give_to:
        terminal.line(f"Given to {give_to}: {spell(give(data, [key], give_to))}.")

    def finish() -> None:
        if belongings := describe_owned(data, key):
            terminal.line(f"{name} owned {belongings}. No later user of this name inherits it.")
            terminal.line(f"Give it away with: muniment repository give NAME@PARTITION --left-by {name}")
        with data.database("repository") as database, database.begin() as cx:
            named_by = acls.forget(cx, key)
        if named_by:
            terminal.line(f"{named_by} ACLs named {name}; they no longer do.")

    return finish


def check_receiver(data: DataFolder, name: str, to: str) -> None:
    """Raise Failure unless this user can receive what another owns."""
    if not data.together:
        raise Failure(
            f"This command cannot see what {name} owns in a repository elsewhere: "
            "give it away there, with 'muniment repository give'.",
            Exit.REFUSED,
        )
    if fold_name(name) == fold_name(to):
        raise Failure(f"{to} is the user to be removed: name another user.", Exit.REFUSED)
    must_be_somebody(data, to)


def give(data: DataFolder, keys: Sequence[str], to: str, only: str = "") -> list[GiftCount]:
    """Give what the bearers of these keys own to another user, and return how much was given.

    It commits some objects at a time and keeps pace with the index agent, so that no search is refused meanwhile. A
    command that was stopped can be run again and gives the remainder. ``only`` names one repository.
    """
    receiver = key_of(data, to)
    keys = [key for key in keys if key != receiver]
    acting, counts = _acting(data), list[GiftCount]()
    with data.database("repository") as database:
        with database.read() as cx:
            selection = [repositories.find(cx, only)] if only else repositories.every(cx)
        for repository in selection:
            showing = terminal.counting(f"Giving what is in {repository.name}", None)
            with closing(_Pace(data, database, repository)) as pace, showing as progress:
                object_count = _give_objects(data, database, repository, keys, to, receiver, acting, pace, progress)
            with database.begin() as cx:
                acl_count = sum(acls.give(cx, repository.id, key, to, receiver, data.now) for key in keys)
            counts.append(GiftCount(repository.name, object_count, acl_count))
    return [count for count in counts if count.objects or count.acls]


def give_command(
    context: typer.Context,
    to: Annotated[str, typer.Argument(metavar="NAME@PARTITION", help="The new owner.")],
    object_ids: Annotated[list[str] | None, typer.Argument(metavar="OBJECT_ID...")] = None,
    all_of: Annotated[str, typer.Option(metavar="USER", help="All that this user owns, with their ACLs.")] = "",
    left_by_user: Annotated[
        str, typer.Option("--left-by", metavar="USER", help="All that removed users of this name owned.")
    ] = "",
    repository_name: Annotated[str, typer.Option("--repository", "-r", help="Only in this repository.")] = "",
) -> None:
    """Give objects, or all that a user owns, to another user. The change log notes each change, so searches follow."""
    data: DataFolder = context.obj
    if sum(map(bool, (object_ids, all_of, left_by_user))) != 1:
        raise Failure("Name objects, or --all-of USER, or --left-by USER: exactly one of the three.", Exit.USAGE)
    must_be_somebody(data, to)
    if object_ids:
        _give_these(data, repository_name or initialise.REPOSITORY, object_ids, to)
        return
    keys = [key_of(data, all_of)] if all_of else left_by(data, left_by_user)
    terminal.line(f"Given to {to}: {spell(give(data, keys, to, repository_name))}.")


def must_be_somebody(data: DataFolder, name: str) -> None:
    """Raise Failure when the directory runs here and nobody in it bears the name."""
    if data.together and not data.identify([fold_name(name)]):
        raise Failure(f"There is no user {name!r}.", Exit.REFUSED)


def _give_objects(
    data: DataFolder,
    database: Database,
    repository: Repository,
    keys: Sequence[str],
    to: str,
    receiver: str,
    acting: Principals,
    pace: "_Pace",
    progress: terminal.Counting,
) -> int:
    count, last_seq = 0, 0
    while True:
        pace.keep(partial(progress.reach, count))
        with database.begin() as cx:
            page = objects.every(cx, repository.id, last_seq, pace.at_a_time)
            object_ids = [stored.id for stored in page if stored.owner_key in keys]
            count += objects.give(cx, repository.id, object_ids, to, receiver, acting, data.now) if object_ids else 0
        if not page:
            return count
        progress.reach(count)
        last_seq = page[-1].seq


def _give_these(data: DataFolder, repository_name: str, object_ids: Sequence[str], to: str) -> None:
    limit = _at_a_time(data)
    if len(object_ids) > limit:
        raise Failure(
            f"Name at most {limit} objects: all are given in one commit, which the index must take in at once.",
            Exit.USAGE,
        )
    receiver, acting = key_of(data, to), _acting(data)
    ids = [object_id.lower() for object_id in object_ids]
    with data.database("repository") as database, database.begin() as cx:
        repository = repositories.find(cx, repository_name)
        stored = objects.rows(cx, repository.id, ids)
        for object_id in ids:
            if object_id not in stored:
                raise Failure(
                    f"There is no object {object_id!r} in {repository_name}; nothing was given.", Exit.REFUSED
                )
        count = objects.give(cx, repository.id, ids, to, receiver, acting, data.now)
    terminal.line(f"Given to {to}: {count} objects.")


class _Pace:
    """Keeps a gift of many objects at a pace that the index of their repository can follow."""

    def __init__(self, data: DataFolder, database: Database, repository: Repository) -> None:
        self.at_a_time = _at_a_time(data)
        self._limit = data.settings.repository.max_pending_changes
        self._repository = repository
        self._has_warned = False
        self._pace = IndexPace(data.installation, database, repository, self._is_far, _STANDING_SECONDS)

    def keep(self, meanwhile: Callable[[], None]) -> None:
        """Wait until the index is near. If it stands still, print so once and go on."""
        if not self._pace.keep(meanwhile) and not self._has_warned:
            self._has_warned = True
            terminal.errors.print(
                f"The index of {self._repository.name} stands still: start 'muniment serve' or 'muniment agent'. "
                f"The gift goes on without waiting. Until the index has caught up, searches there may answer 503 "
                f"(E_INDEX_BEHIND beyond {self._limit} changes).",
                markup=False,
            )

    def close(self) -> None:
        """Close the index."""
        self._pace.close()

    def _is_far(self, cx: Connection, repository_id: int, position: Position) -> bool:
        # Count as a search does. Stop early: what others change meanwhile must fit into the limit, too.
        try:
            changes.hiding(cx, repository_id, position, self._limit // 4)
        except IndexBehind:
            return True
        return False


def _at_a_time(data: DataFolder) -> int:
    return min(_AT_A_TIME, data.settings.repository.max_pending_changes // 4)


def _acting(data: DataFolder) -> Principals:
    return initialise.administrator(data)
