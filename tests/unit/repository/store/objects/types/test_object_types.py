"""What kinds of object are there, with which properties?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.ground.clock import timestamp
from muniment.repository.refusals import BadTypesFile, NameTaken, UnknownProperty, UnknownType, WrongValue
from muniment.repository.store.objects.properties import properties
from muniment.repository.store.objects.properties.properties import PropertyDefinition, PropertyKind, Value
from muniment.repository.store.objects.types import type_editing, types_file
from muniment.repository.store.objects.types.object_types import Catalogue, ObjectType
from tests.shelf import Shelf

INVOICES = b"""
[types.reminder]
parent = "invoice"

[types.invoice]
[types.invoice.properties]
amount = "double"
approvers = { kind = "string", repeating = true }
"""


def load(shelf: Shelf, toml: bytes) -> list[str]:
    with shelf.database.begin() as cx:
        return types_file.load(cx, shelf.repository.id, toml, shelf.now)


def test_every_repository_has_the_four_built_in_types() -> None:
    assert [kind.name for kind in Catalogue().types()] == ["sysobject", "folder", "cabinet", "document"]
    assert [kind.name for kind in Catalogue().lineage("cabinet")] == ["cabinet", "folder", "sysobject"]


def test_subtypes_are_included_and_siblings_are_not(shelf: Shelf) -> None:
    load(shelf, INVOICES)
    catalogue = shelf.catalogue()
    assert catalogue.with_subtypes(["document"]) == {"document", "invoice", "reminder"}
    assert catalogue.with_subtypes(["invoice"]) == {"invoice", "reminder"}
    assert catalogue.with_subtypes(["sysobject"]) >= {"cabinet", "folder", "reminder"}
    assert not catalogue.is_a("document", "invoice")


def test_a_type_has_its_ancestors_properties(shelf: Shelf) -> None:
    load(shelf, INVOICES)
    catalogue = shelf.catalogue()
    assert {"amount", "approvers", "object_name"} <= catalogue.properties_of("reminder").keys()
    assert "amount" not in catalogue.properties_of("document")
    assert catalogue.property("approvers") == PropertyDefinition("approvers", "string", repeating=True)


def test_a_types_file_is_loaded_once_however_often_it_is_loaded(shelf: Shelf) -> None:
    assert load(shelf, INVOICES) == [
        "type invoice",
        "property invoice.amount",
        "property invoice.approvers",
        "type reminder",
    ]
    assert load(shelf, INVOICES) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("toml", "refusal"),
    [
        (b"types = 3", BadTypesFile),
        (b"[types", BadTypesFile),
        (b"\xff", BadTypesFile),
        (b"[types.a]\nparent = 'b'\n[types.b]\nparent = 'a'", BadTypesFile),
        (b"[types.a]\ncolour = 'red'", BadTypesFile),
        (b"[types.a.properties]\nx = 'money'", BadTypesFile),
        (b"[types.a]\nparent = 'nothing'", UnknownType),
        (b"[types.dm_document]", WrongValue),
        (b"[types.a.properties]\nr_size = 'integer'", WrongValue),
        (b"[types.a.properties]\n'Not A Name' = 'integer'", WrongValue),
        (b"[types.a.properties]\ntitle = 'integer'", WrongValue),
        (b"[types.document]\nparent = 'sysobject'\n[types.document.properties]\nx = 'string'", WrongValue),
    ],
)
def test_a_types_file_that_cannot_hold_adds_nothing(shelf: Shelf, toml: bytes, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        load(shelf, toml)
    assert len(shelf.catalogue().types()) == 4


def test_a_property_name_has_one_kind_across_a_repository(shelf: Shelf) -> None:
    load(shelf, INVOICES)
    with pytest.raises(WrongValue, match="'amount' is of kind double"):
        load(shelf, b"[types.offer.properties]\namount = 'string'")
    assert load(shelf, b"[types.offer.properties]\namount = 'double'") == ["type offer", "property offer.amount"]


def test_a_name_is_taken_once(shelf: Shelf) -> None:
    load(shelf, INVOICES)
    amount, paid = PropertyDefinition("amount", "double"), PropertyDefinition("paid", "date")
    with shelf.database.begin() as cx:
        with pytest.raises(NameTaken):
            type_editing.add_type(cx, shelf.repository.id, ObjectType("invoice", "document"), shelf.now)
        with pytest.raises(NameTaken):
            type_editing.add_properties(cx, shelf.repository.id, "invoice", [amount], shelf.now)
        type_editing.add_properties(cx, shelf.repository.id, "reminder", [paid], shelf.now)
        # The sub-type has it already: the parent's would be another one of the same name.
        with pytest.raises(NameTaken):
            type_editing.add_properties(cx, shelf.repository.id, "invoice", [paid], shelf.now)


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(UnknownType):
        Catalogue().get("nothing")
    with pytest.raises(UnknownProperty):
        Catalogue().property("nothing")


def definition(kind: PropertyKind, *, repeating: bool = False) -> PropertyDefinition:
    return PropertyDefinition("p", kind, repeating)


@pytest.mark.parametrize(
    ("kind", "given_value", "value"),
    [
        ("string", " kept as it is ", " kept as it is "),
        ("integer", 12, 12),
        ("integer", "12", 12),
        ("integer", 12.0, 12),
        ("double", 1, 1.0),
        ("double", "1e3", 1000.0),
        ("boolean", True, True),
        ("boolean", "T", True),
        ("boolean", "false", False),
        ("id", "0900000180000ABC", "0900000180000abc"),
        ("date", "1970-01-01", 0),
        ("date", "1970-01-01T00:00:01.5", 1_500_000),
        ("date", "1970-01-01T02:00:00.000+02:00", 0),
        ("date", "1970-01-01T00:00:00.0019999Z", 1000),
        ("date", "1969-12-31T23:59:59.999Z", -1000),
    ],
)
def test_a_value_is_read_by_its_kind(kind: PropertyKind, given_value: Value, value: Value) -> None:
    found = properties.read_values(definition(kind), given_value)
    assert found == [value]
    assert type(found[0]) is type(value)


@pytest.mark.parametrize(
    ("kind", "given_value"),
    [
        ("string", 3),
        ("string", True),
        ("string", "x" * 4001),
        ("string", "nul \x00"),
        ("string", "lone \ud800"),
        ("integer", "1.5"),
        ("integer", 1.5),
        ("integer", 2**63),
        ("integer", "9" * 20),
        ("integer", True),
        ("double", float("nan")),
        ("double", "inf"),
        ("double", "1e999"),
        ("double", 10**400),
        ("boolean", 1),
        ("boolean", "yes"),
        ("date", "yesterday"),
        ("date", 0),
        ("date", "2026-02-30"),
        ("date", "0001-01-01T00:00:00+23:59"),
        ("date", "2026-11-21junk12:00"),
        ("id", "09"),
        ("string", {"a": 1}),
        ("string", ["two", "values"]),
    ],
)
def test_a_value_of_another_kind_is_refused_by_the_propertys_name(kind: PropertyKind, given_value: Value) -> None:
    with pytest.raises(WrongValue, match="'p'"):
        properties.read_values(definition(kind), given_value)


def test_a_multi_valued_property_takes_one_or_several_values_up_to_a_cap() -> None:
    many = definition("string", repeating=True)
    assert properties.read_values(many, "one") == ["one"]
    assert properties.read_values(many, ["one", "two"]) == ["one", "two"]
    assert properties.read_values(many, []) == properties.read_values(many, None) == []
    with pytest.raises(WrongValue, match="more than 1000"):
        properties.read_values(many, ["x"] * 1001)
    with pytest.raises(WrongValue):
        properties.read_values(many, [["nested"]])


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_date_that_was_written_is_read_again_the_same(milliseconds: int) -> None:
    written = timestamp(milliseconds * 1000, utc="+00:00")
    assert properties.instant(written) == milliseconds * 1000
    assert len(written) == len("yyyy-mm-ddThh:mm:ss.SSS+hh:mm")
