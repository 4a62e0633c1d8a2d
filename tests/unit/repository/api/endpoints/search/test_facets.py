"""Facets over HTTP: both spellings, GET and POST, links that narrow, rights, caps, bad input."""

from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from tests.unit.repository.api.endpoints.search.test_search import HERE, NAMES, Site, ids, query, site

__all__ = ["site"]

JSON = {"Content-Type": "application/json", "Accept": "application/vnd.muniment+json"}


def shelved(site: Site) -> None:
    """Keep documents with names and keywords; boris has a private one."""
    for name, keywords in [("a+b", ["red", "x|y;z"]), ("a+b", ["red", "blue"]), ("Zed", ["blue"]), ("plain", [])]:
        site.shelf.add(name, "the main valve", acl="public", keywords=keywords)
    site.shelf.catch_up()


def got(site: Site, address: str, **headers: str) -> dict[str, Any]:
    answer = site.client.get(address, headers={"Accept": JSON["Accept"], **headers})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def posted(site: Site, *facets: object, **more: object) -> dict[str, Any]:
    body = msgspec.json.encode({"types": ["document"], "facet-definitions": facets, **more})
    answer = site.client.post(HERE, content=body, headers=JSON)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def values(facet: dict[str, Any]) -> dict[str, int]:
    return {value["facet-value-id"]: value["facet-value-count"] for value in facet["facet-value"]}


def follow(site: Site, facet: dict[str, Any]) -> None:
    """Every value's link leads to as many hits as it counted, and so do those nested in it."""
    for value in facet["facet-value"]:
        address = value["link"]["href"].removeprefix("http://testserver")
        narrowed = got(site, address if "include-total" in address else f"{address}&include-total=true")
        assert narrowed["total"] == value["facet-value-count"], address
        for nested in value.get("facets", []):
            follow(site, nested)


def test_a_get_counts_one_property_and_its_links_narrow(site: Site) -> None:
    shelved(site)
    for name, expected in [
        ("keywords", {"blue": 2, "red": 2, "x|y;z": 1}),
        ("object_name", {"a+b": 2, "plain": 1, "Zed": 1}),
    ]:
        feed = got(site, f"{HERE}?facet={name}")
        (facet,) = feed["facets"]
        assert (facet["facet-id"], facet["facet-label"]) == (name, name)
        assert values(facet) == expected
        follow(site, facet)


@pytest.mark.slow
def test_constraints_combine_by_and_and_or(site: Site) -> None:
    shelved(site)
    for text, total in [("red+blue", 1), ("red|blue", 3), ("red+blue|x\\|y\\;z", 2), ("green", 0), ("\\N", 1)]:
        asked = urlencode({"facet": "keywords", "facet-value-constraints": text, "include-total": "true"})
        feed = got(site, f"{HERE}?{asked}")
        assert feed["total"] == total, text
        follow(site, feed["facets"][0])
        pairs = urlencode({"facet": "keywords", "facet-id-constraints": f"keywords={text}", "include-total": "true"})
        assert got(site, f"{HERE}?{pairs}")["total"] == total


@pytest.mark.slow
def test_both_spellings_count_alike_and_nested_links_narrow(site: Site) -> None:
    shelved(site)
    nested = {"id": "name", "attributes": ["object_name"], "sort": "VALUE_DESCENDING"}
    types = {
        "id": "k;1",
        "attributes": ["keywords"],
        "properties": {"nullValueFacet": "true"},
        "facet-definition": nested,
    }
    made = {"id": "made", "attributes": ["r_creation_date"], "group-by": "Quarter"}
    age = {"id": "age", "attributes": ["r_modify_date"], "group-by": "relativeDate", "max-values": -1}
    size = {"id": "size", "attributes": ["r_full_content_size"], "group-by": "range", "properties": {"range": ":5, 5:"}}
    first = {"id": "first", "attributes": ["object_name"], "group-by": "alpharange", "properties": {"range": "a:m,n:z"}}
    kinds = {"id": "kind", "attributes": ["r_object_type"], "properties": None}
    feed = posted(site, types, made, age, size, first, kinds)
    keyed = {facet["facet-id"]: facet for facet in feed["facets"]}
    assert values(keyed["k;1"]) == {"blue": 2, "red": 2, "x|y;z": 1, "NULL": 1}
    inner = {value["facet-value-id"]: values(value["facets"][0]) for value in keyed["k;1"]["facet-value"]}
    assert inner["blue"] == {"a+b": 1, "Zed": 1}
    assert list(inner["blue"]) == ["Zed", "a+b"]
    assert values(keyed["size"]) == {"5:": 4}
    assert values(keyed["first"]) == {"a:m": 2, "n:z": 2}
    assert values(keyed["kind"]) == {"document": 4}
    assert sum(values(keyed["made"]).values()) == 4
    for facet in keyed.values():
        follow(site, facet)
    xml = site.post(
        query(
            "<facet-definitions><facet-definition id='k;1'><attributes><attribute>keywords</attribute></attributes>"
            "<properties><property name='nullValueFacet'>true</property></properties>"
            "</facet-definition></facet-definitions>"
        )
    )
    counted = {
        value.findtext("dm:facet-value-id", None, NAMES): int(value.findtext("dm:facet-value-count", "", NAMES))
        for value in xml.findall("dm:facet/dm:facet-value", NAMES)
    }
    assert counted == values(keyed["k;1"])
    link = xml.find("dm:facet/dm:facet-value/dm:link", NAMES)
    assert link is not None
    assert len(ids(site.feed(str(link.get("href")).removeprefix("http://testserver")))) == 2


@pytest.mark.slow
def test_only_what_the_caller_may_see_is_counted(site: Site) -> None:
    shelved(site)
    site.shelf.add("secret", "the main valve", keywords=["red", "secret"])
    site.shelf.catch_up()
    (facet,) = got(site, f"{HERE}?facet=keywords", Authorization="Bearer boris")["facets"]
    assert values(facet) == {"blue": 2, "red": 2, "x|y;z": 1}


def test_the_first_hits_feed_the_facets_and_the_answer_says_so(site: Site) -> None:
    shelved(site)
    (facet,) = posted(site, {"id": "name", "attributes": ["object_name"]}, **{"max-results-for-facets": 2})["facets"]
    assert facet["facet-hits"] == 2
    assert sum(values(facet).values()) == 2
    (whole,) = posted(site, {"id": "name", "attributes": ["object_name"]}, **{"max-results-for-facets": 4})["facets"]
    assert "facet-hits" not in whole


def test_without_facets_a_search_has_an_empty_list_of_them(site: Site) -> None:
    shelved(site)
    assert got(site, HERE)["facets"] == []


BAD = {
    "no such property": {"id": "x", "attributes": ["spaceship"]},
    "an ACL": {"id": "x", "attributes": ["acl_name"]},
    "a path": {"id": "x", "attributes": ["r_folder_path"]},
    "two attributes": {"id": "x", "attributes": ["title", "subject"]},
    "another group-by": {"id": "x", "attributes": ["title"], "group-by": "decade"},
    "a text by day": {"id": "x", "attributes": ["title"], "group-by": "day"},
    "a text by range": {"id": "x", "attributes": ["title"], "group-by": "range", "properties": {"range": "1:2"}},
    "no range": {"id": "x", "attributes": ["r_full_content_size"], "group-by": "range"},
    "a range that ends first": {
        "id": "x",
        "attributes": ["r_full_content_size"],
        "group-by": "range",
        "properties": {"range": "5:2"},
    },
    "no number": {
        "id": "x",
        "attributes": ["r_full_content_size"],
        "group-by": "range",
        "properties": {"range": "nan:"},
    },
    "many ranges": {
        "id": "x",
        "attributes": ["r_full_content_size"],
        "group-by": "range",
        "properties": {"range": ",".join(f"{n}:{n + 1}" for n in range(101))},
    },
    "a range of many characters": {
        "id": "x",
        "attributes": ["r_full_content_size"],
        "group-by": "range",
        "properties": {"range": f"1:{' ' * 200}2"},
    },
    "an id of many characters": {"id": "x" * 201, "attributes": ["title"]},
    "two letters": {"id": "x", "attributes": ["title"], "group-by": "alpharange", "properties": {"range": "aa:z"}},
    "no zone": {"id": "x", "attributes": ["r_modify_date"], "group-by": "day", "properties": {"timezone": "../../etc"}},
    "no truth": {"id": "x", "attributes": ["title"], "properties": {"nullValueFacet": "perhaps"}},
    "another option": {"id": "x", "attributes": ["title"], "properties": {"colour": "red"}},
    "duplicates": {"id": "x", "attributes": ["title"], "properties": {"keepDuplicateValues": "true"}},
    "too many values": {"id": "x", "attributes": ["title"], "max-values": 2001},
    "too many nested values": {
        "id": "x",
        "attributes": ["title"],
        "max-values": 100,
        "facet-definition": {"id": "y", "attributes": ["subject"], "max-values": 100},
    },
    "below relativeDate": {
        "id": "x",
        "attributes": ["r_modify_date"],
        "group-by": "relativeDate",
        "facet-definition": {"id": "y", "attributes": ["subject"]},
    },
    "one id twice": {"id": "x", "attributes": ["title"], "facet-definition": {"id": "x", "attributes": ["subject"]}},
}


@pytest.mark.slow
@pytest.mark.parametrize("definition", BAD.values(), ids=BAD)
def test_a_bad_definition_is_refused_with_its_place(site: Site, definition: object) -> None:
    body = msgspec.json.encode({"facet-definitions": [definition]})
    answer = site.client.post(HERE, content=body, headers=JSON)
    assert answer.status_code == 400, answer.text
    assert "facet" in answer.json()["message"].lower()


@pytest.mark.slow
def test_what_each_value_would_repeat_of_the_address_is_not_long(site: Site) -> None:
    shelved(site)
    for longest, status in [(7000, 200), (9000, 400)]:
        text = "x" * longest
        for asked in ({"q": text}, {"query-locale": text}, {"facet-id-constraints": f"keywords={text}"}):
            address = f"{HERE}?{urlencode({'facet': 'keywords', **asked})}"
            assert site.client.get(address, headers=JSON).status_code == status, address[:200]
    assert site.client.get(f"{HERE}?{urlencode({'query-locale': 'x' * 9000})}").status_code == 200
    body = msgspec.json.encode({"facet-definitions": [{"id": "x" * 200, "attributes": ["keywords"]}]})
    assert site.client.post(HERE, content=body, headers=JSON).status_code == 200
    assert site.client.post(f"{HERE}?query-locale={'x' * 9000}", content=body, headers=JSON).status_code == 400


def test_too_many_definitions_are_refused(site: Site) -> None:
    several = [{"id": str(n), "attributes": ["title"]} for n in range(21)]
    answer = site.client.post(HERE, content=msgspec.json.encode({"facet-definitions": several}), headers=JSON)
    assert answer.status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"facet": "spaceship"},
        {"facet": "acl_name"},
        {"facet": "r_modify_date", "timezone": "Moon/Base"},
        {"timezone": "UTC"},
        {"facet-value-constraints": "red"},
        {"facet": "keywords", "facet-value-constraints": "red+"},
        {"facet": "keywords", "facet-value-constraints": "red\\"},
        {"facet": "keywords", "facet-value-constraints": "|".join(["a"] * 2000)},
        {"facet": "keywords", "facet-id-constraints": "red"},
        {"facet": "keywords", "facet-id-constraints": "other=red"},
        {"facet": "r_modify_date", "facet-value-constraints": "2024-13"},
        {"facet": "r_full_content_size", "facet-value-constraints": "many"},
        {"link": "00", "facet": "keywords"},
    ],
)
def test_bad_parameters_are_refused(site: Site, asked: dict[str, str]) -> None:
    answer = site.client.get(f"{HERE}?{urlencode(asked)}")
    assert answer.status_code == 400, answer.text


@pytest.mark.slow
def test_the_zone_decides_to_which_month_a_date_belongs(site: Site) -> None:
    shelved(site)
    for zone in ("gmt-8:00", "europe/BERLIN", "PST", "GMT+14", ""):
        (facet,) = got(site, f"{HERE}?{urlencode({'facet': 'r_modify_date', 'timezone': zone})}")["facets"]
        assert sum(values(facet).values()) == 4
        follow(site, facet)
