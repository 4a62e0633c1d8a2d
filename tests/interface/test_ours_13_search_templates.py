"""docs/interface.md, ours 13: search templates are made, shown, and executed with values that are never read again."""

import json
from typing import Any

import httpx
import lxml.etree
import pytest

from tests.interface.test_ours_12_saved_searches import JSON, XML, Saved, link, public, query
from tests.scenes import Feed, Person, Site


class Templates(Saved):
    """Search templates as one caller sends them."""

    def __init__(self, site: Site, person: Person | None = None) -> None:
        super().__init__(site, person)
        self.address = f"{site.repository}/search-templates"

    def post(self, document: Any, path: str = "", **properties: Any) -> httpx.Response:
        body = {"properties": {"object_name": "a template", **properties}, "query-document-template": document}
        return self.send("POST", path, json=body)

    def execute(self, template: dict[str, Any], *values: dict[str, Any], **more: Any) -> httpx.Response:
        return self.send("POST", link(template, "/search-execution"), json={"external-variables": list(values)}, **more)

    def ids(self, template: dict[str, Any], *values: dict[str, Any]) -> set[str]:
        answer = self.execute(template, *values)
        assert answer.status_code == 200, answer.text
        return {entry["id"] for entry in answer.json()["entries"]}


def expressions(site: Site, *some: dict[str, Any], operator: str = "AND") -> dict[str, Any]:
    """A query document with these expressions."""
    return {
        "types": [site.type("document")],
        "expression-set": {"expression-type": "expression-set", "operator": operator, "expressions": list(some)},
    }


def words(text: str, *, template: bool = True) -> dict[str, Any]:
    return {"expression-type": "fulltext", "value": text, "template": template}


def compared(name: str, operator: str, value: str, **more: Any) -> dict[str, Any]:
    return {"expression-type": "property", "name": name, "operator": operator, "value": value, "template": True, **more}


def value(variable_id: str, text: Any, name: str = "variable-value") -> dict[str, Any]:
    return {"id": variable_id, name: text}


@pytest.fixture
def mine(site: Site) -> Templates:
    return Templates(site, site.world.person())


def test_ours_13_the_variables_are_listed_with_their_types(site: Site, mine: Templates) -> None:
    made = mine.make(
        expressions(
            site,
            words("pump"),
            compared("object_name", "BEGINS_WITH", "x"),
            {"expression-type": "property", "name": "title", "operator": "EQUAL", "value": "closed"},
            {
                "expression-type": "expression-set",
                "operator": "OR",
                "expressions": [
                    {
                        "expression-type": "property-list",
                        "name": "owner_name",
                        "operator": "NOT_IN",
                        "values": ["a", "b"],
                        "template": True,
                    },
                    {
                        "expression-type": "property-range",
                        "name": "r_full_content_size",
                        "from": "1",
                        "to": "9",
                        "template": True,
                    },
                    {
                        "expression-type": "relative-date",
                        "name": "r_modify_date",
                        "operator": "GREATER_THAN",
                        "value": -3,
                        "time-unit": "DAY",
                        "template": True,
                    },
                ],
            },
        ),
        subject="what it is for",
        **{public(site): True},
    )
    assert made["name"] == "search-template"
    assert made["properties"]["subject"] == "what it is for"
    assert json.loads(made["query-document-template"])["expression-set"]["expressions"][0]["template"] is True
    assert made["external-variables"] == [
        {
            "variable-type": "fulltext-variable",
            "id": "v1",
            "expression-type": "fulltext",
            "data-type": "string",
            "variable-value": "pump",
        },
        {
            "variable-type": "property-variable",
            "id": "v2",
            "expression-type": "property",
            "data-type": "string",
            "property-name": "object_name",
            "operator": "BEGINS_WITH",
            "variable-value": "x",
        },
        {
            "variable-type": "property-list-variable",
            "id": "v3",
            "expression-type": "property-list",
            "data-type": "string",
            "property-name": "owner_name",
            "operator": "NOT_IN",
            "variable-values": ["a", "b"],
        },
        {
            "variable-type": "property-range-variable",
            "id": "v4",
            "expression-type": "property-range",
            "data-type": "integer",
            "property-name": "r_full_content_size",
            "operator": "BETWEEN",
            "from": "1",
            "to": "9",
        },
        {
            "variable-type": "relative-date-variable",
            "id": "v5",
            "expression-type": "relative-date",
            "data-type": "integer",
            "property-name": "r_modify_date",
            "operator": "GREATER_THAN",
            "variable-value": "-3",
        },
    ]
    root = lxml.etree.fromstring(mine.send("GET", link(made, "self"), headers={"Accept": XML}).content)
    shown = list(root.iterfind(f"{site.vocab}external-variables/*"))
    assert [one.tag.removeprefix(site.vocab) for one in shown] == [
        one["variable-type"] for one in made["external-variables"]
    ]
    assert shown[0].findtext(f"{site.vocab}id") == "v1"
    assert [item.text for item in shown[2].iterfind(f"{site.vocab}variable-value/*")] == ["a", "b"]
    assert str(root.findtext(f"{site.vocab}query-document-template")).startswith("<search")
    assert made["links"]
    assert "edit" not in {one["rel"] for one in made["links"]}
    assert mine.send("POST", link(made, "self"), json={}).status_code == 405


@pytest.mark.parametrize("accept", [JSON, XML])
def test_ours_13_values_are_put_in_and_the_others_stay(site: Site, mine: Templates, accept: str) -> None:
    word, other = site.world.word(), site.world.word()
    first, second = site.create(word, person=mine.person), site.create(other, person=mine.person)
    third = site.create(f"{word} titled", title=other, person=mine.person)
    site.world.catch_up()
    made = mine.make(expressions(site, words(word), compared("title", "EQUAL", other), operator="OR"))
    assert mine.ids(made) == {first, third}
    assert mine.ids(made, value("v1", other)) == {second, third}
    whole = {**made, "external-variables": [{**made["external-variables"][0], "variable-value": other}]}
    document = (
        f'<search-template xmlns="{site.names.vocab_namespace}"><properties/><external-variables>'
        f"<fulltext-variable><id>v1</id><variable-value>{other}</variable-value></fulltext-variable>"
        f"</external-variables></search-template>"
    )
    body = json.dumps(whole) if accept == JSON else document
    headers = {"Content-Type": accept, "Accept": XML}
    answer = mine.send("POST", link(made, "/search-execution"), content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert set(Feed(answer, site).ids) == {second, third}


def test_ours_13_a_list_and_a_range_take_lists_and_ends(site: Site, mine: Templates) -> None:
    word = site.world.word()
    one, two = (site.create(f"{word} {n}", b"x" * n, person=mine.person, title=f"t{n}") for n in (10, 2000))
    site.world.catch_up()
    made = mine.make(
        expressions(
            site,
            words(word, template=False),
            {"expression-type": "property-list", "name": "title", "values": ["none"], "template": True},
            {
                "expression-type": "property-range",
                "name": "r_full_content_size",
                "from": "0",
                "to": "5000",
                "template": True,
            },
        )
    )
    titles = value("v1", ["t10", "t2000"], "variable-values")
    assert mine.ids(made) == set()
    assert mine.ids(made, titles) == {one, two}
    assert mine.ids(made, titles, {"id": "v2", "from": 5, "to": "100"}) == {one}
    body = (
        f'<search-template xmlns="{site.names.vocab_namespace}"><external-variables><property-list-variable>'
        "<id>v1</id><variable-value><item>t10</item><item>t2000</item></variable-value>"
        "</property-list-variable></external-variables></search-template>"
    )
    answer = mine.send("POST", link(made, "/search-execution"), content=body, headers={"Content-Type": XML})
    assert {entry["id"] for entry in answer.json()["entries"]} == {one, two}


def test_ours_13_a_value_is_never_read_as_a_language(site: Site, mine: Templates) -> None:
    """failures B19."""
    word, other = site.world.word(), site.world.word()
    site.create(word, person=mine.person)
    both = site.create(f"{word} or {other}", title="50 * 2", person=mine.person)
    site.create(other, person=mine.person)
    site.world.catch_up()
    nowhere = site.world.word()
    made = mine.make(expressions(site, words(nowhere), compared("title", "EQUAL", nowhere), operator="OR"))
    assert mine.ids(made, value("v1", f"{word} OR {other}")) == {both}
    assert mine.ids(made, value("v1", f'"{word} {other}" NOT {other}')) == set()
    assert mine.ids(made, value("v1", f"{word[:4]}*")) == set()
    assert mine.ids(made, value("v2", "*")) == set()
    assert mine.ids(made, value("v2", "\uff0a")) == set()
    assert mine.ids(made, value("v2", "50 * 2")) == {both}
    for text in ('"}, {"expression-type": "fulltext"', "</fulltext><fulltext>", f"x</property>{word}"):
        assert mine.ids(made, value("v1", text), value("v2", text)) == set()


@pytest.mark.parametrize(
    "values",
    [
        [value("v9", "x")],
        [value("v1", "x"), value("v1", "y")],
        [value("v1", ["x"], "variable-values")],
        [{"id": "v1", "from": "1", "to": "2"}],
        [{"id": "v1", "variable-type": "property-variable", "variable-value": "x"}],
        [value("v2", "many")],
        [value("v2", "1.5")],
        [{"variable-value": "x"}],
        [value("v1", {"value": "x"})],
        [value("v3", "x")],
        [value("v3", [], "variable-values")],
        [value("v3", ["x"] * 2000, "variable-values")],
        [value("v4", "soon")],
    ],
)
def test_ours_13_a_value_of_another_form_is_refused(site: Site, mine: Templates, values: list[dict[str, Any]]) -> None:
    made = mine.make(
        expressions(
            site,
            words("x"),
            compared("r_full_content_size", "EQUAL", "1"),
            {"expression-type": "property-list", "name": "title", "values": ["x"], "template": True},
            {
                "expression-type": "relative-date",
                "name": "r_modify_date",
                "operator": "EQUAL",
                "value": 1,
                "time-unit": "DAY",
                "template": True,
            },
        )
    )
    refused = mine.execute(made, *values)
    assert refused.status_code == 400, refused.text
    assert mine.execute(made).status_code == 200


def test_ours_13_a_number_is_checked_by_the_property_s_kind_and_may_be_empty_before(
    site: Site, mine: Templates
) -> None:
    word = site.world.word()
    own = site.create(word, b"12345", person=mine.person)
    site.world.catch_up()
    made = mine.make(expressions(site, words(word, template=False), compared("r_full_content_size", "EQUAL", "")))
    assert mine.execute(made).status_code == 400
    assert mine.ids(made, value("v1", 5)) == {own}
    assert mine.ids(made, value("v1", "5")) == {own}


@pytest.mark.parametrize(
    "document",
    [
        {"expression-set": {"expressions": [{"expression-type": "expression-set", "template": True}]}},
        {"expression-set": {"expressions": [compared("title", "IS_NULL", "")]}},
        {"expression-set": {"expressions": [compared("no_such_property", "EQUAL", "x")]}},
        {"types": ["nothing"], "expression-set": {"expressions": [words("x")]}},
        {"expression-set": {"expressions": [{"expression-type": "nothing", "value": "x"}]}},
    ],
)
def test_ours_13_a_document_without_proper_variables_is_refused(mine: Templates, document: Any) -> None:
    assert mine.post(document).status_code == 400


def test_ours_13_next_is_followed_by_get(site: Site, mine: Templates) -> None:
    word = site.world.word()
    made = {site.create(f"{word} {number}", person=mine.person) for number in range(5)}
    site.world.catch_up()
    template = mine.make(expressions(site, words("x")))
    page = mine.execute(template, value("v1", word), params={"items-per-page": "2"}).json()
    seen = [entry["id"] for entry in page["entries"]]
    while following := [one["href"] for one in page["links"] if one["rel"] == "next"]:
        page = mine.send("GET", following[0]).json()
        seen += [entry["id"] for entry in page["entries"]]
    assert len(seen) == 5
    assert set(seen) == made
    other = Templates(site, site.world.person())
    assert other.send("GET", link(page, "first")).status_code == 404


def test_ours_13_it_runs_with_the_rights_of_who_executes_it(site: Site, mine: Templates) -> None:
    """failures B18."""
    other, word = Templates(site, site.world.person()), site.world.word()
    own = site.create(word, person=mine.person)
    theirs = site.create(word, person=other.person)
    site.world.catch_up()
    shared = mine.make(expressions(site, words(word)), **{public(site): True})
    private = mine.make(expressions(site, words(word)))
    assert (mine.ids(shared), other.ids(shared)) == ({own}, {theirs})
    assert other.execute(private).status_code == 404
    assert other.execute(private).json()["code"] == "E_UNKNOWN_SEARCH_TEMPLATE"
    assert other.send("DELETE", link(shared, "self")).status_code == 403
    assert mine.send("DELETE", link(shared, "/delete")).status_code == 204
    assert other.execute(shared).status_code == 404
    assert link(private, "self") in [entry["id"] for entry in mine.entries()]
    assert link(private, "self") not in [entry["id"] for entry in other.entries()]
    assert mine.entries(inline="true")[0]["content"]["external-variables"][0]["id"] == "v1"


def test_ours_13_one_becomes_the_other_by_reference_and_by_body(site: Site, mine: Templates) -> None:
    searches = Saved(site, mine.person)
    document = expressions(site, words("pump"))
    search = searches.make(document, title="why", object_name="Pumps")
    made = mine.send("POST", json={"search-reference": link(search, "self")})
    assert made.status_code == 201, made.text
    template = made.json()
    assert template["properties"]["object_name"] == "Pumps"
    assert template["properties"]["subject"] == "why"
    assert template["query-document-template"] == search["query-document"]
    body = f'<search-template xmlns="{site.names.vocab_namespace}" search-reference="{link(search, "self")}.xml"/>'
    assert mine.send("POST", content=body, headers={"Content-Type": XML}).status_code == 201
    back = searches.send(
        "POST", json={"properties": {"object_name": "back"}, "search-reference": link(template, "self")}
    )
    assert back.status_code == 201, back.text
    assert back.json()["query-document"] == search["query-document"]
    assert back.json()["properties"]["object_name"] == "back"
    as_search = {**template, "external-variables": []}
    assert searches.send("POST", json=as_search).json()["query-document"] == search["query-document"]
    assert mine.send("POST", json=search).json()["query-document-template"] == search["query-document"]
    closed = searches.make(query(site, "pump"))
    for reference in ("search-reference", "href"):
        of_closed = mine.send("POST", json={"properties": None, reference: link(closed, "self")})
        assert (of_closed.status_code, of_closed.json()["external-variables"]) == (201, [])
        body = f'<search-template xmlns="{site.names.vocab_namespace}" {reference}="{link(closed, "self")}"/>'
        assert mine.send("POST", content=body, headers={"Content-Type": XML}).status_code == 201


def test_ours_13_a_template_needs_no_variable(site: Site, mine: Templates) -> None:
    word = site.world.word()
    own = site.create(f"{word}.txt", b"12345", person=mine.person)
    site.world.catch_up()
    named = {**compared("object_name", "CONTAINS", word), "template": False}
    for document in (
        expressions(site, words(word, template=False)),
        expressions(site, words(word, template=False), named),
        {**expressions(site), "facet-definitions": [{"id": "f", "attributes": ["owner_name"]}]},
        query(site, word),
    ):
        made = mine.make(document)
        assert made["external-variables"] == []
        assert own in mine.ids(made)
        assert mine.execute(made, value("v1", "x")).status_code == 400, "it has no such variable"
        as_xml = mine.send("GET", link(made, "self"), headers={"Accept": XML})
        assert as_xml.status_code == 200, as_xml.text


def test_ours_13_a_reference_tells_nothing_of_what_the_caller_cannot_see(site: Site, mine: Templates) -> None:
    hidden = Saved(site, site.world.person()).make(expressions(site, words("pump")))
    own = link(hidden, "self")
    unknown = f"{own[:-14]}{'0' * 14}"
    answers = [mine.send("POST", json={"search-reference": address}) for address in (own, unknown)]
    assert [answer.status_code for answer in answers] == [400, 400]
    messages = [answer.json()["message"] for answer in answers]
    assert messages[0].replace(own[-16:], unknown[-16:]) == messages[1]
