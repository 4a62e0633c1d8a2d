"""Who may have tokens, whose token this is, and the end of them: the directory's decisions (given 3, 4.1-4.4, 5, 7).

A sign-in is two decisions with one password check between them, which the edge takes to the gate: ``begin`` looks up,
``finish`` decides. Whatever is wrong with the user - unknown, wrong password, disabled, locked, paused, not in the
access role - takes the same statements and one check, and gets the same sentence.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.clock import SECOND, Instant, timestamp
from muniment.directory import resources, system
from muniment.directory.entries import credentials, editing, entries
from muniment.directory.entries.table import Entry
from muniment.directory.names import resource_name
from muniment.directory.oauth import access, tokens
from muniment.directory.oauth.access import AccessMemory, User
from muniment.directory.oauth.tokens import Grant, SweepPlace, TokenState
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import (
    AccessEnded,
    DeadToken,
    InvalidClient,
    InvalidGrant,
    InvalidScope,
    NotAdministrator,
    NotSignedIn,
    UnknownResource,
    UnparseableToken,
    WrongResource,
)
from muniment.directory.resources import Resource
from muniment.directory.sign_in import pauses
from muniment.directory.sign_in.line import Asker
from muniment.directory.sign_in.pauses import Origin
from muniment.naming import fold_name
from muniment.web.refusals import Overloaded, Refusal

_NOBODY = -1
_REMEMBERED = 3600 * SECOND
_KEYS = ("tokens", "csrf", "places")
_CLIENT_REFUSED = "The client is unknown, or did not authenticate as it must."
_USER_REFUSED = "The user name or the password is wrong, or the user may not sign in to this resource."
_REFRESH_REFUSED = "The refresh token is not, or no longer, valid for this client."


class Client(msgspec.Struct, frozen=True):
    """An OAuth client that may ask.

    When ``stored`` is set it is confidential: the edge checks the secret presented against it at the gate (a check of
    its own) and says in ``client_ok`` whether it was right.
    """

    id: int
    stored: str | None


class SignInAttempt(msgspec.Struct, frozen=True):
    """A sign-in under way: the edge checks the password against ``stored`` (None: a dummy) at the gate, once, always.

    ``client`` is None for the sign-in form, ``user_id`` for a user who does not exist. ``known`` says that the browser
    proved to have signed in as this user before.
    """

    client: Client | None
    resource_id: str
    user_id: int | None
    stored: str | None
    origin: Origin
    known: bool

    def asker(self, username: str) -> Asker:
        """Say who waits at the gate: by the name as it was typed, whether there is such a user or not."""
        return Asker(pauses.neighbourhood(self.origin.address), fold_name(username), self.known)


class TokenResponse(msgspec.Struct, frozen=True):
    """What the token endpoint replies (given 2.4), ready to encode; a refresh gives no refresh token (given 4.1)."""

    access_token: str
    expires_in: int
    refresh_token: str | msgspec.UnsetType
    token_type: str


class Revocation(msgspec.Struct, frozen=True):
    """Whose grant has been revoked: the user's id, the client, the resource; None for what is gone."""

    user: str | None
    client: str | None
    resource: str | None


class TokenInfo(msgspec.Struct, frozen=True):
    """What tokeninfo replies (given 2.6), ready to encode."""

    user: User
    expiry_time: str
    token_id: str
    scopes: list[str]
    data_map: dict[str, str]


def initialise(cx: Connection, now: Instant) -> Resource:
    """Make what every directory has, and give the administration's resource: built-in partitions, the group of
    administrators, the administration's resource (activated), the keys. Once is enough."""
    editing.initialise(cx, now)
    for purpose in _KEYS:
        system.key(cx, purpose)
    return resources.initialise(cx, now)


def begin_password_sign_in(
    cx: Connection,
    options: DirectoryOptions,
    client_id: str,
    client_secret: str | None,
    username: str,
    scope: str,
    address: str,
    now: Instant,
) -> SignInAttempt:
    """Look up who asks for what, from which address (given 4.1, RFC 6749 4.3.2). It writes nothing.

    Raises InvalidClient, InvalidScope.
    """
    client = _client(cx, client_id, client_secret)
    resource = _scoped(cx, options.names, scope)
    return _attempt(cx, options, client, resource, username, Origin(address, str(client.id)), now)


def finish_password_grant(
    cx: Connection,
    options: DirectoryOptions,
    attempt: SignInAttempt,
    password_ok: bool,
    now: Instant,
    *,
    client_ok: bool = True,
) -> TokenResponse | InvalidGrant:
    """Decide a password grant (given 4.1, 5.1, 5.2; RFC 6749 4.3).

    A refusal of the user is returned, for the edge to raise after the transaction: the failure it counted must stay.
    Raises InvalidClient when the client's own secret was wrong.
    """
    client = attempt.client
    if client is None or not client_ok:
        raise InvalidClient(_CLIENT_REFUSED)
    user = _admitted(cx, options, attempt, password_ok, now)
    if isinstance(user, InvalidGrant):
        return user
    # The client may have been disabled, or given another secret, while the check waited.
    known = credentials.lock(cx, client.id, shared=True)
    if known is None or not known.user.live or known.stored != client.stored:
        raise InvalidClient(_CLIENT_REFUSED)
    expires = now + options.refresh_token_seconds * SECOND
    grant, refresh_token = tokens.open_grant(cx, user.id, client.id, attempt.resource_id, now, expires)
    return _issue(cx, options, grant, refresh_token, now)


def begin_form_sign_in(
    cx: Connection, options: DirectoryOptions, resource_id: str | None, username: str, origin: Origin, now: Instant
) -> SignInAttempt:
    """Look up who signs in with a browser, for which resource (None: the administration). It writes nothing.

    Raises UnknownResource.
    """
    return _attempt(cx, options, None, resource_of_form(cx, resource_id), username, origin, now)


def resource_of_form(cx: Connection, resource_id: str | None) -> Resource:
    """Give the resource that a browser signs in to (None: the administration), activated as given 2.2 requires.

    Raises UnknownResource.
    """
    resource = resources.administration(cx) if resource_id is None else resources.by_id(cx, resource_id)
    if resource.activated is None:
        raise UnknownResource("This resource has not been activated yet: its administrator does that once.")
    return resource


def finish_form_sign_in(
    cx: Connection, options: DirectoryOptions, attempt: SignInAttempt, password_ok: bool, now: Instant
) -> Entry | InvalidGrant:
    """Decide a sign-in with a browser (given 5.2): the user, or the refusal to raise after the transaction."""
    return _admitted(cx, options, attempt, password_ok, now)


def require_access(cx: Connection, user_id: int, resource_id: str) -> Entry:
    """Give the user behind a browser sign-in, if he is live and still in the access role. Raises AccessEnded."""
    return access.admit(cx, user_id, resource_id)


def begin_refresh(cx: Connection, client_id: str, client_secret: str | None) -> Client:
    """Look up the client that wants to refresh (RFC 6749 6). Raises InvalidClient."""
    return _client(cx, client_id, client_secret)


def refresh(
    cx: Connection,
    options: DirectoryOptions,
    memory: AccessMemory,
    client: Client,
    refresh_token: str,
    scope: str | None,
    now: Instant,
    *,
    client_ok: bool = True,
) -> TokenResponse:
    """Issue a further access token of a grant (given 4.1; RFC 6749 6): the user must still be live and in the role.

    Raises InvalidClient, InvalidGrant, InvalidScope for a scope that is not the grant's, and Overloaded while as many
    access tokens of the grant live as a grant may have.
    """
    if not client_ok:
        raise InvalidClient(_CLIENT_REFUSED)
    grant, generation, full_until = _grant_of(cx, options, refresh_token, now)
    if not grant.alive(now) or grant.client_id != client.id:
        raise InvalidGrant(_REFRESH_REFUSED)
    if scope is not None and _scoped(cx, options.names, scope).id != grant.resource_id:
        raise InvalidScope("The scope is not the one the refresh token was issued for.")
    try:
        access.decide(cx, memory, options.names, grant.question(generation))
    except (AccessEnded, UnknownResource) as ended:
        raise InvalidGrant(_REFRESH_REFUSED) from ended
    if full_until:
        # Tokens that an earlier setting let live longer, or that are from before the clock went back, count no longer.
        seconds = min(-(-(full_until - now) // SECOND), options.access_token_seconds)
        raise Overloaded("This sign-in has as many live access tokens as it may have: use one of them.", seconds)
    return _issue(cx, options, grant, msgspec.UNSET, now)


def tokeninfo(
    cx: Connection, options: DirectoryOptions, memory: AccessMemory, token: str, resource_id: str, now: Instant
) -> TokenInfo:
    """Say whose token this is, for the resource it was issued for (given 2.6, 4.3, 7).

    Raises, in this order, UnknownResource, UnparseableToken, WrongResource, DeadToken, AccessEnded.
    """
    try:
        return _verified(cx, options, memory, token, resource_id, now)
    except Refusal:
        # Whatever else is wrong, an unknown resource is said first.
        resources.by_id(cx, resource_id)
        raise


def revoke(cx: Connection, names: DirectoryNames, token: str, now: Instant) -> Revocation | None:
    """End the whole grant of an access or refresh token (given 3, 4.4); None when it was over already.

    Raises UnparseableToken.
    """
    grant = tokens.revoke(cx, tokens.parse(cx, token), now)
    if grant is None:
        return None
    user, client = entries.by_id(cx, grant.user_id), entries.by_id(cx, grant.client_id)
    return Revocation(
        None if user is None else entries.shown_id(names, user),
        None if client is None else client.name,
        _resource_name(cx, names, grant.resource_id),
    )


def purge(cx: Connection, swept: SweepPlace, now: Instant, rows: int) -> tuple[int, SweepPlace]:
    """Forget what has been over for an hour: grants with their tokens, and expired tokens of living grants.

    Until then a dead token of another resource is still told from a dead one of this resource (given 7). No more than
    ``rows`` are removed or looked at of either kind; says how many of the larger one, and where the sweep goes on.
    """
    before = now - _REMEMBERED
    removed = tokens.purge(cx, before, rows)
    seen, swept = tokens.sweep(cx, swept, before, rows)
    return max(removed, seen), swept


def administers(cx: Connection, token: str | None, now: Instant) -> Entry:
    """Give the administrator behind a bearer token for the administration's resource.

    Raises NotSignedIn when the token is none, or is dead, or its user is; NotAdministrator for any other user's.
    """
    try:
        standing = _standing(cx, token or "")
        _require_alive(standing, now)
    except (UnparseableToken, DeadToken) as refusal:
        raise NotSignedIn("A valid access token of an administrator is required.") from refusal
    user, client = (entries.by_id(cx, person) for person in (standing.grant.user_id, standing.grant.client_id))
    if user is None or not user.live or client is None or not client.live:
        raise NotSignedIn("A valid access token of an administrator is required.")
    resource = resources.administration(cx)
    if standing.grant.resource_id != resource.id or not resources.admits(cx, resource.id, user.id):
        raise NotAdministrator("Only an administrator's token for the administration's resource may do this.")
    return user


def _resource_name(cx: Connection, names: DirectoryNames, resource_id: str) -> str | None:
    try:
        return resources.shown_name(names, resources.by_id(cx, resource_id))
    except UnknownResource:
        return None


def _client(cx: Connection, client_id: str, secret: str | None) -> Client:
    found = credentials.find_of_client(cx, client_id)
    # A public client that sends a secret, or a confidential one that sends none, did not authenticate as it must.
    if found is None or not found.user.live or (found.stored is None) != (not secret):
        raise InvalidClient(_CLIENT_REFUSED)
    return Client(found.user.id, found.stored)


def _scoped(cx: Connection, names: DirectoryNames, scope: str) -> Resource:
    try:
        resource = resources.find(cx, names, resource_name(scope))
    except UnknownResource as unknown:
        raise InvalidScope("The scope names no resource.") from unknown
    if resource.activated is None:
        raise InvalidScope("The resource of this scope has not been activated.")
    return resource


def _attempt(
    cx: Connection,
    options: DirectoryOptions,
    client: Client | None,
    resource: Resource,
    username: str,
    origin: Origin,
    now: Instant,
) -> SignInAttempt:
    found = credentials.find(cx, options.names, username)
    standing = pauses.state_of(cx, found, origin, now)
    if found is None:
        return SignInAttempt(client, resource.id, None, None, origin, False)
    stored = None if standing.paused(options, now) else found.stored
    return SignInAttempt(client, resource.id, found.user.id, stored, origin, standing.by_cookie)


def _admitted(
    cx: Connection, options: DirectoryOptions, attempt: SignInAttempt, password_ok: bool, now: Instant
) -> Entry | InvalidGrant:
    found = credentials.lock(cx, attempt.user_id)
    standing = pauses.state_of(cx, found, attempt.origin, now)
    in_role = resources.admits(cx, attempt.resource_id, _NOBODY if attempt.user_id is None else attempt.user_id)
    # The hash is compared again: the password may have been changed while the check waited.
    right = password_ok and found is not None and found.stored is not None and found.stored == attempt.stored
    admitted = found is not None and right and in_role and found.user.live and not standing.paused(options, now)
    tries, begins = pauses.count(options, standing, right or found is None, now)
    places = pauses.remember(standing, now) if admitted else pauses.keep_places(standing)
    credentials.note_sign_in(cx, None if found is None else found.user.id, tries, places, now)
    if found is None or not admitted:
        return InvalidGrant(_USER_REFUSED, pauses=begins)
    return found.user


def _issue(
    cx: Connection, options: DirectoryOptions, grant: Grant, refresh_token: str | msgspec.UnsetType, now: Instant
) -> TokenResponse:
    expires = min(now + options.access_token_seconds * SECOND, grant.expires)
    access_token = tokens.add_access_token(cx, grant, now, expires)
    return TokenResponse(access_token, (expires - now) // SECOND, refresh_token, "Bearer")


def _grant_of(
    cx: Connection, options: DirectoryOptions, refresh_token: str, now: Instant
) -> tuple[Grant, str, Instant]:
    try:
        parsed = tokens.parse(cx, refresh_token)
    except UnparseableToken as unparseable:
        raise InvalidGrant(_REFRESH_REFUSED) from unparseable
    if parsed.kind != "refresh":
        raise InvalidGrant(_REFRESH_REFUSED)
    found = tokens.lock_grant(cx, parsed.digest, options.live_tokens, now)
    if found is None:
        raise InvalidGrant(_REFRESH_REFUSED)
    return found


def _verified(
    cx: Connection, options: DirectoryOptions, memory: AccessMemory, token: str, resource_id: str, now: Instant
) -> TokenInfo:
    standing = _standing(cx, token)
    if not resources.same(resource_id, standing.grant.resource_id):
        raise WrongResource("The token was issued for another resource.")
    _require_alive(standing, now)
    found = access.decide(cx, memory, options.names, standing.grant.question(standing.generation))
    return TokenInfo(
        user=found.user,
        expiry_time=timestamp(standing.expires),
        token_id=standing.token_id,
        scopes=[found.scope],
        data_map={options.names.has_password: "true" if found.has_password else "false"},
    )


def _standing(cx: Connection, token: str) -> TokenState:
    parsed = tokens.parse(cx, token)
    if parsed.kind != "access":
        raise UnparseableToken("The token is no access token.")
    standing = tokens.look_up(cx, parsed.digest)
    if standing is None:
        raise DeadToken("The token has expired or was revoked.")
    return standing


def _require_alive(standing: TokenState, now: Instant) -> None:
    if not standing.alive(now):
        raise DeadToken("The token has expired or was revoked.")
