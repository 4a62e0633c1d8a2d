"""Which pairs of a name and a password were right moments ago?

A wrong password is never remembered (decision 0036).
"""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from muniment.ground.naming import fold_name
from muniment.repository.api.callers.credentials import Pair
from muniment.repository.refusals import NotSignedIn

log = structlog.get_logger("muniment.repository.callers")

_OF_ACCOUNT = 16
"""An account that signs in from many addresses does not push out the pairs of others."""

_CLOSING_SECONDS = 5.0
_SHORTEST_WAIT = 1.0


@dataclass(frozen=True, repr=False)
class PairSignIn:
    """``address`` is where it came from."""

    pair: Pair
    resource_id: str
    repository: str
    address: str
    scope: MutableMapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class AccessToken:
    """An access token, and its life in seconds."""

    text: str
    seconds: float


SignIn = Callable[[PairSignIn], Awaitable[AccessToken]]
"""Raises NotSignedIn, DirectoryUnavailable, Overloaded."""

EndGrant = Callable[[str], Awaitable[None]]


@dataclass(repr=False)
class _PairCache:
    token: str
    account: bytes
    password: bytes
    place: bytes
    expires: float
    forgotten: float


class Pairs:
    """At most ``most`` pairs, each for ``seconds`` after its last use.

    A pair is valid for one address and one resource: a guess from another goes to the directory, which counts wrong
    passwords and pauses sign-in. If it refuses, the account's pairs from the address with another password are
    forgotten, so that nobody can guess during a pause; one with the same password may be right, without a role at that
    resource, and stays.
    """

    def __init__(
        self,
        sign_in: SignIn,
        end: EndGrant,
        *,
        seconds: float = 60.0,
        most: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sign_in = sign_in
        self._end = end
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._memories: OrderedDict[bytes, _PairCache] = OrderedDict()
        self._of_account: dict[bytes, list[bytes]] = {}
        self._under_way: dict[bytes, asyncio.Task[AccessToken]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._memories)

    async def token(self, attempt: PairSignIn) -> tuple[str, bool]:
        """Return a token, and whether the password was checked for this call. Attempts with the same pair, address and
        resource share a sign-in under way.

        Raises what ``SignIn`` raises.
        """
        digest = self._digest_of(attempt)
        memory = self._memories.get(digest)
        if memory is not None:
            now = self._clock()
            if now < min(memory.forgotten, memory.expires):
                memory.forgotten = now + self._seconds
                self._memories.move_to_end(digest)
                return memory.token, False
            self._drop(digest)
        under_way = self._under_way.get(digest)
        if under_way is not None:
            return (await asyncio.shield(under_way)).text, False
        # A task of its own: it goes on for the others if this caller leaves.
        task = asyncio.get_running_loop().create_task(self._remember_sign_in(digest, attempt))
        self._under_way[digest] = task
        task.add_done_callback(lambda ended_task: self._forget_task(digest, ended_task))
        return (await asyncio.shield(task)).text, True

    def knows(self, attempt: PairSignIn) -> bool:
        memory = self._memories.get(self._digest_of(attempt))
        return memory is not None and self._clock() < min(memory.forgotten, memory.expires)

    def forget(self, attempt: PairSignIn, token: str) -> None:
        """Do nothing if the pair has another token by now."""
        digest = self._digest_of(attempt)
        memory = self._memories.get(digest)
        if memory is not None and memory.token == token:
            self._drop(digest)

    def forget_unused(self) -> None:
        now = self._clock()
        while self._memories:
            digest, oldest = next(iter(self._memories.items()))
            if now < oldest.forgotten:
                return
            self._drop(digest)

    async def close(self) -> None:
        """Leave a grant that has not ended within five seconds to expire."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for digest in list(self._memories):
            self._drop(digest)
        until = time.monotonic() + _CLOSING_SECONDS
        while (pending := {*self._under_way.values(), *self._ending}) and (seconds := until - time.monotonic()) > 0:
            await asyncio.wait(pending, timeout=seconds)

    async def _remember_sign_in(self, digest: bytes, attempt: PairSignIn) -> AccessToken:
        try:
            access_token = await self._sign_in(attempt)
        except NotSignedIn:
            self._forget_other_passwords(attempt)
            raise
        if self._closed:
            self._begin_end(access_token.text)
        else:
            self._remember(digest, attempt, access_token)
        return access_token

    def _forget_task(self, digest: bytes, task: "asyncio.Task[AccessToken]") -> None:
        self._under_way.pop(digest, None)
        if not task.cancelled():
            task.exception()  # whoever waited has got it; nobody may be left

    def _remember(self, digest: bytes, attempt: PairSignIn, access_token: AccessToken) -> None:
        account = self._digest(fold_name(attempt.pair.account))
        of_account = self._of_account.get(account, [])
        if len(of_account) >= _OF_ACCOUNT:
            self._drop(of_account[0])
        if len(self._memories) >= self._most:
            self._drop(next(iter(self._memories)))
        now = self._clock()
        self._memories[digest] = _PairCache(
            access_token.text,
            account,
            self._password_of(attempt),
            self._place_of(attempt),
            now + access_token.seconds,
            now + self._seconds,
        )
        self._of_account.setdefault(account, []).append(digest)
        self._wait_for_unused()

    def _forget_other_passwords(self, attempt: PairSignIn) -> None:
        place, password = self._place_of(attempt), self._password_of(attempt)
        for digest in list(self._of_account.get(self._digest(fold_name(attempt.pair.account)), ())):
            memory = self._memories[digest]
            if memory.place == place and memory.password != password:
                self._drop(digest)

    def _drop(self, digest: bytes) -> None:
        memory = self._memories.pop(digest)
        of_account = self._of_account[memory.account]
        of_account.remove(digest)
        if not of_account:
            del self._of_account[memory.account]
        self._begin_end(memory.token)

    def _begin_end(self, token: str) -> None:
        task = asyncio.get_running_loop().create_task(self._end_grant(token))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end_grant(self, token: str) -> None:
        try:
            await self._end(token)
        except Exception as error:  # noqa: BLE001 - the grant expires by itself; nobody waits for its end
            log.warning("a grant of HTTP Basic was not ended", reason=type(error).__name__)

    def _wait_for_unused(self) -> None:
        if self._timer is None and self._memories and not self._closed:
            wait = next(iter(self._memories.values())).forgotten - self._clock()
            self._timer = asyncio.get_running_loop().call_later(max(wait, _SHORTEST_WAIT), self._time_has_passed)

    def _time_has_passed(self) -> None:
        self._timer = None
        self.forget_unused()
        self._wait_for_unused()

    def _digest_of(self, attempt: PairSignIn) -> bytes:
        pair = attempt.pair
        return self._digest(fold_name(pair.account), pair.password, attempt.address, attempt.resource_id)

    def _place_of(self, attempt: PairSignIn) -> bytes:
        return self._digest(fold_name(attempt.pair.account), attempt.address)

    def _password_of(self, attempt: PairSignIn) -> bytes:
        return self._digest(fold_name(attempt.pair.account), attempt.pair.password)

    def _digest(self, *parts: str) -> bytes:
        # No part holds a NUL, so two different lists are never joined alike.
        return hashlib.blake2b("\x00".join(parts).encode("utf-8", "surrogatepass"), key=self._key).digest()
