"""Which steps does it take to remove a user or a group, so that a later one of the same name inherits nothing?

The halves have separate databases, so the order decides what is left if a removal stops:

1. If a user's belongings are to be given away, the user is disabled, and so can add nothing more.
2. The repository binds the name to its bearer: no later bearer can inherit anything.
3. Objects are given away, some at a time, then ACLs, saved searches and search templates.
4. The directory removes the entry; its sessions end.
5. The entry is taken out of the ACLs. A user's stored search results are removed.

A removal that stopped before step 4 can be started again, and does the rest.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.directory.administration import decisions
from muniment.directory.entries import entries, resources
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.ground.refusals import Refusal
from muniment.integration import guards
from muniment.repository.bulk import ownership
from muniment.repository.bulk.ownership import Belongings, GiftCount, GiftWatch, Receiver
from muniment.repository.search.index.contract import Index
from muniment.repository.store import repositories
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.name_keys import Identify
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.saved import stored_results


class SameReceiver(Refusal):
    """The user to be removed would also get what they own."""


class OwnsElsewhere(Refusal):
    """The repository runs apart, so what a user owns there cannot be given away here."""


class Holdings(NamedTuple):
    """``acting`` changes the objects. ``max_pending`` is by how many changes an index may lag before searches are
    refused.
    """

    database: Database
    open_index: Callable[[repositories.Repository], Index]
    identify: Identify
    acting: Principals
    max_pending: int
    client_settings: Mapping[str, str]


class Departure(NamedTuple):
    """``gifts`` counts what was given away, ``belongings`` what the removed one still owned, ``named_by`` the ACLs that
    named them.
    """

    dependents: decisions.Dependents
    gifts: list[GiftCount]
    belongings: Belongings
    named_by: int


def remove(
    directory: Database,
    holdings: Holdings | None,
    names: DirectoryNames,
    kind: Literal["user", "group"],
    entry_id: str,
    clock: Callable[[], Instant],
    watch: GiftWatch | None = None,
    *,
    give_to: str = "",
    check_right: Callable[[Connection], None] = lambda _: None,
    force: bool = False,
) -> Departure:
    """Remove a user or a group (``name@partition``); a group's members stay.

    First give ``give_to``, if any, what the user owns; ``watch`` sees how far that is. It opens transactions of its
    own, many for a large gift: call it off the event loop. ``holdings`` is None if the repository runs apart.
    ``check_right``, in the directory's transaction that removes the entry, may stop the removal.

    Raises UnknownEntry, also if another removal was faster: a new bearer of the name stays. Raises NobodyAdministers,
    BadName for the built-in group, and NameInUse for who stands for a resource; with ``give_to`` SameReceiver and
    OwnsElsewhere; without ``force`` what ``guards.check_client`` raises.
    """
    if give_to:
        _check_receiver(directory, holdings, names, entry_id, give_to)
    with directory.read() as cx:
        entry = entries.find(cx, names, entry_id, kind)
        resources.require_no_stand_in(cx, entry)
        if holdings is not None and not force:
            guards.check_client(cx, holdings.client_settings, entry)
    if give_to:
        with directory.begin() as cx:
            decisions.set_disabled(cx, entries.find(cx, names, entry_id, kind), True, clock())
    shown_id = entries.shown_id(names, entry)
    key, gifts = "", list[GiftCount]()
    if holdings is not None:
        with holdings.database.begin() as cx:
            key = ownership.key_of(cx, shown_id, holdings.identify, clock())
        if give_to and watch is not None:
            gifts = give(holdings, [key], give_to, clock, watch)
    with directory.begin() as cx:
        check_right(cx)
        present = entries.find(cx, names, entry_id, kind)
        if present.uuid != entry.uuid:
            raise UnknownEntry(f"{shown_id} was removed meanwhile. The new {kind} of this name stays.")
        dependents = decisions.remove(cx, present, clock())
    if holdings is None:
        return Departure(dependents, gifts, Belongings(0, 0, 0, 0), 0)
    with holdings.database.begin() as cx:
        stored_results.forget(cx, key)
        return Departure(dependents, gifts, ownership.belongings(cx, key), acls.forget(cx, key))


def give(
    holdings: Holdings, keys: list[str], to: str, clock: Callable[[], Instant], watch: GiftWatch, *, only: str = ""
) -> list[GiftCount]:
    """Give ``to`` what the bearers of these keys own, in all repositories or in ``only``.

    Counts only repositories in which anything was given. Raises UnknownRepository.
    """
    with holdings.database.begin() as cx:
        receiver = Receiver(to, ownership.key_of(cx, to, holdings.identify, clock()))
    with holdings.database.read() as cx:
        selection = [repositories.find(cx, only)] if only else repositories.all_repositories(cx)
    counts = [
        ownership.give_all(
            holdings.database,
            repository,
            holdings.open_index(repository),
            keys,
            receiver,
            holdings.acting,
            clock,
            holdings.max_pending,
            watch,
        )
        for repository in selection
    ]
    return [count for count in counts if count.objects or count.acls or count.searches]


def _check_receiver(
    directory: Database, holdings: Holdings | None, names: DirectoryNames, user_id: str, give_to: str
) -> None:
    if holdings is None:
        raise OwnsElsewhere(
            f"The directory cannot see what {user_id} owns in a repository elsewhere: give it away there."
        )
    if fold_name(user_id) == fold_name(give_to):
        raise SameReceiver(f"{give_to} is the user to be removed: name another user.")
    with directory.read() as cx:
        entries.find_user(cx, names, give_to)
