"""Who shows this ticket, and where does it let them in (decision 0111)?

Each asks anew whether the user may still act. All raise NotSignedIn, or ExpiredTicket for a ticket that has ended.
"""

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, memberships, resources
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import CannotImpersonate, ExpiredTicket, NotSignedIn
from muniment.directory.sign_in import impersonation, tickets
from muniment.directory.sign_in.tickets import Ticket
from muniment.ground.clock import Instant


class TicketHolder(msgspec.Struct, frozen=True):
    """``opens``: what they signed in to has something for them (``opens`` below)."""

    user: Entry
    ticket: Ticket
    opens: bool

    @property
    def resource_id(self) -> str:
        return self.ticket.resource_id

    @property
    def of_browser(self) -> bool:
        """A browser sends it by itself, so it writes only by our forms' mark; any other is a program's."""
        return self.ticket.made == "page"


def of_sign_in(cx: Connection, names: DirectoryNames, text: str, now: Instant) -> TicketHolder:
    """The user is in the access role of the resource that they signed in to, unless it is the administration's."""
    ticket = tickets.read(cx, names, text, now)
    if ticket.target_id is not None or ticket.made == "for_user":
        raise NotSignedIn("This ticket is for resources, not for the directory.")
    user = entries.by_id(cx, ticket.user_id)
    has_opened = opens(cx, ticket.resource_id, ticket.user_id)
    if user is None or not user.live or not (has_opened or ticket.resource_id == resources.administration(cx).id):
        raise NotSignedIn("The user has no access to the resource.")
    return TicketHolder(user, ticket, has_opened)


def opens(cx: Connection, resource_id: str, user_id: int) -> bool:
    """Whether a user is in the access role of a resource; at the administration, whether they administer."""
    if resource_id == resources.administration(cx).id:
        return memberships.administers(cx, user_id)
    return resources.admits(cx, resource_id, user_id)


def of_directory(cx: Connection, names: DirectoryNames, text: str, now: Instant) -> TicketHolder:
    """The sign-in was for the directory itself."""
    holder = of_sign_in(cx, names, text, now)
    if holder.resource_id != resources.administration(cx).id:
        raise NotSignedIn("This ticket is for a resource, not for the directory.")
    return holder


def at_resource(cx: Connection, names: DirectoryNames, text: str, resource: resources.Resource, now: Instant) -> Ticket:
    """Whether the user has access there is not asked here."""
    ticket = tickets.read(cx, names, text, now)
    if ticket.target_id not in (None, resource.id):
        raise NotSignedIn("This ticket is for another resource.")
    if ticket.made == "for_user":
        try:
            impersonation.require(cx, names, ticket, resource)
        except CannotImpersonate as refusal:
            raise ExpiredTicket(names.expired_ticket) from refusal
    return ticket
