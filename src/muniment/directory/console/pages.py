"""The admin console's pages: an overview, and the system attributes (given 5.4)."""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from muniment.directory.console import frame
from muniment.directory.context import Directory
from muniment.directory.entries import entries, oauth_clients, resources, system
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute, NotSignedIn, UnknownAttribute
from muniment.directory.sign_in import form as form_sign_in
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.refusals import Forged, Malformed
from muniment.web.answers.browser import FormMark
from muniment.web.answers.responses import ErrorCode, Table
from muniment.web.requests import bodies

_MOST_CLIENTS = 200

CONSOLE: Table = {
    NotSignedIn: ErrorCode(303, "not_signed_in"),
    Forged: ErrorCode(403, "forged"),
    BadAttribute: ErrorCode(400, "bad_attribute"),
    UnknownAttribute: ErrorCode(400, "unknown_attribute"),
}

_DONE = {"add": "The attribute was added.", "change": "The attribute was changed.", "delete": "The attribute is gone."}


async def overview(request: Request, directory: Directory) -> Response:
    """Show the administrator what there is."""
    names = directory.options.names
    values = await directory.transactions.read(_overview, names, _ticket(request, directory), directory.clock())
    return frame.draw(request, names, "overview.html", values)


async def system_attributes(request: Request, directory: Directory) -> Response:
    """Show the system attributes that are set."""
    done = _DONE.get(bodies.query(request).get("done", ""), "")
    return await _system_attributes(request, directory, done=done)


@events.tells("system attribute")
async def change_system_attribute(request: Request, directory: Directory) -> Response:
    """Add, change or delete a system attribute. Changes hold from the next request on."""
    names = directory.options.names
    form = await bodies.form(request)
    action, name, value = (form.get(field, "") for field in ("action", "name", "value"))
    if action not in _DONE:
        raise Malformed("The form says neither add nor change nor delete.")
    # Whoever changes a free attribute has confirmed its name when they added it.
    free = action == "change" or form.get("free") == "yes"
    mark = frame.form_mark(request, names, form)
    ticket = _ticket(request, directory)
    event = events.begin(request.scope, "system attribute", how=action)
    try:
        event.who, event.on = await directory.transactions.write(
            _change, directory, request.scope, mark, ticket, action, name, value, free
        )
    except BadAttribute as refusal:
        typed = {"typed_name": name, "typed_value": value} if action == "add" else {}
        return await _system_attributes(request, directory, sentence=refusal.sentence, typed=typed)
    return frame.redirect(request, names, f"/console/system-attributes?done={action}")


async def _system_attributes(
    request: Request,
    directory: Directory,
    *,
    done: str = "",
    sentence: str = "",
    typed: Mapping[str, str] | None = None,
) -> Response:
    names = directory.options.names
    values = await directory.transactions.read(_attributes, names, _ticket(request, directory), directory.clock())
    values |= {"done": done, "sentence": sentence, "typed_name": "", "typed_value": "", **(typed or {})}
    return frame.draw(request, names, "system_attributes.html", values, 400 if sentence else 200)


def _overview(cx: Connection, names: DirectoryNames, ticket: str, now: Instant) -> dict[str, Any]:
    return _console_values(cx, names, "overview", ticket, now) | {
        "enforced": system.enforce_ssl(cx),
        "partitions": [
            {"name": entries.shown_name(names, partition), "description": partition.description}
            for partition in entries.partitions(cx)
        ],
        "resources": [
            {
                "name": resources.shown_name(names, resource),
                "id": resource.id,
                "activated": resource.activated is not None,
            }
            for resource in resources.all_resources(cx)
        ],
        "clients": _lax_clients(cx),
        "most_clients": _MOST_CLIENTS,
    }


def _lax_clients(cx: Connection) -> list[dict[str, Any]]:
    """The first ones by name that may do what RFC 9700 advises against."""
    listed = [client for client in entries.listing(cx, entries.clients(cx), "user", limit=None) if client.live]
    settings = oauth_clients.read(cx, [client.id for client in listed])
    found = []
    for client in listed:
        allowed = oauth_clients.laxities(settings[client.id], has_secret=client.has_password)
        if allowed:
            found.append({"name": client.name, "allowed": ", ".join(allowed)})
    # Those that bind a sign-in to no browser come first: a password is a switch that is on for all at first.
    return sorted(found, key=lambda client: client["allowed"])[:_MOST_CLIENTS]


def _attributes(cx: Connection, names: DirectoryNames, ticket: str, now: Instant) -> dict[str, Any]:
    return _console_values(cx, names, "system attributes", ticket, now) | {
        "attributes": [
            {**msgspec.structs.asdict(attribute), "warning": system.warning(attribute.name, attribute.value)}
            for attribute in system.all_system_attributes(cx)
        ],
        "known": system.KNOWN,
    }


def _change(
    cx: Connection,
    directory: Directory,
    scope: Scope,
    mark: FormMark,
    ticket: str,
    action: str,
    name: str,
    value: str,
    free: bool,
) -> tuple[str, str]:
    names, now = directory.options.names, directory.clock()
    user = form_sign_in.administrator_of(cx, names, ticket, now)
    frame.check_csrf(cx, mark, ticket)
    with directory.acting(scope, user):
        if action == "delete":
            system.remove(cx, name)
        else:
            (system.add if action == "add" else system.put)(cx, name, value, now, free=free)
    return entries.shown_id(names, user), name if action == "delete" else name.strip()


def _ticket(request: Request, directory: Directory) -> str:
    return frame.cookie(request, directory.options.names, "ticket")


def _console_values(cx: Connection, names: DirectoryNames, here: str, ticket: str, now: Instant) -> dict[str, Any]:
    user = form_sign_in.administrator_of(cx, names, ticket, now)
    return {"here": here, "user_id": entries.shown_id(names, user), "csrf": frame.csrf(cx, ticket)}
