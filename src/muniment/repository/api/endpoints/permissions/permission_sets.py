"""Who may do what with an object?

Source: docs/interface.md, ours 4.
"""

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.events import Event
from muniment.ground.naming import fold_name
from muniment.repository import bare_names
from muniment.repository.api.context import Caller, RepositoryContext, enter, enter_for_thing
from muniment.repository.api.endpoints.people import people as people_endpoint
from muniment.repository.api.endpoints.permissions import acls as acls_endpoint
from muniment.repository.api.endpoints.permissions.acls import AclBody
from muniment.repository.api.shapes import representations
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import NotPermitted, UnknownPerson, WrongValue
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import assigned_acls
from muniment.repository.store.objects.listing import object_acls
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions import acl_entries, acl_look_up, acls, name_keys
from muniment.repository.store.permissions.principals import WORLD, Permission, Principals
from muniment.repository.store.repositories import Repository


class _Permissions(msgspec.Struct, frozen=True):
    """``permission`` is the caller's, or None for the ACL of new objects."""

    stored: StoredObject
    permission: Permission | None
    acl_name: str
    entries: Mapping[str, Permission]


async def permission_set(request: Request, context: RepositoryContext) -> Response:
    """Show the ACL of an object, and what it permits."""
    caller, media_type = await enter_for_thing(request, context)
    repository, object_id = caller.repository, representations.identifier(request)
    permissions = await caller.read(lambda cx, principals: _permissions(cx, repository, principals, object_id))
    return _answer(caller, media_type, permissions)


@events.tells("acl")
async def assign(request: Request, context: RepositoryContext) -> Response:
    """Assign another ACL to an object, or put entries on it."""
    event = events.begin(request.scope, "acl", how="assigned")
    caller, media_type = await enter_for_thing(request, context, event)
    repository, object_id = caller.repository, representations.identifier(request)
    body = await acls_endpoint.read_body(request, context)
    entries = _assigned_entries(body, context.names)
    return await _change(
        caller,
        event,
        media_type,
        lambda cx, principals: _assign(cx, context, repository, principals, object_id, body.acl_name, entries),
    )


async def of_user(request: Request, context: RepositoryContext) -> Response:
    """Show the ACL that a user's new objects get in no folder."""
    caller, media_type = await enter_for_thing(request, context)
    user = await people_endpoint.find_person(request, context, caller, "user")
    own = representations.user_address(caller.here, user.id)
    document: dict[str, Written] = {
        "acl-name": acls.PRIVATE,
        "owner": user.id,
        "permitted": representations.acl_entry_documents(acls.BUILT_IN[acls.PRIVATE], context.names),
        "links": [{"rel": "self", "href": f"{own}/permission-set"}, {"rel": "parent", "href": own}],
    }
    return spelling.reply(media_type, "permission-set", document, context.names)


async def default_set(request: Request, context: RepositoryContext) -> Response:
    """Show the ACL that new objects in a folder get."""
    caller, media_type = await enter_for_thing(request, context)
    repository, folder_id = caller.repository, representations.identifier(request)

    def read(cx: Connection, principals: Principals) -> _Permissions:
        stored, _ = objects.read(cx, repository, folder_id, principals, "folder")
        return _default_of(cx, stored, principals)

    permissions = await caller.read(read)
    return _answer(caller, media_type, permissions)


@events.tells("acl")
async def set_default(request: Request, context: RepositoryContext) -> Response:
    """Choose the ACL that new objects in a folder get."""
    event = events.begin(request.scope, "acl", how="made the default")
    caller, media_type = await enter_for_thing(request, context, event)
    repository, folder_id = caller.repository, representations.identifier(request)
    body = await acls_endpoint.read_body(request, context)
    entries = _assigned_entries(body, context.names)

    def decide(cx: Connection, principals: Principals) -> _Permissions:
        stored, _ = objects.read(cx, repository, folder_id, principals, "folder")
        present_name = _default_of(cx, stored, principals).acl_name
        new = _wanted(context, principals, body.acl_name, entries, present_name)
        stored = assigned_acls.set_default_acl(cx, repository, principals, folder_id, new, context.clock())
        return _default_of(cx, stored, principals)

    return await _change(caller, event, media_type, decide)


@events.tells("acl")
async def remove_default(request: Request, context: RepositoryContext) -> Response:
    """Give new objects the ACL of their folder again."""
    event = events.begin(request.scope, "acl", how="no longer the default")
    caller = await enter(request, context, event)
    folder_id = representations.identifier(request)
    stored, position = await caller.change(
        lambda cx, principals: assigned_acls.set_default_acl(
            cx, caller.repository, principals, folder_id, None, context.clock()
        ),
        lambda stored: stored.position,
    )
    event.on = stored.id
    return Response(status_code=204, headers=position)


async def effective(request: Request, context: RepositoryContext) -> Response:
    """Show what an accessor may do with an object."""
    caller, media_type = await enter_for_thing(request, context)
    repository, object_id = caller.repository, representations.identifier(request)
    names = context.names
    asked = spelling.read_accessor(parameters.read(request).get(parameters.ACCESSOR.name, ""), names)
    accessor = bare_names.full_name(asked, context.options)
    # The directory may take a while to answer who the accessor is.
    level, shown = await caller.read_long(
        lambda cx, principals: _effective(cx, context, repository, principals, object_id, accessor)
    )
    own = f"{caller.here}/objects/{object_id}"
    name = spelling.write_accessor(shown, names)
    here = f"{own}/permissions" + (f"?{urlencode({parameters.ACCESSOR.name: name})}" if accessor else "")
    document: dict[str, Written] = {
        "accessor": name,
        "basic-permission": level.name.capitalize(),
        "links": [{"rel": "self", "href": here}, {"rel": "parent", "href": own}],
    }
    return spelling.reply(media_type, "permission", document, names)


def _effective(
    cx: Connection,
    context: RepositoryContext,
    repository: Repository,
    principals: Principals,
    object_id: str,
    accessor: str,
) -> tuple[Permission, str]:
    """Return the permission, and the accessor's shown name. The owner and administrators may ask about anybody, others
    about themselves and the world.
    """
    stored, permission = objects.read(cx, repository, object_id, principals)
    if accessor == "" or fold_name(accessor) == fold_name(principals.id):
        return permission, principals.id
    if accessor == WORLD:
        return acl_entries.permission(cx, stored.acl_id, stored.owner_key, Principals(WORLD)), accessor
    if not (principals.administrator or principals.is_(stored.owner_key)):
        raise NotPermitted("Only its owner or an administrator may ask what others may do with an object.")
    other = _principals(cx, context, repository, accessor)
    return acl_entries.permission(cx, stored.acl_id, stored.owner_key, other), other.id


def _principals(cx: Connection, context: RepositoryContext, repository: Repository, accessor: str) -> Principals:
    try:
        return people_endpoint.principals_of(cx, context, repository, accessor)
    except UnknownPerson:
        group = people_endpoint.of_directory(context).find(repository.resource_id, "group", accessor)
        other = Principals(group.id, identities={fold_name(group.id): group.identity})
        return other.with_keys(name_keys.keys(cx, other.names))


async def _change(
    caller: Caller,
    event: Event,
    media_type: str,
    decide: Callable[[Connection, Principals], _Permissions],
) -> Response:
    permissions, position = await caller.change(decide, lambda permissions: permissions.stored.position)
    event.on = f"{permissions.stored.id}: {permissions.acl_name}"
    answer = _answer(caller, media_type, permissions)
    answer.headers.update(position)
    return answer


def _permissions(cx: Connection, repository: Repository, principals: Principals, object_id: str) -> _Permissions:
    stored, permission = objects.read(cx, repository, object_id, principals)
    return _permitted_by(cx, stored, permission, principals)


def _assigned_entries(body: AclBody, names: RepositoryNames) -> dict[str, Permission] | None:
    if body.permitted is not None:
        return acls_endpoint.read_entries(body.permitted, names)
    if not body.acl_name:
        raise WrongValue("Name an ACL in 'acl-name', or say in 'permitted' who may do how much.")
    return None


def _assign(
    cx: Connection,
    context: RepositoryContext,
    repository: Repository,
    principals: Principals,
    object_id: str,
    acl_name: str,
    entries: Mapping[str, Permission] | None,
) -> _Permissions:
    stored, _ = objects.read(cx, repository, object_id, principals)
    new = _wanted(context, principals, acl_name, entries, object_acls.shown_name(cx, stored, principals))
    now = context.clock()
    if isinstance(new, str):
        stored = assigned_acls.assign(cx, repository, principals, object_id, new, now)
    else:
        stored = assigned_acls.permit(cx, repository, principals, object_id, new, now)
    return _permitted_by(
        cx, stored, acl_entries.permission(cx, stored.acl_id, stored.owner_key, principals), principals
    )


def _wanted(
    context: RepositoryContext,
    principals: Principals,
    acl_name: str,
    entries: Mapping[str, Permission] | None,
    present_name: str,
) -> str | Mapping[str, Permission]:
    """Take the entries if the ACL named is there already, otherwise the ACL."""
    if entries is None or acl_name not in ("", present_name):
        return bare_names.full_acl_name(acl_name, context.options)
    return acls_endpoint.with_whole_names(entries, principals, context.options)


def _permitted_by(cx: Connection, stored: StoredObject, permission: Permission, principals: Principals) -> _Permissions:
    acl_name = object_acls.shown_name(cx, stored, principals)
    return _Permissions(stored, permission, acl_name, _shown_entries(cx, stored, stored.acl_id, principals))


def _default_of(cx: Connection, stored: StoredObject, principals: Principals) -> _Permissions:
    if stored.default_acl_id is None:
        acl_id, acl_name = stored.acl_id, object_acls.shown_name(cx, stored, principals)
    else:
        acl_id, acl_name = stored.default_acl_id, acl_look_up.shown_name(cx, stored.default_acl_id, principals)
    return _Permissions(stored, None, acl_name, _shown_entries(cx, stored, acl_id, principals))


def _shown_entries(
    cx: Connection, stored: StoredObject, acl_id: int, principals: Principals
) -> Mapping[str, Permission]:
    return acls.shown_entries(cx, acls.by_id(cx, acl_id), principals, every=principals.is_(stored.owner_key))


def _answer(caller: Caller, media_type: str, permissions: _Permissions) -> Response:
    names, stored = caller.names, permissions.stored
    of_object = permissions.permission is not None
    resource, name = ("objects", "permission-set") if of_object else ("folders", "default-permission-set")
    own = f"{caller.here}/{resource}/{stored.id}"
    document: dict[str, Written] = {"acl-name": permissions.acl_name, "owner": stored.owner}
    if permissions.permission is not None:
        document["basic-permission"] = permissions.permission.name.capitalize()
    document["permitted"] = representations.acl_entry_documents(permissions.entries, names)
    document["links"] = [{"rel": "self", "href": f"{own}/{name}"}, {"rel": "parent", "href": own}]
    return spelling.reply(media_type, "permission-set", document, names)
