"""An update that empties some properties takes their values away and leaves all others, in JSON as in XML.

Source: docs/interface.md, ours 2.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.repository.api.shapes import object_body
from muniment.repository.options import RepositoryNames
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.properties.properties import Given, PropertyDefinition, PropertyKind
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from tests.properties.lengths import examples
from tests.shelf import MARTA, Shelf

VALUES: Mapping[PropertyKind, list[Any]] = {
    "string": ["a", " ", "<b/>", "\N{SNOWMAN}"],
    "integer": [0, -7],
    "double": [0.0, 2.5],
    "boolean": [False, True],
    "date": ["2024-01-31T12:30:00Z"],
    "id": ["0" * 16],
}
DEFINITIONS = {
    name: PropertyDefinition(name, kind, repeating=repeating)
    for kind in VALUES
    for name, repeating in ((f"one_{kind}", False), (f"many_{kind}", True))
}
FILLED: dict[str, Given] = {
    name: each if DEFINITIONS[name].repeating else each[0]
    for name, each in ((name, VALUES[one.kind]) for name, one in DEFINITIONS.items())
}
JSON: list[Given] = [None, "", [], [""], [None], [None, ""]]
XML = ["<{0}/>", "<{0}></{0}>", "<{0}>\n <item/>\n</{0}>", "<{0} xsi:nil='true'/>", "<{0} xsi:nil='1'>x</{0}>"]
XML += ["<{0}><item/></{0}>", "<{0}><item xsi:nil='true'>x</item><item></item></{0}>"]
NAMES = RepositoryNames()
XSI = "http://www.w3.org/2001/XMLSchema-instance"


def as_json(emptied: Mapping[str, Given]) -> bytes:
    return json.dumps({"properties": emptied}).encode()


def as_xml(emptied: Mapping[str, str]) -> bytes:
    inner = "".join(form.format(name) for name, form in emptied.items())
    return (
        f"<object xmlns='{NAMES.vocab_namespace}' xmlns:xsi='{XSI}'><properties>{inner}</properties></object>".encode()
    )


def bodies() -> st.SearchStrategy[tuple[set[str], bytes]]:
    def forms(spellings: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
        return st.dictionaries(st.sampled_from(sorted(DEFINITIONS)), st.sampled_from(spellings), min_size=1)

    return st.one_of(
        forms(JSON).map(lambda emptied: (set(emptied), as_json(emptied))),
        forms(XML).map(lambda emptied: (set(emptied), as_xml(emptied))),
    )


def prepared(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        form = ObjectType("form", "document", tuple(DEFINITIONS.values()))
        type_editing.add_type(cx, shelf.repository.id, form, shelf.now)


@pytest.mark.only("sqlite", "What a body says is read before any database.")
def test_what_an_update_empties_has_no_value_and_the_rest_stays(shelf: Shelf) -> None:
    prepared(shelf)

    @settings(max_examples=examples(30, 5000), deadline=None, suppress_health_check=list(HealthCheck))
    @given(bodies())
    def law(case: tuple[set[str], bytes]) -> None:
        emptied, body = case
        made = shelf.create({"object_name": "x", **FILLED}, type_name="form")
        before = inventory.values(made, shelf.catalogue(), "")
        assert before.keys() >= DEFINITIONS.keys()
        changed = shelf.change(made.id, object_body.read(body, "", NAMES).properties, MARTA)
        after = inventory.values(changed, shelf.catalogue(), "")
        assert not emptied & after.keys()
        left = DEFINITIONS.keys() - emptied
        assert {name: after[name] for name in left} == {name: before[name] for name in left}
        assert after == inventory.values(shelf.read(made.id)[0], shelf.catalogue(), "")
        assert shelf.change(made.id, FILLED).properties == made.properties

    law()


@pytest.mark.only("sqlite", "What a body says is read before any database.")
def test_an_empty_text_beside_others_is_a_value_of_a_text_alone(shelf: Shelf) -> None:
    prepared(shelf)
    made = shelf.create({"object_name": "x", "many_string": ["", "b", ""]}, type_name="form")
    assert made.properties["many_string"] == ["", "b", ""]
