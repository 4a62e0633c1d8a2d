"""May this caller act as this user (decision 0111)?

The caller is an administrator, an OAuth client with a secret or a key, or an activated resource. A client or a
resource must allow impersonation, and so must the resource where it is used; their lists narrow whom. The same question
is asked when a ticket is made, and again at each use.
"""

from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, memberships, oauth_clients, resources
from muniment.directory.entries import names as spelling
from muniment.directory.entries.table import CLIENTS, Entry, Impersonation
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import CannotImpersonate, UnknownResource
from muniment.directory.sign_in.tickets import Ticket
from muniment.ground.clock import SECOND
from muniment.ground.naming import fold_name

LONGEST = 3600 * SECOND
"""So long such a ticket lives at most."""

NOBODY = -1
"""The ``user_id`` of a ticket for a user who does not exist: it is refused as one for whom the caller may not act."""

_NO_CALLER = "Only a confidential client, an activated resource or an administrator may act for other users."
NOT_THIS_USER = "This caller may not act for this user."


def require(cx: Connection, names: DirectoryNames, ticket: Ticket, target: resources.Resource | None) -> None:
    """``target`` is where the ticket is used, or None while it names no resource.

    Raises CannotImpersonate, with the switch that is off; of the user the sentence tells nothing.
    """
    user = entries.by_id(cx, ticket.user_id)
    is_administrator = _is_administrator(cx, ticket.by_user_id)
    if ticket.by_client_id is not None:
        _require_client(cx, names, ticket.by_client_id, user)
    elif ticket.by_resource_id is not None:
        _require_resource(cx, names, ticket.by_resource_id, user)
    elif not is_administrator:
        raise CannotImpersonate(_NO_CALLER)
    if target is not None:
        _require_resource(cx, names, target.id, user)
    if user is None or not user.live or user.partition_built_in == CLIENTS:
        raise CannotImpersonate(NOT_THIS_USER)
    if not is_administrator and memberships.administers(cx, user.id):
        raise CannotImpersonate(NOT_THIS_USER)


def _is_administrator(cx: Connection, user_id: int | None) -> bool:
    user = None if user_id is None else entries.by_id(cx, user_id)
    return user is not None and user.live and memberships.administers(cx, user.id)


def _require_client(cx: Connection, names: DirectoryNames, client_id: int, user: Entry | None) -> None:
    client = entries.by_id(cx, client_id)
    settings = oauth_clients.settings_of(cx, client_id)
    if client is None or not client.live or not settings.is_confidential(has_secret=client.has_password):
        raise CannotImpersonate(_NO_CALLER)
    what = f"the client {client.name!r}"
    _require_switch(cx, names, oauth_clients.impersonation_of(settings), what, user)
    if settings.auth_scopes and (user is None or user.partition_id not in settings.auth_scopes):
        raise CannotImpersonate(f"User cannot be impersonated: authScopes of {what} do not name their partition.")


def _require_resource(cx: Connection, names: DirectoryNames, resource_id: str, user: Entry | None) -> None:
    try:
        resource = resources.by_id(cx, resource_id)
    except UnknownResource as unknown:
        raise CannotImpersonate(_NO_CALLER) from unknown
    what = f"the resource {resources.shown_name(names, resource)!r}"
    if resource.activated is None:
        raise CannotImpersonate(f"User cannot be impersonated: {what} is not activated.")
    _require_switch(cx, names, resources.impersonation_of(resource), what, user)


def _require_switch(
    cx: Connection, names: DirectoryNames, switch: Impersonation, what: str, user: Entry | None
) -> None:
    if not switch.allowed:
        raise CannotImpersonate(f"User cannot be impersonated: allowImpersonation of {what} is off.")
    if switch.only and (user is None or switch.only.isdisjoint(_spellings(cx, names, user))):
        raise CannotImpersonate(f"User cannot be impersonated: impersonateList of {what} does not name them.")


def _spellings(cx: Connection, names: DirectoryNames, user: Entry) -> set[str]:
    """All by which a list may name the user, folded: their own, and those of their groups, units and partition."""
    partition = entries.shown_partition(names, user)
    around = [spelling.location(names, partition, user.units[place:]) for place in range(len(user.units) + 1)]
    texts = {partition, spelling.location(names, partition, root=False), *around}
    for entry in (user, *memberships.groups_of(cx, user.id)):
        texts |= {entries.shown_id(names, entry), entries.location(names, entry), entry.uuid}
    return {fold_name(text) for text in texts}
