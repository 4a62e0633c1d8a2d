"""Give what one user owns to another: some objects at a time, at a pace that the index can follow.

Each object that changes is noted in the change log, so that the index follows. If a gift was stopped, it can be given
again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository.refusals import IndexBehind, UnknownObject, WrongValue
from muniment.repository.search.index.contract import Index
from muniment.repository.search.index_pace import IndexPace
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.objects import inventory, objects, wastebasket
from muniment.repository.store.objects.contents import usage
from muniment.repository.store.objects.decisions import version_lists
from muniment.repository.store.permissions import acls, name_keys
from muniment.repository.store.permissions.name_keys import Identify
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.relations import comments, relations
from muniment.repository.store.repositories import Repository
from muniment.repository.store.saved import saved_searches

_AT_A_TIME = 500
_STANDING_SECONDS = 30.0
"""A gift waits at most so many seconds without progress of the index. A running agent makes progress all the time."""


class Belongings(NamedTuple):
    """How much the bearer of one key owns: objects, bytes of content, ACLs, and saved searches with templates.

    ``comments`` and ``relations`` count what the bearer has made. ``checkouts`` counts the objects, whoever owns them,
    that the bearer has checked out.
    """

    objects: int
    bytes: int
    acls: int
    searches: int
    comments: int = 0
    relations: int = 0
    checkouts: int = 0


class GiftCount(NamedTuple):
    """How many objects, ACLs, and saved searches and templates of one repository were given."""

    repository: str
    objects: int
    acls: int
    searches: int


class Receiver(NamedTuple):
    """Who receives a gift: the name that is shown as owner, and the key under which they own."""

    name: str
    key: str


class GiftWatch(Protocol):
    """Learns how far a gift has come."""

    def reach(self, repository: str, count: int) -> None:
        """Learn that so many objects of this repository have changed hands by now."""

    def index_stands_still(self, repository: str) -> None:
        """Learn that the index of this repository makes no progress, and that the gift no longer waits for it."""


def key_of(cx: Connection, name: str, identify: Identify, now: Instant) -> str:
    """Return the key of the present bearer of a name. If ``identify`` knows the bearer, the key stays theirs for good.

    ``cx`` must be able to write.
    """
    folded_name = fold_name(name)
    return name_keys.of_names(cx, [folded_name], identify, now)[folded_name]


def former_keys(cx: Connection, name: str, identity: str | None) -> list[str]:
    """Return the keys of all former bearers of a name, without the present one.

    ``identity`` is the present bearer's; it is empty if nobody bears the name. None means that no directory can tell:
    then the last known bearer is taken for the present one.
    """
    folded_name = fold_name(name)
    every = name_keys.keys_of_name(cx, folded_name)
    present = every[-1]
    if identity is not None:
        present = name_keys.keys(cx, {folded_name: identity})[folded_name] if identity else ""
    return [key for key in every if key != present]


def belongings(cx: Connection, key: str) -> Belongings:
    amount = usage.usage_of(cx, key)
    acl_count = sum(acls.count_by_owner(cx, [key]).values())
    search_count = saved_searches.count_by_owner(cx, key)
    made = comments.count_by_author(cx, key), relations.count_by_maker(cx, key)
    checkout_count = version_lists.count_checkouts(cx, key)
    return Belongings(amount.objects, amount.bytes, acl_count, search_count, *made, checkout_count)


def give_all(
    database: Database,
    repository: Repository,
    index: Index,
    keys: Sequence[str],
    receiver: Receiver,
    acting: Principals,
    clock: Callable[[], Instant],
    max_pending: int,
    watch: GiftWatch,
) -> GiftCount:
    """It waits whenever ``index`` is too far behind, because a search is refused if the index lacks more than
    ``max_pending`` changes. It closes ``index`` at the end.
    """
    keys = [key for key in keys if key != receiver.key]
    pace = _Pace(database, repository, index, max_pending, watch)
    try:
        count = _give_objects(database, repository, keys, receiver, acting, clock, pace)
    finally:
        pace.close()
    with database.begin() as cx:
        for key in keys:
            count += wastebasket.give(cx, repository.id, key, receiver.name, receiver.key)
        acl_count = sum(acls.give(cx, repository.id, key, receiver.name, receiver.key, clock()) for key in keys)
        search_count = sum(
            saved_searches.give(cx, repository.id, key, receiver.name, receiver.key, clock()) for key in keys
        )
    return GiftCount(repository.name, count, acl_count, search_count)


def give_these(
    cx: Connection,
    repository: Repository,
    object_ids: Sequence[str],
    receiver: Receiver,
    acting: Principals,
    now: Instant,
    max_pending: int,
) -> int:
    """Give these objects in one transaction, all or none. Return how many were not the receiver's before.

    Raises UnknownObject, and WrongValue for more objects than the index should take in at once.
    """
    if len(object_ids) > (limit := most_at_once(max_pending)):
        raise WrongValue(f"Name at most {limit} objects: all are given in one commit.")
    ids = [object_id.lower() for object_id in object_ids]
    objects_by_id = inventory.rows(cx, repository.id, ids)
    for object_id in ids:
        if object_id not in objects_by_id:
            raise UnknownObject(f"There is no object {object_id!r} in {repository.name}; nothing was given.")
    return objects.give(cx, repository.id, ids, receiver.name, receiver.key, acting, now)


def most_at_once(max_pending: int) -> int:
    """Part of ``max_pending`` is left for changes by others."""
    return min(_AT_A_TIME, max_pending // 4)


def _give_objects(
    database: Database,
    repository: Repository,
    keys: Sequence[str],
    receiver: Receiver,
    acting: Principals,
    clock: Callable[[], Instant],
    pace: "_Pace",
) -> int:
    count, last_seq = 0, 0
    while True:
        pace.keep(count)
        with database.begin() as cx:
            page = inventory.next_objects(cx, repository.id, last_seq, pace.at_a_time)
            ids = [stored.id for stored in page if stored.owner_key in keys]
            count += objects.give(cx, repository.id, ids, receiver.name, receiver.key, acting, clock()) if ids else 0
        if not page:
            return count
        last_seq = page[-1].seq


class _Pace:
    def __init__(
        self, database: Database, repository: Repository, index: Index, max_pending: int, watch: GiftWatch
    ) -> None:
        self.at_a_time = most_at_once(max_pending)
        self._limit = max_pending
        self._name = repository.name
        self._watch = watch
        self._has_warned = False
        self._pace = IndexPace(database, repository, index, self._is_far, _STANDING_SECONDS)

    def keep(self, count: int) -> None:
        """If the index stands still, tell ``watch`` once."""
        reach = partial(self._watch.reach, self._name, count)
        reach()
        if not self._pace.keep(reach) and not self._has_warned:
            self._has_warned = True
            self._watch.index_stands_still(self._name)

    def close(self) -> None:
        self._pace.close()

    def _is_far(self, cx: Connection, repository_id: int, position: Position) -> bool:
        # Count as a search does. Stop early: what others change meanwhile must fit into the limit, too.
        try:
            changes.hiding(cx, repository_id, position, self._limit // 4)
        except IndexBehind:
            return True
        return False
