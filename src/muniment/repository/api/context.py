"""What every endpoint of the repository needs, and how a request begins: by finding who calls which repository."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.database.audit import acting
from muniment.database.common_transaction import CommonTransaction
from muniment.database.connections import Busy
from muniment.database.transactions import Transactions
from muniment.ground.clock import Instant
from muniment.ground.events import Event
from muniment.ground.naming import fold_name
from muniment.ground.refusals import Malformed, Overloaded
from muniment.repository import audit, keys
from muniment.repository.api.callers.callers import Bearer, Callers, StaleAnswer
from muniment.repository.api.callers.credentials import RequestCredentials, csrf_headers
from muniment.repository.api.wire import positions, spelling
from muniment.repository.keys import Seal
from muniment.repository.options import RepositoryNames, RepositoryOptions
from muniment.repository.refusals import DirectoryUnavailable, NotSignedIn, UnknownPerson
from muniment.repository.search.answering.cache import SearchCache
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.search.index.contract import Index, Snapshot
from muniment.repository.store import repositories
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.content.contract import ContentStore
from muniment.repository.store.people import People, PeopleChanges, Who
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.name_keys import KeyCache
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from muniment.web.answers.responses import add_header
from muniment.web.answers.slots import Slots
from muniment.web.answers.streams import Stream

T = TypeVar("T")

BATCHES = _DIRECTORY_CHANGES = 4
"""One caller has so many under way in one process."""

_LONG_DECISION = 0.05

_TRIES = 3

_REFUSED_PAIRS = 3
"""After so many refusals of a name and password, and no acceptance, no other resource is tried."""

_UNANSWERED_SECONDS, _RETRY_SECONDS = 30.0, 0.5
"""A stream's check without an answer is tried again for so long, and so often."""


@dataclass(frozen=True)
class RepositoryContext:
    """``people_changes`` is None if the directory runs elsewhere, and then ``people``, too, unless a file has secrets
    for it. ``repositories`` were looked up by name, with the seal of the half. ``issuer`` is the authorization server,
    if it is known, ``root`` the path of the base address. Each caller has ``downloads`` and what follows under way.
    """

    transactions: Transactions
    options: RepositoryOptions
    callers: Callers
    store: ContentStore
    indexes: Callable[[Repository], Index]
    clock: Callable[[], Instant]
    people: People | None = None
    people_changes: PeopleChanges | None = None
    repositories: dict[str, tuple[Repository, Seal]] = field(default_factory=dict)
    bearers: KeyCache = field(default_factory=KeyCache)
    memory: SearchCache = field(default_factory=SearchCache)
    issuer: str = ""
    root: str = ""
    downloads: Slots = field(default_factory=Slots)
    uploads: Slots = field(default_factory=Slots)
    batches: Slots = field(default_factory=Slots)
    directory_changes: Slots = field(default_factory=Slots)

    @property
    def names(self) -> RepositoryNames:
        return self.options.names

    async def seal(self) -> Seal:
        known = keys.known_seal(self.transactions.database.engine)
        return await self.transactions.read(keys.seal) if known is None else known

    async def may_enter(self, guard: str, account: str) -> bool:
        """Return whether to try a password there. A directory elsewhere is not asked: that takes as long as to try."""
        if self.people is None or self.people_changes is None:
            return True
        try:
            await self.transactions.off_loop(self.people.find, guard, "user", fold_name(account))
        except UnknownPerson:
            return False
        return True

    def thing_type(self, request: Request) -> str:
        """Raises NotAcceptable."""
        return spelling.negotiate(request, spelling.both(self.names))


Answering: TypeAlias = Callable[[Request, RepositoryContext], Awaitable[Response]]


class Caller:
    """Who calls which repository: every decision for a caller is taken here.

    Who they are, and what they may do, is looked up anew for each, so none uses a right that ended while a body
    arrived, or during a wait (decision 0018).
    """

    def __init__(
        self,
        context: RepositoryContext,
        repository: Repository,
        seal: Seal,
        bearer: Bearer,
        request: Request,
        *,
        plain_positions: bool = False,
    ) -> None:
        self.repository = repository
        self._request = request
        self._place = request.client.host if request.client else ""
        self._context = context
        self._seal = seal
        self._bearer = bearer
        self._plain_positions = plain_positions
        self._event: Event | None = None

    @property
    def names(self) -> RepositoryNames:
        return self._context.names

    @cached_property
    def here(self) -> str:
        return address(self._request, self._context, self.repository)

    def tell(self, event: Event) -> None:
        """Write the repository's name into an event; each later ``write`` or ``administer`` adds the caller's id."""
        self._event, event.resource = event, self.repository.name

    def downloading(self) -> AbstractContextManager[None]:
        """Hold a download slot.

        Raises Overloaded when all of them are in use.
        """
        return self._context.downloads.hold(self._bearer.turn, self._context.options.max_downloads, "downloads")

    def uploading(self) -> AbstractContextManager[None]:
        return self._context.uploads.hold(self._bearer.turn, self._context.options.max_uploads, "uploads")

    async def read(self, question: Callable[[Connection, Principals], T]) -> T:
        """Raises NotSignedIn, UnknownRepository, DirectoryUnavailable, Overloaded, and what the question raises."""
        return await self._use_right(
            lambda: self._context.transactions.read(lambda cx: question(cx, self._principals(cx)))
        )

    async def check(self) -> None:
        """Raises what ``read`` raises."""
        await self.read(lambda _cx, _principals: None)

    async def read_long(self, question: Callable[[Connection, Principals], T], *, heavy: bool = False) -> T:
        """Ask outside the event loop; callers take turns. Raises what ``read`` raises, and TookTooLong when the
        question is stopped.
        """
        read_long = partial(self._context.transactions.read_long, heavy=heavy, has_left=self._request.is_disconnected)
        turn = self._bearer.turn
        return await self._use_right(lambda: read_long(turn, lambda cx: question(cx, self._principals(cx))))

    async def write(self, decision: Callable[[Connection, Principals], T]) -> T:
        """Decide in a write transaction, which first asks who calls. Raises what ``read`` raises."""

        def decide(cx: Connection) -> T:
            self._check_guard(cx)
            caller, began = self._bearer.principals(), time.monotonic()
            if self._event is not None:
                self._event.who = caller.id
            try:
                with acting(partial(caller.actor, self._place), self._context.clock), audit.decision(cx):
                    outcome = decision(cx, self._proven(cx, caller))
            finally:
                if time.monotonic() - began > _LONG_DECISION and self._bearer.principals() != caller:
                    raise StaleAnswer
            if time.monotonic() - began > _LONG_DECISION:
                self._check_guard(cx)
            return outcome

        return await self._use_right(lambda: self._context.transactions.write(decide))

    async def change(
        self, decision: Callable[[Connection, Principals], T], position: Callable[[T], Position | None]
    ) -> tuple[T, dict[str, str]]:
        """Return the outcome, and a header with the position that ``position`` makes of it, if any.

        Raises what ``write`` raises, and NotPermitted if ``spell`` does.
        """

        def decide(cx: Connection, principals: Principals) -> tuple[T, dict[str, str]]:
            outcome = decision(cx, principals)
            at = position(outcome)
            return outcome, {} if at is None else {positions.HEADER: self.spell(principals, at)}

        return await self.write(decide)

    async def administer(self, decision: Callable[[Who], T]) -> T:
        """Let the directory decide, in a thread. Raises what the decision raises, and Overloaded."""
        context, event = self._context, self._event or Event("user or group")

        def who() -> str:
            with context.transactions.database.read() as cx:
                self._check_guard(cx)
            event.who = self._bearer.principals().id
            return event.who

        def decide() -> T:
            with acting(lambda: self._bearer.principals().actor(self._place), context.clock):
                return decision(who)

        with context.directory_changes.hold(self._bearer.turn, _DIRECTORY_CHANGES, "changes of users and groups"):
            return await self._use_right(lambda: context.transactions.off_loop(decide))

    def spell(self, principals: Principals, position: Position) -> str:
        """Seal a position, unless an administrator asks for a plain one.

        Raises NotPermitted when anybody else asks for a plain position.
        """
        return positions.spell(self._seal, self.repository.id, principals, position, plain=self._plain_positions)

    async def position(self, text: str) -> Position:
        """Raises Malformed, NotPermitted, and what ``read`` raises."""
        return await self.read(lambda _cx, principals: positions.read(self._seal, self.repository.id, principals, text))

    async def search(self, question: Callable[[Inquiry], T]) -> T:
        """Ask two snapshots, one of the index, and a newer one of the database, in a thread; callers take turns.

        Raises what ``read_long`` raises, and IndexUnavailable.
        """
        context = self._context
        search = partial(context.transactions.search, self._bearer.turn, context.indexes(self.repository).snapshot)

        def ask(cx: Connection, snapshot: Snapshot) -> T:
            who = cx, snapshot, self.repository, self._principals(cx)
            return question(Inquiry(*who, context.clock(), context.options, context.memory))

        return await self._use_right(lambda: search(ask, self._request.is_disconnected))

    def batching(self) -> AbstractContextManager[None]:
        return self._context.batches.hold(self._bearer.turn, BATCHES, "batches")

    def common_transaction(self) -> AbstractAsyncContextManager[CommonTransaction]:
        """Share a transaction (``Transactions.common``)."""
        return self._context.transactions.common(self._bearer.turn)

    def stream(
        self,
        pieces: AsyncGenerator[bytes, None],
        status: int,
        headers: Mapping[str, str],
        check_right: Callable[[Connection, Principals], object],
    ) -> Response:
        """Send pieces, and repeat ``check_right`` until all are sent. The answer is cut off if that raises, or the
        directory or the database is silent for 30 seconds.
        """
        options = self._context.options

        async def check() -> None:
            loop = asyncio.get_running_loop()
            until = loop.time() + _UNANSWERED_SECONDS
            while True:
                try:
                    await self.read(check_right)
                except (DirectoryUnavailable, Busy, Overloaded):
                    if loop.time() > until:
                        raise
                    await asyncio.sleep(_RETRY_SECONDS)
                else:
                    return

        return Stream(
            pieces,
            status,
            headers,
            check,
            check_bytes=options.stream_check_bytes,
            check_seconds=options.stream_check_seconds,
        )

    async def prove(self) -> None:
        """Bind the caller's names to keys for good, before any decision.

        Within a common transaction, decisions that write do so: what is not committed must not be remembered.

        Raises what ``write`` raises.
        """
        await self._bearer.prepare()
        caller = self._bearer.principals()
        if self._context.transactions.in_common or caller.bound(self._context.bearers) is not None:
            return
        lacking = self._context.bearers.lacks(caller.names)
        if not lacking:
            return
        keys_of = await self._context.transactions.read(name_keys.bound_keys, lacking.values())
        if unbound := {name: identity for name, identity in lacking.items() if identity not in keys_of}:
            new_keys = await self._context.transactions.write(name_keys.bind, unbound, self._context.clock())
            keys_of |= {identity: new_keys[name] for name, identity in unbound.items()}
        self._context.bearers.keep(keys_of)

    def _principals(self, cx: Connection) -> Principals:
        self._check_guard(cx)
        caller = self._bearer.principals()
        return caller.bound(self._context.bearers) or caller.with_keys(name_keys.keys(cx, caller.names))

    def _check_guard(self, cx: Connection) -> None:
        """Raise UnknownRepository for a removed repository, NotSignedIn for another guard."""
        if not repositories.still_guards(cx, self.repository):
            self._context.repositories.pop(self.repository.name, None)
            repositories.find_open(cx, self.repository.name)
            raise NotSignedIn("The token does not give access to this repository any more.")

    def _proven(self, cx: Connection, caller: Principals) -> Principals:
        bound_caller = caller.bound(self._context.bearers)
        return bound_caller or caller.with_keys(name_keys.bind(cx, caller.names, self._context.clock()))

    async def _use_right(self, use: Callable[[], Awaitable[T]]) -> T:
        for _ in range(_TRIES):
            await self._bearer.prepare()
            try:
                return await use()
            except StaleAnswer:
                continue
        raise Overloaded("Too much other work comes first.")


class OpenRepositories:
    """What one request's credentials open, with a ``Bearer`` for each guard."""

    def __init__(
        self, context: RepositoryContext, seal: Seal, bearers_of_guards: Mapping[str, Bearer], request: Request
    ) -> None:
        self._context = context
        self._request = request
        self._seal = seal
        self._bearers = bearers_of_guards

    async def callers(self, names: Collection[str]) -> list[Caller]:
        """Return callers for the named repositories, or for all open ones, by name.

        Raises UnknownRepository if one is not open, Malformed for too many, and what ``prove`` raises.
        """
        most = self._context.options.max_searched_repositories
        check_number(names, most)
        ask = repositories.by_names if names else partial(repositories.guarded_by_any, limit=most + 1)
        candidates = await self._context.transactions.read(ask, names or self._bearers)
        open_repositories = [repository for repository in candidates if repository.resource_id in self._bearers]
        if unknown := sorted(set(names) - {repository.name for repository in open_repositories}):
            raise repositories.unknown(unknown[0])
        if len(open_repositories) > most:
            raise Malformed(f"The credentials open more than {most} repositories: name those to search.")
        every = [
            Caller(self._context, each, self._seal, self._bearers[each.resource_id], self._request)
            for each in open_repositories
        ]
        for caller in every:
            await caller.prove()
        return every


async def enter_all(request: Request, context: RepositoryContext, names: Collection[str] = ()) -> OpenRepositories:
    """Find what the credentials open, among ``names`` if given.

    The password is checked for each resource where the caller may have a role, unless the pair is remembered; after
    three refusals and no acceptance, no other is tried.

    Raises NotSignedIn if the credentials open no repository that is tried, UnknownRepository if they open some but none
    of those named, DirectoryUnavailable, Overloaded, Malformed.
    """
    request.scope["muniment.basic"] = context.callers.pairs is not None
    credentials, most = context.callers.read(request, context.options), context.options.max_searched_repositories
    check_number(names, most)
    seal = await context.seal()
    bearers_of, refusals = dict[str, Bearer](), dict[str, NotSignedIn]()
    if names:
        await _open(
            await context.transactions.read(repositories.by_names, names), context, credentials, bearers_of, refusals
        )
    if not bearers_of:
        firsts = await context.transactions.read(repositories.first_of_each_guard, most + 1)
        if len(firsts) > most and not names:
            raise Malformed(f"Here are more than {most} resources that guard repositories: name those to search.")
        await _open(firsts[:most], context, credentials, bearers_of, refusals)
        if bearers_of and names:
            raise repositories.unknown(min(names))
    if not bearers_of:
        raise next(iter(refusals.values()), NotSignedIn("There is no repository that credentials open."))
    headers = dict[str, str]()
    for bearer in bearers_of.values():
        headers |= {**bearer.headers, **csrf_headers(bearer.csrf, context.options)}
    for header, value in headers.items():
        add_header(request, header, value)
    return OpenRepositories(context, seal, bearers_of, request)


def check_number(names: Collection[str], most: int) -> None:
    """Raise Malformed for more than one search may cover."""
    if len(names) > most:
        raise Malformed(f"A search covers {most} repositories at most.")


async def _open(
    candidates: Iterable[Repository],
    context: RepositoryContext,
    credentials: RequestCredentials,
    bearers_of: dict[str, Bearer],
    refusals: dict[str, NotSignedIn],
) -> None:
    """Fill ``bearers_of`` and ``refusals`` for the guards of these repositories."""
    trouble: DirectoryUnavailable | None = None
    of_guards = {
        candidate.resource_id: candidate
        for candidate in candidates
        if candidate.resource_id and candidate.resource_id not in refusals
    }
    for guard, repository in sorted(
        of_guards.items(), key=lambda each: not context.callers.remembers(credentials, each[1])
    ):
        if credentials.pair is not None and (
            (not bearers_of and len(refusals) >= _REFUSED_PAIRS)
            or (bearers_of and not await context.may_enter(guard, next(iter(bearers_of.values())).turn))
        ):
            continue
        try:
            bearers_of[guard] = await context.callers.identify(credentials, repository)
        except NotSignedIn as refusal:
            refusals[guard] = refusal
        except DirectoryUnavailable as failure:
            trouble = failure
        else:
            if not credentials.outlives_guards:
                return
    if trouble is not None and not bearers_of:
        raise trouble


async def enter(request: Request, context: RepositoryContext, event: Event | None = None) -> Caller:
    """Raises UnknownRepository, NotSignedIn, DirectoryUnavailable, Overloaded, Malformed."""
    request.scope["muniment.basic"] = context.callers.pairs is not None
    name, credentials = request.path_params["repository"], context.callers.read(request, context.options)
    # A ticket or a password is good for any guard, so the present guard is read. A token is good for one guard.
    entrance = None if credentials.outlives_guards else context.repositories.get(name)
    repository, seal = entrance or await _look_up(context, name)
    try:
        bearer = await context.callers.identify(credentials, repository)
    except NotSignedIn:
        if entrance is None or not (credentials.token or credentials.address_token):
            raise
        # Another resource may guard it by now.
        repository, seal = await _look_up(context, name)
        if repository == entrance[0]:
            raise
        bearer = await context.callers.identify(credentials, repository)
    for header, value in {**bearer.headers, **csrf_headers(bearer.csrf, context.options)}.items():
        add_header(request, header, value)
    plain = positions.plain_wanted(request.headers.get(positions.HEADER))
    caller = Caller(context, repository, seal, bearer, request, plain_positions=plain)
    await caller.prove()
    if event is not None:
        caller.tell(event)
    return caller


async def enter_for_thing(
    request: Request, context: RepositoryContext, event: Event | None = None
) -> tuple[Caller, str]:
    """Raises what ``enter`` raises, and NotAcceptable."""
    return await enter(request, context, event), context.thing_type(request)


async def _look_up(context: RepositoryContext, name: str) -> tuple[Repository, Seal]:
    entrance = await context.transactions.read(lambda cx: (repositories.find_open(cx, name), keys.seal(cx)))
    context.repositories[name] = entrance
    return entrance


def base_address(request: Request, context: RepositoryContext) -> str:
    """Return how every address of the half begins, without a slash at the end."""
    base = str(request.scope.get("muniment.base") or request.base_url).rstrip("/")
    return f"{base}/{context.names.prefix}"


def address(request: Request, context: RepositoryContext, repository: Repository) -> str:
    return f"{base_address(request, context)}/repositories/{quote(repository.name, safe='')}"
