"""ACLs by name, and which one an object carries.

Sources: repository.md 8.7 for accessors, permissions and permission sets; that ACLs go by name is ours.
"""

from collections.abc import Mapping

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.repository import acls, objects
from muniment.repository.acls import Acl, Permission, Principals
from muniment.repository.endpoints import descriptions, representations, spelling
from muniment.repository.endpoints.half import BELOW, ENTERING, POSITION, Address, RepositoryHalf, address, entered
from muniment.repository.endpoints.spelling import Written
from muniment.repository.objects import StoredObject
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import (
    InUse,
    NameTaken,
    UnknownAccessor,
    UnknownAcl,
    UnknownObject,
    VersionConflict,
    WrongValue,
)
from muniment.repository.repositories import Repository
from muniment.web import bodies
from muniment.web import xml as strangers_xml
from muniment.web.answers import Said, Table
from muniment.web.refusals import Malformed, UnsupportedMediaType
from muniment.web.xml import Element

TABLE: Table = {
    **ENTERING,
    UnknownAcl: Said(404, "E_UNKNOWN_ACL"),
    UnknownAccessor: Said(400, "E_UNKNOWN_ACCESSOR"),
    WrongValue: Said(400, "E_INVALID_ATTR_VALUE"),
    NameTaken: Said(409, "E_NAME_TAKEN"),
    InUse: Said(409, "E_IN_USE"),
}

ASSIGNING: Table = {
    **TABLE,
    UnknownObject: Said(404, "E_UNKNOWN_OBJECT"),
    UnknownAcl: Said(400, "E_UNKNOWN_ACL"),
    VersionConflict: Said(412, "E_VERSION_CONFLICT"),
}

_LEVELS = {level.name.lower(): level for level in Permission}


class _Permitted(msgspec.Struct, rename="kebab"):
    accessor: str
    basic_permission: str


class _Body(msgspec.Struct, rename="kebab"):
    name: str = ""
    acl_name: str = ""
    permitted: list[_Permitted] | None = None


_body = msgspec.json.Decoder(_Body)


async def listed(request: Request, half: RepositoryHalf) -> Response:
    """GET acls: a feed of those the caller may see."""
    repository, principals = await entered(request, half)
    representations.feed_type(request, half.options.names)
    wanted = representations.page(request, half.options)
    found = await half.desk.read(acls.every, repository.id, principals)
    own = f"{address(request, half, repository)}/acls"
    entries = [
        representations.plain_entry(
            f"{own}/{spelling.segment(acl.name)}", acl.name, acl.owner, f"{len(acl.entries)} entries", acl.modified
        )
        for acl in found
    ]
    shown = entries[wanted.offset : wanted.offset + wanted.size]
    more = len(entries) > wanted.offset + wanted.size
    total = len(entries) if wanted.include_total else None
    return representations.feed_answer(request, half, "ACLs", own, wanted, shown, more, total)


async def make(request: Request, half: RepositoryHalf) -> Response:
    """POST acls: a new ACL, owned by the caller."""
    repository, principals = await entered(request, half)
    media_type = spelling.chosen(request, spelling.both(half.options.names))
    body = await _read(request, half)
    made = await half.desk.write(
        acls.add, repository.id, body.name, principals, _entries(body, half.options.names), half.clock()
    )
    return _answered(request, half, media_type, repository, made, principals, 201)


async def read(request: Request, half: RepositoryHalf) -> Response:
    """GET acls/{name}."""
    repository, principals = await entered(request, half)
    media_type = spelling.chosen(request, spelling.both(half.options.names))
    acl = await half.desk.read(acls.named, repository.id, request.path_params["name"], principals)
    return _answered(request, half, media_type, repository, acl, principals, 200)


async def change(request: Request, half: RepositoryHalf) -> Response:
    """POST acls/{name}: other entries in place of those there were."""
    repository, principals = await entered(request, half)
    media_type = spelling.chosen(request, spelling.both(half.options.names))
    body = await _read(request, half)
    name = request.path_params["name"]
    if body.name and body.name != name:
        raise WrongValue("An ACL keeps its name.")
    entries = _entries(body, half.options.names)
    changed = await half.desk.write(_changed, repository, name, principals, entries, half.clock())
    return _answered(request, half, media_type, repository, changed, principals, 200)


async def remove(request: Request, half: RepositoryHalf) -> Response:
    """DELETE acls/{name}: an ACL that no object carries."""
    repository, principals = await entered(request, half)
    representations.parameters(request, ("force",))
    await half.desk.write(_removed, repository, request.path_params["name"], principals)
    return Response(status_code=204)


async def permission_set(request: Request, half: RepositoryHalf) -> Response:
    """GET permission-set: the object's ACL, what it permits as far as it concerns the caller, and to himself."""
    repository, principals = await entered(request, half)
    media_type = spelling.chosen(request, spelling.both(half.options.names))
    stored, permission, acl = await half.desk.read(
        _permissions, repository, principals, representations.identifier(request)
    )
    return _permission_answer(request, half, media_type, repository, principals, stored, permission, acl)


async def assign(request: Request, half: RepositoryHalf) -> Response:
    """PUT permission-set: another ACL for the object, by name."""
    repository, principals = await entered(request, half)
    media_type = spelling.chosen(request, spelling.both(half.options.names))
    body = await _read(request, half)
    if not body.acl_name:
        raise WrongValue("Name the ACL to assign in 'acl-name'.")
    stored, permission, acl = await half.desk.write(
        _assigned, repository, principals, representations.identifier(request), body.acl_name, half.clock()
    )
    return _permission_answer(request, half, media_type, repository, principals, stored, permission, acl)


def _changed(
    cx: Connection,
    repository: Repository,
    name: str,
    principals: Principals,
    entries: Mapping[str, Permission],
    now: int,
) -> Acl:
    return acls.change(cx, acls.named(cx, repository.id, name, principals), principals, entries, now)


def _removed(cx: Connection, repository: Repository, name: str, principals: Principals) -> None:
    acls.remove(cx, acls.named(cx, repository.id, name, principals), principals)


def _permissions(
    cx: Connection, repository: Repository, principals: Principals, object_id: str
) -> tuple[StoredObject, Permission, Acl]:
    stored, permission = objects.read(cx, repository, object_id, principals)
    return stored, permission, acls.by_id(cx, stored.acl_id)


def _assigned(
    cx: Connection, repository: Repository, principals: Principals, object_id: str, acl_name: str, now: int
) -> tuple[StoredObject, Permission, Acl]:
    stored = objects.assign_acl(cx, repository, principals, object_id, acl_name, now)
    permission = acls.permission(cx, stored.acl_id, stored.owner, principals)
    return stored, permission, acls.by_id(cx, stored.acl_id)


async def _read(request: Request, half: RepositoryHalf) -> _Body:
    kind = bodies.media_type(request)
    if not descriptions.is_one(kind):
        raise UnsupportedMediaType("The body must be application/json or application/xml.")
    bodies.check_encoding(request)
    body = await bodies.raw(request, half.options.max_metadata_bytes)
    if kind.endswith("json"):
        return bodies.decoded_json(body, _body)
    return _from_xml(strangers_xml.parse(body), half.options.names)


def _from_xml(root: Element, names: RepositoryNames) -> _Body:
    body = _Body()
    for part in (root, *root.children):
        if part.namespace != names.vocab_namespace:
            raise Malformed(f"The element {part.name[:100]!r} is not in the vocabulary's namespace ({part.place}).")
    for part in root.children:
        match part.name:
            case "name":
                body.name = part.text
            case "acl-name":
                body.acl_name = part.text.strip()
            case "permitted":
                body.permitted = [_permitted(line) for line in part.children]
    return body


def _permitted(line: Element) -> _Permitted:
    said = {part.name: part.text.strip() for part in line.children}
    if "accessor" not in said or "basic-permission" not in said:
        raise Malformed(f"A permission has an accessor and a basic-permission ({line.place}).")
    return _Permitted(said["accessor"], said["basic-permission"])


def _entries(body: _Body, names: RepositoryNames) -> dict[str, Permission]:
    if body.permitted is None:
        raise WrongValue("Say in 'permitted' who may do how much.")
    entries: dict[str, Permission] = {}
    for line in body.permitted:
        level = _LEVELS.get(line.basic_permission.lower())
        if level is None:
            known = ", ".join(name.capitalize() for name in _LEVELS)
            raise WrongValue(f"There is no permission {line.basic_permission[:40]!r}: it is one of {known}.")
        accessor = spelling.accessor_read(line.accessor, names)
        if accessor in entries:
            raise WrongValue(f"The ACL names {line.accessor[:100]!r} twice.")
        entries[accessor] = level
    return entries


def _answered(
    request: Request,
    half: RepositoryHalf,
    media_type: str,
    repository: Repository,
    acl: Acl,
    principals: Principals,
    status: int,
) -> Response:
    here = address(request, half, repository)
    shown = acls.shown_entries(acl, principals)
    body = spelling.answer(
        media_type, "acl", representations.acl_document(here, acl, shown, half.options.names), half.options.names
    )
    headers = {"Content-Type": media_type, "Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
    if status == 201:
        headers["Location"] = f"{here}/acls/{spelling.segment(acl.name)}"
    return Response(body, status, headers)


def _permission_answer(
    request: Request,
    half: RepositoryHalf,
    media_type: str,
    repository: Repository,
    principals: Principals,
    stored: StoredObject,
    permission: Permission,
    acl: Acl,
) -> Response:
    names = half.options.names
    own = f"{address(request, half, repository)}/objects/{stored.id}"
    shown = acl.entries if principals.is_(stored.owner) else acls.shown_entries(acl, principals)
    document: dict[str, Written] = {
        "acl-name": acl.name,
        "owner": stored.owner,
        "basic-permission": permission.name.capitalize(),
        "permitted": representations.permitted(shown, names),
        "links": [{"rel": "self", "href": f"{own}/permission-set"}, {"rel": "parent", "href": own}],
    }
    headers = {"Content-Type": media_type, "Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
    if stored.position is not None:
        headers[POSITION] = str(stored.position)
    return Response(spelling.answer(media_type, "permission-set", document, names), headers=headers)


ADDRESSES: tuple[Address, ...] = (
    Address(f"{BELOW}/acls", {"GET": listed, "POST": make}, TABLE),
    Address(f"{BELOW}/acls/{{name}}", {"GET": read, "POST": change, "DELETE": remove}, TABLE),
    Address(f"{BELOW}/objects/{{id}}/permission-set", {"GET": permission_set, "PUT": assign}, ASSIGNING),
)
"""The ACL surface: every address below a repository that this module answers."""
