"""Object types, and the values that forms offer, as the wire shows them. Source: docs/interface.md, ours 19."""

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from muniment.ground.clock import timestamp
from muniment.repository.api.shapes.representations import Thing
from muniment.repository.api.wire import spelling
from muniment.repository.api.wire.documents import Linked
from muniment.repository.api.wire.spelling import Written
from muniment.repository.options import RepositoryNames
from muniment.repository.store.objects.properties import properties
from muniment.repository.store.objects.properties.properties import PropertyDefinition, Value
from muniment.repository.store.objects.types.object_types import BUILT_IN_NAMES, Catalogue, ObjectType
from muniment.repository.store.objects.types.offers import Offer

ATTRIBUTES = ("name", "label", "category", "parent")


class PropertyDocument(msgspec.Struct):
    """A property of an object type."""

    name: str
    type: str
    repeating: bool
    writable: bool
    readonly: bool
    length: int
    label: str
    searchable: bool
    default: str | int | float | bool | list[str | int | float | bool] | None
    dependencies: list[str]


class TypeDocument(Linked):
    """An object type with all its properties, inherited ones first."""

    name: str
    label: str
    category: str
    parent: str | None
    properties: list[PropertyDocument]


class OfferedValueDocument(msgspec.Struct):
    """A value that a form offers, with its label."""

    value: str | int | float | bool
    label: str


class OfferDocument(msgspec.Struct, rename="kebab"):
    """The values that a form offers for one property. With ``allow-user-values``, the property may have others, too."""

    allow_user_values: bool
    values: list[OfferedValueDocument]


class OffersDocument(Linked):
    """The values that a form offers for properties of a type, by name."""

    properties: dict[str, OfferDocument]


def type_thing(
    here: str,
    kind: ObjectType,
    catalogue: Catalogue,
    names: RepositoryNames,
    media_type: str,
    *,
    inherited: bool = True,
) -> Thing:
    """The inherited properties come first; without ``inherited`` they are left out."""
    definitions = catalogue.properties_of(kind.name)
    above = catalogue.properties_of(kind.parent).keys() if kind.parent and not inherited else frozenset()
    document = _type_document(here, kind, [each for name, each in definitions.items() if name not in above], names)
    if not media_type.endswith("xml"):
        return Thing("type", document)
    attributes = {name: str(text) for name in ATTRIBUTES if (text := document.pop(name))}
    return Thing("type", document, {"": attributes})


def offers_thing(here: str, type_name: str, offers: Sequence[Offer], names: RepositoryNames, media_type: str) -> Thing:
    """In XML, the name, the label and ``allow-user-values`` are attributes."""
    own = type_address(here, type_name, names)
    by_name: dict[str, Written] = {}
    for definition, is_open, values in offers:
        name = spelling.write_property(definition.name, names)
        shown = [(_value(definition, each.value), each.label) for each in values]
        if media_type.endswith("xml"):
            labelled: Written = [{"#text": value, "@label": label or str(value)} for value, label in shown]
            by_name[name] = {"@name": name, "@allow-user-values": is_open, "values": labelled}
        else:
            labelled = [{"value": value, "label": label or str(value)} for value, label in shown]
            by_name[name] = {"allow-user-values": is_open, "values": labelled}
    links: Written = [{"rel": "self", "href": f"{own}/assist-values"}, {"rel": "parent", "href": own}]
    return Thing("assist-values", {"properties": by_name, "links": links})


def type_address(here: str, type_name: str, names: RepositoryNames) -> str:
    return f"{here}/types/{quote(spelling.write_type(type_name, names))}"


def _type_document(
    here: str, kind: ObjectType, shown: Sequence[PropertyDefinition], names: RepositoryNames
) -> dict[str, Written]:
    own = type_address(here, kind.name, names)
    links: list[Written] = [{"rel": "self", "href": own}]
    if kind.parent is not None:
        links.append({"rel": "parent", "href": type_address(here, kind.parent, names)})
    if kind.name not in BUILT_IN_NAMES:
        links += [{"rel": rel, "href": own} for rel in ("edit", f"{names.linkrel_base}/delete")]
    links.append({"rel": f"{names.linkrel_base}/assist-values", "href": f"{own}/assist-values"})
    return {
        "name": spelling.write_type(kind.name, names),
        "label": kind.label or kind.name,
        "category": "standard",
        "parent": spelling.write_type(kind.parent, names) if kind.parent else None,
        "properties": [_property(each, names) for each in shown],
        "links": links,
    }


def _property(definition: PropertyDefinition, names: RepositoryNames) -> Written:
    name, depends_on = spelling.write_property(definition.name, names), definition.assistance.depends_on
    default = [_value(definition, each) for each in definition.default]
    return {
        "name": name,
        "type": definition.kind,
        "repeating": definition.repeating,
        "writable": definition.writable,
        "readonly": not definition.writable,
        "length": properties.shown_length(definition),
        "label": definition.label or name,
        "searchable": definition.searchable and not definition.awaiting_index,
        "default": (default if definition.repeating else default[0]) if default else None,
        "dependencies": [spelling.write_property(depends_on, names)] if depends_on else [],
    }


def _value(definition: PropertyDefinition, value: Value) -> str | int | float | bool:
    return timestamp(value, utc="+00:00") if definition.kind == "date" and isinstance(value, int) else value
