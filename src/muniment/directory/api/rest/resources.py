"""Resources: find, make, change, activate and remove them, and say who may act there for others.

A path names a resource by its identifier or by its name.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.database.audit import Actor, acting
from muniment.directory import audit
from muniment.directory.administration import resource_decisions
from muniment.directory.api.rest import access_roles, identifiers, paging, resource_tokens
from muniment.directory.api.rest.access_roles import RoleOfResource
from muniment.directory.api.rest.callers import Caller, RequiredRight
from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.dialect import spelled
from muniment.directory.entries import access_roles as stored_roles
from muniment.directory.entries import resources
from muniment.directory.entries.resources import Resource
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    AlreadyActivated,
    BadAttribute,
    BadName,
    CannotKnow,
    HasDependents,
    NameInUse,
    NameTaken,
    NobodyAdministers,
    NotSignedIn,
    StillGuards,
    UnknownResource,
    WrongSecret,
)
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.web.answers.responses import ErrorCode, Table
from muniment.web.requests.transport import caller_address


class AttributeMapping(msgspec.Struct, kw_only=True):
    """How an attribute of users or groups is called at a resource: kept and shown."""

    source_attr: list[str] = []
    dest_attr: str = ""
    mapping_format: str = ""


class ConnectionParameter(msgspec.Struct, kw_only=True):
    """A parameter of a resource's connector: kept and shown."""

    name: str = ""
    value: str = ""


_SPELLINGS = {
    "resource_id": "resourceID",
    "resource_dn": "resourceDN",
    "logout_url": "logoutURL",
    "connector_id": "connectorid",
    "logon_ux_version": "logonUXVersion",
}


@spelled({"logout_url": "logoutURL", "connector_id": "connectorid", "logon_ux_version": "logonUXVersion"})
class KeptSettings(msgspec.Struct, kw_only=True):
    """What programs of the field write to a resource: it is kept and shown, and nothing reads it."""

    user_synchronization_state: bool = False
    resource_type: str = ""
    impersonate_anonymous_list: list[str] = []
    pc_create_permission_allowed: bool = False
    pc_modify_permission_allowed: bool = False
    pc_delete_permission_allowed: bool = False
    logout_url: str = ""
    logout_method: str = ""
    connector_name: str = ""
    connector_id: str = ""
    user_attribute_mapping: list[AttributeMapping] = []
    group_attribute_mapping: list[AttributeMapping] = []
    connection_param_info: list[ConnectionParameter] = []
    logon_style: str = ""
    logon_ux_version: int = 0


_KEPT = msgspec.json.Decoder(KeptSettings)


@spelled(_SPELLINGS)
class ResourceObject(KeptSettings, kw_only=True):
    """A protected API. Its state is 1 once it has been activated, and 0 before."""

    resource_name: str
    id: str
    description: str
    display_name: str
    resource_id: str
    resource_state: int
    resource_dn: str
    access_role_list: list[RoleOfResource]
    allow_impersonation: bool
    impersonate_list: list[str]
    is_authentication_enabled: bool
    is_synchronization_enabled: bool
    address: str = ""
    token_format: str = "opaque"  # noqa: S105 - no password
    token_life_time: int = 0
    connection_healthy: bool = True


@spelled(_SPELLINGS)
class WrittenResource(resource_tokens.TokenSettings, kw_only=True):
    """A new resource, or what is to change of one. ``secret_key`` activates a new one."""

    resource_name: str | msgspec.UnsetType = msgspec.UNSET
    name: str = ""
    id: str = ""
    description: str | msgspec.UnsetType = msgspec.UNSET
    display_name: str | msgspec.UnsetType = msgspec.UNSET
    resource_id: str = ""
    secret_key: str = ""
    allow_impersonation: bool | msgspec.UnsetType = msgspec.UNSET
    impersonate_list: list[str] | msgspec.UnsetType = msgspec.UNSET
    user_synchronization_state: bool | msgspec.UnsetType = msgspec.UNSET
    resource_type: str | msgspec.UnsetType = msgspec.UNSET
    impersonate_anonymous_list: list[str] | msgspec.UnsetType = msgspec.UNSET
    pc_create_permission_allowed: bool | msgspec.UnsetType = msgspec.UNSET
    pc_modify_permission_allowed: bool | msgspec.UnsetType = msgspec.UNSET
    pc_delete_permission_allowed: bool | msgspec.UnsetType = msgspec.UNSET
    logout_url: str | msgspec.UnsetType = msgspec.UNSET
    logout_method: str | msgspec.UnsetType = msgspec.UNSET
    connector_name: str | msgspec.UnsetType = msgspec.UNSET
    connector_id: str | msgspec.UnsetType = msgspec.UNSET
    user_attribute_mapping: list[AttributeMapping] | msgspec.UnsetType = msgspec.UNSET
    group_attribute_mapping: list[AttributeMapping] | msgspec.UnsetType = msgspec.UNSET
    connection_param_info: list[ConnectionParameter] | msgspec.UnsetType = msgspec.UNSET
    logon_style: str | msgspec.UnsetType = msgspec.UNSET
    logon_ux_version: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def new_name(self) -> str:
        return self.resource_name or self.name or self.id


class ResourceList(paging.PageFields, kw_only=True):
    """A page of resources."""

    resource_config_list: list[ResourceObject]


class ResourceStatus(msgspec.Struct, kw_only=True):
    """Which state a resource is in, or is to be in. Without authentication, nobody signs in to it."""

    is_activated: bool | msgspec.UnsetType = msgspec.UNSET
    is_authentication_enabled: bool | msgspec.UnsetType = msgspec.UNSET
    is_synchronization_enabled: bool | msgspec.UnsetType = msgspec.UNSET


class ImpersonationSwitch(msgspec.Struct, kw_only=True):
    """May others act here for users, and for whom: an empty list stands for everybody."""

    allow_impersonation: bool | msgspec.UnsetType = msgspec.UNSET
    impersonate_list: list[str] | msgspec.UnsetType = msgspec.UNSET


class OwnSecret(msgspec.Struct, kw_only=True):
    """The resource's own secret, under any of its names."""

    secure_secret: str = ""
    authenticator: str = ""
    secret_key: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.secure_secret, self.authenticator, self.secret_key


@spelled(rest={"secret_key": "secret_key"})
class ResourceSecret(msgspec.Struct):
    """The secret of a resource, under two names. No later answer repeats it."""

    secret_key: str
    secretKey: str  # noqa: N815 - the name on the wire


async def list_resources(call: Call) -> Response:
    """List resources, by name."""
    return call.answer(await call.read(_page, call.names, call.wanted("resources")))


@events.tells("resource", "activation")
async def add(call: Call) -> Response:
    """Make a resource with its access role. With a secret it is activated at once."""
    body = await call.body(WrittenResource)
    shown = await call.write(_add, call, body, call.now)
    call.on(shown.resource_name)
    if body.secret_key and call.event is not None:
        how = "with a secret that the caller chose"
        events.begin(call.request.scope, "activation", who=call.event.who, on=shown.resource_name, how=how)
    return call.answer(shown, 201)


async def show(call: Call) -> Response:
    """Show a resource."""
    return call.answer(await call.read(_show, call))


@events.tells("resource")
async def change(call: Call) -> Response:
    """Change what the body names of a resource."""
    body = await call.body(WrittenResource)
    shown = await call.write(_change, call, body, call.now)
    call.on(shown.resource_name)
    return call.answer(shown)


@events.tells("resource")
async def remove(call: Call) -> Response:
    """Remove a resource that guards no repository. Its sessions end."""
    call.on(await call.write(_remove, call, call.now))
    return call.done()


@events.tells("activation")
async def activate(call: Call) -> Response:
    """Activate a resource, which happens once."""
    secret, shown_name = await call.write(_activate, call, call.now)
    call.on(shown_name)
    return call.answer(ResourceSecret(secret, secret))


@events.tells("activation")
async def deactivate(call: Call) -> Response:
    """Deactivate a resource by its own secret. Its sessions end, and it can be activated again."""
    body = await call.body(OwnSecret)
    if call.event is not None:
        call.event.how = "deactivated"
    resource_id, secret = await call.read(_with_own_secret, call, body)
    call.on(await call.write(_deactivate, call, resource_id, secret, call.now))
    return call.done()


async def show_status(call: Call) -> Response:
    """Show which state a resource is in."""
    return call.answer(await call.read(_show_status, call))


@events.tells("resource")
async def set_status(call: Call) -> Response:
    """Set which state a resource is in. A resource that is activated so has no secret."""
    body = await call.body(ResourceStatus)
    call.on(await call.write(_set_status, call, body, call.now))
    return call.done()


async def show_impersonation(call: Call) -> Response:
    """Show whether others may act at a resource for users."""
    return call.answer(await call.read(_show_impersonation, call))


@events.tells("resource")
async def set_impersonation(call: Call) -> Response:
    """Permit or forbid that others act at a resource for users."""
    body = await call.body(ImpersonationSwitch)
    answer, shown_name = await call.write(_set_impersonation, call, body, call.now)
    call.on(shown_name)
    return call.answer(answer)


def _find(cx: Connection, call: Call) -> Resource:
    return identifiers.find_resource(cx, call.names, call.part("resource"))


def _describe(cx: Connection, names: DirectoryNames, several: Sequence[Resource]) -> list[ResourceObject]:
    roles = stored_roles.read(cx, names, several)
    described = []
    for resource in several:
        name = resources.shown_name(names, resource)
        described.append(
            ResourceObject(
                resource_name=name,
                id=name,
                description=resource.description,
                display_name=resource.display_name,
                resource_id=resource.id,
                resource_state=int(resource.activated is not None),
                resource_dn=resources.location(names, resource),
                access_role_list=[access_roles.of_resource(names, resource, roles[resource.id])],
                allow_impersonation=resource.allow_impersonation,
                impersonate_list=list(resource.impersonate_list),
                is_authentication_enabled=resource.authentication_enabled,
                is_synchronization_enabled=resource.synchronization_enabled,
                **resource_tokens.describe(resource),
                **_fields(_KEPT.decode(resource.settings)),
            )
        )
    return described


def _fields(kept: KeptSettings) -> dict[str, Any]:
    return {name: getattr(kept, name) for name in KeptSettings.__struct_fields__}


def _page(cx: Connection, _: Caller, names: DirectoryNames, wanted: paging.Wanted) -> ResourceList:
    after = wanted.after(cx)
    found, end = resources.page(cx, names, wanted.filter or "", after.key if after else None, wanted.size)
    shown = _describe(cx, names, found)
    return ResourceList(resource_config_list=shown, **wanted.fields(cx, len(shown), paging.after_key(end)))


def _show(cx: Connection, _: Caller, call: Call) -> ResourceObject:
    return _describe(cx, call.names, [_find(cx, call)])[0]


def _add(cx: Connection, _: Caller, call: Call, body: WrittenResource, now: Instant) -> ResourceObject:
    names = call.names
    resource = resource_decisions.add_resource(
        cx, names, body.new_name, now, resource_id=body.resource_id or None, secret=body.secret_key or None
    )
    _put(cx, resource, body, now)
    resource_tokens.put(cx, call, resource, body, now)
    return _describe(cx, names, [resources.by_id(cx, resource.id)])[0]


def _change(cx: Connection, _: Caller, call: Call, body: WrittenResource, now: Instant) -> ResourceObject:
    resource = _find(cx, call)
    if body.resource_id and not _is_same(body.resource_id, resource):
        raise BadAttribute("A resource keeps its identifier.")
    name = resources.shown_name(call.names, resource)
    with audit.decision(cx, "resource changed", resource.target):
        if body.resource_name is not msgspec.UNSET and body.resource_name != name:
            resource_decisions.rename_resource(cx, call.names, resource, body.resource_name, now)
        _put(cx, resource, body, now)
        resource_tokens.put(cx, call, resource, body, now)
    return _describe(cx, call.names, [resources.by_id(cx, resource.id)])[0]


def _is_same(text: str, resource: Resource) -> bool:
    with suppress(UnknownResource):
        return resources.is_same_id(text, resource.id)
    return False


def _put(cx: Connection, resource: Resource, body: WrittenResource | ImpersonationSwitch, now: Instant) -> None:
    written = {name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not msgspec.UNSET}
    changes: dict[str, Any] = {name: written[name] for name in ("description", "display_name") if name in written}
    kept = {name: written[name] for name in KeptSettings.__struct_fields__ if name in written}
    if kept:
        whole = KeptSettings(**_fields(_KEPT.decode(resource.settings)) | kept)
        changes["settings"] = msgspec.json.encode(whole).decode()
    if changes:
        resources.change(cx, resource, **changes)
    allowed = written.get("allow_impersonation", resource.allow_impersonation)
    only = written.get("impersonate_list", resource.impersonate_list)
    if (allowed, list(only)) != (resource.allow_impersonation, list(resource.impersonate_list)):
        resource_decisions.set_impersonation(cx, resource, allowed, only, now)


def _remove(cx: Connection, _: Caller, call: Call, now: Instant) -> str:
    resource = _find(cx, call)
    try:
        call.directory.dependencies.remove_resource(cx, resource, now)
    except BadName as refusal:
        raise HasDependents(refusal.sentence) from refusal
    return resources.shown_name(call.names, resource)


def _activate(cx: Connection, _: Caller, call: Call, now: Instant) -> tuple[str, str]:
    resource = _find(cx, call)
    return resources.activate(cx, resource.id, now), resources.shown_name(call.names, resource)


def _with_own_secret(cx: Connection, _: Caller, call: Call, body: OwnSecret) -> tuple[str, str]:
    """Return the resource's identifier and its secret, before anything is written. One refusal for every mistake: a
    stranger does not learn which resources there are. Raises NotSignedIn.
    """
    for secret in filter(None, body.secrets):
        with suppress(UnknownResource, WrongSecret):
            return resources.with_secret(cx, _find(cx, call).id, secret).id, secret
    raise NotSignedIn("There is no activated resource with this identifier and secret.")


def _deactivate(cx: Connection, _: Caller, call: Call, resource_id: str, secret: str, now: Instant) -> str:
    """The resource itself decides."""
    itself = resources.scope(call.names, resources.by_id(cx, resource_id))
    with acting(Actor(itself, caller_address(call.request), resource_id), call.directory.clock):
        resource, _count = resource_decisions.deactivate(cx, resource_id, secret, now)
    return resources.shown_name(call.names, resource)


def _show_status(cx: Connection, _: Caller, call: Call) -> ResourceStatus:
    resource = _find(cx, call)
    return ResourceStatus(
        is_activated=resource.activated is not None,
        is_authentication_enabled=resource.authentication_enabled,
        is_synchronization_enabled=resource.synchronization_enabled,
    )


def _set_status(cx: Connection, _: Caller, call: Call, body: ResourceStatus, now: Instant) -> str:
    resource = _find(cx, call)
    resource_decisions.set_status(
        cx,
        resource,
        now,
        activated=_given(body.is_activated),
        authentication=_given(body.is_authentication_enabled),
        synchronization=_given(body.is_synchronization_enabled),
    )
    return resources.shown_name(call.names, resource)


def _given(value: bool | msgspec.UnsetType) -> bool | None:
    return None if value is msgspec.UNSET else value


def _show_impersonation(cx: Connection, _: Caller, call: Call) -> ImpersonationSwitch:
    return _impersonation(_find(cx, call))


def _impersonation(resource: Resource) -> ImpersonationSwitch:
    return ImpersonationSwitch(
        allow_impersonation=resource.allow_impersonation, impersonate_list=list(resource.impersonate_list)
    )


def _set_impersonation(
    cx: Connection, _: Caller, call: Call, body: ImpersonationSwitch, now: Instant
) -> tuple[ImpersonationSwitch, str]:
    resource = _find(cx, call)
    _put(cx, resource, body, now)
    return _impersonation(resources.by_id(cx, resource.id)), resources.shown_name(call.names, resource)


_UNKNOWN: Table = {UnknownResource: ErrorCode(404, "unknown_resource")}
_WRONG: Table = {
    BadName: ErrorCode(400, "bad_name"),
    BadAttribute: ErrorCode(400, "bad_attribute"),
    NameTaken: ErrorCode(409, "name_taken"),
    AlreadyActivated: ErrorCode(409, "already_activated"),
}
_BUILT_IN: Table = {BadName: ErrorCode(400, "built_in")}

ROWS = (
    Row(
        "/resources",
        {
            "GET": Method(list_resources, ResourceList, parameters=(*paging.PARAMETERS, paging.FILTER)),
            "POST": Method(add, ResourceObject, status=201, body=WrittenResource),
        },
        _WRONG,
    ),
    Row(
        "/resources/{resource}",
        {
            "GET": Method(show, ResourceObject),
            "PUT": Method(change, ResourceObject, body=WrittenResource),
            "DELETE": Method(remove),
        },
        {
            **_WRONG,
            **_UNKNOWN,
            NameInUse: ErrorCode(409, "name_in_use"),
            HasDependents: ErrorCode(409, "has_dependents"),
            StillGuards: ErrorCode(409, "still_guards"),
            CannotKnow: ErrorCode(409, "cannot_know"),
            NobodyAdministers: ErrorCode(409, "nobody_administers"),
        },
    ),
    Row(
        "/resources/{resource}/activate",
        {"POST": Method(activate, ResourceSecret)},
        {**_UNKNOWN, AlreadyActivated: ErrorCode(409, "already_activated")},
    ),
    Row(
        "/resources/{resource}/deactivate",
        {"POST": Method(deactivate, body=OwnSecret, right=RequiredRight.OPEN)},
        {**_BUILT_IN, **dict.fromkeys((NotSignedIn, UnknownResource, WrongSecret), ErrorCode(401, "not_signed_in"))},
    ),
    Row(
        "/resources/{resource}/status",
        {"GET": Method(show_status, ResourceStatus), "PUT": Method(set_status, body=ResourceStatus)},
        {**_UNKNOWN, **_BUILT_IN},
    ),
    Row(
        "/resources/{resource}/impersonation",
        {
            "GET": Method(show_impersonation, ImpersonationSwitch),
            "PUT": Method(set_impersonation, ImpersonationSwitch, body=ImpersonationSwitch),
        },
        {**_UNKNOWN, BadAttribute: ErrorCode(400, "bad_attribute")},
    ),
)
