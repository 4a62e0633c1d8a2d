"""Whose password is checked next, and whose check leaves when the line is full (decision 0025)?

Addresses take turns, and so do the accounts of an address. Suspect addresses together, and suspect accounts of an
address, get one turn in four while others wait: they sent wrong passwords a moment ago. An address with more waiting
checks is heavier, and a suspect one heavier than any other; in a full line, the heaviest makes room for a lighter one.
An account is a name, so the line does not show which users exist.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from muniment.ground.clock import SECOND, Instant

W = TypeVar("W")
G = TypeVar("G")

_Source = tuple[str, bool]

_RECENT = 60 * SECOND
_WRONG_OF_ADDRESS = 5
_WRONG_OF_ACCOUNT = 1
_REMEMBERED = 4096
_TURNS = 4


class Asker(msgspec.Struct, frozen=True):
    """``known_browser``: the account signed in with this browser before.

    An account's known browsers take turns as one address of their own: a flood from their real addresses does not delay
    them.
    """

    address: str
    account: str
    known_browser: bool = False

    @property
    def source(self) -> "_Source":
        """An account's known browsers share a key."""
        return (self.account if self.known_browser else self.address), self.known_browser


class _Waiting(NamedTuple, Generic[W]):
    asker: Asker
    check: W


class Line(Generic[W]):
    """It reads no clock: its time is the latest ``now`` of any call."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: Counter[_Source] = Counter()
        self._now: Instant = 0
        # Strangers may send names of any length. A hash has a fixed size, and Python salts it in each process.
        self._wrong: OrderedDict[int, tuple[int, Instant]] = OrderedDict()
        self._sources: _Turns[_Source, _Turns[str, deque[_Waiting[W]]]] = _Turns(self._is_suspect_source)

    def __len__(self) -> int:
        return self._waiting.total()

    def join(self, asker: Asker, check: W, now: Instant) -> W | None:
        """If the line is full, return the check that must leave, which may be this one."""
        self._now = max(self._now, now)
        leaving_check = self._room_for(asker, check) if len(self) >= self._limit else None
        if leaving_check is check:
            return check
        accounts = self._sources.get(asker.source) or self._sources.add(asker.source, _Turns(self._is_suspect_account))
        waiting = accounts.get(asker.account) or accounts.add(asker.account, deque())
        waiting.append(_Waiting(asker, check))
        self._waiting[asker.source] += 1
        return leaving_check

    def next(self) -> tuple[Asker, W] | None:
        if not self._waiting:
            return None
        source, accounts = self._sources.take()
        account, waiting = accounts.take()
        asker, check = waiting.popleft()
        self._count_down(source)
        if waiting:
            accounts.add(account, waiting)
        if accounts:
            self._sources.add(source, accounts)
        return asker, check

    def note(self, asker: Asker, is_right: bool, now: Instant) -> None:
        """A wrong password is remembered for at most a minute; a right one clears its account.

        Only the latest few thousand addresses and accounts are remembered.
        """
        self._now = max(self._now, now)
        if is_right:
            self._wrong.pop(hash(asker.account), None)
            return
        for key in (hash(asker.source), hash(asker.account)):
            count, since = self._wrong.pop(key, (0, self._now))
            self._wrong[key] = (1, self._now) if self._now - since > _RECENT else (count + 1, since)
        while len(self._wrong) > _REMEMBERED:
            self._wrong.popitem(last=False)

    def _room_for(self, asker: Asker, check: W) -> W:
        """Remove the newest check of the heaviest account of the heaviest address.

        It is ``check`` if that address is another one but no heavier, or is the asker's and no other account there is
        heavier.
        """
        source = max(self._sources, key=self._weight_of_source)
        own_weight = self._is_suspect_source(asker.source), self._waiting[asker.source] + 1
        if source != asker.source and self._weight_of_source(source) <= own_weight:
            return check
        accounts = self._sources.get(source)
        assert accounts is not None  # noqa: S101 - ``max`` chose it from the line

        def weight(account: str) -> tuple[bool, int]:
            return self._is_suspect_account(account), len(accounts.get(account) or ())

        account = max(accounts, key=weight)
        waiting = accounts.get(account)
        assert waiting is not None  # noqa: S101 - ``max`` chose it from the line
        is_suspect, own_count = self._is_suspect_account(asker.account), len(accounts.get(asker.account) or ())
        if source == asker.source and weight(account) <= (is_suspect, own_count + 1):
            return check
        leaving_check = waiting.pop().check
        self._count_down(source)
        if not waiting:
            accounts.drop(account)
        if not accounts:
            self._sources.drop(source)
        return leaving_check

    def _count_down(self, source: "_Source") -> None:
        self._waiting[source] -= 1
        if not self._waiting[source]:
            del self._waiting[source]

    def _weight_of_source(self, source: "_Source") -> tuple[bool, int]:
        return self._is_suspect_source(source), self._waiting[source]

    def _is_suspect_source(self, source: "_Source") -> bool:
        return self._recent_wrong_count(hash(source)) >= _WRONG_OF_ADDRESS

    def _is_suspect_account(self, account: str) -> bool:
        return self._recent_wrong_count(hash(account)) >= _WRONG_OF_ACCOUNT

    def _recent_wrong_count(self, key: int) -> int:
        count, since = self._wrong.get(key, (0, 0))
        return count if self._now - since <= _RECENT else 0


K = TypeVar("K")


class _Turns(Generic[K, G]):
    """The suspect groups together get one turn in four while others wait."""

    def __init__(self, is_suspect: Callable[[K], bool]) -> None:
        self._is_suspect = is_suspect
        self._sides: tuple[dict[K, G], dict[K, G]] = ({}, {})
        self._turn = 0

    def __len__(self) -> int:
        return sum(map(len, self._sides))

    def __iter__(self) -> Iterator[K]:
        for side in self._sides:
            yield from side

    def get(self, key: K) -> G | None:
        return self._sides[0].get(key) or self._sides[1].get(key)

    def add(self, key: K, group: G) -> G:
        self._sides[self._is_suspect(key)][key] = group
        return group

    def take(self) -> tuple[K, G]:
        clean, is_suspect = self._sides
        self._turn = (self._turn + 1) % _TURNS
        side = is_suspect if not clean or (is_suspect and self._turn == 0) else clean
        key = next(iter(side))
        return key, side.pop(key)

    def drop(self, key: K) -> None:
        for side in self._sides:
            side.pop(key, None)
