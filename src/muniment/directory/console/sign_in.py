"""Signing in and out with a browser, at the token endpoint's address (given 4.1, 5.2).

A sign-in may be a step of an authorization: then its page names the application, and leads back to the request.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.administration import decisions
from muniment.directory.console import frame
from muniment.directory.context import Directory
from muniment.directory.entries import entries, resources
from muniment.directory.entries.credentials import Credentials
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import authorization, redirects
from muniment.directory.oauth.authorization import Return
from muniment.directory.oauth.discovery import AUTHORIZE
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute, NotSignedIn, SignInRefused
from muniment.directory.sign_in import form as form_sign_in
from muniment.directory.sign_in import holders, pauses, tickets
from muniment.directory.sign_in.holders import TicketHolder
from muniment.directory.sign_in.line import Asker
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.web.answers import browser, pages
from muniment.web.requests import bodies
from muniment.web.requests.transport import caller_address


def is_form(form: Mapping[str, str], directory: Directory) -> bool:
    """Token requests lack our forms' hidden field."""
    return f"{directory.options.names.form_prefix}csrf" in form


async def show_sign_in(request: Request, directory: Directory) -> Response:
    """Show the sign-in page, or who is signed in."""
    request.scope["muniment.page"] = True
    query = bodies.query(request)
    return_page = frame.page_of_ours(query.get("page", ""))
    return await _page(request, directory, _resource_id(query.get("RFA")), return_page=return_page)


async def submit(request: Request, directory: Directory, form: Mapping[str, str]) -> Response:
    request.scope["muniment.page"] = True
    if "sign_out" in form:
        return await _sign_out(request, directory, form)
    if f"{directory.options.names.form_prefix}step" in form:
        return await _new_password(request, directory, form)
    return await _sign_in(request, directory, form)


async def show_anew(request: Request, directory: Directory, return_page: str, username: str = "") -> Response:
    """Show the sign-in page of a request that then goes on at ``return_page``, whoever is signed in now."""
    return await _page(request, directory, "", return_page=return_page, username=username)


async def _page(
    request: Request,
    directory: Directory,
    resource_id: str | None,
    *,
    return_page: str,
    sentence: str = "",
    username: str = "",
) -> Response:
    names = directory.options.names
    # The pages that are no console's have asked already whether somebody is signed in.
    is_step = bool(return_page) and not frame.is_of_console(return_page)
    ticket = "" if is_step else frame.cookie(request, names, "ticket")
    known_mark = frame.cookie(request, names, "form")
    mark = known_mark or browser.new_mark()
    resource, holder, csrf = await directory.transactions.read(
        _look, names, resource_id, ticket, mark, directory.clock()
    )
    application = await _application(directory, return_page)
    is_administration = resource.built_in == resources.ADMINISTRATION
    if holder is not None and holder.opens and is_administration:
        return frame.redirect(request, names, return_page or "/console")
    values = {
        "resource_name": resources.shown_name(names, resource),
        "resource_id": resource.id,
        "csrf": csrf,
    }
    if holder is not None:
        search = directory.search_path and pages.base_path(request) + directory.search_path
        values |= {"user_id": entries.shown_id(names, holder.user), "search": search}
        return frame.draw(request, names, "no_administrator.html" if is_administration else "signed_in.html", values)
    values |= {
        "sentence": sentence,
        "username": username,
        "back": return_page,
        **_shown_purpose(application, return_page),
    }
    response = frame.draw(request, names, "sign_in.html", values, forms=_forms(application))
    if mark != known_mark:
        frame.set_cookie(response, request, names, "form", mark)
    return response


async def _sign_in(request: Request, directory: Directory, form: Mapping[str, str]) -> Response:
    options, names = directory.options, directory.options.names
    prefix = names.form_prefix
    mark = frame.cookie(request, names, "form")
    await directory.transactions.read(frame.check_csrf, frame.form_mark(request, names, form), mark)
    username, password = form.get(f"{prefix}username", ""), form.get(f"{prefix}password", "")
    resource_id, return_page = _resource_id(form.get("RFA")), frame.page_of_ours(form.get("page", ""))
    # The browser is to keep this cookie: by it, the browser's place is known.
    known = pauses.browser_cookie(frame.cookie(request, names, "browser"))
    origin = pauses.Origin(caller_address(request), browser=known)
    application = await _application(directory, return_page)
    event = events.begin(request.scope, "sign-in", how="form", account=fold_name(username))
    event.client = None if application is None else application.client.name
    attempt = await directory.transactions.read(
        form_sign_in.begin, options, resource_id or None, username, origin, directory.clock()
    )
    check = directory.gate.check(attempt.password_hash, password, attempt.asker(username), directory.clock())
    password_ok = await asyncio.wrap_future(check)
    event.who = None if attempt.user_id is None else username
    event.resource = await directory.transactions.read(_shown_name, names, attempt.resource_id)
    old = frame.cookie(request, names, "ticket")
    try:
        outcome = await directory.transactions.write(
            form_sign_in.finish, options, attempt, password_ok, mark, old, directory.clock()
        )
    except SignInRefused as refusal:
        event.result, event.reason = "refused", refusal.reason
        if refusal.pauses:
            events.begin(request.scope, "pause", result="done", who=username, how=directory.pause)
        return await _page(
            request,
            directory,
            attempt.resource_id,
            return_page=return_page,
            sentence=browser.REFUSED,
            username=username,
        )
    if outcome.step:
        event.result, event.reason = "refused", "needs a new password"
        response = await _ask_new_password(request, directory, outcome.step, return_page)
    else:
        response = _let_in(request, directory, outcome, attempt.resource_id, return_page, event)
    frame.set_cookie(response, request, names, "browser", known, pauses.PLACE_SECONDS)
    return response


async def _new_password(request: Request, directory: Directory, form: Mapping[str, str]) -> Response:
    """The step after the right password of a user who must choose another."""
    options, names = directory.options, directory.options.names
    text = form.get(f"{names.form_prefix}step", "")
    return_page, mark = frame.page_of_ours(form.get("page", "")), frame.cookie(request, names, "form")
    await directory.transactions.read(frame.check_csrf, frame.form_mark(request, names, form), mark)
    event = events.begin(request.scope, "sign-in", how="new password")
    try:
        step, account = await directory.transactions.read(form_sign_in.read_step, text, mark, directory.clock())
        event.who = entries.shown_id(names, account.user)
        event.resource = await directory.transactions.read(_shown_name, names, step.resource_id)
        password_hash = await _hash_new(request, directory, account, form)
        set_password = partial(_set_password, directory, request.scope, password_hash)
        old = frame.cookie(request, names, "ticket")
        outcome = await directory.transactions.write(
            form_sign_in.take_step, options, text, mark, old, set_password, directory.clock()
        )
    except NotSignedIn as refusal:
        event.result, event.reason = "refused", refusal.sentence
        resource_id = _resource_id(form.get("RFA"))
        return await _page(request, directory, resource_id, return_page=return_page, sentence=refusal.sentence)
    except BadAttribute as refusal:
        event.result, event.reason = "refused", refusal.sentence
        return await _ask_new_password(request, directory, text, return_page, refusal.sentence)
    return _let_in(request, directory, outcome, step.resource_id, return_page, event)


async def _ask_new_password(
    request: Request, directory: Directory, text: str, return_page: str, sentence: str = ""
) -> Response:
    names, mark = directory.options.names, frame.cookie(request, directory.options.names, "form")
    values = await directory.transactions.read(_step_values, names, text, mark, directory.clock())
    application = await _application(directory, return_page)
    values |= {"step": text, "sentence": sentence, "back": return_page, **_shown_purpose(application, return_page)}
    return frame.draw(request, names, "new_password.html", values, forms=_forms(application))


async def _hash_new(request: Request, directory: Directory, account: Credentials, form: Mapping[str, str]) -> str:
    """Raises BadAttribute for a password that is typed in two ways, or is the present one; Overloaded."""
    prefix = directory.options.names.form_prefix
    new_password = form.get(f"{prefix}new_password", "")
    if new_password != form.get(f"{prefix}again", ""):
        raise BadAttribute("The two new passwords differ. Type the same one twice.")
    asker = Asker(pauses.neighbourhood(caller_address(request)), fold_name(account.user.name))
    check = directory.gate.check(account.password_hash, new_password, asker, directory.clock())
    if await asyncio.wrap_future(check):
        raise BadAttribute("This is the password that has to be replaced. Choose another.")
    return await asyncio.to_thread(directory.gate.hash_new, new_password)


def _let_in(
    request: Request,
    directory: Directory,
    outcome: form_sign_in.FormOutcome,
    resource_id: str,
    return_page: str,
    event: events.Event,
) -> Response:
    names = directory.options.names
    if not outcome.opens:
        # Without a resource in the event, an auditor does not read that somebody came to the administration.
        event.resource = None
        return_page = "" if frame.is_of_console(return_page) else return_page
    response = frame.redirect(request, names, return_page or f"/login?RFA={resource_id}")
    frame.set_cookie(response, request, names, "ticket", outcome.ticket, directory.options.ticket_seconds)
    frame.set_cookie(response, request, names, "form", "", 0)
    return response


async def _sign_out(request: Request, directory: Directory, form: Mapping[str, str]) -> Response:
    names = directory.options.names
    ticket = frame.cookie(request, names, "ticket")
    event = events.begin(request.scope, "sign-out", how="form")
    event.who = await directory.transactions.write(
        _end, names, frame.form_mark(request, names, form), ticket, directory.clock()
    )
    response = frame.redirect(request, names, f"/login?RFA={_resource_id(form.get('RFA')) or ''}")
    frame.set_cookie(response, request, names, "ticket", "", 0)
    return response


def _look(
    cx: Connection, names: DirectoryNames, resource_id: str | None, ticket: str, mark: str, now: Instant
) -> tuple[resources.Resource, TicketHolder | None, str]:
    """The resource, who is signed in to it, and what the hidden field holds."""
    try:
        holder = holders.of_sign_in(cx, names, ticket, now)
    except NotSignedIn:
        holder = None
    if resource_id is None and holder is not None:
        resource_id = holder.resource_id
    resource = form_sign_in.resource_of(cx, resource_id or None)
    if holder is None or resource.id != holder.resource_id:
        return resource, None, frame.csrf(cx, mark)
    return resource, holder, frame.csrf(cx, ticket)


async def _application(directory: Directory, return_page: str) -> Return | None:
    """Whose request the sign-in is for. Raises BadAuthorization, Malformed."""
    path, _, query = return_page.partition("?")
    if path != AUTHORIZE:
        return None
    parameters = bodies.form_fields(query.encode(), "The request")
    return await directory.transactions.read(authorization.read_return, parameters)


def _shown_purpose(application: Return | None, return_page: str) -> dict[str, Any]:
    """What a page says of what the sign-in is for."""
    connects_device = return_page.partition("?")[0] == frame.DEVICE
    name, origin = ("", "") if application is None else (application.client.name, application.origin)
    return {"application": name, "origin": origin, "connects_device": connects_device}


def _forms(application: Return | None) -> Sequence[str]:
    """A browser lets the form lead where its answer leads: at last, back to the application."""
    return ("'self'",) if application is None else ("'self'", redirects.form_source(application.origin))


def _end(cx: Connection, names: DirectoryNames, mark: browser.FormMark, ticket: str, now: Instant) -> str | None:
    frame.check_csrf(cx, mark, ticket)
    try:
        return entries.shown_id(names, holders.of_sign_in(cx, names, ticket, now).user)
    except NotSignedIn:
        return None
    finally:
        tickets.end(cx, names, ticket)


def _step_values(cx: Connection, names: DirectoryNames, text: str, mark: str, now: Instant) -> dict[str, str]:
    step, account = form_sign_in.read_step(cx, text, mark, now)
    return {
        "resource_id": step.resource_id,
        "resource_name": _shown_name(cx, names, step.resource_id),
        "username": entries.shown_id(names, account.user),
        "csrf": frame.csrf(cx, mark),
    }


def _set_password(
    directory: Directory, scope: Mapping[str, Any], password_hash: str, cx: Connection, user: Entry
) -> None:
    with directory.acting(scope, user):
        decisions.set_password(cx, user, password_hash, directory.clock())


def _shown_name(cx: Connection, names: DirectoryNames, resource_id: str) -> str:
    return resources.shown_name(names, resources.by_id(cx, resource_id))


def _resource_id(text: str | None) -> str | None:
    """None without ``RFA``, empty for the administration.

    Existing systems append a colon and a return address, to which the directory never leads a browser.
    """
    return None if text is None else text.partition(":")[0].strip()
