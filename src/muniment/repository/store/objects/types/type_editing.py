"""Make, change and remove custom types and their properties.

One transaction at a time changes a repository's types (``object_types.lock_all``); it also locks a type whose property
it changes (``lock``), and who stores objects locks their types (``hold``): so no object is stored under a definition
that has been changed or removed.

Source: docs/interface.md, ours 19.
"""

import itertools
from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository import audit
from muniment.repository.refusals import InUse, NameTaken, UnknownProperty, UnknownType, WrongValue
from muniment.repository.store.objects import table
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.table import type_properties
from muniment.repository.store.objects.types import object_types, reindexing, type_forms
from muniment.repository.store.objects.types.object_types import (
    BUILT_IN_NAMES,
    Catalogue,
    ObjectType,
    encode_rules,
    select_types,
)
from muniment.repository.store.objects.types.type_forms import MOST_PROPERTIES, PropertyForm, TypeForm

MOST_TYPES = 1000

MOST_LEVELS = 32
"""So many types lead from the root to a type, both included."""

MOST_DEFINITIONS = 10_000

_types = table.object_types


def add_type(cx: Connection, repository_id: int, kind: ObjectType, now: Instant) -> None:
    """Add a type, after ``object_types.lock_all`` and a lock of the types above (``hold``).

    Raises NameTaken, UnknownType, WrongValue, VersionConflict.
    """
    present = object_types.lock_all(cx, repository_id)
    type_forms.check_name(kind.name, "type")
    type_forms.check_label(kind.label)
    if kind.name in present:
        raise NameTaken(f"There is an object type {kind.name!r} already.")
    if kind.parent is None:
        raise UnknownType(f"The object type {kind.name!r} needs a parent, such as 'document'.")
    if len(present.lineage(kind.parent)) >= MOST_LEVELS:
        raise WrongValue(f"The object type {kind.name!r} would lie more than {MOST_LEVELS} levels deep.")
    if len(present.types()) >= MOST_TYPES + len(BUILT_IN_NAMES):
        raise WrongValue(f"A repository has at most {MOST_TYPES} types of its own.")
    object_types.hold(cx, repository_id, present, [kind.parent])
    label = "" if kind.label == kind.name else kind.label
    row = {"repository_id": repository_id, "name": kind.name, "parent": kind.parent, "label": label, "created": now}
    cx.execute(_types.insert().values(row))
    audit.record(cx, "type made", _target(kind.name), None, {"parent": kind.parent})
    add_properties(cx, repository_id, kind.name, kind.properties, now)


def add_properties(
    cx: Connection, repository_id: int, type_name: str, definitions: Sequence[PropertyDefinition], now: Instant
) -> None:
    """No object has a value of them yet, so nothing is indexed again.

    Calls ``object_types.lock_all``, so that properties of one name agree although several types get them at the same
    time, and locks the type and those above it (``hold``).

    Raises UnknownType (also for a built-in type), NameTaken, VersionConflict, WrongValue (also if a property of the
    same name, in another type, has another kind).
    """
    if not definitions:
        return
    present = object_types.lock_all(cx, repository_id)
    if type_name in BUILT_IN_NAMES:
        raise UnknownType(f"The object type {type_name!r} is built in: add a type below it, with the property.")
    every = [present.properties_of(name) for name in present.with_subtypes([type_name])]
    for definition in definitions:
        type_forms.check_name(definition.name, "property")
        if any(definition.name in of_type for of_type in every):
            raise NameTaken(
                f"The object type {type_name!r}, or one below it, has a property {definition.name!r} already."
            )
        check_same_kind(present, definition)
    if max(map(len, every)) + len(definitions) > MOST_PROPERTIES:
        raise WrongValue(f"An object type has at most {MOST_PROPERTIES} properties, inherited ones included.")
    own = [kind for kind in present.types() if kind.name not in BUILT_IN_NAMES]
    if sum(len(kind.properties) for kind in own) + len(definitions) > MOST_DEFINITIONS:
        raise WrongValue(f"A repository's own types have at most {MOST_DEFINITIONS} properties together.")
    object_types.hold(cx, repository_id, present, [type_name])
    type_id = cx.execute(select_types(repository_id, [type_name])).scalar_one()
    rows = [
        {
            "type_id": type_id,
            "name": definition.name,
            "kind": definition.kind,
            "repeating": definition.repeating,
            "searchable": definition.searchable,
            "awaiting_index": definition.name in present.awaiting_index,
            "created": now,
            **_changeable(definition),
        }
        for definition in definitions
    ]
    cx.execute(type_properties.insert(), rows)
    audit.record(cx, "type changed", _target(type_name), None, {"properties": [each.name for each in definitions]})


def define_type(cx: Connection, repository_id: int, form: TypeForm, now: Instant) -> ObjectType:
    """Make a type with its properties.

    Raises NameTaken, UnknownType (the parent), WrongValue, VersionConflict.
    """
    label = "" if form.label is msgspec.UNSET else form.label
    with audit.decision(cx, "type made", _target(form.name)):
        add_type(cx, repository_id, ObjectType(form.name, form.parent or "document", label=label), now)
        apply(cx, repository_id, form, now)
    return object_types.catalogue(cx, repository_id).get(form.name)


def change_type(cx: Connection, repository_id: int, form: TypeForm, now: Instant) -> ObjectType:
    """What the type lacks is added.

    Raises UnknownType, NameTaken, InUse (a property is being reindexed), VersionConflict, WrongValue (also for a
    built-in type, and if the form names another parent).
    """
    present = object_types.lock(cx, repository_id, form.name)
    if form.parent not in ("", present.get(form.name).parent):
        raise WrongValue("An object type keeps its parent.")
    with audit.decision(cx, "type changed", _target(form.name)):
        apply(cx, repository_id, form, now)
    return object_types.catalogue(cx, repository_id).get(form.name)


def apply(cx: Connection, repository_id: int, form: TypeForm, now: Instant) -> list[str]:
    """Return a line of text for each property added or changed. The caller has made or locked the type.

    Raises what ``change_type`` raises.
    """
    _check_number(form)
    present = object_types.catalogue(cx, repository_id)
    kind, siblings = present.get(form.name), dict(present.properties_of(form.name))
    property_forms = without_inherited(present, form.name, form.properties)
    if form.label is not msgspec.UNSET:
        _set_label(cx, repository_id, kind, form.label)
    new_forms = [each for each in property_forms if each.name not in siblings]
    former_forms = [each for each in property_forms if each.name in siblings]
    # A property may depend on another one in the same form.
    siblings |= {each.name: type_forms.bare_definition(each) for each in new_forms}
    definitions = [type_forms.new_definition(each, siblings) for each in new_forms]
    add_properties(cx, repository_id, form.name, definitions, now)
    changed_names = [
        each.name for each in former_forms if _change_property(cx, repository_id, present, kind, each, now)
    ]
    return [f"property {form.name}.{each.name}" for each in definitions] + [
        f"property {form.name}.{name} changed" for name in changed_names
    ]


def without_inherited(catalogue: Catalogue, name: str, forms: Sequence[PropertyForm]) -> list[PropertyForm]:
    """Drop forms that repeat an inherited property, so that a caller may send back a whole type. Raises WrongValue if
    one would change it.
    """
    siblings, own = catalogue.properties_of(name), {each.name for each in catalogue.get(name).properties}
    further: list[PropertyForm] = []
    for form in forms:
        if form.name in own or form.name not in siblings:
            further.append(form)
            continue
        inherited = siblings[form.name]
        if type_forms.change_definition(inherited, form, siblings) != inherited:
            raise WrongValue(f"The object type {name!r} inherits the property {form.name!r}: change it there.")
    return further


def remove_type(cx: Connection, repository_id: int, name: str) -> None:
    """``removal.remove_type`` has checked that it may be removed."""
    of_type = select_types(repository_id, [name]).scalar_subquery()
    cx.execute(type_properties.delete().where(type_properties.c.type_id == of_type))
    cx.execute(_types.delete().where(_types.c.repository_id == repository_id, _types.c.name == name))
    audit.record(cx, "type removed", _target(name))


def remove_property(cx: Connection, repository_id: int, type_name: str, name: str) -> None:
    """``removal.remove_property`` has checked that it may be removed."""
    of_type = select_types(repository_id, [type_name]).scalar_subquery()
    cx.execute(type_properties.delete().where(type_properties.c.type_id == of_type, type_properties.c.name == name))
    audit.record(cx, "type changed", _target(type_name), {"properties": [name]})


def check_same_kind(catalogue: Catalogue, definition: PropertyDefinition) -> None:
    """Raises WrongValue if they differ in ``kind``, ``repeating`` or ``searchable``."""
    try:
        present = catalogue.property(definition.name)
    except UnknownProperty:
        return
    if (present.kind, present.repeating) != (definition.kind, definition.repeating):
        values = "several values" if present.repeating else "one value"
        raise WrongValue(
            f"The property {definition.name!r} is of kind {present.kind} with {values} in this repository already."
        )
    if present.searchable != definition.searchable:
        is_not = "searchable" if present.searchable else "not searchable"
        raise WrongValue(f"The property {definition.name!r} is {is_not} in this repository already.")


def _check_number(form: TypeForm) -> None:
    if len(form.properties) > MOST_PROPERTIES:
        raise WrongValue(
            f"The object type {form.name!r} would get {len(form.properties)} properties at once: "
            f"{MOST_PROPERTIES} are allowed."
        )
    names = sorted(each.name for each in form.properties)
    if twice := [name for name, following in itertools.pairwise(names) if name == following]:
        raise WrongValue(f"The object type {form.name!r} would get the property {twice[0][:64]!r} twice.")


def _set_label(cx: Connection, repository_id: int, kind: ObjectType, label: str) -> None:
    type_forms.check_label(label)
    stored_label = "" if label == kind.name else label
    if stored_label != kind.label:
        of_type = sa.and_(_types.c.repository_id == repository_id, _types.c.name == kind.name)
        cx.execute(_types.update().where(of_type).values(label=stored_label))
        audit.record(cx, "type changed", _target(kind.name), {"label": kind.label}, {"label": stored_label})


def _change_property(
    cx: Connection, repository_id: int, present: Catalogue, kind: ObjectType, form: PropertyForm, now: Instant
) -> bool:
    """Return whether anything changed.

    Raises InUse, WrongValue.

    ``present`` was read after ``object_types.lock_all``.
    """
    former = present.property_of(kind.name, form.name)
    siblings = {**object_types.catalogue(cx, repository_id).properties_of(kind.name)}
    new = type_forms.change_definition(former, form, siblings)
    if new == former:
        return False
    if new.length < former.length:
        raise WrongValue(f"The length of {new.name!r} is {former.length}, and can only be raised.")
    of_type = select_types(repository_id, [kind.name]).scalar_subquery()
    row = sa.and_(type_properties.c.type_id == of_type, type_properties.c.name == new.name)
    cx.execute(type_properties.update().where(row).values(_changeable(new)))
    before, after = ({**_changeable(each), "searchable": each.searchable} for each in (former, new))
    audit.record(cx, "type changed", _target(kind.name), {new.name: before}, {new.name: after})
    if new.searchable != former.searchable:
        if new.name in present.awaiting_index:
            raise InUse(f"The property {new.name!r} is being indexed again just now: try again in a while.")
        reindexing.begin(cx, repository_id, new.name, now, searchable=new.searchable)
    return True


def _target(name: str) -> audit.Target:
    return audit.Target("type", name)


def _changeable(definition: PropertyDefinition) -> dict[str, object]:
    return {"length": definition.length, "label": definition.label, "rules": encode_rules(definition)}
