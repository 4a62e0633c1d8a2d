"""Which protected APIs are there, are they activated, and who is in their access role (given 2.2, 3, 4.5, 5.2)?

Members of a role are users, groups, units and partitions. A user is in it as a member, or in a member, however deep.
"""

import base64
import hashlib
import secrets
import uuid
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import BigId, PreparedStatement, directory_tables, required
from muniment.directory.entries import entries
from muniment.directory.entries import names as spelling
from muniment.directory.entries.memberships import containers
from muniment.directory.entries.table import Entry, once_named
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import AccessEnded, AlreadyActivated, BadName, NameTaken, UnknownResource
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name

ADMINISTRATION = "administration"
# '+' is in no resource's name, so no other resource can have this one.
_STORED_ADMINISTRATION = f"+{ADMINISTRATION}"

_resources = sa.Table(
    "resources",
    directory_tables,
    sa.Column("id", sa.String(36), primary_key=True),
    required("name", sa.String(120)),
    required("name_key", sa.String(400), unique=True),
    required("description", sa.Text),
    sa.Column("built_in", sa.String(20)),
    sa.Column("activated", sa.BigInteger),
    sa.Column("secret_digest", sa.LargeBinary),
    required("created", sa.BigInteger),
)

_roles = sa.Table(
    "access_roles",
    directory_tables,
    sa.Column("id", BigId, primary_key=True),
    required("resource_id", sa.ForeignKey("resources.id", ondelete="CASCADE"), unique=True),
    required("created", sa.BigInteger),
)

_role_members = sa.Table(
    "access_role_members",
    directory_tables,
    sa.Column("role_id", sa.ForeignKey("access_roles.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("entry_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True, index=True),
)


class Resource(msgspec.Struct, frozen=True):
    """``name`` is the stored name, ``shown_name`` that on the wire, ``activated`` when it was, if it was."""

    id: str
    name: str
    description: str
    built_in: str | None
    activated: Instant | None
    created: Instant


def shown_name(names: DirectoryNames, resource: Resource) -> str:
    return names.administration_resource if resource.built_in == ADMINISTRATION else resource.name


def scope(names: DirectoryNames, resource: Resource) -> str:
    return spelling.scope(shown_name(names, resource))


def initialise(cx: Connection, now: Instant) -> Resource:
    """The administration's resource: activated, with the administrators in its access role."""
    resource = _first(cx, _COLUMNS.where(_resources.c.built_in == ADMINISTRATION))
    if resource is not None:
        return resource
    resource = _insert(cx, _STORED_ADMINISTRATION, "The administration of this directory.", now, ADMINISTRATION)
    activate(cx, resource.id, now)
    add_to_role(cx, resource, entries.administrators(cx))
    return by_id(cx, resource.id)


def add(cx: Connection, names: DirectoryNames, name: str, now: Instant, *, description: str = "") -> Resource:
    """With its access role, not yet activated (given 2.2). Raises BadName, NameTaken, BadAttribute."""
    name, description = spelling.check_resource(name), spelling.check_description(description)
    _check_not_built_in(names, name)
    return _insert(cx, name, description, now, None)


def activate(cx: Connection, resource_id: str, now: Instant) -> str:
    """Return its secret (given 3, 4.5): only one call ever does. Raises UnknownResource, AlreadyActivated."""
    # 16 random bytes as 24 characters: clients in the field expect a secret key of this form.
    secret = base64.b64encode(secrets.token_bytes(16)).decode()
    update = cx.execute(
        _resources.update()
        .where(_resources.c.id == _uuid(resource_id), _resources.c.activated.is_(None))
        .values(activated=now, secret_digest=hashlib.sha256(secret.encode()).digest())
    )
    if update.rowcount == 1:
        return secret
    by_id(cx, resource_id)
    raise AlreadyActivated("The resource has been activated before.")


def by_id(cx: Connection, resource_id: str) -> Resource:
    """The UUID may have any spelling. Raises UnknownResource."""
    row = _BY_ID.first(cx, resource=_uuid(resource_id))
    if row is None:
        raise UnknownResource("There is no resource with this identifier.")
    return Resource(*row)


def is_same_id(text: str, resource_id: str) -> bool:
    """The text may spell the UUID in any way. Raises UnknownResource if it is none."""
    return text == resource_id or _uuid(text) == resource_id


def find(cx: Connection, names: DirectoryNames, name: str) -> Resource:
    """Needs the exact name on the wire: case matters in scopes (RFC 6749 3.3). Raises UnknownResource."""
    administration = name == names.administration_resource
    resource = _first(cx, _BY_NAME, {"name": _STORED_ADMINISTRATION if administration else fold_name(name)})
    if resource is None or shown_name(names, resource) != name:
        raise UnknownResource(f"There is no resource {name[:100]!r}.")
    return resource


def administration(cx: Connection) -> Resource:
    """Raises UnknownResource before initialisation."""
    resource = _first(cx, _BY_NAME, {"name": _STORED_ADMINISTRATION})
    if resource is None:
        raise UnknownResource("The directory has not been initialised.")
    return resource


def all_resources(cx: Connection) -> list[Resource]:
    """The oldest first."""
    return [Resource(*row) for row in cx.execute(_COLUMNS.order_by(_resources.c.created, _resources.c.name_key))]


def with_role_member(cx: Connection, entry: Entry) -> list[Resource]:
    ids = sa.select(_roles.c.resource_id).join(_role_members).where(_role_members.c.entry_id == entry.id)
    return [Resource(*row) for row in cx.execute(_COLUMNS.where(_resources.c.id.in_(ids)))]


def names_of(cx: Connection, names: DirectoryNames) -> dict[str, str]:
    return {resource.id: shown_name(names, resource) for resource in all_resources(cx)}


def delete(cx: Connection, resource: Resource) -> None:
    """Its tokens are not valid then. Raises BadName for the administration's resource."""
    if resource.built_in is not None:
        raise BadName("The administration's resource cannot be deleted.")
    cx.execute(_resources.delete().where(_resources.c.id == resource.id))


def rename(cx: Connection, names: DirectoryNames, resource: Resource, name: str) -> None:
    """Raises BadName, also for the administration's resource, and NameTaken."""
    if resource.built_in is not None:
        raise BadName("The administration's resource keeps its name: the settings say how it is shown.")
    name = spelling.check_resource(name)
    _check_not_built_in(names, name)
    update = _resources.update().where(_resources.c.id == resource.id).values(name=name, name_key=fold_name(name))
    with once_named(cx, f"a resource {name!r}"):
        cx.execute(update)


def set_description(cx: Connection, resource: Resource, description: str) -> None:
    """Raises BadAttribute."""
    spelling.check_description(description)
    cx.execute(_resources.update().where(_resources.c.id == resource.id).values(description=description))


def add_to_role(cx: Connection, resource: Resource, entry: Entry) -> None:
    cx.execute(
        sa.text(
            "INSERT INTO access_role_members (role_id, entry_id) "
            "SELECT id, :entry FROM access_roles WHERE resource_id = :resource ON CONFLICT DO NOTHING"
        ).bindparams(sa.bindparam("entry", type_=sa.BigInteger)),
        {"resource": resource.id, "entry": entry.id},
    )


def remove_from_role(cx: Connection, resource: Resource, entry: Entry) -> None:
    role = sa.select(_roles.c.id).where(_roles.c.resource_id == resource.id).scalar_subquery()
    cx.execute(_role_members.delete().where(_role_members.c.role_id == role, _role_members.c.entry_id == entry.id))


def role_members(cx: Connection, resource: Resource) -> list[Entry]:
    return entries.read(cx, _MEMBERS, {"resource": resource.id})


def role_containers(cx: Connection, resource: Resource) -> list[Entry]:
    return entries.read(cx, _CONTAINERS, {"resource": resource.id})


def in_role(resource_id: str) -> sa.Select[tuple[int]]:
    """Raises UnknownResource if the identifier is no UUID."""
    return (
        sa.select(_role_members.c.entry_id)
        .join(_roles)
        .where(_roles.c.resource_id == sa.literal(_uuid(resource_id), sa.String))
    )


def acting_in_role(cx: Connection, resource: Resource) -> bool:
    return cx.execute(_ACTING, {"resource": resource.id}).first() is not None


def admits(cx: Connection, resource_id: str, user_id: int) -> bool:
    """Whether a user is in the access role (given 5.2), in one statement whatever the answer."""
    return cx.execute(_ADMITS, {"resource": resource_id, "entry": user_id}).first() is not None


def require_access(cx: Connection, user_id: int, resource_id: str) -> Entry:
    """The user must be live and in the access role (given 5.2). Raises AccessEnded."""
    user = entries.by_id(cx, user_id)
    if user is None or not user.live or not admits(cx, resource_id, user.id):
        raise AccessEnded("The user has no access to the resource.")
    return user


def _check_not_built_in(names: DirectoryNames, name: str) -> None:
    if fold_name(name) == fold_name(names.administration_resource):
        raise NameTaken(f"There is a resource {name!r} already.")


def _insert(cx: Connection, name: str, description: str, now: Instant, built_in: str | None) -> Resource:
    resource = Resource(str(uuid.uuid4()), name, description, built_in, None, now)
    with once_named(cx, f"a resource {name!r}"):
        cx.execute(_resources.insert(), {**msgspec.structs.asdict(resource), "name_key": fold_name(name)})
    cx.execute(_roles.insert().values(resource_id=resource.id, created=now))
    return resource


def _first(cx: Connection, query: sa.Select[Any], parameters: dict[str, str] | None = None) -> Resource | None:
    row = cx.execute(query, parameters).first()
    return None if row is None else Resource(*row)


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise UnknownResource("The resource identifier is not a UUID.") from None


_COLUMNS = sa.select(*_resources.c[Resource.__struct_fields__])
_BY_ID = PreparedStatement(_COLUMNS.where(_resources.c.id == sa.bindparam("resource")))
_BY_NAME = _COLUMNS.where(_resources.c.name_key == sa.bindparam("name"))
_ADMITS = (
    sa.select(sa.literal(1))
    .select_from(_role_members.join(_roles))
    .where(
        _roles.c.resource_id == sa.bindparam("resource"),
        _role_members.c.entry_id.in_(containers(sa.bindparam("entry", type_=sa.BigInteger))),
    )
    .limit(1)
)
_IN_ROLE = sa.select(_role_members.c.entry_id).join(_roles).where(_roles.c.resource_id == sa.bindparam("resource"))
_MEMBERS = entries.select_by_ids(_IN_ROLE)
_CONTAINERS = entries.select_by_ids(_IN_ROLE, "group", "unit", "partition")
_ACTING = _IN_ROLE.where(entries.acting(_role_members.c.entry_id)).limit(1)
