"""Which device may act for a user who has typed its code (RFC 8628 3.3)?"""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy.engine import Connection

from muniment.directory.entries import credentials, entries, oauth_clients
from muniment.directory.entries.table import Entry
from muniment.directory.oauth import authorization, clients, device_codes, scopes
from muniment.directory.oauth.clients import Client
from muniment.directory.oauth.device_codes import Device, Started
from muniment.directory.oauth.scopes import AddressFinder
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import WrongUserCode
from muniment.directory.sign_in.holders import TicketHolder
from muniment.directory.sign_in.pauses import neighbourhood
from muniment.ground.clock import Instant

_WRONG = "No device waits with this code. Type the code that your device shows now."
_PAUSED = "You have typed too many codes that no device shows. Wait a while, then start again on your device."


class WaitingDevice(NamedTuple):
    """A device, and its client."""

    device: Device
    client: Entry


def start(
    cx: Connection,
    options: DirectoryOptions,
    client: Client,
    parameters: Mapping[str, str],
    find_address: AddressFinder,
    address: str,
    now: Instant,
) -> Started:
    """For a device at a network address; ``find_address`` is as in ``scopes.read``. Raises UnauthorizedClient,
    InvalidScope, InvalidTarget, Overloaded.
    """
    clients.require_grant(client.settings, "device_code")
    scope = scopes.read(
        *(cx, options.names, client.settings, "device_code"),
        *(parameters.get("scope"), parameters.get("resource"), find_address),
    )
    return device_codes.start(cx, client.id, scope, neighbourhood(address)[: device_codes.LONGEST_PLACE], now)


def claim(cx: Connection, options: DirectoryOptions, user: Entry, typed: str, now: Instant) -> WaitingDevice:
    """From now on nobody but this user may decide about the device. Raises WrongUserCode."""
    credentials.lock(cx, user.id)
    if device_codes.pauses(cx, options, user.id, now):
        raise WrongUserCode(_PAUSED)
    user_code = device_codes.read(typed)
    device = device_codes.by_user_code(cx, user_code, lock=True) if user_code else None
    client = None if device is None else entries.by_id(cx, device.client_id)
    if (
        device is None
        or client is None
        or not client.live
        or now >= device.expires
        or device.decision is not None
        or device.user_id not in (None, user.id)
    ):
        device_codes.count_wrong(cx, options, user.id, now)
        raise WrongUserCode(_WRONG)
    device_codes.change(cx, device, user_id=user.id)
    return WaitingDevice(device, client)


def decide(
    cx: Connection,
    options: DirectoryOptions,
    holder: TicketHolder,
    ticket: bytes,
    typed: str,
    now: Instant,
    *,
    allowed: bool,
) -> WaitingDevice:
    """The user, who holds the ticket of this digest, decides. Raises WrongUserCode, and AccessEnded for a user who may
    not use the client, or the resource.
    """
    waiting = claim(cx, options, holder.user, typed, now)
    if allowed:
        settings = oauth_clients.settings_of(cx, waiting.client.id)
        resource_id = waiting.device.resource_id
        authorization.require_access(cx, options.names, waiting.client, settings, holder.user, resource_id)
    decision = "allowed" if allowed else "denied"
    device_codes.change(cx, waiting.device, decision=decision, ticket=ticket, auth_time=holder.ticket.created)
    return waiting
