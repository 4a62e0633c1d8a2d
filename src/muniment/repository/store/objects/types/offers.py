"""Which values does a form offer for the properties of a type? Source: docs/interface.md, ours 19."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from muniment.repository.refusals import WrongValue
from muniment.repository.store.objects.properties import assistance, properties
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.objects.types.type_forms import MOST_PROPERTIES


class Offer(NamedTuple):
    """The values that are offered for one property; ``is_open`` says whether it may have other values, too."""

    definition: properties.PropertyDefinition
    is_open: bool
    values: Sequence[assistance.AllowedValue]


def of_type(
    catalogue: Catalogue, type_name: str, names: Sequence[str], of_object: Mapping[str, properties.Given]
) -> list[Offer]:
    """Return the values that a form offers for these properties of a type.

    If ``names`` is empty, it returns them for all properties that have a list of values. ``of_object`` holds property
    values of an object, as a caller sends them, because a list may depend on the value of another property. Raises
    UnknownType, UnknownProperty, WrongValue.
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
