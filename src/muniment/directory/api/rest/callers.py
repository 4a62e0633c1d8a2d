"""Who calls, and may they do this? One function decides for every address: ``require``.

A caller shows an access token for the administration's resource, or a ticket of the directory, in its header or its
cookie. All that come are tried, and the first valid one counts. A browser sends its cookie whoever made the request, so
the ticket of a browser writes from a cookie only with the mark of our forms; a program's ticket writes from either, but
not if another site's page had a browser send the request (docs/interface.md, ours 23).
"""

import enum
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from sqlalchemy.engine import Connection
from starlette.requests import Request

from muniment.database.snapshots import of_snapshot
from muniment.directory.console import frame
from muniment.directory.context import AdministrationCache
from muniment.directory.entries import entries, memberships, oauth_clients, resources
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import access, scopes, tokens
from muniment.directory.oauth.tokens import Grant
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
    ExpiredTicket,
    NotAdministrator,
    NotSignedIn,
    UnparseableToken,
)
from muniment.directory.sign_in import holders
from muniment.ground.clock import Instant
from muniment.ground.refusals import Forged, Refusal
from muniment.web.answers import browser

MARK_HEADER = "X-CSRF-Token"
"""Where a script of our own pages sends the mark of our forms."""

_MOST_HEADERS = 4
"""So many tickets in headers are tried."""

_NOT_SIGNED_IN = "Sign in first: this address needs an access token for the administration's resource, or a ticket."


class RequiredRight(enum.Enum):
    """What an address asks of its callers."""

    OPEN = "open"
    """Nothing: what it does asks for itself, as a sign-in does."""
    SIGNED_IN = "signed in"
    """To be known: what it does concerns the caller."""
    ADMINISTRATOR = "administrator"
    """To administer the directory."""


class Presented(NamedTuple):
    """What a request shows of its caller. ``is_foreign``: another site's page had the browser send it."""

    headers: tuple[str, ...]
    bearer: str
    cookie: str
    mark: str
    is_foreign: bool


class Caller(NamedTuple):
    """Who calls. ``client`` is the one whose token they show; None with a ticket, which belongs to none.

    ``by_browser``: the sign-in page gave the ticket to a browser.
    """

    user: Entry
    administers: bool
    client: str | None = None
    by_browser: bool = False

    def is_bearer_of(self, entry: Entry) -> bool:
        return self.user.id == entry.id


def presented(request: Request, names: DirectoryNames) -> Presented:
    scheme, _, token = request.headers.get("authorization", "").strip().partition(" ")
    return Presented(
        tuple(filter(None, map(str.strip, request.headers.getlist(frame.ticket_header(names))[:_MOST_HEADERS]))),
        token.strip() if scheme.lower() == "bearer" else "",
        frame.cookie(request, names, "ticket"),
        request.headers.get(MARK_HEADER, ""),
        browser.form_mark(request, "").foreign or _has_foreign_origin(request),
    )


def require_some(shown: Presented, right: RequiredRight) -> None:
    """Before a body is read: raises NotSignedIn if nothing is shown at all."""
    if right is not RequiredRight.OPEN and not (shown.headers or shown.bearer or shown.cookie):
        raise NotSignedIn(_NOT_SIGNED_IN)


def require(
    cx: Connection,
    names: DirectoryNames,
    shown: Presented,
    right: RequiredRight,
    now: Instant,
    *,
    memory: AdministrationCache,
    writes: bool,
    tell: Callable[[Caller], None],
) -> Caller | None:
    """Ask who calls, and whether they may, in the transaction in which they do it. None is a caller of an open address.
    ``tell`` learns who calls, also of who may not.

    Raises NotSignedIn, ExpiredTicket, Forged, and NotAdministrator, also for a token for another resource.
    """
    if right is RequiredRight.OPEN:
        return None
    caller = _identify(cx, names, shown, now, memory, writes=writes)
    tell(caller)
    if right is RequiredRight.ADMINISTRATOR and not caller.administers:
        who = entries.shown_id(names, caller.user)
        raise NotAdministrator(
            f"{who} does not administer the directory: only a member of its administrators group does."
        )
    return caller


def _identify(
    cx: Connection, names: DirectoryNames, shown: Presented, now: Instant, memory: AdministrationCache, *, writes: bool
) -> Caller:
    """What was sent on purpose comes before the cookie, which a browser sends by itself."""

    def by_ticket(ticket: str, *, is_cookie: bool) -> Caller:
        holder = holders.of_directory(cx, names, ticket, now)
        if writes:
            _check_ticket(cx, shown, ticket, of_browser=holder.of_browser, is_cookie=is_cookie)
        return Caller(holder.user, memberships.administers(cx, holder.user.id))

    refusals: list[Refusal] = []
    ways: tuple[tuple[str, Callable[[str], Caller]], ...] = (
        *((ticket, partial(by_ticket, is_cookie=False)) for ticket in shown.headers),
        (shown.bearer, partial(_by_token, cx, names, memory, now=now)),
        (shown.cookie, partial(by_ticket, is_cookie=True)),
    )
    for credential, identify in ways:
        try:
            if credential:
                return identify(credential)
        except (NotSignedIn, NotAdministrator) as refusal:
            refusals.append(refusal)
    for kind in (ExpiredTicket, NotAdministrator):
        for each in refusals:
            if isinstance(each, kind):
                raise each
    raise NotSignedIn(_NOT_SIGNED_IN)


def _by_token(cx: Connection, names: DirectoryNames, memory: AdministrationCache, token: str, now: Instant) -> Caller:
    """The token is looked up each time, and what its user and client may do remembered under the generation (decision
    0057). Raises NotSignedIn if the token is not living, or its user or client may not act, and NotAdministrator if it
    is for another resource, or the user is not let in to this one any more.
    """
    try:
        state = of_snapshot(cx, (tokens.state_of, token), lambda cx: tokens.state_of(cx, token))
        state.require_alive(now)
    except (UnparseableToken, DeadToken) as refusal:
        raise NotSignedIn(_NOT_SIGNED_IN) from refusal
    about, mark = (state.grant.question, state.grant.made), state.marks.generation
    allowed = memory.recall(about, mark)
    if allowed is None:
        allowed = memory.keep(about, _allowed(cx, names, state.grant), mark=mark)
    return Caller(*allowed)


def _allowed(cx: Connection, names: DirectoryNames, grant: Grant) -> tuple[Entry, bool, str]:
    user, client = (entries.by_id(cx, person) for person in (grant.user_id, grant.client_id))
    if user is None or not user.live or client is None or not client.live:
        raise NotSignedIn(_NOT_SIGNED_IN)
    resource = resources.administration(cx)
    if grant.resource_id != resource.id or not resources.admits(cx, resource.id, user.id):
        raise NotAdministrator("Only a token for the administration's resource opens this address.")
    settings = oauth_clients.settings_of(cx, client.id)
    if not scopes.may_administer(settings, grant.made):
        raise NotAdministrator("The client may not ask for the administration's resource any more.")
    if grant.question.exchanged:
        try:
            access.require(cx, grant.question, names)
        except AccessEnded as refusal:
            raise NotSignedIn(_NOT_SIGNED_IN) from refusal
    return user, memberships.administers(cx, user.id), client.name


def _check_ticket(cx: Connection, shown: Presented, ticket: str, *, of_browser: bool, is_cookie: bool) -> None:
    """Raises Forged."""
    if of_browser and is_cookie:
        frame.check_csrf(cx, browser.FormMark(shown.mark, shown.is_foreign), ticket)
    elif shown.is_foreign:
        raise Forged("A page of another site had the browser send this request: with a ticket it changes nothing.")


def _has_foreign_origin(request: Request) -> bool:
    """Whether the request says that a page of another origin sent it (RFC 6454 7)."""
    origin = request.headers.get("origin")
    if origin is None:
        return False
    own = urlsplit(request.scope.get("muniment.base", ""))
    return origin.strip().lower() != f"{own.scheme}://{own.netloc}".lower()
