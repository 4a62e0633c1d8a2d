"""What users and groups leave behind: told, given to another, and taken out of the ACLs that name them."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Annotated, NamedTuple

import typer
from sqlalchemy.engine import Connection

from muniment.cli import initial, said
from muniment.cli.opened import Opened
from muniment.cli.outcome import Exit, Failure
from muniment.cli.pace import IndexPace
from muniment.db import Database
from muniment.naming import fold_name
from muniment.repository import acls, bearers, changes, objects, repositories, usage
from muniment.repository.changes import Position
from muniment.repository.principals import Principals
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


def key_of(opened: Opened, name: str) -> str:
    """Say the key of whoever bears a name now; where the directory runs here it is bound to them for good."""
    folded = fold_name(name)
    with opened.database("repository") as database, database.begin() as cx:
        return bearers.of_names(cx, [folded], opened.identify, opened.now)[folded]


def left_by(opened: Opened, name: str) -> list[str]:
    """Say the keys of all who bore a name before whoever bears it now."""
    folded = fold_name(name)
    with opened.database("repository") as database, database.read() as cx:
        every = bearers.keys_of_name(cx, folded)
        identity = opened.identify([folded]).get(folded, "")
        present = bearers.bound_keys(cx, [identity]).get(identity) if opened.together else every[-1]
    return [key for key in every if key != present]


def describe_owned(opened: Opened, key: str) -> str:
    """Say in a line what is kept under a key; empty when that is nothing."""
    with opened.database("repository") as database, database.read() as cx:
        amount, lists = usage.of(cx, key), sum(acls.count_by_owner(cx, [key]).values())
    return f"{amount.objects} objects of {amount.bytes} bytes, and {lists} ACLs" if amount.objects or lists else ""


def spell(given: Sequence[GiftCount]) -> str:
    """Write in a line what was given where."""
    return "; ".join(f"{one.repository}: {one.objects} objects, {one.acls} ACLs" for one in given) or "nothing"


def leaving(opened: Opened, name: str, give_to: str = "") -> Callable[[], None]:
    """Make ready for the removal of a user or group, and give what they own to another where one is named.

    What comes back is to be called after the removal: it takes them out of the ACLs, and says what they leave. Their
    name is bound to them first, so that no later bearer of it inherits anything, not even if all stops here.
    """
    if not opened.together:
        return lambda: said.line(f"What {name} owns or may do in a repository elsewhere is not known here.")
    key = key_of(opened, name)
    if give_to:
        said.line(f"Given to {give_to}: {spell(give(opened, [key], give_to))}.")

    def gone() -> None:
        if left := describe_owned(opened, key):
            said.line(f"{name} owned {left}. No later user of this name inherits it.")
            said.line(f"Give it away with: muniment repository give NAME@PARTITION --left-by {name}")
        with opened.database("repository") as database, database.begin() as cx:
            named_by = acls.forget(cx, key)
        if named_by:
            said.line(f"{named_by} ACLs named {name}, and do no more.")

    return gone


def check_receiver(opened: Opened, name: str, to: str) -> None:
    """Raise Failure unless what somebody owns can be given to this user."""
    if not opened.together:
        raise Failure(
            f"What {name} owns in a repository elsewhere is not known here: "
            "give it away there, with 'muniment repository give'.",
            Exit.REFUSED,
        )
    if fold_name(name) == fold_name(to):
        raise Failure(f"{to} is who is to be removed: name another user.", Exit.REFUSED)
    must_be_somebody(opened, to)


def give(opened: Opened, keys: Sequence[str], to: str, only: str = "") -> list[GiftCount]:
    """Give what is kept under these keys to another user, some objects in one commit; says how much.

    It keeps pace with the index agent, so that no search is refused meanwhile. Whoever is stopped in the middle begins
    again and goes on with what is left. ``only`` names one repository.
    """
    receiver = key_of(opened, to)
    keys = [key for key in keys if key != receiver]
    acting, given = _acting(opened), list[GiftCount]()
    with opened.database("repository") as database:
        with database.read() as cx:
            chosen = [repositories.named(cx, only)] if only else repositories.every(cx)
        for one in chosen:
            showing = said.counting(f"Giving what is in {one.name}", None)
            with closing(_Pace(opened, database, one)) as pace, showing as progress:
                moved = _give_objects(opened, database, one, keys, to, receiver, acting, pace, progress)
            with database.begin() as cx:
                lists = sum(acls.give(cx, one.id, key, to, receiver, opened.now) for key in keys)
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
    opened: Opened = context.obj
    if sum(map(bool, (object_ids, all_of, left_by_user))) != 1:
        raise Failure("Name objects, or --all-of USER, or --left-by USER: one of the three.", Exit.USAGE)
    must_be_somebody(opened, to)
    if object_ids:
        _give_these(opened, named or initial.REPOSITORY, object_ids, to)
        return
    keys = [key_of(opened, all_of)] if all_of else left_by(opened, left_by_user)
    said.line(f"Given to {to}: {spell(give(opened, keys, to, named))}.")


def must_be_somebody(opened: Opened, name: str) -> None:
    """Raise Failure when the directory runs here and nobody in it bears the name."""
    if opened.together and not opened.identify([fold_name(name)]):
        raise Failure(f"There is no user {name!r}.", Exit.REFUSED)


def _give_objects(
    opened: Opened,
    database: Database,
    repository: Repository,
    keys: Sequence[str],
    to: str,
    receiver: str,
    acting: Principals,
    pace: "_Pace",
    progress: said.Counting,
) -> int:
    moved, last = 0, 0
    while True:
        pace.keep(partial(progress.reach, moved))
        with database.begin() as cx:
            page = objects.every(cx, repository.id, last, pace.at_a_time)
            some = [one.id for one in page if one.owner_key in keys]
            moved += objects.give(cx, repository.id, some, to, receiver, acting, opened.now) if some else 0
        if not page:
            return moved
        progress.reach(moved)
        last = page[-1].seq


def _give_these(opened: Opened, named: str, object_ids: Sequence[str], to: str) -> None:
    most = _at_a_time(opened)
    if len(object_ids) > most:
        raise Failure(f"Name at most {most} objects: they are given in one commit, and searches follow.", Exit.USAGE)
    receiver, acting = key_of(opened, to), _acting(opened)
    wanted = [one.lower() for one in object_ids]
    with opened.database("repository") as database, database.begin() as cx:
        repository = repositories.named(cx, named)
        there = objects.rows(cx, repository.id, wanted)
        for one in wanted:
            if one not in there:
                raise Failure(f"There is no object {one!r} in {named}; nothing was given.", Exit.REFUSED)
        given = objects.give(cx, repository.id, wanted, to, receiver, acting, opened.now)
    said.line(f"Given to {to}: {given} objects.")


class _Pace:
    """The pace at which what is in one repository may be given, so that its searches go on."""

    def __init__(self, opened: Opened, database: Database, repository: Repository) -> None:
        self.at_a_time = _at_a_time(opened)
        self._most = opened.settings.repository.max_pending_changes
        self._repository = repository
        self._told = False
        self._pace = IndexPace(opened.installation, database, repository, self._is_far, _STANDING_SECONDS)

    def keep(self, meanwhile: Callable[[], None]) -> None:
        """Wait until the index is near; where it stands, say so once and go on."""
        if not self._pace.keep(meanwhile) and not self._told:
            self._told = True
            said.errors.print(
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


def _at_a_time(opened: Opened) -> int:
    return min(_AT_A_TIME, opened.settings.repository.max_pending_changes // 4)


def _acting(opened: Opened) -> Principals:
    return initial.administrator(opened)
