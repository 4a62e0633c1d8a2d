"""The device grant: a device asks again and again until its user has decided (RFC 8628 3.4)."""

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import credentials
from muniment.directory.oauth import clients, device_codes, id_tokens, token_requests, tokens
from muniment.directory.oauth.access import Allowed, Question
from muniment.directory.oauth.clients import Client
from muniment.directory.oauth.device_codes import Device
from muniment.directory.oauth.token_requests import GrantType, SignedIn, TokenAttempt, TokenRequest, TokenResponse
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import (
    AccessDenied,
    AuthorizationPending,
    ExpiredDeviceCode,
    InvalidGrant,
    SlowDown,
)
from muniment.directory.sign_in import tickets
from muniment.ground.clock import SECOND, Instant

_REFUSED = "The device code is not, or no longer, valid for this client."


class _Basis(msgspec.Struct, frozen=True):
    digest: bytes
    user_id: int | None
    resource_id: str
    is_decided: bool


def _look_up(
    cx: Connection, _options: DirectoryOptions, request: TokenRequest, client: Client, _now: Instant
) -> _Basis:
    """Raises InvalidGrant, also for the device code of another client."""
    digest = device_codes.parse(cx, request["device_code"])
    device = None if digest is None else device_codes.look_up(cx, digest)
    if digest is None or device is None or device.client_id != client.id:
        raise InvalidGrant(_REFUSED)
    return _Basis(digest, device.user_id, device.resource_id, device.decision is not None)


def _signs_in(cx: Connection, options: DirectoryOptions, basis: _Basis) -> SignedIn | None:
    if basis.user_id is None or not basis.is_decided:
        return None
    return token_requests.signed_in(cx, options.names, basis.user_id, basis.resource_id)


def _decide(
    cx: Connection, options: DirectoryOptions, attempt: TokenAttempt[_Basis], _password_ok: bool, now: Instant
) -> TokenResponse:
    """Raises InvalidClient, UnauthorizedClient, InvalidGrant, and what RFC 8628 3.5 answers."""
    # Whatever ends a user's or a client's sessions locks these rows, in this order.
    if attempt.basis.user_id is not None:
        credentials.lock(cx, attempt.basis.user_id, shared=True)
    client = msgspec.structs.replace(attempt.client, settings=clients.require_unchanged(cx, attempt.client))
    clients.require_grant(client.settings, "device_code")
    device = device_codes.look_up(cx, attempt.basis.digest, lock=True)
    if device is None:
        raise InvalidGrant(_REFUSED)
    if now >= device.expires:
        raise ExpiredDeviceCode("Nobody has typed the code in time. Begin again.")
    _require_patience(cx, device, now)
    if device.decision is None or device.user_id != attempt.basis.user_id:
        raise AuthorizationPending("The user has not decided yet.")
    device_codes.end(cx, device)
    if device.decision == "denied":
        raise AccessDenied("The user has not allowed it.")
    resource, user = _require(cx, options, client, device, now)
    expires = now + client.refresh_seconds(options) * SECOND
    grant, refresh_token = tokens.open_grant(
        *(cx, user.id, client.id, device.resource_id, now, expires),
        made="device_code",
        scopes=device.scopes,
        authenticated=device.auth_time,
        rotates=client.rotates("device_code"),
    )
    response = token_requests.issue(
        *(cx, options, attempt.request, client, grant, refresh_token, now, device.told), resource=resource
    )
    return id_tokens.add(cx, response, attempt, user, grant, now)


def _require_patience(cx: Connection, device: Device, now: Instant) -> None:
    """Raises SlowDown."""
    is_early = device.asked is not None and now < device.asked + device.interval * SECOND
    interval = device.interval + (device_codes.INTERVAL_SECONDS if is_early else 0)
    device_codes.change(cx, device, asked=now, interval=interval)
    if is_early:
        raise SlowDown(f"Ask every {interval} seconds at most.")


def _require(cx: Connection, options: DirectoryOptions, client: Client, device: Device, now: Instant) -> Allowed:
    """The user who has allowed it, and the resource. Raises InvalidGrant."""
    if device.user_id is None or device.ticket is None or not tickets.lives(cx, device.ticket, now):
        raise InvalidGrant(_REFUSED)
    question = Question(client.id, device.user_id, device.resource_id)
    return token_requests.require_user(cx, options, client, "device_code", question, device.scopes.split(), _REFUSED)


DEVICE_CODE = GrantType(("device_code",), _look_up, None, _decide, made="device_code", signs_in=_signs_in)
