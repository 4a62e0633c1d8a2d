"""given 2.8: columns, repositories, locations; bad query documents are refused with their place."""

import json
import re
from typing import Any

import pytest

from tests.scenes import Feed, Site, fulltext


def _posted(site: Site, document: Any, **parameters: str) -> Any:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return site.post_search(
        body.decode("utf-8", "surrogateescape"), parameters, headers={"Content-Type": "application/json"}
    )


def _one(expression: dict[str, Any]) -> dict[str, Any]:
    return {"expression-set": {"expressions": [expression]}}


def test_2_8_columns_are_the_view_of_inlined_objects(site: Site) -> None:
    word = site.world.word()
    site.create(word)
    site.world.catch_up()
    asked = {"columns": ["title"], **_one({"expression-type": "fulltext", "value": word})}
    answer = site.post_search(
        json.dumps(asked),
        {"inline": "true"},
        headers={"Content-Type": "application/json", "Accept": "application/json"},
    )
    assert answer.status_code == 200, answer.text
    shown = {"object_name", site.names.system_property_prefix + "object_type"}
    assert all(name in answer.text for name in shown)
    assert "owner_name" not in answer.text
    assert _posted(site, {**asked, "columns": ["spaceship"]}, inline="true").status_code == 400


def test_2_8_another_repository_is_refused(site: Site) -> None:
    here = site.repository.rpartition("/")[2]
    assert _posted(site, {"repositories": [here]}).status_code == 200
    assert _posted(site, {"repositories": []}).status_code == 200
    answer = _posted(site, {"repositories": [here, "another"]})
    assert answer.status_code == 400
    assert "'another'" in answer.text


def test_2_8_sorts_of_unknown_properties_are_refused_with_their_place(site: Site) -> None:
    answer = _posted(site, {"sorts": [{"property": "unheard_of", "ascending": False}]})
    assert answer.status_code == 400
    assert "sorts[0]" in answer.text


def test_2_8_locations_of_the_address_name_folders_by_their_paths(site: Site) -> None:
    word = site.world.word()
    cabinet = site.cabinet(word)
    unfiled = site.create(word)
    site.world.catch_up()
    assert set(site.keywords(word).ids) == {cabinet, unfiled}
    assert site.keywords(word, locations=f"/{word}").ids == []
    assert set(site.keywords(word, locations="/").ids) == {cabinet, unfiled}
    with_comma = site.cabinet(f"{word}, old")
    made = site.http.post(
        f"{site.repository}/folders/{with_comma}/documents",
        json={"properties": {"object_name": word}},
        headers=site.bearer(),
    )
    site.world.catch_up()
    inside = made.json()["properties"][f"{site.names.system_property_prefix}object_id"]
    assert site.keywords(word, locations=f"/{word},/{word}\\, old").ids == [inside]
    query = {"q": word, "locations": f"/{word}/nowhere"}
    answer = site.http.get(site.search_address, params=query, headers=site.bearer())
    assert answer.status_code == 400
    assert "locations[0]" in answer.text


@pytest.mark.parametrize("parameter", ["collections", "query-locale"])
def test_2_8_parameters_without_effect_are_accepted(site: Site, parameter: str) -> None:
    word = site.world.word()
    made = site.create(word)
    site.world.catch_up()
    assert site.feed(site.search_address, {"q": word, parameter: "default"}).ids == [made]


DEEP: dict[str, Any] = {"expression-type": "fulltext", "value": "a"}
for _ in range(60):
    DEEP = {"expression-type": "expression-set", "expressions": [DEEP]}

BAD: dict[str, Any] = {
    "a list of very many values": _one({"expression-type": "property-list", "name": "title", "values": ["a"] * 20_000}),
    "deep nesting": _one(DEEP),
    "a huge number": _one(
        {"expression-type": "relative-date", "name": "r_modify_date", "operator": "EQUAL", "time-unit": "DAY"}
        | {"value": 10**400}
    ),
    "a number out of the calendar": _one(
        {"expression-type": "relative-date", "name": "r_modify_date", "operator": "EQUAL", "time-unit": "YEAR"}
        | {"value": 999_999_999}
    ),
    "a storm of wildcards": {
        "expression-set": {
            "expressions": [
                {"expression-type": "property", "name": "title", "operator": "CONTAINS", "value": "*?" * 20}
            ]
            * 40
        }
    },
    "a text for a list": {"types": "document"},
    "a list for an expression": {"expression-set": []},
    "a number for a list": {"columns": 1},
    "an object for a text": _one({"expression-type": "fulltext", "value": {}}),
    "no object at all": b"null",
    "UNDEFINED": _one({"expression-type": "property", "name": "title", "operator": "UNDEFINED", "value": "a"}),
}


UNREADABLE = {
    "deep brackets": b"[" * 100_000,
    "a lone surrogate": b'{"expression-set": {"expressions": [{"expression-type": "fulltext", "value": "\\ud800"}]}}',
    "a repeated key": b'{"types": [], "types": ["document"]}',
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_2_8_json_that_cannot_be_read_is_refused(site: Site, what: str) -> None:
    answer = _posted(site, UNREADABLE[what])
    assert answer.status_code == 400, (answer.status_code, answer.text)
    assert "The JSON" in answer.text


@pytest.mark.parametrize("what", BAD)
def test_2_8_a_bad_document_in_json_is_refused_with_its_place(site: Site, what: str) -> None:
    answer = _posted(site, BAD[what])
    assert answer.status_code == 400, (answer.status_code, answer.text)
    assert re.search(r"\((the document|types|columns|expression-set)[^()]*\)", answer.text), answer.text


def test_2_8_deep_nesting_in_xml_is_refused_with_its_place(site: Site) -> None:
    inner = fulltext("a")
    for _ in range(60):
        inner = f"<expression-set><expressions>{inner}</expressions></expression-set>"
    answer = site.post_search(site.aql(inner))
    assert answer.status_code == 400
    assert "line 1" in answer.text


KINDS = {
    "object_name": ("string", "a"),
    "r_creation_date": ("date", "2024-01-01"),
    "r_full_content_size": ("integer", "1"),
}
OPERATORS = (
    "EQUAL",
    "NOT_EQUAL",
    "GREATER_THAN",
    "LESS_EQUAL",
    "BEGINS_WITH",
    "CONTAINS",
    "DOES_NOT_CONTAIN",
    "IS_NULL",
)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", KINDS)
def test_2_8_an_operator_fits_a_kind_or_is_refused_with_its_place(site: Site, name: str, operator: str) -> None:
    kind, value = KINDS[name]
    fits = kind == "string" or operator not in ("BEGINS_WITH", "CONTAINS", "DOES_NOT_CONTAIN")
    wire = name.replace("r_", site.names.system_property_prefix, 1) if name.startswith("r_") else name
    answer = _posted(site, _one({"expression-type": "property", "name": wire, "operator": operator, "value": value}))
    assert answer.status_code == (200 if fits else 400), answer.text
    assert fits or "expression-set.expressions[0]" in answer.text
    if fits:
        assert Feed(answer, site).entries is not None
