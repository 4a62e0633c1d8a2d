"""What users and groups leave behind: told, given to another, and taken out of the ACLs that name them."""

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
"""How long an index may stand while more is given; with an agent at work it moves several times a second."""


class GiftCount(NamedTuple):
    """How much was given in one repository."""

    repository: str
    objects: int
    acls: int


def key_of(data: DataFolder, name: str) -> str:
    """Say the key of whoever bears a name now; where the directory runs here it is bound to them for good."""
    folded = fold_name(name)
    with data.database("repository") as database, database.begin() as cx:
        return bearers.of_names(cx, [folded], data.identify, data.now)[folded]


def left_by(data: DataFolder, name: str) -> list[str]:
    """Say the keys of all who bore a name before whoever bears it now."""
    folded = fold_name(name)
    with data.database("repository") as database, database.read() as cx:
        every = bearers.keys_of_name(cx, folded)
        identity = data.identify([folded]).get(folded, "")
        present = bearers.bound_keys(cx, [identity]).get(identity) if data.together else every[-1]
    return [key for key in every if key != present]


def describe_owned(data: DataFolder, key: str) -> str:
    """Say in a line what is kept under a key; empty when that is nothing."""
    with data.database("repository") as database, database.read() as cx:
        amount, lists = usage.of(cx, key), sum(acls.count_by_owner(cx, [key]).values())
    return f"{amount.objects} objects of {amount.bytes} bytes, and {lists} ACLs" if amount.objects or lists else ""


def spell(given: Sequence[GiftCount]) -> str:
    """Write in a line what was given where."""
    return "; ".join(f"{one.repository}: {one.objects} objects, {one.acls} ACLs" for one in given) or "nothing"


def leaving(data: DataFolder, name: str, give_to: str = "") -> Callable[[], None]:
    """Make ready for the removal of a user or group, and give what they own to another where one is named.

    What comes back is to be called after the removal: it takes them out of the ACLs, and says what they leave. Their
    name is bound to them first, so that no later bearer of it inherits anything, not even if all stops here.
    """
    if not data.together:
        return lambda: terminal.line(f"What {name} owns or may do in a repository elsewhere is not known here.")
    key = key_of(data, name)
    if give_to:
        terminal.line(f"Given to {give_to}: {spell(give(data, [key], give_to))}.")

    def gone() -> None:
        if left := describe_owned(data, key):
            terminal.line(f"{name} owned {left}. No later user of this name inherits it.")
            terminal.line(f"Give it away with: muniment repository give NAME@PARTITION --left-by {name}")
        with data.database("repository") as database, database.begin() as cx:
            named_by = acls.forget(cx, key)
        if named_by:
            terminal.line(f"{named_by} ACLs named {name}, and do no more.")

    return gone


def check_receiver(data: DataFolder, name: str, to: str) -> None:
    """Raise Failure unless what somebody owns can be given to this user."""
    if not data.together:
        raise Failure(
            f"What {name} owns in a repository elsewhere is not known here: "
            "give it away there, with 'muniment repository give'.",
            Exit.REFUSED,
        )
    if fold_name(name) == fold_name(to):
        raise Failure(f"{to} is who is to be removed: name another user.", Exit.REFUSED)
    must_be_somebody(data, to)


def give(data: DataFolder, keys: Sequence[str], to: str, only: str = "") -> list[GiftCount]:
    """Give what is kept under these keys to another user, some objects in one commit; says how much.

    It keeps pace with the index agent, so that no search is refused meanwhile. Whoever is stopped in the middle begins
    again and goes on with what is left. ``only`` names one repository.
    """
    receiver = key_of(data, to)
    keys = [key for key in keys if key != receiver]
    acting, given = _acting(data), list[GiftCount]()
    with data.database("repository") as database:
        with database.read() as cx:
            chosen = [repositories.find(cx, only)] if only else repositories.every(cx)
        for one in chosen:
            showing = terminal.counting(f"Giving what is in {one.name}", None)
            with closing(_Pace(data, database, one)) as pace, showing as progress:
                moved = _give_objects(data, database, one, keys, to, receiver, acting, pace, progress)
            with database.begin() as cx:
                lists = sum(acls.give(cx, one.id, key, to, receiver, data.now) for key in keys)
            given.append(GiftCount(one.name, moved, lists))
    return [one for one in given if one.objects or one.acls]


def give_command(
    context: typer.Context,
    to: Annotated[str, typer.Argument(metavar="NAME@PARTITION", help="Whose they are to be.")],
    object_ids: Annotated[list[str] | None, typer.Argument(metavar="OBJECT_ID...")] = None,
    all_of: Annotated[str, typer.Option(metavar="USER", help="All that this user owns, with their ACLs.")] = "",
    left_by_user: Annotated[
        str, typer.Option("--left-by", metavar="USER", help="All that removed users of this name owned.")
    ] = "",
    named: Annotated[str, typer.Option("--repository", "-r", help="Only in this repository.")] = "",
) -> None:
    """Give objects, or all that a user owns, to another; each change is noted, so that searches follow."""
    data: DataFolder = context.obj
    if sum(map(bool, (object_ids, all_of, left_by_user))) != 1:
        raise Failure("Name objects, or --all-of USER, or --left-by USER: one of the three.", Exit.USAGE)
    must_be_somebody(data, to)
    if object_ids:
        _give_these(data, named or initialise.REPOSITORY, object_ids, to)
        return
    keys = [key_of(data, all_of)] if all_of else left_by(data, left_by_user)
    terminal.line(f"Given to {to}: {spell(give(data, keys, to, named))}.")


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
    moved, last = 0, 0
    while True:
        pace.keep(partial(progress.reach, moved))
        with database.begin() as cx:
            page = objects.every(cx, repository.id, last, pace.at_a_time)
            some = [one.id for one in page if one.owner_key in keys]
            moved += objects.give(cx, repository.id, some, to, receiver, acting, data.now) if some else 0
        if not page:
            return moved
        progress.reach(moved)
        last = page[-1].seq


def _give_these(data: DataFolder, named: str, object_ids: Sequence[str], to: str) -> None:
    most = _at_a_time(data)
    if len(object_ids) > most:
        raise Failure(f"Name at most {most} objects: they are given in one commit, and searches follow.", Exit.USAGE)
    receiver, acting = key_of(data, to), _acting(data)
    wanted = [one.lower() for one in object_ids]
    with data.database("repository") as database, database.begin() as cx:
        repository = repositories.find(cx, named)
        there = objects.rows(cx, repository.id, wanted)
        for one in wanted:
            if one not in there:
                raise Failure(f"There is no object {one!r} in {named}; nothing was given.", Exit.REFUSED)
        given = objects.give(cx, repository.id, wanted, to, receiver, acting, data.now)
    terminal.line(f"Given to {to}: {given} objects.")


class _Pace:
    """The pace at which what is in one repository may be given, so that its searches go on."""

    def __init__(self, data: DataFolder, database: Database, repository: Repository) -> None:
        self.at_a_time = _at_a_time(data)
        self._most = data.settings.repository.max_pending_changes
        self._repository = repository
        self._told = False
        self._pace = IndexPace(data.installation, database, repository, self._is_far, _STANDING_SECONDS)

    def keep(self, meanwhile: Callable[[], None]) -> None:
        """Wait until the index is near; where it stands, say so once and go on."""
        if not self._pace.keep(meanwhile) and not self._told:
            self._told = True
            terminal.errors.print(
                f"The index of {self._repository.name} stands still: start 'muniment serve' or 'muniment agent'. "
                f"All is given without waiting; until the index has caught up, searches there may answer 503 "
                f"(E_INDEX_BEHIND beyond {self._most} changes).",
                markup=False,
            )

    def close(self) -> None:
        """Let the index go."""
        self._pace.close()

    def _is_far(self, cx: Connection, repository_id: int, position: Position) -> bool:
        # As a search counts; half of what it may miss stays for what others change meanwhile.
        try:
            changes.hiding(cx, repository_id, position, self._most // 4)
        except IndexBehind:
            return True
        return False


def _at_a_time(data: DataFolder) -> int:
    return min(_AT_A_TIME, data.settings.repository.max_pending_changes // 4)


def _acting(data: DataFolder) -> Principals:
    return initialise.administrator(data)
