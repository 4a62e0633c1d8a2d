"""Which directory attributes does a user have (given 2.7 `values`)?

Some attributes are computed from the user's entry. Administrators may set all others. They are stored under neutral
names, which no setting changes. DirectoryNames gives the names on the wire.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import directory_tables
from muniment.directory.entries.names import user_id
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute
from muniment.ground.clock import Instant, timestamp
from muniment.ground.naming import is_storable

_MAX_VALUES = 100
_MAX_LENGTH = 4000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.;-]{0,63}")

_attributes = sa.Table(
    "user_attributes",
    directory_tables,
    sa.Column("entry_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
)


class Attribute(msgspec.Struct, frozen=True):
    """One attribute with its values: texts or integers (given 2.7)."""

    name: str
    values: list[str | int]


class Facts(msgspec.Struct, frozen=True):
    """The facts of a user's entry from which attributes are computed, spelled as on the wire.

    ``groups`` are the locations of all groups of the user, and ``group_uuids`` their identities in the same order.
    """

    name: str
    partition: str
    location: str
    uuid: str
    disabled: bool
    locked: bool
    password_never_expires: bool
    must_change_password: bool
    cannot_change_password: bool
    created: Instant
    modified: Instant
    groups: Sequence[str]
    group_uuids: Sequence[str]


def of_user(cx: Connection, names: DirectoryNames, entry_id: int, facts: Facts) -> list[Attribute]:
    """Return a user's attributes with their names on the wire. The function runs one statement."""
    every = {**_defaults(facts), **stored_values(cx, entry_id), **_compute(facts)}
    return [Attribute(names.attributes.get(name, name), values) for name, values in every.items()]


def stored_values(cx: Connection, entry_id: int) -> dict[str, list[str | int]]:
    """Return the values that administrators set for a user, by the neutral names of the attributes."""
    return {row.name: msgspec.json.decode(row.content) for row in cx.execute(_OF_ENTRY, {"entry": entry_id})}


def put(cx: Connection, names: DirectoryNames, entry_id: int, name: str, values: Sequence[str | int]) -> None:
    """Set a user's attribute by its name on the wire. Empty ``values`` remove the attribute. Raises BadAttribute."""
    name = _own_name(names, name)
    if not _NAME.fullmatch(name):
        raise BadAttribute("An attribute's name is a letter and at most 63 letters, digits, '.', '-', '_' or ';'.")
    if name in _COMPUTED:
        raise BadAttribute(f"The attribute {name!r} is computed and cannot be set.")
    if len(values) > _MAX_VALUES:
        raise BadAttribute(f"An attribute has at most {_MAX_VALUES} values.")
    if any(isinstance(value, str) and (len(value) > _MAX_LENGTH or not is_storable(value)) for value in values):
        raise BadAttribute(f"An attribute's value is at most {_MAX_LENGTH} characters of text.")
    if values:
        content = msgspec.json.encode(list(values)).decode()
        cx.execute(_PUT, {"entry_id": entry_id, "name": name, "content": content})
    else:
        cx.execute(_attributes.delete().where(_attributes.c.entry_id == entry_id, _attributes.c.name == name))


def _own_name(names: DirectoryNames, name: str) -> str:
    return next((own_name for own_name, wire_name in names.attributes.items() if wire_name == name), name)


def _defaults(facts: Facts) -> dict[str, list[str | int]]:
    return {"sn": [facts.name], "displayName": [facts.name], "givenName": [], "mail": []}


def _compute(facts: Facts) -> Mapping[str, list[str | int]]:
    full = user_id(facts.name, facts.partition)
    return {
        "accountDisabled": [_text(facts.disabled)],
        "accountLockedOut": [_text(facts.locked)],
        "passwordNeverExpires": [_text(facts.password_never_expires)],
        "userMustChangePasswordAtNextSignIn": [_text(facts.must_change_password)],
        "userCannotChangePassword": [_text(facts.cannot_change_password)],
        "memberOf": list(facts.groups),
        "memberOfUUID": list(facts.group_uuids),
        "cn": [facts.name],
        "entryDN": [facts.location],
        "entryUUID": [facts.uuid],
        "externalID1": [facts.name],
        "externalID2": [full],
        "externalID3": [full],
        "externalID4": [f"{facts.partition}\\{facts.name}"],
        "domainName": [facts.partition],
        "createTimestamp": [timestamp(facts.created)],
        "modifyTimestamp": [timestamp(facts.modified)],
    }


def _text(flag: bool) -> str:
    return "true" if flag else "false"


_COMPUTED = frozenset(_compute(Facts("", "", "", "", False, False, False, False, False, 0, 0, (), ())))
_OF_ENTRY = (
    sa.select(_attributes.c.name, _attributes.c.content)
    .where(_attributes.c.entry_id == sa.bindparam("entry", type_=sa.BigInteger))
    .order_by(_attributes.c.name)
)
# This is one statement. So two callers can set the same attribute at one moment, and neither fails.
_PUT = sa.text(
    "INSERT INTO user_attributes (entry_id, name, content) VALUES (:entry_id, :name, :content) "
    "ON CONFLICT (entry_id, name) DO UPDATE SET content = excluded.content"
)
