"""Give what one user owns to another: some objects at a time, at a pace that the index can follow.

Changes are noted for the index. A gift that was stopped can be given again.
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
"""A gift waits so long without progress of the index, which a running agent makes all the time."""


class Belongings(NamedTuple):
    """What the bearer of one key owns.

    ``comments`` and ``relations`` are those that they made, ``checkouts`` objects of anybody that they have checked
    out.
    """

    objects: int
    bytes: int
    acls: int
    searches: int
    comments: int = 0
    relations: int = 0
    checkouts: int = 0


class GiftCount(NamedTuple):
    """How much of one repository was given."""

    repository: str
    objects: int
    acls: int
    searches: int


class Receiver(NamedTuple):
    """The name shown as owner, and the key."""

    name: str
    key: str


class GiftWatch(Protocol):
    """Learns how far a gift has come."""

    def reach(self, repository: str, count: int) -> None:
        """So many objects have changed hands by now."""

    def index_stands_still(self, repository: str) -> None:
        """The gift no longer waits for the index."""


def key_of(cx: Connection, name: str, identify: Identify, now: Instant) -> str:
    """Return the present bearer's key, theirs for good if ``identify`` knows them; ``cx`` must be able to write."""
    folded_name = fold_name(name)
    return name_keys.of_names(cx, [folded_name], identify, now)[folded_name]


def former_keys(cx: Connection, name: str, identity: str | None) -> list[str]:
    """Return the keys of former bearers.

    ``identity`` is the present one's, or empty for nobody; None, if no directory can tell, makes the last known one the
    present.
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
    """Wait for ``index``: a search is refused beyond ``max_pending`` missing changes. Close it at the end."""
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
    """Give all or none, in one transaction; return how many were not the receiver's.

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
    """Leave a part of ``max_pending`` for changes by others."""
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
        """Tell ``watch`` once if the index stands still."""
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
