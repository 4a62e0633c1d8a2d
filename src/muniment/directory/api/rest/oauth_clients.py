"""OAuth clients: find, make, change and remove them, and say for whom they may act.

A client is also a user of the clients' partition. A path names it by its name, with or without ``@`` and the partition.
"""

from typing import Any, Literal, NamedTuple

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory import audit, version_stamps
from muniment.directory.administration import client_decisions
from muniment.directory.api.rest import changing, containment, identifiers, paging
from muniment.directory.api.rest.callers import Caller
from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.dialect import spelled
from muniment.directory.api.rest.resources import ImpersonationSwitch
from muniment.directory.entries import attributes, editing, entries, listing, oauth_clients
from muniment.directory.entries.attributes import CustomAttribute
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import (
    BadAttribute,
    BadName,
    NameInUse,
    NameTaken,
    UnknownEntry,
    UnknownPartition,
    UnknownResource,
)
from muniment.directory.sign_in import passwords
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.web.answers.responses import ErrorCode, Table

_SPELLINGS = {
    "redirect_urls": "redirectURLs",
    "access_seconds": "accessTokenLifeTime",
    "refresh_seconds": "refreshTokenLifeTime",
    "code_seconds": "authCodeLifeTime",
    "use_session_refresh_seconds": "useSessionRefreshTokenLifeTime",
    "logout_url": "logoutURL",
    "rotates": "rotateRefreshTokens",
}
_BY_KEY = "private_key_jwt"
_BY_SECRET = ("client_secret_basic", "client_secret_post")
_METHODS = (*_BY_SECRET, "none", _BY_KEY)
_REFRESH = "refresh_token"
_LIFETIMES = ("access_seconds", "refresh_seconds", "code_seconds")
_V1 = {
    "access_seconds": "access_token_life_time",
    "refresh_seconds": "refresh_token_life_time",
    "code_seconds": "auth_code_life_time",
    "use_session_refresh_seconds": "use_session_refresh_token_life_time",
    "rotates": "rotate_refresh_tokens",
}


@spelled(_SPELLINGS, _V1)
class OAuthClient(msgspec.Struct, kw_only=True):
    """An OAuth client. Only the answer that makes or renews its secret shows it."""

    id: str
    name: str
    description: str
    location: str
    uuid: str
    redirect_urls: list[str]
    access_seconds: int
    refresh_seconds: int
    code_seconds: int
    allow_refresh_token: bool
    allow_impersonation: bool
    use_session_refresh_seconds: bool
    allowed_scopes: list[str]
    default_scopes: list[str]
    impersonate_list: list[str]
    auth_scopes: list[str]
    confidential: bool
    secret: str | None
    custom_attributes: list[CustomAttribute] | None
    logout_url: str
    logout_method: str
    grant_types: list[str]
    token_endpoint_auth_method: str
    jwks: dict[str, Any] | None
    takes_endpoint_audience: bool
    pkce: str
    rotates: bool | None
    default_resource: str
    may_administer: bool
    url_id: str
    url_location: str


@spelled(_SPELLINGS, _V1)
class WrittenClient(msgspec.Struct, kw_only=True):
    """A new client, or what is to change of one. A lifetime of 0 is the directory's. A new one is confidential unless
    the body says otherwise. Who has no secret, and is to have one, gets one made, unless the body has it; whatever
    ``secret``, ``confidential`` and ``token_endpoint_auth_method`` say must agree.

    ``grant_types`` and ``token_endpoint_auth_method`` have the names of RFC 7591 2; ``default_resource`` is a name or
    an identifier. Without ``rotates`` refresh tokens rotate for public clients, but not after the password grant.
    """

    id: str = ""
    name: str = ""
    description: str | msgspec.UnsetType = msgspec.UNSET
    redirect_urls: list[str] | msgspec.UnsetType = msgspec.UNSET
    access_seconds: int | msgspec.UnsetType = msgspec.UNSET
    refresh_seconds: int | msgspec.UnsetType = msgspec.UNSET
    code_seconds: int | msgspec.UnsetType = msgspec.UNSET
    allow_refresh_token: bool | msgspec.UnsetType = msgspec.UNSET
    allow_impersonation: bool | msgspec.UnsetType = msgspec.UNSET
    use_session_refresh_seconds: bool | msgspec.UnsetType = msgspec.UNSET
    allowed_scopes: list[str] | msgspec.UnsetType = msgspec.UNSET
    default_scopes: list[str] | msgspec.UnsetType = msgspec.UNSET
    impersonate_list: list[str] | msgspec.UnsetType = msgspec.UNSET
    auth_scopes: list[str] | msgspec.UnsetType = msgspec.UNSET
    confidential: bool | msgspec.UnsetType = msgspec.UNSET
    secret: str = ""
    custom_attributes: list[CustomAttribute] | msgspec.UnsetType = msgspec.UNSET
    logout_url: str | msgspec.UnsetType = msgspec.UNSET
    logout_method: str | msgspec.UnsetType = msgspec.UNSET
    grant_types: list[str] | msgspec.UnsetType = msgspec.UNSET
    token_endpoint_auth_method: str | msgspec.UnsetType = msgspec.UNSET
    jwks: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET
    takes_endpoint_audience: bool | msgspec.UnsetType = msgspec.UNSET
    pkce: str | msgspec.UnsetType = msgspec.UNSET
    rotates: bool | msgspec.UnsetType | None = msgspec.UNSET
    default_resource: str | msgspec.UnsetType = msgspec.UNSET
    may_administer: bool | msgspec.UnsetType = msgspec.UNSET


class ClientList(paging.PageFields, kw_only=True):
    """A page of OAuth clients."""

    clients: list[OAuthClient]


class _Secret(NamedTuple):
    """``shown`` is None for a secret that the caller chose and so knows."""

    kept: str
    shown: str | None


class _Shown(NamedTuple):
    shown: OAuthClient
    revision: int


async def list_clients(call: Call) -> Response:
    """List OAuth clients, by name."""
    return call.answer(await call.read(_list, call, call.wanted("OAuth clients")))


@events.tells("oauth client")
async def add(call: Call) -> Response:
    """Make an OAuth client. If it is confidential, the answer shows its secret, and no later one does."""
    body = await call.body(WrittenClient)
    secret = None if _authentication_asked(body) in ("none", "key") else await _new_secret(call, body)
    client = await call.write(_add, call, body, secret, call.now)
    call.on(client.shown.id)
    return call.answer(client.shown, 201, revision=client.revision)


async def show(call: Call) -> Response:
    """Show an OAuth client."""
    client = await call.read(_show, call)
    return call.answer(client.shown, revision=client.revision)


@events.tells("oauth client")
async def change(call: Call) -> Response:
    """Change what the body names of an OAuth client. A new secret leaves its sessions as they are."""
    body = await call.body(WrittenClient)
    may_need = _authentication_asked(body) == "secret" or body.confidential is True
    secret = await _new_secret(call, body) if may_need else None
    client = await call.write(_change, call, body, secret, call.now)
    call.on(client.shown.id)
    return call.answer(client.shown, revision=client.revision)


@events.tells("oauth client")
async def remove(call: Call) -> Response:
    """Remove an OAuth client. Every grant issued to it ends."""
    shown = await containment.remove_person(call, "user", _find)
    call.on(shown.rpartition("@")[0])
    return call.done()


async def show_impersonation(call: Call) -> Response:
    """Show whether a client may act for users."""
    return call.answer(await call.read(_show_impersonation, call))


@events.tells("oauth client")
async def set_impersonation(call: Call) -> Response:
    """Permit or forbid a client to act for users."""
    body = await call.body(ImpersonationSwitch)
    answer, shown_id = await call.write(_set_impersonation, call, body, call.now)
    call.on(shown_id)
    return call.answer(answer)


async def _new_secret(call: Call, body: WrittenClient) -> _Secret:
    """A secret that the caller chose is hashed at the gate, as a password is."""
    if body.secret:
        return _Secret(await call.hash_password(body.secret), body.secret)
    secret, kept = passwords.new_secret()
    return _Secret(kept, secret)


def _find(cx: Connection, call: Call) -> Entry:
    return identifiers.find_client(cx, call.directory.options, call.part("client"))


def _describe(
    cx: Connection, options: DirectoryOptions, several: list[Entry], secret: str | None = None
) -> list[OAuthClient]:
    ids = [client.id for client in several]
    settings, custom = oauth_clients.read(cx, ids), attributes.custom_of(cx, ids)
    described = []
    for client in several:
        own = settings[client.id]
        location = entries.location(options.names, client)
        kept: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in msgspec.structs.asdict(own).items()
        }
        kept |= {
            "grant_types": _grant_types(own),
            "token_endpoint_auth_method": _authentication(client, own),
            "jwks": msgspec.json.decode(own.jwks) if own.jwks else None,
            "auth_scopes": _partition_names(cx, options, own),
            "access_seconds": own.access_seconds or options.access_token_seconds,
            "refresh_seconds": own.refresh_seconds or options.refresh_token_seconds,
            "code_seconds": own.code_seconds or 0,
        }
        for hidden in ("denied_grants", "authentication"):
            del kept[hidden]
        described.append(
            OAuthClient(
                **kept,
                id=client.name,
                name=client.name,
                description=client.description,
                location=location,
                uuid=client.uuid,
                confidential=own.is_confidential(has_secret=client.has_password),
                secret=secret,
                custom_attributes=custom.get(client.id),
                url_id=client.name,
                url_location=location,
            )
        )
    return described


def _partition_names(cx: Connection, options: DirectoryOptions, settings: ClientSettings) -> list[str]:
    """One that was removed since has no name."""
    found = (entries.by_id(cx, number) for number in settings.auth_scopes)
    return [entries.shown_name(options.names, partition) for partition in found if partition is not None]


def _grant_types(settings: ClientSettings) -> list[str]:
    allowed = [name for made, name in oauth_clients.GRANT_TYPES.items() if made not in settings.denied_grants]
    return [*allowed, *([_REFRESH] if settings.allow_refresh_token else [])]


def _authentication(client: Entry, settings: ClientSettings) -> str:
    if settings.by_key:
        return _BY_KEY
    return "client_secret_basic" if client.has_password else "none"


def _shown(cx: Connection, call: Call, client: Entry, secret: str | None = None) -> _Shown:
    present = entries.by_id(cx, client.id) or client
    return _Shown(_describe(cx, call.directory.options, [present], secret)[0], present.revision)


def _list(cx: Connection, _: Caller, call: Call, wanted: paging.Wanted) -> ClientList:
    which = listing.Which("user", entries.clients(cx), pattern=wanted.filter or "")
    page = listing.page(cx, which, wanted.after(cx), wanted.size)
    shown = _describe(cx, call.directory.options, page.entries)
    return ClientList(clients=shown, **wanted.fields(cx, len(shown), page.next))


def _show(cx: Connection, _: Caller, call: Call) -> _Shown:
    return _shown(cx, call, _find(cx, call))


def _add(cx: Connection, _: Caller, call: Call, body: WrittenClient, secret: _Secret | None, now: Instant) -> _Shown:
    description = "" if body.description is msgspec.UNSET else body.description
    password_hash = secret.kept if secret else None
    client = editing.add_client(cx, body.id or body.name, now, password_hash=password_hash, description=description)
    with audit.decision(cx, "client changed", client.target):
        _put_settings(cx, call, client, body, now)
        _put_custom(cx, client, body, now)
    return _shown(cx, call, client, secret.shown if secret else None)


def _change(cx: Connection, _: Caller, call: Call, body: WrittenClient, secret: _Secret | None, now: Instant) -> _Shown:
    version_stamps.lock_rights(cx)
    client = _find(cx, call)
    call.matches(cx, client)
    with audit.decision(cx, "client changed", client.target):
        new_name = next((name for name in (body.name, body.id) if name and name != client.name), client.name)
        if new_name != client.name:
            client = changing.rename(cx, call, client, new_name, now)
        if body.description is not msgspec.UNSET and body.description != client.description:
            editing.set_description(cx, client, body.description, now)
        given = _secret_given(cx, client, body, secret)
        kept = given.kept if isinstance(given, _Secret) else given
        _put_settings(cx, call, client, body, now, kept)
        _put_custom(cx, client, body, now)
    return _shown(cx, call, client, given.shown if isinstance(given, _Secret) else None)


def _secret_given(
    cx: Connection, client: Entry, body: WrittenClient, secret: _Secret | None
) -> _Secret | msgspec.UnsetType | None:
    """Its new secret, None if it is to have none, or neither: one that it has stays, unless the body has another."""
    asked = _authentication_asked(body)
    if asked == "none":
        return None
    if asked == "key":
        return msgspec.UNSET
    has_one = client.has_password or (asked is None and oauth_clients.settings_of(cx, client.id).by_key)
    return msgspec.UNSET if secret is None or (has_one and not body.secret) else secret


def _put_settings(
    cx: Connection,
    call: Call,
    client: Entry,
    body: WrittenClient | ImpersonationSwitch,
    now: Instant,
    secret_hash: str | msgspec.UnsetType | None = msgspec.UNSET,
) -> None:
    """A lifetime of 0 is the directory's. Raises BadAttribute, UnknownPartition."""
    version_stamps.lock_rights(cx)
    present = oauth_clients.settings_of(cx, client.id)
    written = {name: getattr(body, name, msgspec.UNSET) for name in ClientSettings.__struct_fields__}
    changes = {name: value for name, value in written.items() if value is not msgspec.UNSET}
    for name, value in changes.items():
        if name == "auth_scopes":
            partitions = (identifiers.find_partition(cx, call.directory.options, each) for each in value)
            changes[name] = tuple(partition.id for partition in partitions)
        elif name == "jwks":
            changes[name] = "" if value is None else msgspec.json.encode(value).decode()
        elif name == "default_resource" and value:
            changes[name] = identifiers.find_resource(cx, call.names, value).id
        elif isinstance(value, list):
            changes[name] = tuple(value)
        elif name in _LIFETIMES:
            changes[name] = value or None
    if isinstance(body, WrittenClient):
        changes |= _read_types(body)
    new = msgspec.structs.replace(present, **changes)
    if new != present or secret_hash is not msgspec.UNSET:
        client_decisions.set_settings(cx, client, new, now, secret_hash=secret_hash)


def _read_types(body: WrittenClient) -> dict[str, Any]:
    """Whether it gets refresh tokens is a switch of its own. Raises BadAttribute."""
    changes: dict[str, Any] = {}
    if body.grant_types is not msgspec.UNSET:
        unknown = set(body.grant_types) - {*oauth_clients.GRANT_TYPES.values(), _REFRESH}
        if unknown:
            raise BadAttribute(f"A client's grant types are some of {', '.join(oauth_clients.GRANT_TYPES.values())}.")
        changes["denied_grants"] = tuple(
            made for made, name in oauth_clients.GRANT_TYPES.items() if name not in body.grant_types
        )
    if (asked := _authentication_asked(body)) is not None:
        changes["authentication"] = _BY_KEY if asked == "key" else "secret"
    return changes


def _authentication_asked(body: WrittenClient) -> Literal["secret", "key", "none"] | None:
    """How a client shall authenticate. ``confidential`` alone leaves it to what the client has. Raises BadAttribute."""
    method = body.token_endpoint_auth_method
    if method is msgspec.UNSET:
        asked: Literal["secret", "key", "none"] | None = "secret" if body.secret else None
        asked = "none" if asked is None and body.confidential is False else asked
    elif method in _METHODS:
        asked = "secret" if method in _BY_SECRET else "key" if method == _BY_KEY else "none"
    else:
        raise BadAttribute(f"A client authenticates by one of {', '.join(_METHODS)}.")
    if (asked is not None and body.confidential is (asked == "none")) or (body.secret and asked != "secret"):
        raise BadAttribute("What secret, confidential and tokenEndpointAuthMethod say contradicts itself.")
    return asked


def _put_custom(cx: Connection, client: Entry, body: WrittenClient, now: Instant) -> None:
    if body.custom_attributes is not msgspec.UNSET:
        attributes.put_custom(cx, client, body.custom_attributes, now)


def _show_impersonation(cx: Connection, _: Caller, call: Call) -> ImpersonationSwitch:
    return _impersonation(cx, _find(cx, call))


def _impersonation(cx: Connection, client: Entry) -> ImpersonationSwitch:
    own = oauth_clients.settings_of(cx, client.id)
    return ImpersonationSwitch(allow_impersonation=own.allow_impersonation, impersonate_list=list(own.impersonate_list))


def _set_impersonation(
    cx: Connection, _: Caller, call: Call, body: ImpersonationSwitch, now: Instant
) -> tuple[ImpersonationSwitch, str]:
    client = _find(cx, call)
    _put_settings(cx, call, client, body, now)
    return _impersonation(cx, client), client.name


_UNKNOWN: Table = {UnknownEntry: ErrorCode(404, "unknown_client")}
_WRONG: Table = {
    BadName: ErrorCode(400, "bad_name"),
    BadAttribute: ErrorCode(400, "bad_attribute"),
    NameTaken: ErrorCode(409, "name_taken"),
    UnknownPartition: ErrorCode(404, "unknown_partition"),
    UnknownResource: ErrorCode(404, "unknown_resource"),
}

ROWS = (
    Row(
        "/oauthclients",
        {
            "GET": Method(list_clients, ClientList, parameters=(*paging.PARAMETERS, paging.FILTER)),
            "POST": Method(add, OAuthClient, status=201, body=WrittenClient, of_entry=True),
        },
        _WRONG,
    ),
    Row(
        "/oauthclients/{client}",
        {
            "GET": Method(show, OAuthClient, of_entry=True),
            "PATCH": Method(change, OAuthClient, body=WrittenClient, of_entry=True),
            "PUT": Method(change, OAuthClient, body=WrittenClient, of_entry=True),
            "DELETE": Method(remove, of_entry=True),
        },
        {**_WRONG, **_UNKNOWN, **containment.REMOVAL, NameInUse: ErrorCode(409, "name_in_use")},
    ),
    Row(
        "/oauthclients/{client}/impersonation",
        {
            "GET": Method(show_impersonation, ImpersonationSwitch),
            "PUT": Method(set_impersonation, ImpersonationSwitch, body=ImpersonationSwitch),
        },
        {**_UNKNOWN, BadAttribute: ErrorCode(400, "bad_attribute")},
    ),
)
