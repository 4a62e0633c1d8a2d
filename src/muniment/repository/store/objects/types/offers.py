"""Which values does a form offer for the properties of a type? Source: docs/interface.md, ours 19."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from muniment.repository.refusals import WrongValue
from muniment.repository.store.objects.properties import assistance, properties
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.objects.types.type_forms import MOST_PROPERTIES


class Offer(NamedTuple):
    """If ``is_open``, other values are allowed, too."""

    definition: properties.PropertyDefinition
    is_open: bool
    values: Sequence[assistance.AllowedValue]


def of_type(
    catalogue: Catalogue, type_name: str, names: Sequence[str], of_object: Mapping[str, properties.Given]
) -> list[Offer]:
    """Return the offers for these properties, or for all that have a list of values. ``of_object`` holds values as a
    caller sends them: a list may depend on another property's.

    Raises UnknownType, UnknownProperty, WrongValue.
    """
    if len(names) > MOST_PROPERTIES or len(of_object) > MOST_PROPERTIES:
        raise WrongValue(f"Name at most {MOST_PROPERTIES} properties.")
    values = {
        name: properties.read_values(catalogue.property_of(type_name, name), value) for name, value in of_object.items()
    }
    definitions = [catalogue.property_of(type_name, name) for name in dict.fromkeys(names)]
    if not names:
        definitions = [each for each in catalogue.ruled(type_name) if each.assistance.values]
    return [
        Offer(each, each.assistance.is_open or not each.assistance.values, each.assistance.list_values(values))
        for each in definitions
    ]
