"""The page for the code that a device shows (RFC 8628 3.3)."""

from typing import Any

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.console import authorize, frame, sign_in
from muniment.directory.context import Directory
from muniment.directory.entries import entries, resources
from muniment.directory.oauth import device_authorization, device_codes
from muniment.directory.refusals import AccessEnded, NotSignedIn, WrongUserCode
from muniment.directory.sign_in import holders, tickets
from muniment.ground import events
from muniment.ground.refusals import Malformed
from muniment.web.answers.browser import FormMark
from muniment.web.requests import bodies

_DECISIONS = {"allow": True, "deny": False}
_DONE = {True: "Your device may go on. You can close this page.", False: "Your device has got no access."}


async def show(request: Request, directory: Directory) -> Response:
    """Ask for the code that a device shows; ``user_code`` is written into the form."""
    request.scope["muniment.page"] = True
    typed = bodies.query(request).get("user_code", "")
    try:
        return await _ask_code(request, directory, typed)
    except NotSignedIn:
        user_code = device_codes.read(typed)
        page = frame.DEVICE + (f"?user_code={device_codes.spell(user_code)}" if user_code else "")
        return await sign_in.show_anew(request, directory, page)


@events.tells()
async def decide(request: Request, directory: Directory) -> Response:
    """Take the code, or the user's word on its device."""
    request.scope["muniment.page"] = True
    names, form = directory.options.names, await bodies.form(request)
    typed, decision = form.get("user_code", ""), form.get("decision", "")
    mark, ticket = frame.form_mark(request, names, form), frame.cookie(request, names, "ticket")
    if decision and decision not in _DECISIONS:
        raise Malformed("The form says neither allow nor deny.")
    try:
        if not decision:
            values = await directory.transactions.write(_claim, directory, mark, ticket, typed)
            return frame.draw(request, names, "device_consent.html", values)
        values = await directory.transactions.write(_decide, directory, mark, ticket, typed, _DECISIONS[decision])
    except NotSignedIn:
        return frame.redirect(request, names, frame.DEVICE)
    except (WrongUserCode, AccessEnded) as refusal:
        return await _ask_code(request, directory, typed, refusal.sentence)
    return frame.draw(request, names, "device_done.html", values | {"sentence": _DONE[_DECISIONS[decision]]})


async def _ask_code(request: Request, directory: Directory, typed: str, sentence: str = "") -> Response:
    names = directory.options.names
    ticket = frame.cookie(request, names, "ticket")
    values = await directory.transactions.read(_signed_in, directory, ticket)
    values |= {"sentence": sentence, "user_code": typed[:20]}
    return frame.draw(request, names, "device.html", values, 400 if sentence else 200)


def _signed_in(cx: Connection, directory: Directory, ticket: str) -> dict[str, Any]:
    holder = holders.of_sign_in(cx, directory.options.names, ticket, directory.clock())
    return {"user_id": entries.shown_id(directory.options.names, holder.user), "csrf": frame.csrf(cx, ticket)}


def _claim(cx: Connection, directory: Directory, mark: FormMark, ticket: str, typed: str) -> dict[str, Any]:
    options, now = directory.options, directory.clock()
    holder = holders.of_sign_in(cx, options.names, ticket, now)
    frame.check_csrf(cx, mark, ticket)
    waiting = device_authorization.claim(cx, options, holder.user, typed, now)
    device = waiting.device
    resource = resources.by_id(cx, device.resource_id) if device.resource_id else None
    return _signed_in(cx, directory, ticket) | {
        "application": waiting.client.name,
        "user_code": device_codes.spell(device_codes.read(typed)),
        **authorize.described(options.names, resource, device.scopes),
    }


def _decide(
    cx: Connection, directory: Directory, mark: FormMark, ticket: str, typed: str, allowed: bool
) -> dict[str, Any]:
    options, now = directory.options, directory.clock()
    holder = holders.of_sign_in(cx, options.names, ticket, now)
    frame.check_csrf(cx, mark, ticket)
    digest = tickets.parse(cx, options.names, ticket)
    waiting = device_authorization.decide(cx, options, holder, digest, typed, now, allowed=allowed)
    return {"application": waiting.client.name}
