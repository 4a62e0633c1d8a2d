"""Who sends a request, and in which groups are they?

A right depends only on the directory's answer when the right is used (decision 0018); by HTTP, it may be up to one
second old.

A name and password are first exchanged for an access token (``pairs``, decision 0036).

Source: given 2.5-2.7, 4.2, 4.3, section 7.
"""

import asyncio
import hmac
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request

from muniment.ground.naming import fold_name
from muniment.repository.api.callers import credentials
from muniment.repository.api.callers.credentials import Pair, RequestCredentials, TicketNames
from muniment.repository.api.callers.over_http import DirectoryElsewhere
from muniment.repository.api.callers.pairs import EndGrant, Pairs, PairSignIn, SignIn
from muniment.repository.api.callers.tokeninfo import ATTRIBUTES, Attributes, TokeninfoReader
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import NotPermitted, NotSignedIn
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.name_keys import Identify
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository
from muniment.web.answers import unsent

Ask = Callable[[str, str], bytes]
"""Returns the tokeninfo document (JSON) of a token or ticket at a resource, from a snapshot of the directory.

Any thread may call it. Raises NotSignedIn, DirectoryUnavailable.
"""

Fetch = Callable[[str, str], Awaitable[bytes]]
"""Does as ``Ask``, but is awaited: the directory may be elsewhere.

Raises NotSignedIn, DirectoryUnavailable.
"""

OffLoop = Callable[[Ask, str, str], Awaitable[bytes]]

FRESH_SECONDS = 1.0
"""The answer of a directory elsewhere may be so old (decision 0018)."""

_PRIVATE = {"Cache-Control": "private, no-cache"}
"""An answer has these unless the Authorization header identified its caller; a shared cache would give it to everybody
(RFC 9111 3.5, RFC 6750 2.3).
"""


class StaleAnswer(Exception):
    """The answer of a directory elsewhere is too old."""


@dataclass(frozen=True)
class Verifier:
    """Verifies one kind of credential.

    ``ask`` is None if the directory is elsewhere.
    """

    fetch: Fetch
    ask: Ask | None = None


@dataclass(frozen=True)
class Tickets:
    """Where requests carry tickets, how these are verified, and their CSRF tokens."""

    names: TicketNames
    verifier: Verifier
    csrf: Callable[[str], Awaitable[str]]


@dataclass(frozen=True)
class PageSignIn:
    """How the search page signs people in and out.

    ``elsewhere`` verifies a token at another resource than its own; None if the directory is elsewhere.
    """

    sign_in: SignIn
    end: EndGrant
    elsewhere: Verifier | None = None


class Callers:
    """Identifies callers by what their requests show."""

    def __init__(
        self,
        tokens: Verifier,
        reader: TokeninfoReader,
        *,
        tickets: Tickets | None = None,
        pairs: Pairs | None = None,
        page: PageSignIn | None = None,
        elsewhere: DirectoryElsewhere | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.principals = reader.principals
        self.pairs = pairs
        self.tickets = tickets
        self.page = page
        self.elsewhere = elsewhere
        self._tokens = tokens
        self._close = close

    @classmethod
    def in_process(
        cls,
        ask: Ask,
        administrators: Sequence[str],
        dn_suffix: str,
        attributes: Attributes = ATTRIBUTES,
        off_loop: OffLoop | None = None,
        identify: Identify = name_keys.nobody,
        *,
        tickets: Tickets | None = None,
        pairs: Pairs | None = None,
        page: PageSignIn | None = None,
    ) -> "Callers":
        reader = TokeninfoReader(administrators, dn_suffix, attributes, identify)
        return cls(in_this_process(ask, off_loop), reader, tickets=tickets, pairs=pairs, page=page)

    @classmethod
    def over_http(
        cls,
        url: str,
        ca_file: str,
        administrators: Sequence[str],
        dn_suffix: str,
        attributes: Attributes = ATTRIBUTES,
        options: RepositoryOptions | None = None,
    ) -> "Callers":
        """An empty ``ca_file`` means the system's certificates."""
        options = options or RepositoryOptions(search_page=False)
        directory = DirectoryElsewhere(
            url, ca_file, options.basic_client, options.basic_secret, options.resource_secrets_file
        )
        pairs = None
        if options.basic_client:
            pairs = Pairs(directory.sign_in, directory.end, seconds=options.basic_seconds, most=options.basic_pairs)
        reader = TokeninfoReader(administrators, dn_suffix, attributes, name_keys.nobody)
        if not options.offers_search_page:
            return cls(Verifier(directory.tokeninfo), reader, pairs=pairs, elsewhere=directory, close=directory.close)
        of_page = DirectoryElsewhere(url, ca_file, options.search_page_client, options.search_page_secret)

        async def close() -> None:
            await directory.close()
            await of_page.close()

        page = PageSignIn(of_page.sign_in, of_page.end)
        return cls(Verifier(directory.tokeninfo), reader, pairs=pairs, page=page, elsewhere=directory, close=close)

    def read(self, request: Request, options: RepositoryOptions) -> RequestCredentials:
        return credentials.read(request, options, None if self.tickets is None else self.tickets.names)

    async def identify(self, request: RequestCredentials, repository: Repository) -> "Bearer":
        """Return the sender, by the first credential that the directory confirms.

        Those sent on purpose come before the cookie that a browser sends by itself; of these, a name and password come
        last, because they cost a password check.

        Raises NotSignedIn, DirectoryUnavailable, Overloaded, and NotPermitted for a name and password that a page of
        another site sends with a write.
        """
        refusals = []
        if request.pair is not None and self.pairs is None:
            refusals.append(NotSignedIn("HTTP Basic is not offered here."))
        elif request.trouble:
            refusals.append(NotSignedIn(request.trouble))
        for way in self._ways(request, repository):
            try:
                bearer = await way()
            except NotSignedIn as refusal:
                refusals.append(refusal)
            else:
                request.scope[unsent.CALLER] = bearer.turn
                return bearer
        raise refusals[0] if refusals else NotSignedIn(self._what_is_needed())

    async def identify_page(self, tokens: Mapping[str, str], resource_id: str) -> "Bearer":
        """Return somebody who signed in at the search page (decision 0101).

        At a resource that has none of them, any of them may show who asks. Raises NotSignedIn, DirectoryUnavailable.
        """
        verifier, shown = self._tokens, [tokens[resource_id]] if resource_id in tokens else []
        if not shown and self.page is not None and self.page.elsewhere is not None:
            verifier, shown = self.page.elsewhere, list(tokens.values())
        refusal = NotSignedIn("The sign-in does not open this repository.")
        for token in shown:
            bearer = Bearer(verifier, self.principals, token, resource_id, {}, "")
            try:
                await bearer.ask()
            except NotSignedIn as trouble:
                refusal = trouble
            else:
                return bearer
        raise refusal

    def remembers(self, request: RequestCredentials, repository: Repository) -> bool:
        """Return whether the pair is remembered for the repository's guard."""
        if self.pairs is None or request.pair is None:
            return False
        return self.pairs.knows(_pair_sign_in(request, request.pair, repository))

    async def close(self) -> None:
        if self.pairs is not None:
            await self.pairs.close()
        if self._close is not None:
            await self._close()

    def _ways(self, request: RequestCredentials, repository: Repository) -> Iterator[Callable[[], Awaitable["Bearer"]]]:
        if request.token:
            yield partial(self._ask, self._tokens, request.token, repository)
        if request.address_token:
            yield partial(self._ask, self._tokens, request.address_token, repository, _PRIVATE)
        if self.tickets is not None and request.ticket:
            yield partial(self._ask, self.tickets.verifier, request.ticket, repository, _PRIVATE)
        if self.pairs is not None and request.pair is not None:
            if request.foreign and not request.safe:
                raise NotPermitted(
                    "A page of another site may not write by HTTP Basic, unless 'repository.cors_origins' names it."
                )
            sign_in = _pair_sign_in(request, request.pair, repository)
            yield partial(self._by_pair, self.pairs, sign_in, repository)
        if self.tickets is not None and request.cookie_ticket:
            yield partial(self._by_cookie, self.tickets, request, repository)

    async def _by_pair(self, pairs: Pairs, sign_in: PairSignIn, repository: Repository) -> "Bearer":
        token, is_own = await pairs.token(sign_in)
        try:
            return await self._ask(self._tokens, token, repository)
        except NotSignedIn:
            pairs.forget(sign_in, token)
            if is_own:
                raise
        # The token was from an earlier request. It may have ended while the password is still right.
        token, _ = await pairs.token(sign_in)
        try:
            return await self._ask(self._tokens, token, repository)
        except NotSignedIn:
            pairs.forget(sign_in, token)
            raise

    async def _by_cookie(self, tickets: Tickets, request: RequestCredentials, repository: Repository) -> "Bearer":
        csrf = await tickets.csrf(request.cookie_ticket)
        if not request.safe and not hmac.compare_digest(request.csrf.encode("utf-8"), csrf.encode("utf-8")):
            raise NotSignedIn(
                f"A cookie alone permits no write: send the ticket in the header {tickets.names.header}, "
                "or the CSRF token that the answer to a GET carries."
            )
        return await self._ask(tickets.verifier, request.cookie_ticket, repository, _PRIVATE, csrf)

    async def _ask(
        self,
        verifier: Verifier,
        credential: str,
        repository: Repository,
        headers: Mapping[str, str] | None = None,
        csrf: str = "",
    ) -> "Bearer":
        bearer = Bearer(verifier, self.principals, credential, repository.resource_id, headers or {}, csrf)
        await bearer.ask()
        return bearer

    def _what_is_needed(self) -> str:
        ways = ["a bearer token (Authorization: Bearer <token>)"]
        if self.pairs is not None:
            ways.append("HTTP Basic")
        if self.tickets is not None:
            ways.append(f"a ticket of the directory (header {self.tickets.names.header})")
        return f"Credentials are needed: {' or '.join(ways)}."


class Bearer:
    """The sender of a token or ticket, about whom the directory is asked when a right is used.

    The event loop's thread uses an answer until its current step ends, because no other request is handled in between.
    ``turn``, the user's folded name for taking turns, grants no right. ``csrf`` is for a sender identified by a cookie.
    """

    def __init__(
        self,
        verifier: Verifier,
        read: Callable[[bytes], Principals],
        credential: str,
        resource_id: str,
        headers: Mapping[str, str],
        csrf: str,
    ) -> None:
        self._verifier = verifier
        self._read = read
        self._credential = credential
        self._resource_id = resource_id
        self.headers = headers
        self.csrf = csrf
        self.turn = ""
        self._last_principals: Principals | None = None
        self._step: int | None = None
        self._answered_at = 0.0

    async def ask(self) -> None:
        """Raises NotSignedIn, DirectoryUnavailable."""
        document = await self._verifier.fetch(self._credential, self._resource_id)
        self._last_principals = self._read(document)
        self.turn = fold_name(self._last_principals.id)
        self._answered_at = time.monotonic()
        self._step = threading.get_ident()
        asyncio.get_running_loop().call_soon(self._end_step)

    async def prepare(self) -> None:
        """Ask a directory elsewhere again, unless it has answered in this step of the event loop.

        Raises what ``ask`` raises.
        """
        if self._verifier.ask is None and self._step is None:
            await self.ask()

    def principals(self) -> Principals:
        """Ask in any thread, at the moment when the right is used.

        Raises NotSignedIn, DirectoryUnavailable, and StaleAnswer if ``prepare`` was too long ago.
        """
        if self._last_principals is not None and self._step == threading.get_ident():
            return self._last_principals
        if self._verifier.ask is not None:
            return self._read(self._verifier.ask(self._credential, self._resource_id))
        if self._last_principals is None or time.monotonic() - self._answered_at > FRESH_SECONDS:
            raise StaleAnswer
        return self._last_principals

    def _end_step(self) -> None:
        self._step = None


def _pair_sign_in(request: RequestCredentials, pair: Pair, repository: Repository) -> PairSignIn:
    return PairSignIn(pair, repository.resource_id, repository.name, request.address, request.scope)


def in_this_process(ask: Ask, off_loop: OffLoop | None) -> Verifier:
    """With ``off_loop``, ``fetch`` asks in another thread, not to hold up the event loop."""

    async def fetch(credential: str, resource_id: str) -> bytes:
        return ask(credential, resource_id) if off_loop is None else await off_loop(ask, credential, resource_id)

    return Verifier(fetch, ask)
