"""Who is next at the gate, and who leaves when the line is full? It takes turns by address and by account.

Each address gets a turn, and at each address each account. Where passwords were wrong lately, addresses and accounts
wait behind the others: of four turns they get one. When the line is full, the newest of the heaviest address makes room
for a lighter one. A name counts as typed, whether there is such a user or not, so that nothing tells who exists.
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
    """Who wants a password checked: from which address, for which account, and whether the browser is known for it.

    A known browser counts as an address of its own: whoever floods from the same address does not hold it up.
    """

    address: str
    account: str
    known: bool = False

    @property
    def place(self) -> "_Place":
        """What takes turns with the others'."""
        return (self.account if self.known else self.address), self.known


class _Waiting(NamedTuple, Generic[W]):
    asker: Asker
    who: W


class Line(Generic[W]):
    """At most ``most`` wait. It reads no clock: the time is the latest that it was told."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: Counter[_Place] = Counter()
        self._now: Instant = 0
        self._wrong: OrderedDict[int, tuple[int, Instant]] = OrderedDict()
        self._places: _Turns[_Place, _Turns[str, deque[_Waiting[W]]]] = _Turns(self._suspect_place)

    def __len__(self) -> int:
        return self._waiting.total()

    def join(self, asker: Asker, who: W, now: Instant) -> W | None:
        """Let one wait. When the line is full, gives whoever leaves: another, or the one who came."""
        self._now = max(self._now, now)
        leaves = self._room_for(asker, who) if len(self) >= self._most else None
        if leaves is who:
            return who
        accounts = self._places.get(asker.place) or self._places.add(asker.place, _Turns(self._suspect_account))
        waiting = accounts.get(asker.account) or accounts.add(asker.account, deque())
        waiting.append(_Waiting(asker, who))
        self._waiting[asker.place] += 1
        return leaves

    def next(self) -> tuple[Asker, W] | None:
        """Take out the one whose turn it is; None when nobody waits."""
        if not self._waiting:
            return None
        place, accounts = self._places.take()
        account, waiting = accounts.take()
        asker, who = waiting.popleft()
        self._left(place)
        if waiting:
            accounts.add(account, waiting)
        if accounts:
            self._places.add(place, accounts)
        return asker, who

    def note(self, asker: Asker, right: bool, now: Instant) -> None:
        """Remember whether a password was right: for a minute, and of the latest few thousand only."""
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
        """Take out the newest of the heaviest, or give back who came when nothing is heavier."""
        place = max(self._places, key=self._weight_of_place)
        own = self._suspect_place(asker.place), self._waiting[asker.place] + 1
        if place != asker.place and self._weight_of_place(place) <= own:
            return who
        accounts = self._places.get(place)
        assert accounts is not None  # noqa: S101 - it was found among them

        def weight(account: str) -> tuple[bool, int]:
            return self._suspect_account(account), len(accounts.get(account) or ())

        account = max(accounts, key=weight)
        waiting = accounts.get(account)
        assert waiting is not None  # noqa: S101 - likewise
        suspect, mine = self._suspect_account(asker.account), len(accounts.get(asker.account) or ())
        if place == asker.place and weight(account) <= (suspect, mine + 1):
            return who
        leaves = waiting.pop().who
        self._left(place)
        if not waiting:
            accounts.drop(account)
        if not accounts:
            self._places.drop(place)
        return leaves

    def _left(self, place: "_Place") -> None:
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
    """Groups that take turns; the suspect ones get one of four while others wait."""

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
        """Give a group that waits for its turn."""
        return self._sides[0].get(key) or self._sides[1].get(key)

    def add(self, key: K, group: G) -> G:
        """Let a group wait behind those of its side."""
        self._sides[self._suspect(key)][key] = group
        return group

    def take(self) -> tuple[K, G]:
        """Take out the group whose turn it is."""
        clean, suspect = self._sides
        self._turn = (self._turn + 1) % _TURNS
        side = suspect if not clean or (suspect and self._turn == 0) else clean
        key = next(iter(side))
        return key, side.pop(key)

    def drop(self, key: K) -> None:
        """Take out a group wherever it waits."""
        for side in self._sides:
            side.pop(key, None)


def _key(what: str | _Place) -> int:
    # Names are as long as a stranger likes; this is as long as any number, and another one in each process.
    return hash(what)
