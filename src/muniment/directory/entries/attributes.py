"""Which directory attributes does an entry have (given 2.7 `values`)?

They are stored under neutral names, a value a row; DirectoryNames spells the names. Some are computed from the entry
itself. Custom attributes have a type beside their name, and nothing reads them here.
"""

import base64
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, directory_tables, portions, required
from muniment.database.statements import folded_text
from muniment.directory import audit
from muniment.directory.entries.changes import touch
from muniment.directory.entries.names import user_id
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import BadAttribute
from muniment.ground.clock import Instant, timestamp
from muniment.ground.naming import fold_name, is_storable

_MAX_VALUES = 100
_MAX_LENGTH = 4000
FOLDED = 200
"""So many characters of a value, folded, are in the index."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.;-]{0,63}")

_values = sa.Table(
    "attribute_values",
    directory_tables,
    sa.Column("entry_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    required("value", sa.Text),
    required("is_number", sa.Boolean),
    required("folded", folded_text(FOLDED)),
    sa.Index("ix_attribute_values_folded", "name", "folded", "entry_id"),
)

_custom = sa.Table(
    "custom_attributes",
    directory_tables,
    sa.Column("entry_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    required("type", sa.String(64)),
    required("name", sa.String(120)),
    required("value", sa.Text),
)

Values = dict[str, list[str | int]]
"""By neutral names."""

FLAGS: Mapping[str, str] = {
    "accountDisabled": "disabled",
    "accountLockedOut": "locked",
    "passwordNeverExpires": "password_never_expires",
    "userMustChangePasswordAtNextSignIn": "must_change_password",
    "userCannotChangePassword": "cannot_change_password",
    "pwdReset": "must_change_password",
    "ds-pwp-account-disabled": "disabled",
}
"""The columns of entries that stand behind attributes."""

_TRUTHS = {"true": True, "false": False}


class Attribute(msgspec.Struct, frozen=True):
    """One attribute with its values: texts or integers (given 2.7)."""

    name: str
    values: list[str | int]


class CustomAttribute(msgspec.Struct, frozen=True):
    """A value that nothing but its writer understands."""

    type: str
    name: str
    value: str


class WrittenAttributes(NamedTuple):
    """What a client has written, sorted by what must be done with it.

    ``flags`` are columns of entries. None means that it has not been written. Computed attributes are left out: a
    client sends back what it has read.
    """

    flags: dict[str, bool]
    stored: Values
    description: str | None
    password: str | None


def of_user(
    cx: Connection, names: DirectoryNames, user: Entry, partition: str, location: str, groups: Mapping[str, str]
) -> list[Attribute]:
    """As tokeninfo shows them. ``groups`` has the identities of all groups of the user, by location."""
    return _spelt(names, stored_values(cx, user.id), _compute(user, partition, location, groups), user)


def of_entry(
    names: DirectoryNames, entry: Entry, stored: Values, partition: str, location: str, groups: Mapping[str, str]
) -> list[Attribute]:
    """All that are known, of a user, a group or a role, for those who administer. ``stored`` are its stored values."""
    computed = _compute(entry, partition, location, groups)
    if entry.kind != "user":
        computed = {name: values for name, values in computed.items() if name not in _OF_USERS}
    return _spelt(names, stored, computed | _compute_further(entry), entry)


def stored_values(cx: Connection, entry_id: int) -> Values:
    values: Values = {}
    for name, value, is_number in _OF_ENTRY.all(cx, entry=entry_id):
        values.setdefault(name, []).append(int(value) if is_number else value)
    return values


def stored_values_of(cx: Connection, entry_ids: Sequence[int]) -> dict[int, Values]:
    """What has no stored value is left out."""
    found: dict[int, Values] = {}
    for portion in portions(sorted(entry_ids)):
        for entry_id, name, value, is_number in _OF_ENTRIES.all(cx, entries=portion):
            values = found.setdefault(entry_id, {}).setdefault(name, [])
            values.append(int(value) if is_number else value)
    return found


def first_texts_of_attributes(
    cx: Connection, entry_ids: Sequence[int], names: Sequence[str]
) -> dict[int, dict[str, str]]:
    """Return the first value of each of these attributes, by entry and neutral name. What is not set is left out."""
    texts: dict[int, dict[str, str]] = {}
    for portion in portions(sorted(entry_ids)):
        for entry_id, name, value in _FIRST_TEXTS.all(cx, entries=portion, names=names):
            texts.setdefault(entry_id, {})[name] = value
    return texts


def first_text_of_attribute(entry_id: sa.ColumnElement[int], name: str) -> sa.ScalarSelect[str]:
    """Make a subquery for the first value of an attribute; null if it is not set."""
    wanted = _values.c.entry_id == entry_id, _values.c.name == name, _values.c.position == 0
    return sa.select(_values.c.value).where(*wanted).scalar_subquery()


def folded_values(name: str) -> sa.Select[tuple[str, int, int]]:
    """The values of an attribute, folded and cut, as an index has them: ``key``, ``id`` of the entry, ``position``."""
    columns = _values.c.folded.label("key"), _values.c.entry_id.label("id"), _values.c.position
    return sa.select(*columns).where(_values.c.name == name)


def has_value(
    entry_id: sa.ColumnElement[int],
    names: Sequence[str],
    matches: Callable[[sa.ColumnElement[str]], sa.ColumnElement[bool]],
    *,
    before: sa.FromClause | None = None,
) -> sa.ColumnElement[bool]:
    """Whether one of these attributes has a value that matches; with a row of ``folded_values``, one before it."""
    if not names:
        return sa.false()
    other = _values.alias("other_value")
    # The index of values does not answer this: of a frequent beginning it would read all that there are.
    folded: sa.ColumnElement[str] = other.c.folded + ""
    named = sa.or_(*(other.c.name == name for name in names))
    query = sa.exists().where(other.c.entry_id == entry_id, named, matches(folded))
    if before is not None:
        places = sa.tuple_(folded, other.c.position) < sa.tuple_(before.c.key, before.c.position)
        query = query.where(places)
    return query


def read_written(names: DirectoryNames, written: Iterable[tuple[str, Sequence[str | int]]]) -> WrittenAttributes:
    """Names, each once, are as on the wire or neutral, in any case if this release knows them. Raises BadAttribute."""
    flags: dict[str, bool] = {}
    stored: Values = {}
    description = password = None
    said: set[str] = set()
    for name_on_the_wire, values in written:
        name = _own_name(names, name_on_the_wire)
        if name in said:
            raise BadAttribute(f"The attribute {name_on_the_wire[:100]!r} comes twice.")
        said.add(name)
        if name == "userPassword" and len(values) > 1:
            raise BadAttribute(f"The attribute {name_on_the_wire!r} has one value.")
        text = str(values[0]) if values else ""
        if name in FLAGS:
            if text and text.strip().lower() not in _TRUTHS:
                raise BadAttribute(f"The attribute {name_on_the_wire!r} is true or false, not {text[:40]!r}.")
            flags[FLAGS[name]] = _TRUTHS[text.strip().lower() or "false"]
        elif name == "description":
            description = text
        elif name == "userPassword":
            password = text or None
        elif name not in _COMPUTED:
            stored[name] = list(values)
    return WrittenAttributes(flags, stored, description, password)


def add(cx: Connection, names: DirectoryNames, entry: Entry, written: Mapping[str, Sequence[str | int]]) -> None:
    """To an entry that this transaction has added, and that has no attributes. Raises BadAttribute."""
    wanted = {_own_name(names, name): list(values) for name, values in written.items() if values}
    if rows := [row for name, values in wanted.items() for row in _check(entry, name, values)]:
        _ADD.run_for_each(cx, rows)
        audit.record(cx, f"{entry.target.kind} made", entry.target, None, wanted)


def put(
    cx: Connection, names: DirectoryNames, entry: Entry, written: Mapping[str, Sequence[str | int]], now: Instant
) -> None:
    """An attribute without values is removed. Raises BadAttribute."""
    wanted = {_own_name(names, name): values for name, values in written.items()}
    rows = [row for name, values in wanted.items() for row in _check(entry, name, values)]
    touch(cx, entry, now)  # This locks the entry: two callers may set the same attribute at one moment.
    former = stored_values(cx, entry.id)
    cx.execute(_values.delete().where(_values.c.entry_id == entry.id, _values.c.name.in_(wanted)))
    if rows:
        _ADD.run_for_each(cx, rows)
    after = {name: list(values) for name, values in wanted.items() if former.get(name, []) != list(values)}
    if after:
        before = {name: former.get(name, []) for name in after}
        audit.record(cx, f"{entry.target.kind} changed", entry.target, before, after)


def custom_of(cx: Connection, entry_ids: Sequence[int]) -> dict[int, list[CustomAttribute]]:
    """What has none is left out."""
    found: dict[int, list[CustomAttribute]] = {}
    for portion in portions(sorted(entry_ids)):
        for entry_id, *attribute in _CUSTOM_OF_ENTRIES.all(cx, entries=portion):
            found.setdefault(entry_id, []).append(CustomAttribute(*attribute))
    return found


def put_custom(cx: Connection, entry: Entry, custom: Sequence[CustomAttribute], now: Instant) -> None:
    """These replace all. Raises BadAttribute."""
    if len(custom) > _MAX_VALUES:
        raise BadAttribute(f"An entry has at most {_MAX_VALUES} custom attributes.")
    for each in custom:
        if len(each.type) > _MAX_TYPE or not 0 < len(each.name) <= _MAX_CUSTOM_NAME or len(each.value) > _MAX_LENGTH:
            raise BadAttribute(
                f"A custom attribute's type has at most {_MAX_TYPE} characters, its name 1 to {_MAX_CUSTOM_NAME}, its "
                f"value at most {_MAX_LENGTH}."
            )
        if not all(map(is_storable, (each.type, each.name, each.value))):
            raise BadAttribute("A custom attribute is text without NUL characters.")
    touch(cx, entry, now)
    former = custom_of(cx, [entry.id]).get(entry.id, [])
    cx.execute(_custom.delete().where(_custom.c.entry_id == entry.id))
    if custom:
        rows = [
            {"entry_id": entry.id, "position": place, **msgspec.structs.asdict(each)}
            for place, each in enumerate(custom)
        ]
        cx.execute(_custom.insert(), rows)
    if former != list(custom):
        before, after = ([msgspec.structs.asdict(each) for each in some] for some in (former, custom))
        audit.record(cx, f"{entry.target.kind} changed", entry.target, {"custom": before}, {"custom": after})


def _check(entry: Entry, name: str, values: Sequence[str | int]) -> list[dict[str, Any]]:
    if not _NAME.fullmatch(name):
        raise BadAttribute("An attribute's name is a letter and at most 63 letters, digits, '.', '-', '_' or ';'.")
    if name in _COMPUTED or name in FLAGS:
        raise BadAttribute(f"The attribute {name!r} is computed and cannot be set.")
    if len(values) > _MAX_VALUES:
        raise BadAttribute(f"An attribute has at most {_MAX_VALUES} values.")
    texts = [str(value) for value in values]
    if any(len(text) > _MAX_LENGTH or not is_storable(text) for text in texts):
        raise BadAttribute(f"An attribute's value is at most {_MAX_LENGTH} characters of text.")
    return [
        {
            "entry_id": entry.id,
            "name": name,
            "position": place,
            "value": text,
            "is_number": isinstance(value, int),
            "folded": fold_name(text)[:FOLDED],
        }
        for place, (text, value) in enumerate(zip(texts, values, strict=True))
    ]


def _own_name(names: DirectoryNames, name: str) -> str:
    exact = next((own_name for own_name, wire_name in names.attributes.items() if wire_name == name), None)
    if exact is not None:
        return exact
    folded = fold_name(name)
    spelt = {fold_name(wire_name): own_name for own_name, wire_name in names.attributes.items()}
    return spelt.get(folded) or _KNOWN.get(folded, name)


def _spelt(names: DirectoryNames, stored: Values, computed: Values, entry: Entry) -> list[Attribute]:
    every: Values = {"sn": [entry.name], "displayName": [entry.name], "givenName": [], "mail": []}
    if entry.kind != "user":
        every = {"displayName": [entry.name]}
    every |= stored | computed
    return [Attribute(names.attributes.get(name, name), values) for name, values in every.items()]


def _compute(user: Entry, partition: str, location: str, groups: Mapping[str, str]) -> Values:
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


def _compute_further(entry: Entry) -> Values:
    """What tokeninfo does not show: some of it changes with every sign-in."""
    guid = base64.b64encode(uuid.UUID(entry.uuid).bytes).decode()
    values: Values = {"objectGUID": [guid], "schemaType": ["3"]}
    if entry.description:
        values["description"] = [entry.description]
    if entry.kind == "user":
        values["pwdReset"] = [_text(entry.must_change_password)]
        times = {"passwordChangedTime": entry.password_changed, "lastLoginTimestamp": entry.signed_in}
        values |= {name: [timestamp(time)] for name, time in times.items() if time is not None}
    return values


def _text(flag: bool) -> str:
    return "true" if flag else "false"


_MAX_TYPE = 64
_MAX_CUSTOM_NAME = 120
_OF_USERS = {*FLAGS, "externalID3", "externalID4"}
_IDS = ("externalID1", "externalID2", "externalID3", "externalID4", "entryDN", "entryUUID", "objectGUID", "schemaType")
_TIMES = ("createTimestamp", "modifyTimestamp", "passwordChangedTime", "lastLoginTimestamp")
_COMPUTED = frozenset(("cn", "domainName", "memberOf", "memberOfUUID", *_IDS, *_TIMES))
_STORED = (
    *("sn", "displayName", "givenName", "initials", "mail", "title", "description", "userPassword", "gender", "notes"),
    *("birthDate", "l", "st", "postalCode", "c", "countryName", "physicalDeliveryOfficeName", "homePhone"),
)
_KNOWN = {fold_name(name): name for name in (*_COMPUTED, *FLAGS, *_STORED)}
_ADD = PreparedStatement(_values.insert())
_ENTRIES: sa.BindParameter[int] = sa.bindparam("entries", expanding=True)
_FIRST_TEXTS = PreparedStatement(
    sa.select(*_values.c["entry_id", "name", "value"]).where(
        _values.c.entry_id.in_(sa.bindparam("entries", expanding=True)),
        _values.c.name.in_(sa.bindparam("names", expanding=True)),
        _values.c.position == 0,
    )
)
_OF_ENTRIES = PreparedStatement(
    sa.select(*_values.c["entry_id", "name", "value", "is_number"])
    .where(_values.c.entry_id.in_(_ENTRIES))
    .order_by(*_values.c["entry_id", "name", "position"])
)
_CUSTOM_OF_ENTRIES = PreparedStatement(
    sa.select(*_custom.c["entry_id", "type", "name", "value"])
    .where(_custom.c.entry_id.in_(_ENTRIES))
    .order_by(_custom.c.entry_id, _custom.c.position)
)
_OF_ENTRY = PreparedStatement(
    sa.select(*_values.c["name", "value", "is_number"])
    .where(_values.c.entry_id == sa.bindparam("entry", type_=sa.BigInteger))
    .order_by(_values.c.name, _values.c.position)
)
