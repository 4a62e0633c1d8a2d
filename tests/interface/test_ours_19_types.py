"""ours 19: object types made, changed and removed by REST, and the values that forms offer."""

import json
from typing import Any

import httpx
import lxml.etree
import pytest

from muniment.repository.refusals import WrongValue
from muniment.repository.search.agent import reindexer
from muniment.repository.search.agent.reindexer import Reindexer
from muniment.repository.store import repositories
from muniment.repository.store.objects.types import reindexing, types_file
from tests.scenes import Site, World

JSON = {"Accept": "application/json", "Content-Type": "application/json"}
XML = {"Accept": "application/xml", "Content-Type": "application/xml"}


def admin(site: Site, site_headers: dict[str, str] | None = None) -> dict[str, str]:
    site.world.admit(site.world.admin(site.world.names), site.world.resource_id)
    return {**(site_headers or JSON), **site.bearer(site.world.admin(site.directory_names))}


def post(site: Site, path: str, body: Any, headers: dict[str, str] | None = None) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return site.http.post(f"{site.repository}/{path}", content=content, headers=headers or admin(site))


def made(site: Site, *properties: dict[str, Any], **members: Any) -> str:
    """Make a type, and return its name."""
    name = f"t_{site.world.word().lower()}"
    body = {"name": name, "parent": site.type("document"), "properties": list(properties), **members}
    answer = post(site, "types", body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"].endswith(f"{site.repository}/types/{name}")
    return name


def wire(site: Site, name: str) -> dict[str, Any]:
    answer = site.http.get(f"{site.repository}/types/{name}", headers={**JSON, **site.bearer()})
    assert answer.status_code == 200, answer.text
    kind: dict[str, Any] = answer.json()
    return kind


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    return answer.status_code, answer.json()["code"], answer.json()["message"]


def test_ours_19_a_type_is_made_shown_changed_and_removed(site: Site) -> None:
    code = f"code_{site.world.word().lower()}"
    name = made(site, {"name": code, "type": "string", "length": 8, "default": "A-1"}, label="Drawing")
    kind = wire(site, name)
    assert (kind["label"], kind["parent"], kind["category"]) == ("Drawing", site.type("document"), "standard")
    shown = kind["properties"][-1]
    assert shown == {
        "name": code,
        "type": "string",
        "repeating": False,
        "writable": True,
        "readonly": False,
        "length": 8,
        "label": code,
        "searchable": True,
        "default": "A-1",
        "dependencies": [],
    }
    first = kind["properties"][0]
    assert (first["name"], first["length"], first["readonly"]) == ("object_name", 255, False)
    relations = {link["rel"].rpartition("/")[2]: link["href"] for link in kind["links"]}
    own = f"{site.repository}/types/{name}"
    assert relations["assist-values"].endswith(f"{own}/assist-values")
    assert relations["edit"] == relations["delete"] == relations["self"]
    changed = post(
        site, f"types/{name}", {"label": "Plan", "properties": [{"name": code, "length": 9, "label": "Code"}]}
    )
    assert (changed.status_code, changed.json()) == (200, wire(site, name))
    assert wire(site, name)["properties"][-1] | {"label": "Code", "length": 9} == changed.json()["properties"][-1]
    labels = {"filter": "label='Plan'", "object-type": name}
    listed = site.http.get(f"{site.repository}/types", params=labels, headers={**JSON, **site.bearer()}).json()
    assert [entry["title"] for entry in listed["entries"]] == [name]
    object_id = site.create("x", r_object_type=name)
    assert refusal(site.http.delete(own, headers=admin(site)))[:2] == (409, "E_IN_USE")
    site.http.delete(f"{site.repository}/objects/{object_id}", headers=site.bearer())
    assert site.http.delete(own, headers=admin(site)).status_code == 204
    assert site.http.get(own, headers={**JSON, **site.bearer()}).status_code == 404


def test_ours_19_what_is_shown_may_be_sent_back_in_either_spelling(site: Site) -> None:
    word = site.world.word().lower()
    name = made(
        site,
        {"name": f"country_{word}", "type": "string", "values": ["FR", {"value": "DE", "label": "Germany"}]},
        {"name": f"born_{word}", "type": "date", "default": "2024-02-29", "searchable": False},
        {"name": f"sizes_{word}", "type": "integer", "repeating": True, "default": [1, 2]},
    )
    before = wire(site, name)
    assert post(site, f"types/{name}", before).json() == before
    xml = site.http.get(f"{site.repository}/types/{name}", headers={**XML, **site.bearer()})
    assert b'label="' in xml.content
    sent = post(site, f"types/{name}", xml.content, admin(site, XML))
    assert sent.status_code == 200, sent.text
    assert sent.content == xml.content
    body = (
        f'<type xmlns="{site.names.vocab_namespace}"><properties><property><name>city_{word}</name><type>string</type>'
        f"<dependencies><item>country_{word}</item></dependencies><values><item><value>Lyon</value><label>Lyon!</label>"
        "<when><item>FR</item></when></item><item>Elsewhere</item></values></property></properties></type>"
    )
    assert post(site, f"types/{name}", body.encode(), admin(site, XML)).status_code == 200
    assert wire(site, name)["properties"][-1]["dependencies"] == [f"country_{word}"]
    asked = (
        f'<assist-values xmlns="{site.names.vocab_namespace}"><dependencies><country_{word}>FR</country_{word}>'
        "</dependencies></assist-values>"
    )
    offered = post(site, f"types/{name}/assist-values", asked.encode(), {**XML, **site.bearer()})
    assert offered.status_code == 200, offered.text
    (city,) = [each for each in lxml.etree.fromstring(offered.content)[0] if each.tag == f"{site.vocab}city_{word}"]
    assert dict(city.items()) == {"name": f"city_{word}", "allow-user-values": "false"}
    lyon, elsewhere = city.iter(f"{site.vocab}value")
    assert elsewhere.get("label") == elsewhere.text == "Elsewhere"
    assert (lyon.text, lyon.get("label"), len(lyon)) == ("Lyon", "Lyon!", 0)


def test_ours_19_a_form_asks_as_clients_of_the_field_do(site: Site) -> None:
    word = site.world.word().lower()
    country, city = f"country_{word}", f"city_{word}"
    cities = [{"value": "Lyon", "when": "FR"}, {"value": "Bonn", "when": ["DE"]}]
    name = made(
        site,
        {"name": city, "type": "string", "dependencies": [country], "values": cities},
        {"name": country, "type": "string", "values": ["FR", "DE"]},
    )
    path, headers = f"types/{name}/assist-values", {**JSON, **site.bearer()}
    bonn = {city: {"allow-user-values": False, "values": [{"value": "Bonn", "label": "Bonn"}]}}
    asked: tuple[Any, ...] = ({"properties": {country: "DE"}}, {"properties": {country: "DE"}, "dependencies": None})
    for body in asked:
        answer = post(site, f"{path}?included-properties={city}", body, headers)
        assert answer.json()["properties"] == bonn, answer.text
    both = post(site, f"{path}?included-properties={city},%20title", {"properties": {country: "DE"}}, headers)
    assert both.json()["properties"] == bonn | {"title": {"allow-user-values": True, "values": []}}
    twice = post(site, f"{path}?included-properties={city}&included-properties=title", {}, headers)
    assert list(twice.json()["properties"]) == [city, "title"]
    nothing = post(site, f"{path}?included-properties={city}", {"properties": None}, headers)
    assert nothing.json()["properties"][city]["values"] == []
    document = (
        f'<assist-value-request xmlns="{site.names.vocab_namespace}"><properties><{country}>DE</{country}></properties>'
        "</assist-value-request>"
    )
    answer = post(site, f"{path}?included-properties={city}", document.encode(), {**XML, **site.bearer()})
    (property_element,) = lxml.etree.fromstring(answer.content)[0]
    assert [each.text for each in property_element.iter(f"{site.vocab}value")] == ["Bonn"]
    for wrong in ("nothing", ",".join([city] * 1001)):
        assert post(site, f"{path}?included-properties={wrong}", {}, headers).status_code == 400


def test_ours_19_a_form_asks_which_values_hold(site: Site) -> None:
    word = site.world.word().lower()
    country, city, mood = f"country_{word}", f"city_{word}", f"mood_{word}"
    cities = [{"value": "Lyon", "when": "FR"}, {"value": "Bonn", "label": "Bonn am Rhein", "when": ["DE"]}]
    name = made(
        site,
        {"name": city, "type": "string", "dependencies": [country], "values": cities},
        {"name": country, "type": "string", "values": ["FR", "DE"]},
        {"name": mood, "type": "string", "values": ["good"], "allow-user-values": True},
    )
    path = f"types/{name}/assist-values"
    headers = {**JSON, **site.bearer()}
    body = {"included-properties": [city, "title"], "dependencies": {country: "DE"}}
    assert post(site, path, body, headers).json()["properties"] == {
        city: {"allow-user-values": False, "values": [{"value": "Bonn", "label": "Bonn am Rhein"}]},
        "title": {"allow-user-values": True, "values": []},
    }
    every = post(site, path, {}, headers).json()["properties"]
    assert (every[city]["values"], every[mood]["allow-user-values"]) == ([], True)
    given = {"r_object_type": name, "object_name": "x", country: "DE", city: "Lyon"}
    answer = post(site, "objects", {"properties": given}, headers)
    assert refusal(answer)[:2] == (400, "E_INVALID_ATTR_VALUE")
    assert city in refusal(answer)[2]
    for wrong, code in (
        ({"included-properties": ["nothing"]}, "E_INVALID_ATTR_NAME"),
        ({"dependencies": {"nothing": "x"}}, "E_INVALID_ATTR_NAME"),
        ({"dependencies": {country: ["DE", "FR"]}}, "E_INVALID_ATTR_VALUE"),
        ({"included-properties": [city] * 1001}, "E_INVALID_ATTR_VALUE"),
        ({"included-properties": "x"}, "E_MALFORMED_REQUEST"),
        (b"{", "E_MALFORMED_REQUEST"),
    ):
        assert refusal(post(site, path, wrong, headers))[:2] == (400, code)
    assert post(site, "types/nothing/assist-values", {}, headers).status_code == 404


def test_ours_19_only_administrators_change_types(site: Site) -> None:
    name = made(site)
    headers = {**JSON, **site.bearer()}
    assert refusal(post(site, "types", {"name": "mine"}, headers))[:2] == (403, "E_NOT_PERMITTED")
    assert refusal(post(site, f"types/{name}", {"label": "x"}, headers))[:2] == (403, "E_NOT_PERMITTED")
    assert refusal(post(site, "types/nothing", {"label": "x"}, headers))[:2] == (403, "E_NOT_PERMITTED")
    assert site.http.delete(f"{site.repository}/types/{name}", headers=headers).status_code == 403
    assert site.http.delete(f"{site.repository}/types/{name}").status_code == 401


BODIES: list[tuple[bytes, str]] = [
    (b"", "E_MALFORMED_REQUEST"),
    (b"[]", "E_MALFORMED_REQUEST"),
    (b'{"properties": [{"name": "x", "type": "colour"}]}', "E_MALFORMED_REQUEST"),
    (b'{"label": 3}', "E_MALFORMED_REQUEST"),
    (b'{"label": "a", "label": "b"}', "E_MALFORMED_REQUEST"),
    (b'{"name": "another"}', "E_INVALID_ATTR_VALUE"),
    (b'{"label": "\\ud800"}', "E_MALFORMED_REQUEST"),
    (b'{"properties": [{"name": "x"}]}', "E_INVALID_ATTR_VALUE"),
    (b'{"properties": [{"name": "../x", "type": "string"}]}', "E_INVALID_ATTR_VALUE"),
    (b'{"properties": [{"name": "x", "type": "date", "default": "2023-02-29"}]}', "E_INVALID_ATTR_VALUE"),
    (b'{"properties": [{"name": "x", "type": "date", "values": ["soon"]}]}', "E_INVALID_ATTR_VALUE"),
    (b'{"properties": [{"name": "x", "type": "string", "length": 4001}]}', "E_INVALID_ATTR_VALUE"),
    (b'{"properties": [{"name": "x", "type": "string", "dependencies": ["a", "b"]}]}', "E_INVALID_ATTR_VALUE"),
    (b'{"properties": [{"name": "x", "type": "string"}, {"name": "x", "type": "string"}]}', "E_INVALID_ATTR_VALUE"),
    (
        json.dumps({"properties": [{"name": f"p{n}", "type": "string"} for n in range(1_500)]}).encode(),
        "E_INVALID_ATTR_VALUE",
    ),
]


def test_ours_19_a_body_that_cannot_hold_is_refused_and_changes_nothing(site: Site) -> None:
    name = made(site)
    before = wire(site, name)
    for body, code in BODIES:
        assert refusal(post(site, f"types/{name}", body))[:2] == (400, code), body[:100]
    many = [{"name": f"p{number}", "type": "string", "label": "x" * 200} for number in range(10_000)]
    assert refusal(post(site, f"types/{name}", {"properties": many}))[:2] == (413, "E_TOO_LARGE")
    assert wire(site, name) == before


def test_ours_19_a_new_type_needs_a_free_name_and_a_parent_that_is_there(site: Site) -> None:
    name = made(site)
    assert refusal(post(site, "types", {"name": name}))[:2] == (409, "E_NAME_TAKEN")
    for body in ({}, {"name": "No Name"}, {"name": "dm_mine"}, {"name": "fresh", "parent": "nothing"}):
        assert refusal(post(site, "types", body))[:2] == (400, "E_INVALID_ATTR_VALUE")
    truncated = post(site, "types", b'<type name="fresh"', admin(site, XML))
    assert truncated.status_code == 400
    assert post(site, f"types/{site.type('document')}", {"label": "x"}).status_code == 400
    assert refusal(post(site, f"types/{name}", {"parent": "nothing"}))[:2] == (400, "E_INVALID_ATTR_VALUE")


def test_ours_19_what_a_type_inherits_is_changed_where_it_was_added_also_by_a_types_file(site: Site) -> None:
    code = f"code_{site.world.word().lower()}"
    parent = made(site, {"name": code, "type": "string", "length": 8, "default": "A-1"})
    name = made(site, parent=parent)
    before = wire(site, name)

    def load(line: str) -> list[str]:
        toml = f"[types.{name}]\nparent = '{parent}'\n[types.{name}.properties]\n{line}"
        with site.world.repository_db.begin() as cx:
            repository_id = repositories.find(cx, site.world.repository).id
            return types_file.load(cx, repository_id, toml.encode(), site.world.clock())

    changes: list[dict[str, Any]] = [
        {"length": 9},
        {"label": "Code"},
        {"searchable": False},
        {"default": "B-2"},
        {"repeating": True},
    ]
    for change in changes:
        body = {"properties": [{"name": code, **change}]}
        assert refusal(post(site, f"types/{name}", body))[:2] == (400, "E_INVALID_ATTR_VALUE"), change
        ((member, value),) = change.items()
        with pytest.raises(WrongValue, match=code):
            load(f"{code} = {{ kind = 'string', {member} = {json.dumps(value)} }}")
    assert post(site, f"types/{name}", before).status_code == 200
    same = f"{code} = {{ kind = 'string', length = 8, default = 'A-1', label = '{code}', searchable = true }}"
    assert load(same) == load(f"{code} = 'string'") == []
    assert wire(site, name) == before


def test_ours_19_no_query_uses_what_is_not_searchable(
    site: Site, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = site.world.word().lower()
    secret = f"secret_{word}"
    name = made(site, {"name": secret, "type": "string", "searchable": False})
    values: dict[str, Any] = {"r_object_type": name, secret: f"hidden{word}"}
    object_id = site.create(f"holder {word}", **values)
    world.catch_up()
    aql = site.aql(f'<property name="{secret}" operator="EQUAL">hidden{word}</property>')
    answers = [
        site.post_search(aql),
        site.http.get(f"{site.repository}/search", params={"q": word, "sort": secret}, headers=site.bearer()),
        site.http.get(f"{site.repository}/search", params={"q": word, "facet": secret}, headers=site.bearer()),
    ]
    for answer in answers:
        assert answer.status_code == 400, answer.text
        assert "searchable" in answer.text
    assert not site.keywords(f"hidden{word}").entries
    facets = site.http.get(
        f"{site.repository}/supported-facets", params={"items-per-page": "1000"}, headers={**JSON, **site.bearer()}
    )
    assert secret not in facets.text
    shown = site.http.get(f"{site.repository}/objects/{object_id}", headers={**JSON, **site.bearer()}).json()
    assert shown["properties"][secret] == f"hidden{word}"
    post(site, f"types/{name}", {"properties": [{"name": secret, "searchable": True}]})
    assert not wire(site, name)["properties"][-1]["searchable"]
    monkeypatch.setattr(reindexer, "_LOOK_SECONDS", 0.0)
    with world.repository_db.begin() as cx:
        (under_way,) = [each for each in reindexing.under_way(cx) if each.property == secret]
    far = under_way.position._replace(transaction=2**60)
    noting = Reindexer(world.repository_db, lambda _id: far)
    while noting.advance(world.clock()):
        world.catch_up()
    assert wire(site, name)["properties"][-1]["searchable"]
    assert len(site.keywords(f"hidden{word}").entries) == 1
    assert site.post_search(aql).status_code == 200


def test_ours_19_types_are_listed_below_a_type_with_their_own_properties(site: Site) -> None:
    parent = made(site, {"name": f"first_{site.world.word().lower()}", "type": "string"})
    word = site.world.word().lower()
    child = {"name": f"t_{word}", "parent": parent, "properties": [{"name": f"second_{word}", "type": "string"}]}
    assert post(site, "types", child).status_code == 201
    grandchild = {"name": f"u_{word}", "parent": f"t_{word}", "properties": []}
    assert post(site, "types", grandchild).status_code == 201

    def listed(**parameters: str) -> list[dict[str, Any]]:
        spelled = {name.replace("_", "-"): value for name, value in parameters.items()} | {"include-total": "true"}
        answer = site.http.get(f"{site.repository}/types", params=spelled, headers={**JSON, **site.bearer()})
        assert answer.status_code == 200, answer.text
        assert "muniment-ignored" not in answer.headers
        assert answer.json()["total"] == len(answer.json()["entries"])
        entries: list[dict[str, Any]] = answer.json()["entries"]
        return entries

    def names(**parameters: str) -> list[str]:
        return [entry["title"] for entry in listed(**parameters)]

    assert names(parent_type=parent) == [f"t_{word}"]
    assert names(parent_type=parent, recursive="true") == [f"t_{word}", f"u_{word}"]
    assert names(parent_type=f"u_{word}") == []
    documents = names(parent_type=site.type("document"), items_per_page="1000")
    assert parent in documents
    assert f"t_{word}" not in documents
    every = names(parent_type=site.type("sysobject"), recursive="true", items_per_page="1000")
    assert {site.type("folder"), site.type("cabinet"), parent, f"u_{word}"} <= set(every)
    assert site.type("sysobject") not in every
    (own,) = listed(parent_type=parent, inherited="false", inline="true", locale="en", include_all="true")
    assert [each["name"] for each in own["content"]["properties"]] == [f"second_{word}"]
    (whole,) = listed(parent_type=parent, inline="true")
    assert len(whole["content"]["properties"]) > 5
    one = site.http.get(
        f"{site.repository}/types/t_{word}?inherited=false&locale=en", headers={**JSON, **site.bearer()}
    )
    assert [each["name"] for each in one.json()["properties"]] == [f"second_{word}"]
    refused = site.http.get(f"{site.repository}/types?parent-type=nothing", headers={**JSON, **site.bearer()})
    assert refusal(refused)[0] in (400, 404)
