"""May a client be given a code, and what does its user have to do first (RFC 6749 4.1, OpenID Connect Core 3.1.2)?

A request is read in two steps. While its client or its return address is in doubt, nobody is led anywhere. Every later
refusal is an answer to the client (decision 0119).
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlencode

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import credentials
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import access, clients, codes, id_tokens, redirects, scopes, tokens
from muniment.directory.oauth.access import Question
from muniment.directory.oauth.clients import Client
from muniment.directory.oauth.codes import Authorization
from muniment.directory.oauth.scopes import AddressFinder, RequestedScope
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    AccessEnded,
    AuthorizationRefused,
    BadAuthorization,
    InvalidScope,
    InvalidTarget,
    UnauthorizedClient,
    UnknownResource,
    UnparseableToken,
)
from muniment.directory.sign_in.holders import TicketHolder
from muniment.ground.clock import SECOND, Instant

LONGEST_STATE, LONGEST_NONCE = 4096, 1024
"""So many characters each may have: they come back, in an address and in a token."""

RESPONSE_MODES = ("query", "form_post")
PROMPTS = ("none", "login", "consent", "select_account")

_NOT_OFFERED = {
    "request": "request_not_supported",
    "request_uri": "request_uri_not_supported",
    "registration": "registration_not_supported",
}
_LONGEST_AGE = 9


class Return(msgspec.Struct, frozen=True):
    """A client, and where its answer goes: by ``mode`` to ``address``, whose origin is ``origin``.

    ``named``: the request itself names the address.
    """

    client: Entry
    settings: ClientSettings
    confidential: bool
    address: str
    origin: str
    named: bool
    mode: Literal["query", "form_post"]
    state: str | None


class AuthorizationRequest(msgspec.Struct, frozen=True):
    """What a client asks of a user. At most ``longest_age`` seconds may have passed since they signed in. If it is for
    one user alone, ``hinted`` is their ``entryUUID``.
    """

    to: Return
    scope: RequestedScope
    challenge: str | None
    nonce: str | None
    prompt: frozenset[str]
    longest_age: int | None
    hinted: str | None = None

    @property
    def is_silent(self) -> bool:
        return "none" in self.prompt

    def is_for(self, user: Entry) -> bool:
        return self.hinted in (None, user.uuid)


class NextStep(NamedTuple):
    """What comes next: the user signs in, is asked, learns why they cannot go on (``sentence``), or goes on."""

    kind: Literal["sign in", "ask", "refuse", "go on"]
    sentence: str = ""


def read_return(cx: Connection, parameters: Mapping[str, str]) -> Return:
    """Raises BadAuthorization: then the browser must be led nowhere (RFC 9700 4.11)."""
    client_id, address, state = (parameters.get(name, "") for name in ("client_id", "redirect_uri", "state"))
    known = credentials.find_of_client(cx, client_id) if client_id else None
    if known is None or not known.user.live:
        raise BadAuthorization("The application that sent you here is not known, or may not sign anybody in.")
    confidential = Client(known.user.id, known.user.name, known.secret_hash, known.settings).confidential
    registered = known.settings.redirect_urls
    named, address = bool(address), address or (registered[0] if len(registered) == 1 else "")
    if not address:
        raise BadAuthorization("The application did not say where to lead you back to (redirect_uri).")
    origin = redirects.origin(address)
    if origin is None or not redirects.is_registered(address, registered, public=not confidential):
        raise BadAuthorization("The address to lead you back to (redirect_uri) is not one of this application's.")
    if len(state) > LONGEST_STATE:
        raise BadAuthorization(f"The application sent a state of more than {LONGEST_STATE} characters.")
    mode: Literal["query", "form_post"] = "form_post" if parameters.get("response_mode") == "form_post" else "query"
    return Return(known.user, known.settings, confidential, address, origin, named, mode, state or None)


def read(
    cx: Connection,
    names: DirectoryNames,
    to: Return,
    parameters: Mapping[str, str],
    find_address: AddressFinder | None = None,
) -> AuthorizationRequest:
    """``find_address`` is as in ``scopes.read``. Raises AuthorizationRefused."""
    for name, code in _NOT_OFFERED.items():
        if parameters.get(name):
            raise AuthorizationRefused(f"The parameter {name} is not offered.", code)
    response_type = _required(parameters, "response_type")
    if response_type != "code":
        raise AuthorizationRefused("The response_type offered is code.", "unsupported_response_type")
    if parameters.get("response_mode") not in (None, "", *RESPONSE_MODES):
        raise AuthorizationRefused(f"The response modes offered are {' and '.join(RESPONSE_MODES)}.")
    nonce = parameters.get("nonce") or None
    if nonce is not None and len(nonce) > LONGEST_NONCE:
        raise AuthorizationRefused(f"A nonce has at most {LONGEST_NONCE} characters.")
    prompt = frozenset(parameters.get("prompt", "").split())
    if not prompt <= set(PROMPTS) or ("none" in prompt and len(prompt) > 1):
        raise AuthorizationRefused(f"A prompt is none, or some of {', '.join(PROMPTS[1:])}.")
    scope = _scope(cx, names, to, parameters, find_address)
    challenge = _challenge(to, parameters, is_bound="openid" in scope.scopes and nonce is not None)
    return AuthorizationRequest(to, scope, challenge, nonce, prompt, _longest_age(parameters), _hinted(cx, parameters))


def next_step(
    cx: Connection,
    names: DirectoryNames,
    request: AuthorizationRequest,
    holder: TicketHolder | None,
    now: Instant,
) -> NextStep:
    """Raises AuthorizationRefused if the user would have to do something, and the client wants nobody asked."""
    if holder is None or _is_too_old(request, holder, now):
        if request.is_silent:
            raise AuthorizationRefused("Nobody is signed in.", "login_required")
        return NextStep("sign in")
    if request.is_silent and not request.is_for(holder.user):
        raise AuthorizationRefused("Another user is signed in than that of the id_token_hint.", "login_required")
    try:
        require_may_allow(cx, names, request, holder.user)
    except AccessEnded as refusal:
        if request.is_silent:
            raise AuthorizationRefused(refusal.sentence, "access_denied") from refusal
        return NextStep("refuse", refusal.sentence)
    if not {"consent", "select_account"} & request.prompt and _was_allowed(cx, request, holder.user.id, now):
        return NextStep("go on")
    if request.is_silent:
        raise AuthorizationRefused("The user has to be asked.", "consent_required")
    return NextStep("ask")


def hold_client(cx: Connection, to: Return, parameters: Mapping[str, str]) -> Return:
    """Until the commit the client stays as it is now: whoever ends its sessions finds the code, or is waited for. What
    is asked after this call holds as long. Raises BadAuthorization.
    """
    credentials.lock(cx, to.client.id, shared=True)
    return read_return(cx, parameters)


def issue_code(cx: Connection, request: AuthorizationRequest, holder: TicketHolder, ticket: bytes, now: Instant) -> str:
    """The user, who holds the ticket of this digest, allows it: ``hold`` was called before it was asked whether they
    may.
    """
    seconds = min(request.to.settings.code_seconds or codes.LONGEST_SECONDS, codes.LONGEST_SECONDS)
    authorization = Authorization(
        client_id=request.to.client.id,
        user_id=holder.user.id,
        auth_time=holder.ticket.created,
        resource_id=request.scope.resource_id,
        scopes=request.scope.text,
        told=request.scope.told,
        redirect_address=request.to.address if request.to.named else "",
        challenge=request.challenge,
        nonce=request.nonce,
        ticket=ticket,
        expires=now + seconds * SECOND,
    )
    return codes.issue(cx, authorization)


def require_may_allow(cx: Connection, names: DirectoryNames, request: AuthorizationRequest, user: Entry) -> None:
    """Raises AccessEnded."""
    if not request.is_for(user):
        raise AccessEnded("This application asks for another user than you. Sign in as that user.")
    require_access(cx, names, request.to.client, request.to.settings, user, request.scope.resource_id)


def require_access(
    cx: Connection, names: DirectoryNames, client: Entry, settings: ClientSettings, user: Entry, resource_id: str
) -> None:
    """``resource_id`` is that of a grant. Raises AccessEnded if a client may not act for a user there."""
    if settings.auth_scopes and user.partition_id not in settings.auth_scopes:
        raise AccessEnded("Users of your partition may not use this application.")
    try:
        access.require(cx, Question(client.id, user.id, resource_id), names)
    except (AccessEnded, UnknownResource) as refusal:
        raise AccessEnded("You have no access to what this application needs.") from refusal


def after_sign_in(parameters: Mapping[str, str]) -> str:
    """The query of the same request, once the user has signed in for it."""
    prompt = [each for each in parameters.get("prompt", "").split() if each != "login"]
    changed = {**parameters, "prompt": " ".join(prompt)}
    if parameters.get("max_age", "").strip("0") == "":
        changed.pop("max_age", None)
    return urlencode([(name, value) for name, value in changed.items() if value])


def anew(parameters: Mapping[str, str]) -> str:
    """The query of the same request, for another user to sign in."""
    return urlencode([(name, value) for name, value in {**parameters, "prompt": "login"}.items() if value])


def _is_too_old(request: AuthorizationRequest, holder: TicketHolder, now: Instant) -> bool:
    if "login" in request.prompt or request.longest_age == 0:
        return True
    return request.longest_age is not None and (now - holder.ticket.created) // SECOND > request.longest_age


def _was_allowed(cx: Connection, request: AuthorizationRequest, user_id: int, now: Instant) -> bool:
    """A grant lives that this user has allowed the same client, and the answer reaches this client alone."""
    if not redirects.is_assured(request.to.address):
        return False
    question = Question(request.to.client.id, user_id, request.scope.resource_id)
    return any(set(request.scope.scopes) <= set(scopes.split()) for scopes in tokens.allowed(cx, question, now))


def _scope(
    cx: Connection,
    names: DirectoryNames,
    to: Return,
    parameters: Mapping[str, str],
    find_address: AddressFinder | None,
) -> RequestedScope:
    try:
        clients.require_grant(to.settings, "authorization_code")
        return scopes.read(
            *(cx, names, to.settings, "authorization_code"),
            *(parameters.get("scope") or None, parameters.get("resource") or None, find_address),
        )
    except UnauthorizedClient as refusal:
        raise AuthorizationRefused(refusal.sentence, "unauthorized_client") from refusal
    except InvalidScope as refusal:
        raise AuthorizationRefused(refusal.sentence, "invalid_scope") from refusal
    except InvalidTarget as refusal:
        raise AuthorizationRefused(refusal.sentence, "invalid_target") from refusal


def _challenge(to: Return, parameters: Mapping[str, str], *, is_bound: bool) -> str | None:
    """``is_bound``: a nonce binds the answer to the browser, too, if its client checks it."""
    challenge, method = parameters.get("code_challenge") or None, parameters.get("code_challenge_method") or None
    if challenge is None:
        if method is not None:
            raise AuthorizationRefused("There is a code_challenge_method without a code_challenge.")
        pkce = to.settings.pkce if to.confidential else "required"
        if pkce == "required" or (pkce == "pkce_or_nonce" and not is_bound):
            raise AuthorizationRefused("The parameter code_challenge is missing (RFC 7636).")
        return None
    if method != "S256":
        raise AuthorizationRefused("The code_challenge_method offered is S256, and it has to be named.")
    if not codes.is_challenge(challenge):
        raise AuthorizationRefused("A code_challenge of the method S256 has 43 characters of base64url.")
    return challenge


def _longest_age(parameters: Mapping[str, str]) -> int | None:
    text = parameters.get("max_age", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_AGE):
        raise AuthorizationRefused("max_age is a number of seconds.")
    return int(text)


def _hinted(cx: Connection, parameters: Mapping[str, str]) -> str | None:
    """Nobody else gets an answer (OpenID Connect Core 3.1.2.2)."""
    hint = parameters.get("id_token_hint")
    try:
        return id_tokens.subject(cx, hint) if hint else None
    except UnparseableToken as refusal:
        raise AuthorizationRefused("The id_token_hint is no id_token of this directory.") from refusal


def _required(parameters: Mapping[str, str], name: str) -> str:
    if not parameters.get(name):
        raise AuthorizationRefused(f"The parameter {name} is missing.")
    return parameters[name]
