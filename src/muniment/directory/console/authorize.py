"""Ask a user whether an application may have what it asks for, and lead the browser back (RFC 6749 4.1, RFC 9207)."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.console import frame, sign_in
from muniment.directory.context import Directory
from muniment.directory.entries import entries, resources
from muniment.directory.entries.resources import Resource
from muniment.directory.oauth import authorization, redirects
from muniment.directory.oauth.authorization import NextStep, Return
from muniment.directory.oauth.discovery import AUTHORIZE
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import AccessEnded, AuthorizationRefused, NotSignedIn
from muniment.directory.sign_in import holders, tickets
from muniment.directory.sign_in.holders import TicketHolder
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.refusals import TooLarge
from muniment.web.answers import browser
from muniment.web.answers.browser import FormMark
from muniment.web.requests import bodies

_LONGEST = 16_384
"""So many bytes an authorization request has at most, as a query: it is carried along by the forms."""

_LEARNS = {
    "openid": "who you are",
    "profile": "your name",
    "email": "your e-mail address",
    "roles": "your roles",
    "roleids": "your roles",
    "groups": "your groups",
    "groupids": "your groups",
}
"""By scope, what the pages say that it tells."""

_DENIED = "The user has not allowed it."


async def authorize(request: Request, directory: Directory) -> Response:
    """Let the user sign in and be asked, and lead the browser back to the application with a code."""
    request.scope["muniment.page"] = True
    if len(request.scope["query_string"]) > _LONGEST:
        raise TooLarge(f"The application's request has more than {_LONGEST} bytes.")
    return await _go_on(request, directory, bodies.query(request))


async def login(request: Request, directory: Directory) -> Response:
    """Show the sign-in page, or who is signed in; or begin an authorization, if a client is named.

    ``RFA`` is the resource's identifier, or empty for the administration; by default that of the browser's sign-in, or
    else the administration. The sign-in leads to ``page`` of the console; an administrator who is signed in is led
    there, or to the overview, at once.
    """
    if "client_id" in bodies.query(request):
        return await authorize(request, directory)
    return await sign_in.show_sign_in(request, directory)


@events.tells()
async def authorize_by_post(request: Request, directory: Directory) -> Response:
    """Take the same parameters as a form, or the user's word from our page.

    A form of another site comes without our cookies, so that its request is sent on as a GET, which brings them.
    """
    request.scope["muniment.page"] = True
    form = await bodies.form(request)
    if sign_in.is_form(form, directory):
        return await _decide(request, directory, form)
    query = urlencode([(name, value) for name, value in form.items() if value])
    if len(query) > _LONGEST:
        raise TooLarge(f"The application's request has more than {_LONGEST} bytes.")
    return frame.redirect(request, directory.options.names, f"{AUTHORIZE}?{query}")


async def _go_on(request: Request, directory: Directory, parameters: Mapping[str, str]) -> Response:
    ticket = frame.cookie(request, directory.options.names, "ticket")
    # Only who has a ticket of ours may have something to write.
    is_ours = bool(ticket) and await directory.transactions.read(_is_ours, directory.options.names, ticket)
    decide = directory.transactions.write if is_ours else directory.transactions.read
    decided = await decide(_decide_step, directory, parameters, ticket if is_ours else "")
    if decided.fields:
        return _answer(request, directory, decided.to, decided.fields)
    if decided.step.kind == "sign in":
        page = f"{AUTHORIZE}?{authorization.after_sign_in(parameters)}"
        return await sign_in.show_anew(request, directory, page, parameters.get("login_hint", ""))
    values = {**decided.values, "sentence": decided.step.sentence, "request": urlencode([*parameters.items()])}
    forms = ("'self'", redirects.form_source(decided.to.origin))
    return frame.draw(request, directory.options.names, "consent.html", values, forms=forms)


async def _decide(request: Request, directory: Directory, form: Mapping[str, str]) -> Response:
    names = directory.options.names
    parameters = bodies.form_fields(form.get("request", "").encode(), "The request")
    ticket, decision = frame.cookie(request, names, "ticket"), form.get("decision", "")
    to = await directory.transactions.read(_require_ours, frame.form_mark(request, names, form), ticket, parameters)
    if decision == "other":
        return frame.redirect(request, names, f"{AUTHORIZE}?{authorization.anew(parameters)}")
    if decision != "allow":
        return _answer(request, directory, to, _refusal(AuthorizationRefused(_DENIED, "access_denied")))
    try:
        decided = await directory.transactions.write(_allow, directory, parameters, ticket)
    except NotSignedIn:
        query = urlencode([*parameters.items()])
        return frame.redirect(request, names, f"{AUTHORIZE}?{query}")
    return _answer(request, directory, decided.to, decided.fields)


def _refusal(refusal: AuthorizationRefused) -> dict[str, str]:
    return {"error": refusal.code, "error_description": refusal.sentence}


def _answer(request: Request, directory: Directory, to: Return, fields: Mapping[str, str]) -> Response:
    """A form is not sent again to the place of a redirect with 303 (RFC 9700 4.12)."""
    answer = dict(fields)
    if to.state is not None:
        answer["state"] = to.state
    answer["iss"] = directory.issuer
    if to.mode == "form_post":
        values = {"address": to.address, "fields": answer, "application": to.client.name}
        return frame.draw(
            request,
            directory.options.names,
            "form_post.html",
            values,
            scripts=True,
            forms=(redirects.form_source(to.origin),),
        )
    # The address stays as it was registered, letter for letter.
    location = redirects.extended(to.address, [*answer.items()])
    return Response(status_code=303, headers={"Location": location, **browser.NEVER_STORED})


def described(names: DirectoryNames, resource: Resource | None, scopes: str) -> dict[str, Any]:
    """What an application asks for, as the pages show it. ``scopes`` are as a grant has them."""
    return {
        "resource_name": "" if resource is None else resources.shown_name(names, resource),
        "learns": list(dict.fromkeys(_LEARNS[scope] for scope in scopes.split())),
    }


class _Decided(NamedTuple):
    """The ``fields`` of an answer to the client, or the next step of its user, with the values of the page for it."""

    to: Return
    fields: Mapping[str, str] = {}
    step: NextStep = NextStep("go on")
    values: Mapping[str, Any] = {}


def _decide_step(cx: Connection, directory: Directory, parameters: Mapping[str, str], ticket: str) -> _Decided:
    """Raises BadAuthorization."""
    options, now = directory.options, directory.clock()
    to = authorization.read_return(cx, parameters)
    if ticket:
        to = authorization.hold_client(cx, to, parameters)
    try:
        asked = authorization.read(cx, options.names, to, parameters, directory.dependencies.guard_at)
        holder = _holder(cx, options.names, ticket, now)
        step = authorization.next_step(cx, options.names, asked, holder, now)
    except AuthorizationRefused as refusal:
        return _Decided(to, _refusal(refusal))
    if holder is None:
        return _Decided(to, step=step)
    if step.kind == "go on":
        digest = tickets.parse(cx, options.names, ticket)
        return _Decided(to, {"code": authorization.issue_code(cx, asked, holder, digest, now)})
    values = {
        "application": to.client.name,
        "origin": to.origin,
        "user_id": entries.shown_id(options.names, holder.user),
        "csrf": frame.csrf(cx, ticket),
        **described(options.names, asked.scope.resource, asked.scope.text),
    }
    return _Decided(to, step=step, values=values)


def _allow(cx: Connection, directory: Directory, parameters: Mapping[str, str], ticket: str) -> _Decided:
    """Everything is asked again: rights may have ended, and settings changed, since the page was drawn.

    Raises NotSignedIn, BadAuthorization.
    """
    options, now = directory.options, directory.clock()
    to = authorization.hold_client(cx, authorization.read_return(cx, parameters), parameters)
    try:
        asked = authorization.read(cx, options.names, to, parameters, directory.dependencies.guard_at)
        holder = holders.of_sign_in(cx, options.names, ticket, now)
        authorization.require_may_allow(cx, options.names, asked, holder.user)
    except AuthorizationRefused as refusal:
        return _Decided(to, _refusal(refusal))
    except AccessEnded as refusal:
        return _Decided(to, _refusal(AuthorizationRefused(refusal.sentence, "access_denied")))
    digest = tickets.parse(cx, options.names, ticket)
    return _Decided(to, {"code": authorization.issue_code(cx, asked, holder, digest, now)})


def _is_ours(cx: Connection, names: DirectoryNames, ticket: str) -> bool:
    """Whether the directory made it, whoever may hold it now."""
    try:
        tickets.parse(cx, names, ticket)
    except NotSignedIn:
        return False
    return True


def _require_ours(cx: Connection, mark: FormMark, ticket: str, parameters: Mapping[str, str]) -> Return:
    """Raises Forged, BadAuthorization."""
    frame.check_csrf(cx, mark, ticket)
    return authorization.read_return(cx, parameters)


def _holder(cx: Connection, names: DirectoryNames, ticket: str, now: Instant) -> TicketHolder | None:
    try:
        return holders.of_sign_in(cx, names, ticket, now)
    except NotSignedIn:
        return None
