"""Who is next at the gate, and who leaves when the line is full? Addresses take turns, and accounts within them.

Each address gets a turn, and at each address each account. Addresses and accounts with recent wrong passwords wait
behind the others: they get one of four turns. When the line is full, the newest check of the heaviest address makes
room for a lighter one. A name counts as typed, whether the user exists or not, so that nothing tells who exists.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from muniment.clock import SECOND, Instant

W = TypeVar("W")
G = TypeVar("G")

_Place = tuple[str, bool]

_LATELY = 60 * SECOND
_WRONG_OF_ADDRESS = 5
_WRONG_OF_ACCOUNT = 1
_REMEMBERED = 4096
_TURNS = 4


class Asker(msgspec.Struct, frozen=True):
    """The source of a password check: its address, its account, and whether the account knows the browser.

    A known browser counts as an address of its own, so that a flood from the same address does not delay it.
    """

    address: str
    account: str
    known_browser: bool = False

    @property
    def place(self) -> "_Place":
        """The key that takes turns with other keys."""
        return (self.account if self.known_browser else self.address), self.known_browser


class _Waiting(NamedTuple, Generic[W]):
    asker: Asker
    who: W


class Line(Generic[W]):
    """A line in which at most ``limit`` wait. It reads no clock; its time is the latest ``now`` of a call."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: Counter[_Place] = Counter()
        self._now: Instant = 0
        self._wrong: OrderedDict[int, tuple[int, Instant]] = OrderedDict()
        self._places: _Turns[_Place, _Turns[str, deque[_Waiting[W]]]] = _Turns(self._suspect_place)

    def __len__(self) -> int:
        return self._waiting.total()

    def join(self, asker: Asker, who: W, now: Instant) -> W | None:
        """Let a check wait. If the line is full, return the check that leaves: another one, or this one."""
        self._now = max(self._now, now)
        leaves = self._room_for(asker, who) if len(self) >= self._limit else None
        if leaves is who:
            return who
        accounts = self._places.get(asker.place) or self._places.add(asker.place, _Turns(self._suspect_account))
        waiting = accounts.get(asker.account) or accounts.add(asker.account, deque())
        waiting.append(_Waiting(asker, who))
        self._waiting[asker.place] += 1
        return leaves

    def next(self) -> tuple[Asker, W] | None:
        """Remove and return the check whose turn it is; None when none waits."""
        if not self._waiting:
            return None
        place, accounts = self._places.take()
        account, waiting = accounts.take()
        asker, who = waiting.popleft()
        self._count_down(place)
        if waiting:
            accounts.add(account, waiting)
        if accounts:
            self._places.add(place, accounts)
        return asker, who

    def note(self, asker: Asker, right: bool, now: Instant) -> None:
        """Remember for a minute whether a password was right; only the latest few thousand are remembered."""
        self._now = max(self._now, now)
        if right:
            self._wrong.pop(_key(asker.account), None)
            return
        for key in (_key(asker.place), _key(asker.account)):
            count, since = self._wrong.pop(key, (0, self._now))
            self._wrong[key] = (1, self._now) if self._now - since > _LATELY else (count + 1, since)
        while len(self._wrong) > _REMEMBERED:
            self._wrong.popitem(last=False)

    def _room_for(self, asker: Asker, who: W) -> W:
        """Remove the newest check of the heaviest place, or return this check if none is heavier."""
        place = max(self._places, key=self._weight_of_place)
        own_weight = self._suspect_place(asker.place), self._waiting[asker.place] + 1
        if place != asker.place and self._weight_of_place(place) <= own_weight:
            return who
        accounts = self._places.get(place)
        assert accounts is not None  # noqa: S101 - it is one of the places

        def weight(account: str) -> tuple[bool, int]:
            return self._suspect_account(account), len(accounts.get(account) or ())

        account = max(accounts, key=weight)
        waiting = accounts.get(account)
        assert waiting is not None  # noqa: S101 - likewise
        suspect, own_count = self._suspect_account(asker.account), len(accounts.get(asker.account) or ())
        if place == asker.place and weight(account) <= (suspect, own_count + 1):
            return who
        leaves = waiting.pop().who
        self._count_down(place)
        if not waiting:
            accounts.drop(account)
        if not accounts:
            self._places.drop(place)
        return leaves

    def _count_down(self, place: "_Place") -> None:
        self._waiting[place] -= 1
        if not self._waiting[place]:
            del self._waiting[place]

    def _weight_of_place(self, place: "_Place") -> tuple[bool, int]:
        return self._suspect_place(place), self._waiting[place]

    def _suspect_place(self, place: "_Place") -> bool:
        return self._wrong_lately(_key(place)) >= _WRONG_OF_ADDRESS

    def _suspect_account(self, account: str) -> bool:
        return self._wrong_lately(_key(account)) >= _WRONG_OF_ACCOUNT

    def _wrong_lately(self, key: int) -> int:
        count, since = self._wrong.get(key, (0, 0))
        return count if self._now - since <= _LATELY else 0


K = TypeVar("K")


class _Turns(Generic[K, G]):
    """Groups that take turns. Suspect groups get one of four turns while others wait."""

    def __init__(self, suspect: Callable[[K], bool]) -> None:
        self._suspect = suspect
        self._sides: tuple[dict[K, G], dict[K, G]] = ({}, {})
        self._turn = 0

    def __len__(self) -> int:
        return sum(map(len, self._sides))

    def __iter__(self) -> Iterator[K]:
        for side in self._sides:
            yield from side

    def get(self, key: K) -> G | None:
        """Return a waiting group."""
        return self._sides[0].get(key) or self._sides[1].get(key)

    def add(self, key: K, group: G) -> G:
        """Let a group wait behind the others of its side."""
        self._sides[self._suspect(key)][key] = group
        return group

    def take(self) -> tuple[K, G]:
        """Remove and return the group whose turn it is."""
        clean, suspect = self._sides
        self._turn = (self._turn + 1) % _TURNS
        side = suspect if not clean or (suspect and self._turn == 0) else clean
        key = next(iter(side))
        return key, side.pop(key)

    def drop(self, key: K) -> None:
        """Remove a group wherever it waits."""
        for side in self._sides:
            side.pop(key, None)


def _key(what: str | _Place) -> int:
    # A stranger may send names of any length; a hash has a fixed size, and differs in each process.
    return hash(what)
