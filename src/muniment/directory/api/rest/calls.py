"""What does a function of an address get? A call: a request in a dialect, with the right that its row asks for.

Each transaction of a call first asks who calls, and whether they may (``callers.require``). No function of an address
opens one itself.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.database.snapshots import run_together
from muniment.directory import audit
from muniment.directory.api import spelling
from muniment.directory.api.rest import callers, dialect, paging
from muniment.directory.api.rest.callers import Caller, RequiredRight
from muniment.directory.api.rest.dialect import LONGEST_BODY
from muniment.directory.context import Directory
from muniment.directory.entries import editing, entries
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    ExpiredTicket,
    NotAdministrator,
    NotSignedIn,
    Outdated,
)
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.refusals import Forged, Malformed, Refusal
from muniment.web.addresses import Address, AnswerDescription, Answering, Content, CredentialKind, Operation, Parameter
from muniment.web.answers.responses import ErrorCode, Table, add_header
from muniment.web.requests import bodies

P = ParamSpec("P")
New = TypeVar("New")
T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

JSON = "application/json"

_MATCHED = ("PUT", "PATCH", "DELETE")
_NO_STATE = -1

_AT_ONCE = 1
"""So many are made before whoever asks about a token has their turn (decision 0052)."""

WHO: Table = {
    NotSignedIn: ErrorCode(401, "not_signed_in"),
    NotAdministrator: ErrorCode(403, "not_administrator"),
    ExpiredTicket: ErrorCode(400, "expired_ticket"),
    Forged: ErrorCode(403, "forged"),
}
"""The refusals of ``callers.require``."""

MATCHING: Table = {Outdated: ErrorCode(412, "outdated")}

IF_MATCH = Parameter(
    "If-Match", "`ETag` of the entry as it was read: the change is refused if it has changed since.", place="header"
)
ETAG = Parameter("ETag", "Which state of the entry this is.", place="header")


@dataclass
class Call:
    """A request at an address, in a dialect."""

    request: Request
    directory: Directory
    dialect: dialect.Dialect
    right: RequiredRight
    known_parameters: frozenset[str]
    presented: callers.Presented = field(init=False)
    event: events.Event | None = None

    def __post_init__(self) -> None:
        self.presented = callers.presented(self.request, self.names)

    @property
    def names(self) -> DirectoryNames:
        return self.directory.options.names

    @property
    def now(self) -> Instant:
        return self.directory.clock()

    def on(self, shown: str) -> None:
        """Say in the security event what was changed. It must exist."""
        if self.event is not None:
            self.event.on = shown

    def part(self, name: str) -> str:
        """Return an open part of the path."""
        text: str = self.request.path_params[name]
        return text

    @cached_property
    def query(self) -> dict[str, str]:
        """Return the parameters that the address knows, and name all others in a header. Raises Malformed."""
        pairs = list(bodies.pairs(self.request.scope["query_string"], "The query"))
        if ignored := sorted({name for name, _ in pairs} - self.known_parameters):
            add_header(self.request, paging.IGNORED, paging.ignored(ignored))
        known = [name for name, _ in pairs if name in self.known_parameters]
        if twice := next((name for name in known if known.count(name) > 1), ""):
            raise Malformed(f"The query says {twice} twice.")
        return {name: value for name, value in pairs if name in self.known_parameters}

    def flag(self, name: str) -> bool:
        """Read a parameter as a yes or no. Raises Malformed."""
        text = self.query.get(name, "").strip().lower()
        if text not in ("", "true", "false", "1", "0"):
            raise Malformed(f"{name} is true or false.")
        return text in ("true", "1")

    def wanted(self, list_name: str) -> paging.Wanted:
        """Read which page of a list is asked for. Raises Malformed."""
        query = self.query
        size = paging.read_size(query.get("page_size", ""))
        filter_text = paging.read_filter(query.get("where_filter", ""))
        return paging.Wanted(list_name, size, query.get("next_page_cookie", ""), filter_text)

    async def body(self, kind: type[S], limit: int = LONGEST_BODY) -> S:
        """Raises what ``dialect.read`` raises."""
        return await dialect.read(self.request, self.dialect, kind, limit)

    async def read(
        self, question: Callable[Concatenate[Connection, Caller, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Ask a question in a snapshot in which the caller has the right. Raises the refusals of ``WHO``."""
        return await self.directory.transactions.read(self._decide, False, question, args, kwargs)

    async def read_long(
        self, turn: str, question: Callable[Concatenate[Connection, Caller, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Ask what may take long in a thread, when it is the turn of whoever ``turn`` names. Raises what ``read``
        raises, Overloaded, and TookTooLong.
        """
        ask = self.directory.transactions.read_long
        has_left = self.request.is_disconnected
        return await ask(turn, lambda cx: self._decide(cx, False, question, args, kwargs), has_left=has_left)

    async def write(
        self, decision: Callable[Concatenate[Connection, Caller, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Take a decision in a transaction in which the caller has the right. Raises the refusals of ``WHO``."""
        return await self.directory.transactions.write(self._decide, True, decision, args, kwargs)

    async def write_jointly(self, joint: "JointCreation[New, T]", decision: Callable[[Connection, Caller], New]) -> T:
        """As ``write``, in one transaction with the decisions of others who wait to do the same."""
        return await self.directory.transactions.write_jointly(joint.decide, (self, decision), at_once=_AT_ONCE)

    async def require(self) -> Caller:
        """Ask who calls before something that takes long. The transaction that writes asks again."""
        return await self.read(lambda _, caller: caller)

    async def hash_password(self, password: str) -> str:
        """Ask for the caller's right, then hash. Raises the refusals of ``WHO``, BadAttribute, Overloaded."""
        await self.require()
        return await self.directory.transactions.off_loop(self.directory.gate.hash_new, password)

    async def apart(self, work: Callable[[Callable[[Connection], Caller]], T]) -> T:
        """Do what opens transactions of its own, in a thread. It gets a function that asks for the caller's right in a
        transaction, and must call it in the one that changes the directory.
        """

        def ask(cx: Connection) -> Caller:
            caller: Caller = self._ask(cx, writes=True)
            return caller

        caller = await self.require()

        def run() -> T:
            with self._acting(caller):
                return work(ask)

        return await self.directory.transactions.off_loop(run)

    def matches(self, cx: Connection, entry: Entry) -> None:
        """Lock the entry, if the request has ``If-Match`` (RFC 9110 13.1.1). Raises Outdated if that names no state
        which the entry has now. A decision calls this before it changes the entry.
        """
        wanted = self.request.headers.get("if-match")
        if wanted is None or wanted.strip() == "*":
            return
        states = [each.strip() for each in wanted.split(",")]
        editing.require_revision(cx, entry, entry.revision if etag(entry.revision) in states else _NO_STATE)

    def answer(self, answer: msgspec.Struct, status: int = 200, *, revision: int | None = None) -> Response:
        headers = dict(spelling.NEVER_STORED)
        if revision is not None:
            headers["ETag"] = etag(revision)
        return Response(dialect.encode(self.dialect, answer), status, headers, media_type=JSON)

    def done(self) -> Response:
        return Response(status_code=204, headers=spelling.NEVER_STORED)

    def _decide(self, cx: Connection, writes: bool, decision: Callable[..., T], args: Any, kwargs: Any) -> T:
        caller = self._ask(cx, writes=writes)
        if caller is None:
            return decision(cx, caller, *args, **kwargs)
        with self._acting(caller), audit.decision(cx):
            return decision(cx, caller, *args, **kwargs)

    def decide_jointly(self, cx: Connection, decision: Callable[[Connection, Caller], T]) -> T | Refusal:
        """Return what refuses this call, unless something has been written: that is raised."""
        try:
            caller = self._ask(cx, writes=True)
        except Refusal as refusal:
            return refusal
        with self._acting(caller), audit.decision(cx) as whole:
            try:
                return decision(cx, caller)
            except Refusal as refusal:
                if whole.has_written:
                    raise
                return refusal

    def _acting(self, caller: Caller) -> AbstractContextManager[None]:
        return self.directory.acting(self.request.scope, caller.user, caller.client)

    def _ask(self, cx: Connection, *, writes: bool) -> Any:
        """Return the caller, and None at an open address, whose functions expect nobody."""

        def tell(caller: Caller) -> None:
            if self.event is not None:
                self.event.who = entries.shown_id(self.names, caller.user)

        asked = cx, self.names, self.presented, self.right, self.now
        return callers.require(*asked, memory=self.directory.administration, writes=writes, tell=tell)


class JointCreation(Generic[New, T]):
    """How several new things are made in one transaction: each by its caller's decision, then ``show`` tells of all.

    What makes one changes nothing of who may make another, or where.
    """

    def __init__(self, show: Callable[[Connection, DirectoryNames, Sequence[New]], Sequence[T]]) -> None:
        self._show = show

    def decide(self, cx: Connection, asked: "Sequence[_Asked[New]]", _alone: bool) -> list[T | Refusal]:
        """As ``transactions.JointDecision``."""
        with run_together(cx):
            outcomes = [call.decide_jointly(cx, decision) for call, decision in asked]
        made = [each for each in outcomes if not isinstance(each, Refusal)]
        shown = iter(self._show(cx, asked[0][0].names, made))
        return [each if isinstance(each, Refusal) else next(shown) for each in outcomes]


_Asked: TypeAlias = tuple[Call, Callable[[Connection, Caller], New]]
Answers = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True)
class Method:
    """What a method of an address does, and who may. ``answer`` None is an answer without a body."""

    function: Answers
    answer: type[msgspec.Struct] | None = None
    _: KW_ONLY
    status: int = 200
    right: RequiredRight = RequiredRight.ADMINISTRATOR
    body: type[msgspec.Struct] | None = None
    parameters: tuple[Parameter, ...] = ()
    of_entry: bool = False
    """Whether it answers one entry, whose state has an ``ETag``, or changes one, with ``If-Match``."""

    @property
    def endpoint(self) -> Callable[..., Awaitable[Response]]:
        """The function itself, without arguments that are bound already."""
        return self.function.func if isinstance(self.function, partial) else self.function

    @property
    def kinds(self) -> tuple[events.Kind, ...] | None:
        """What it tells of; None if it only reads."""
        kinds: tuple[events.Kind, ...] | None = getattr(self.endpoint, "events", None)
        return kinds

    @property
    def sentence(self) -> str:
        return (self.endpoint.__doc__ or "").format(**getattr(self.function, "keywords", {}))


@dataclass(frozen=True)
class Row:
    """An address below the prefix of a dialect."""

    path: str
    methods: Mapping[str, Method]
    refusals: Table = field(default_factory=dict)

    def address(self, name: dialect.Dialect) -> Address[Directory]:
        """Write the row in a dialect."""
        asks = any(method.right is not RequiredRight.OPEN for method in self.methods.values())
        matches = any(method.of_entry and verb in _MATCHED for verb, method in self.methods.items())
        refusals = {**(WHO if asks else {}), **(MATCHING if matches else {}), **self.refusals}
        operations = {verb: _operation(verb, self.path, method, name) for verb, method in self.methods.items()}
        return Address(f"/{name}{self.path}", operations, refusals, dialect.errors(name))


def etag(revision: int) -> str:
    return f'"{revision}"'


def _operation(verb: str, path: str, method: Method, name: dialect.Dialect) -> Operation[Directory]:
    body: Content = {} if method.body is None else {JSON: dialect.type_in(name, method.body)}
    parameters = (*method.parameters, *((IF_MATCH,) if method.of_entry and verb in _MATCHED else ()))
    status, meaning = (204, "It is done.") if method.answer is None else (method.status, "It is here.")
    content: Content = {} if method.answer is None else {JSON: dialect.type_in(name, method.answer)}
    headers = (ETAG,) if method.of_entry and method.answer is not None else ()
    return Operation(
        _answering(method, name, f"{verb} {path}"),
        parameters=parameters,
        body=body,
        answers=(AnswerDescription(status, meaning, content, headers),),
        credentials=CredentialKind.NONE if method.right is RequiredRight.OPEN else CredentialKind.DIRECTORY,
    )


def _answering(method: Method, name: dialect.Dialect, what: str) -> Answering[Directory]:
    """``what`` says in the event of a refusal what was refused."""
    known = frozenset(parameter.name for parameter in method.parameters if parameter.place == "query")

    async def answer(request: Request, directory: Directory) -> Response:
        call = Call(request, directory, name, method.right, known)
        if method.kinds:
            call.event = events.begin(request.scope, method.kinds[0])
        try:
            callers.require_some(call.presented, method.right)
            _ = call.query  # refused before anything is done
            return await method.function(call)
        except Refusal:
            if call.event is not None and call.event.how is None:
                call.event.how = what
            raise

    answer.__doc__ = method.sentence
    return answer if method.kinds is None else events.tells(*method.kinds)(answer)
