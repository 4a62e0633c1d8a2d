"""Which directory attributes does a user have (given 2.7 `values`)?

They are stored under neutral names; DirectoryNames spells them.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import directory_tables, portions, required
from muniment.directory.entries.names import user_id
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute
from muniment.ground.clock import timestamp
from muniment.ground.naming import is_storable

_MAX_VALUES = 100
_MAX_LENGTH = 4000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.;-]{0,63}")

_attributes = sa.Table(
    "user_attributes",
    directory_tables,
    sa.Column("entry_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.String(64), primary_key=True),
    required("content", sa.Text),
)


class Attribute(msgspec.Struct, frozen=True):
    """One attribute with its values: texts or integers (given 2.7)."""

    name: str
    values: list[str | int]


def of_user(
    cx: Connection, names: DirectoryNames, user: Entry, partition: str, location: str, groups: Mapping[str, str]
) -> list[Attribute]:
    """``groups`` has the identities of all groups of the user, by location."""
    every: dict[str, list[str | int]] = {"sn": [user.name], "displayName": [user.name], "givenName": [], "mail": []}
    every |= stored_values(cx, user.id) | _compute(user, partition, location, groups)
    return [Attribute(names.attributes.get(name, name), values) for name, values in every.items()]


def stored_values(cx: Connection, entry_id: int) -> dict[str, list[str | int]]:
    """The keys are neutral names."""
    return {row.name: msgspec.json.decode(row.content) for row in cx.execute(_OF_ENTRY, {"entry": entry_id})}


def first_texts_of_attributes(
    cx: Connection, entry_ids: Sequence[int], names: Sequence[str]
) -> dict[int, dict[str, str]]:
    """Return the first value of each of these attributes, by entry and neutral name. What is not set is left out."""
    texts: dict[int, dict[str, str]] = {}
    for portion in portions(sorted(entry_ids)):
        wanted = _attributes.c.entry_id.in_(portion), _attributes.c.name.in_(names)
        for entry_id, name, content in cx.execute(sa.select(_attributes).where(*wanted)):
            texts.setdefault(entry_id, {})[name] = str(msgspec.json.decode(content)[0])
    return texts


def content_of_attribute(entry_id: sa.ColumnElement[int], name: str) -> sa.ScalarSelect[str]:
    """Make a subquery for the values of an attribute, as a JSON list; null if it is not set."""
    wanted = _attributes.c.entry_id == entry_id, _attributes.c.name == name
    return sa.select(_attributes.c.content).where(*wanted).scalar_subquery()


def put(cx: Connection, names: DirectoryNames, user: Entry, name: str, values: Sequence[str | int]) -> None:
    """Empty ``values`` remove the attribute. Raises BadAttribute."""
    name = _own_name(names, name)
    if not _NAME.fullmatch(name):
        raise BadAttribute("An attribute's name is a letter and at most 63 letters, digits, '.', '-', '_' or ';'.")
    if name in _compute(user, "", "", {}):
        raise BadAttribute(f"The attribute {name!r} is computed and cannot be set.")
    if len(values) > _MAX_VALUES:
        raise BadAttribute(f"An attribute has at most {_MAX_VALUES} values.")
    if any(isinstance(value, str) and (len(value) > _MAX_LENGTH or not is_storable(value)) for value in values):
        raise BadAttribute(f"An attribute's value is at most {_MAX_LENGTH} characters of text.")
    if values:
        content = msgspec.json.encode(list(values)).decode()
        cx.execute(_PUT, {"entry_id": user.id, "name": name, "content": content})
    else:
        cx.execute(_attributes.delete().where(_attributes.c.entry_id == user.id, _attributes.c.name == name))


def _own_name(names: DirectoryNames, name: str) -> str:
    return next((own_name for own_name, wire_name in names.attributes.items() if wire_name == name), name)


def _compute(user: Entry, partition: str, location: str, groups: Mapping[str, str]) -> dict[str, list[str | int]]:
    full = user_id(user.name, partition)
    return {
        "accountDisabled": [_text(user.disabled)],
        "accountLockedOut": [_text(user.locked)],
        "passwordNeverExpires": [_text(user.password_never_expires)],
        "userMustChangePasswordAtNextSignIn": [_text(user.must_change_password)],
        "userCannotChangePassword": [_text(user.cannot_change_password)],
        "memberOf": [*groups],
        "memberOfUUID": [*groups.values()],
        "cn": [user.name],
        "entryDN": [location],
        "entryUUID": [user.uuid],
        "externalID1": [user.name],
        "externalID2": [full],
        "externalID3": [full],
        "externalID4": [f"{partition}\\{user.name}"],
        "domainName": [partition],
        "createTimestamp": [timestamp(user.created)],
        "modifyTimestamp": [timestamp(user.modified)],
    }


def _text(flag: bool) -> str:
    return "true" if flag else "false"


_OF_ENTRY = (
    sa.select(*_attributes.c["name", "content"])
    .where(_attributes.c.entry_id == sa.bindparam("entry", type_=sa.BigInteger))
    .order_by(_attributes.c.name)
)
# This is one statement. So two callers can set the same attribute at one moment, and neither fails.
_PUT = sa.text(
    "INSERT INTO user_attributes (entry_id, name, content) VALUES (:entry_id, :name, :content) "
    "ON CONFLICT (entry_id, name) DO UPDATE SET content = excluded.content"
)
