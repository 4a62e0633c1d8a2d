"""What a caller gives as a property's value is read as its kind asks, or refused."""

import pytest

from muniment.repository.refusals import WrongValue
from muniment.repository.store.objects.properties import properties
from muniment.repository.store.objects.properties.properties import PropertyDefinition, PropertyKind, Value


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        ("integer", " 2\n", 2),
        ("integer", "\x1e2", 2),
        ("integer", "\u20282", 2),
        ("double", "\x1f1.5", 1.5),
        ("double", "\x853", 3.0),
        ("boolean", "\x1etrue", True),
    ],
)
def test_blanks_around_a_value_do_not_count(kind: PropertyKind, given: str, read: Value) -> None:
    """Whatever Python takes for a blank; its own numbers take fewer: "\\x1e2" was once an error in the server."""
    assert properties.read_value(PropertyDefinition("a", kind), given) == read


@pytest.mark.parametrize(
    ("kind", "given"),
    [("integer", "\u00b2"), ("integer", "1_0"), ("integer", "9" * 5000), ("double", "nan"), ("double", "\u0661")],
)
def test_what_is_no_number_is_refused(kind: PropertyKind, given: str) -> None:
    with pytest.raises(WrongValue):
        properties.read_value(PropertyDefinition("a", kind), given)
