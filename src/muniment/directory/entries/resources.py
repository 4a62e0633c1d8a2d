"""Which protected APIs are there, are they activated, and who is in their access role (given 2.2, 3, 4.5, 5.2)?

Members of a role are users, groups, roles, units and partitions. A user is in it as a member, or in a member, however
deep.
"""

import base64
import hashlib
import hmac
import secrets
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.audit import select_rights
from muniment.database.connections import PreparedStatement, directory_tables, required, required_columns
from muniment.database.statements import folded_text
from muniment.directory import audit
from muniment.directory.entries import entries, patterns
from muniment.directory.entries import names as spelling
from muniment.directory.entries.memberships import containers
from muniment.directory.entries.table import (
    Entry,
    Impersonation,
    entry_table,
    once_named,
    role_member_table,
    role_table,
)
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import (
    AccessEnded,
    AlreadyActivated,
    BadAttribute,
    BadName,
    NameInUse,
    NameTaken,
    UnknownResource,
    WrongSecret,
)
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name

ADMINISTRATION = "administration"
TokenFormat = Literal["opaque", "RS256", "ES256"]
"""Access tokens of a resource are opaque, or JWTs (RFC 9068) signed by this algorithm (RFC 7518 3.1)."""
# '+' is in no resource's name, so no other resource can have this one.
_STORED_ADMINISTRATION = f"+{ADMINISTRATION}"

_resources = sa.Table(
    "resources",
    directory_tables,
    sa.Column("id", sa.String(36), primary_key=True),
    required("name", sa.String(120)),
    required("name_key", folded_text(400), unique=True),
    required("description", sa.Text),
    sa.Column("built_in", sa.String(20)),
    sa.Column("activated", sa.BigInteger),
    sa.Column("secret_digest", sa.LargeBinary),
    required("created", sa.BigInteger),
    required("display_name", sa.String(255)),
    *required_columns(sa.Text, "settings", "impersonate_list"),
    *required_columns(sa.Boolean, "allow_impersonation", "authentication_enabled", "synchronization_enabled"),
    sa.Column("address", sa.String(1000)),
    required("token_format", sa.String(10)),
    sa.Column("token_seconds", sa.Integer),
    sa.Index("ix_resources_address", "address", unique=True),
)


class Resource(msgspec.Struct, frozen=True):
    """``name`` is the stored name, ``shown_name`` that on the wire, ``activated`` when it was, if it was.

    Without ``authentication_enabled`` nobody can sign in to it. ``settings`` is a JSON object that is kept and shown.
    ``address`` is the URL by which clients may ask for it (RFC 8707). A signed token lives for ``token_seconds``.
    """

    id: str
    name: str
    description: str
    built_in: str | None
    activated: Instant | None
    created: Instant
    display_name: str = ""
    settings: str = "{}"
    impersonate_list: tuple[str, ...] = ()
    allow_impersonation: bool = False
    authentication_enabled: bool = True
    synchronization_enabled: bool = False
    address: str | None = None
    token_format: TokenFormat = "opaque"  # noqa: S105 - no password
    token_seconds: int | None = None

    @property
    def target(self) -> audit.Target:
        """For the audit, by its neutral name."""
        return audit.Target("resource", self.name, self.id)

    @property
    def state(self) -> str:
        """For the audit."""
        activated = "not activated" if self.activated is None else "activated"
        return activated if self.authentication_enabled else f"{activated}, nobody signs in"


def shown_name(names: DirectoryNames, resource: Resource) -> str:
    return names.administration_resource if resource.built_in == ADMINISTRATION else resource.name


def location(names: DirectoryNames, resource: Resource) -> str:
    """Its distinguished name."""
    return spelling.resource_location(names, shown_name(names, resource))


def scope(names: DirectoryNames, resource: Resource) -> str:
    return spelling.scope(shown_name(names, resource))


def initialise(cx: Connection, now: Instant) -> Resource:
    """The administration's resource: activated, with the administrators in its access role."""
    resource = _first(cx, _COLUMNS.where(_resources.c.built_in == ADMINISTRATION))
    if resource is not None:
        return resource
    description = "The administration of this directory."
    resource = Resource(str(uuid.uuid4()), _STORED_ADMINISTRATION, description, ADMINISTRATION, None, now)
    _insert(cx, resource)
    activate(cx, resource.id, now)
    add_to_role(cx, resource, entries.administrators(cx))
    return by_id(cx, resource.id)


def add(
    cx: Connection,
    names: DirectoryNames,
    name: str,
    now: Instant,
    *,
    description: str = "",
    resource_id: str | None = None,
    secret: str | None = None,
) -> Resource:
    """With its access role, not yet activated (given 2.2), unless it comes with a secret that its server has already.
    Raises BadName, NameTaken, BadAttribute.
    """
    name, description = spelling.check_resource(name), spelling.check_description(description)
    _check_not_built_in(names, name)
    if secret is not None and not (_SHORTEST_SECRET <= len(secret) <= spelling.MAX_LENGTH and secret.isprintable()):
        raise BadAttribute(f"A resource's secret key has {_SHORTEST_SECRET} to {spelling.MAX_LENGTH} characters.")
    try:
        identity = _uuid(resource_id) if resource_id else str(uuid.uuid4())
    except UnknownResource as refusal:
        raise BadAttribute(refusal.sentence) from refusal
    resource = Resource(identity, name, description, None, None, now)
    _insert(cx, resource)
    if secret is not None:
        _keep_secret(cx, resource.id, secret, now)
    return by_id(cx, resource.id)


def activate(cx: Connection, resource_id: str, now: Instant) -> str:
    """Return its secret (given 3, 4.5): only one call ever does. Raises UnknownResource, AlreadyActivated."""
    # 16 random bytes as 24 characters: clients in the field expect a secret key of this form.
    secret = base64.b64encode(secrets.token_bytes(16)).decode()
    if _keep_secret(cx, _uuid(resource_id), secret, now):
        return secret
    by_id(cx, resource_id)
    raise AlreadyActivated("The resource has been activated before.")


def deactivate(cx: Connection, resource: Resource) -> None:
    """It can be activated again, with another secret. Raises BadName for the administration's resource."""
    if resource.built_in is not None:
        raise BadName("The administration's resource stays activated.")
    cx.execute(_resources.update().where(_resources.c.id == resource.id).values(activated=None, secret_digest=None))
    if resource.activated is not None:
        _record_state(cx, "resource deactivated", resource, {"secret": "set"}, {"secret": "none"})


def with_secret(cx: Connection, resource_id: str, secret: str) -> Resource:
    """The activated resource that shows its own secret. Raises UnknownResource, WrongSecret."""
    resource = by_id(cx, resource_id)
    digest = cx.scalar(sa.select(_resources.c.secret_digest).where(_resources.c.id == resource.id))
    if not hmac.compare_digest(digest or b"", _digest_of(secret)) or resource.activated is None:
        raise WrongSecret("This is not the secret key of the resource, or the resource is not activated.")
    return resource


def by_id(cx: Connection, resource_id: str) -> Resource:
    """The UUID may have any spelling. Raises UnknownResource."""
    row = _BY_ID.first(cx, resource=_uuid(resource_id))
    if row is None:
        raise UnknownResource("There is no resource with this identifier.")
    return _to_resource(row)


def hold_resources(cx: Connection, resource_ids: Collection[str]) -> set[str]:
    """Those of them, by their stored spelling, that are there and do not change before the commit; on SQLite nothing
    does.
    """
    if cx.dialect.name == "sqlite" or not resource_ids:
        return set(resource_ids)
    return {row[0] for row in _HOLD.all(cx, resources=sorted(resource_ids))}


def letting_in(cx: Connection, resource_id: str) -> Resource:
    """Raises UnknownResource, also before activation (given 2.2), and while nobody may sign in to it."""
    return require_letting_in(by_id(cx, resource_id))


def require_letting_in(resource: Resource) -> Resource:
    """Raises UnknownResource as ``letting_in`` does."""
    if resource.activated is None:
        raise UnknownResource("This resource has not been activated yet: its administrator does that once.")
    if not resource.authentication_enabled:
        raise UnknownResource("Nobody can sign in to this resource now.")
    return resource


def impersonation_of(resource: Resource) -> Impersonation:
    return Impersonation(resource.allow_impersonation, frozenset(map(fold_name, resource.impersonate_list)))


def require_no_stand_in(cx: Connection, entry: Entry) -> None:
    """Raises NameInUse for the user who stands for a resource: they come and go with it, under its identifier."""
    if entry.kind != "user" or entry.partition_built_in != ADMINISTRATION:
        return
    resource = _first(cx, _COLUMNS.where(_resources.c.id == entry.name))
    if resource is not None:
        raise NameInUse(f"This user stands for the resource {resource.name!r}, and comes and goes with it.")


def at_address(cx: Connection, address: str) -> str | None:
    """The identifier of the resource with exactly this address."""
    found: str | None = cx.scalar(sa.select(_resources.c.id).where(_resources.c.address == address))
    return found


def is_same_id(text: str, resource_id: str) -> bool:
    """The text may spell the UUID in any way. Raises UnknownResource if it is none."""
    return text == resource_id or _uuid(text) == resource_id


def find(cx: Connection, names: DirectoryNames, name: str) -> Resource:
    """Needs the exact name on the wire: case matters in scopes (RFC 6749 3.3). Raises UnknownResource."""
    administration = name == names.administration_resource
    resource = _named(cx, _STORED_ADMINISTRATION if administration else fold_name(name))
    if resource is None or shown_name(names, resource) != name:
        raise UnknownResource(f"There is no resource {name[:100]!r}.")
    return resource


def administration(cx: Connection) -> Resource:
    """Raises UnknownResource before initialisation."""
    resource = _named(cx, _STORED_ADMINISTRATION)
    if resource is None:
        raise UnknownResource("The directory has not been initialised.")
    return resource


def all_resources(cx: Connection) -> list[Resource]:
    """The oldest first."""
    return [_to_resource(row) for row in cx.execute(_COLUMNS.order_by(_resources.c.created, _resources.c.name_key))]


def page(
    cx: Connection, names: DirectoryNames, pattern: str, after: str | None, limit: int, *, beginning: str = ""
) -> tuple[list[Resource], str | None]:
    """Those whose name the pattern matches, also with a ``beginning`` before it, by name; and the place after which
    the next page begins, if any. The administration's is the first.
    """
    query, wanted = _COLUMNS.where(_resources.c.name_key > (after or "")), patterns.read(pattern)
    query = query.add_columns(_resources.c.name_key).order_by(_resources.c.name_key).limit(limit + 1)
    parameters: dict[str, str] = {}
    if wanted is not None:
        shown = sa.case(
            (_resources.c.name_key == _STORED_ADMINISTRATION, fold_name(names.administration_resource)),
            else_=_resources.c.name_key,
        )
        whole = sa.literal(fold_name(beginning), sa.String) + shown
        query = query.where(sa.or_(patterns.is_like(shown), patterns.is_like(whole)))
        parameters = wanted.parameters(spelling.MAX_LENGTH)
    rows = cx.execute(query, parameters).all()
    return [_to_resource(row) for row in rows[:limit]], rows[limit - 1].name_key if len(rows) > limit else None


def signing(cx: Connection) -> list[Resource]:
    """Those whose access tokens are JWTs."""
    return [_to_resource(row) for row in cx.execute(_COLUMNS.where(_resources.c.token_format.in_(_SIGNED)))]


def with_role_member(cx: Connection, entry: Entry) -> list[Resource]:
    ids = sa.select(role_table.c.resource_id).join(role_member_table).where(role_member_table.c.entry_id == entry.id)
    return [_to_resource(row) for row in cx.execute(_COLUMNS.where(_resources.c.id.in_(ids)))]


def delete(cx: Connection, resource: Resource) -> None:
    """Its tokens are not valid then. Raises BadName for the administration's resource."""
    if resource.built_in is not None:
        raise BadName("The administration's resource cannot be deleted.")
    rights: audit.Rights = [rights_of(resource), audit.Right("state", resource.id, "", resource.state, "removed")]
    audit.record(cx, "resource removed", resource.target, {"description": resource.description}, rights=rights)
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
    if name != resource.name:
        audit.record(cx, "resource changed", resource.target, {"name": resource.name}, {"name": name})


def change(cx: Connection, resource: Resource, **values: str | bool | int | Sequence[str] | None) -> None:
    """Set fields but name and activation. Raises BadAttribute, and NameTaken for the address of another."""
    if not values.keys() <= _CHANGEABLE:
        raise BadAttribute(f"What can be set of a resource is {', '.join(sorted(_CHANGEABLE))}.")
    for text in values.values():
        if isinstance(text, str):
            spelling.check_description(text)
    if len(str(values.get("display_name", ""))) > _LONGEST_DISPLAY_NAME:
        raise BadAttribute(f"A display name has at most {_LONGEST_DISPLAY_NAME} characters.")
    _check_tokens(resource, values)
    if "impersonate_list" in values:
        values["impersonate_list"] = msgspec.json.encode(values["impersonate_list"]).decode()
    with once_named(cx, "a resource with this address"):
        cx.execute(_resources.update().where(_resources.c.id == resource.id).values(**values))
    new = by_id(cx, resource.id)
    names = [name for name in values if getattr(new, name) != getattr(resource, name)]
    if names:
        before, after = ({name: getattr(each, name) for name in names} for each in (resource, new))
        _record_state(cx, "resource changed", resource, before, after)


def _check_tokens(resource: Resource, values: Mapping[str, object]) -> None:
    address, token_format, seconds = (values.get(name) for name in ("address", "token_format", "token_seconds"))
    if address is not None:
        parts = urlsplit(str(address))
        if not (parts.scheme and parts.netloc) or "#" in str(address) or len(str(address)) > _LONGEST_ADDRESS:
            raise BadAttribute("The address of a resource is a URL of at most 1000 characters without a fragment.")
    if token_format is not None and token_format not in get_args(TokenFormat):
        raise BadAttribute(f"The access tokens of a resource are one of {', '.join(get_args(TokenFormat))}.")
    if token_format not in (None, "opaque") and resource.built_in is not None:
        raise BadAttribute("The tokens of the administration are opaque.")
    if seconds is not None and not 1 <= int(str(seconds)) <= _LONGEST_SIGNED:
        raise BadAttribute(f"A signed token lives for 1 to {_LONGEST_SIGNED} seconds.")


def add_to_role(cx: Connection, resource: Resource, entry: Entry) -> None:
    added = cx.execute(
        sa.text(
            "INSERT INTO access_role_members (role_id, entry_id) "
            "SELECT id, :entry FROM access_roles WHERE resource_id = :resource ON CONFLICT DO NOTHING"
        ).bindparams(sa.bindparam("entry", type_=sa.BigInteger)),
        {"resource": resource.id, "entry": entry.id},
    )
    if added.rowcount:
        rights = [audit.Right("role", entry.uuid, resource.id, "", "member")]
        audit.record(cx, "added to role", resource.target, None, {entry.target.name: "member"}, rights=rights)


def remove_from_role(cx: Connection, resource: Resource, entry: Entry) -> None:
    role = sa.select(role_table.c.id).where(role_table.c.resource_id == resource.id).scalar_subquery()
    pair = sa.and_(role_member_table.c.role_id == role, role_member_table.c.entry_id == entry.id)
    if cx.execute(role_member_table.delete().where(pair)).rowcount:
        rights = [audit.Right("role", entry.uuid, resource.id, "member", "")]
        audit.record(cx, "removed from role", resource.target, {entry.target.name: "member"}, rights=rights)


def rights_of(one: Entry | Resource) -> sa.Select[Any]:
    """Make a query for the places in roles that end when it is removed."""
    which = role_member_table.c.entry_id == one.id if isinstance(one, Entry) else role_table.c.resource_id == one.id
    entry = entry_table.c.id == role_member_table.c.entry_id
    rights = select_rights("role", entry_table.c.uuid, role_table.c.resource_id, "member", "")
    return rights.select_from(role_member_table.join(role_table).join(entry_table, entry)).where(which)


def role_members(cx: Connection, resource: Resource) -> list[Entry]:
    return entries.read(cx, _MEMBERS, {"resource": resource.id})


def in_role(resource_id: str) -> sa.Select[tuple[int]]:
    """Raises UnknownResource if the identifier is no UUID."""
    return (
        sa.select(role_member_table.c.entry_id)
        .join(role_table)
        .where(role_table.c.resource_id == sa.literal(_uuid(resource_id), sa.String))
    )


def admits(cx: Connection, resource_id: str, user_id: int) -> bool:
    """Whether a user is in the access role (given 5.2), in one statement whatever the answer."""
    return _ADMITS.first(cx, resource=resource_id, entry=user_id) is not None


def require_access(cx: Connection, user_id: int, resource_id: str) -> Entry:
    """The user must be live and in the access role (given 5.2). Raises AccessEnded."""
    user = entries.by_id(cx, user_id)
    if user is None or not user.live or not admits(cx, resource_id, user.id):
        raise AccessEnded("The user has no access to the resource.")
    return user


def _check_not_built_in(names: DirectoryNames, name: str) -> None:
    if fold_name(name) == fold_name(names.administration_resource):
        raise NameTaken(f"There is a resource {name!r} already.")


def _insert(cx: Connection, resource: Resource) -> None:
    row = msgspec.structs.asdict(resource) | {"name_key": fold_name(resource.name), "impersonate_list": "[]"}
    with once_named(cx, f"a resource {resource.name!r}, or one with this identifier,"):
        cx.execute(_resources.insert(), row)
    role = {"resource_id": resource.id, "created": resource.created, "description": "", "attributes": "[]"}
    cx.execute(role_table.insert(), role)
    audit.record(cx, "resource made", resource.target, None, {"description": resource.description})


def _keep_secret(cx: Connection, resource_id: str, secret: str, now: Instant) -> bool:
    update = _resources.update().where(_resources.c.id == resource_id, _resources.c.activated.is_(None))
    is_kept = cx.execute(update.values(activated=now, secret_digest=_digest_of(secret))).rowcount == 1
    if is_kept:
        resource = by_id(cx, resource_id)
        former = msgspec.structs.replace(resource, activated=None)
        _record_state(cx, "resource activated", former, {"secret": "none"}, {"secret": "set"})
    return is_kept


def _digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _record_state(
    cx: Connection, action: str, former: Resource, before: dict[str, object], after: dict[str, object]
) -> None:
    states = former.state, by_id(cx, former.id).state
    rights = [audit.Right("state", former.id, "", *states)] if states[0] != states[1] else []
    audit.record(cx, action, former.target, before, after, rights=rights)


def _first(cx: Connection, query: sa.Select[Any]) -> Resource | None:
    row = cx.execute(query).first()
    return None if row is None else _to_resource(row)


def _named(cx: Connection, key: str) -> Resource | None:
    row = _BY_NAME.first(cx, name=key)
    return None if row is None else _to_resource(row)


def _to_resource(row: Sequence[Any]) -> Resource:
    values = list(row[: len(Resource.__struct_fields__)])
    values[_IMPERSONATED] = tuple(msgspec.json.decode(values[_IMPERSONATED]))
    return Resource(*values)


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise UnknownResource("The resource identifier is not a UUID.") from None


_SIGNED = get_args(TokenFormat)[1:]
_SHORTEST_SECRET = 16
_LONGEST_DISPLAY_NAME = 255
_LONGEST_ADDRESS = 1000
_LONGEST_SIGNED = 3600
_CHANGEABLE = frozenset(Resource.__struct_fields__) - {"id", "name", "built_in", "activated", "created"}
_IMPERSONATED = Resource.__struct_fields__.index("impersonate_list")
_COLUMNS = sa.select(*_resources.c[Resource.__struct_fields__])
_BY_ID = PreparedStatement(_COLUMNS.where(_resources.c.id == sa.bindparam("resource")))
_HOLD = PreparedStatement(
    sa.select(_resources.c.id)
    .where(_resources.c.id.in_(sa.bindparam("resources", expanding=True)))
    .with_for_update(read=True, skip_locked=True)
)
_BY_NAME = PreparedStatement(_COLUMNS.where(_resources.c.name_key == sa.bindparam("name")))
_ADMITS = PreparedStatement(
    sa.select(sa.literal(1))
    .select_from(role_member_table.join(role_table))
    .where(
        role_table.c.resource_id == sa.bindparam("resource"),
        role_member_table.c.entry_id.in_(containers(sa.bindparam("entry", type_=sa.BigInteger))),
    )
    .limit(1)
)
_IN_ROLE = (
    sa.select(role_member_table.c.entry_id).join(role_table).where(role_table.c.resource_id == sa.bindparam("resource"))
)
_MEMBERS = entries.select_by_ids(_IN_ROLE)
