"""docs/interface.md, ours 12: saved searches are made, shown, listed, changed, removed, executed, results stored."""

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

import httpx
import lxml.etree
import pytest

from muniment.database.connections import repository_tables
from tests.scenes import ATOM, Feed, Person, Site, fulltext

JSON, XML = "application/json", "application/xml"


def query(site: Site, words: str, **more: Any) -> dict[str, Any]:
    """A query document in JSON."""
    expression = {"expression-type": "fulltext", "value": words}
    return {
        "types": [site.type("document")],
        "expression-set": {"expression-type": "expression-set", "operator": "AND", "expressions": [expression]},
        **more,
    }


class Saved:
    """Saved searches as one caller sends them."""

    def __init__(self, site: Site, person: Person | None = None) -> None:
        self.site = site
        self.address = f"{site.repository}/saved-searches"
        self.person = person

    def send(self, method: str, path: str = "", **more: Any) -> httpx.Response:
        headers = {"Accept": JSON} | self.site.bearer(self.person) | more.pop("headers", {})
        address = path if path.startswith(("http", self.site.repository)) else self.address + path
        return self.site.http.request(method, address, headers=headers, **more)

    def post(self, document: Any, path: str = "", **properties: Any) -> httpx.Response:
        body = {"properties": {"object_name": "a search", **properties}, "query-document": document}
        return self.send("POST", path, json=body)

    def make(self, document: Any, **properties: Any) -> dict[str, Any]:
        answer = self.post(document, **properties)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        assert answer.headers["location"].endswith(link(made, "self"))
        return made

    def entries(self, address: str = "", **given: str) -> list[dict[str, Any]]:
        answer = self.send("GET", address, params=given)
        assert answer.status_code == 200, answer.text
        listed: list[dict[str, Any]] = answer.json()["entries"]
        return listed


def link(document: Mapping[str, Any], rel: str) -> str:
    (found,) = [one["href"] for one in document["links"] if one["rel"].endswith(rel)]
    return str(found)


def public(site: Site) -> str:
    return f"{site.names.system_property_prefix}is_public"


def shown_id(site: Site, document: Mapping[str, Any]) -> str:
    return str(document["properties"][f"{site.names.system_property_prefix}object_id"])


@pytest.fixture
def saved(site: Site) -> Saved:
    return Saved(site, site.world.person())


@pytest.fixture
def stranger(site: Site) -> Saved:
    return Saved(site, site.world.person())


def test_ours_12_the_repository_links_them(site: Site) -> None:
    links = {
        one["rel"]: one["href"]
        for one in site.http.get(site.repository, headers=site.bearer()).json()["links"]
        if "href" in one
    }
    base = site.names.linkrel_base
    assert links[f"{base}/saved-searches"].endswith("/saved-searches")
    assert links[f"{base}/search-templates"].endswith("/search-templates")


@pytest.mark.parametrize("as_text", [True, False])
def test_ours_12_a_json_document_is_kept_as_it_came(site: Site, saved: Saved, as_text: bool) -> None:
    text = json.dumps(query(site, "pump"), indent=3)
    made = saved.make(text if as_text else json.loads(text), title="for Mondays")
    assert made["name"] == "saved-search"
    assert made["properties"]["object_name"] == "a search"
    assert made["properties"]["title"] == "for Mondays"
    assert made["properties"][public(site)] is False
    assert made["properties"]["has_results"] is False
    kept = saved.send("GET", link(made, "self")).json()
    assert kept == made
    if as_text:
        assert kept["query-document"] == text
    assert json.loads(kept["query-document"]) == json.loads(text)
    for rel in ("edit", "/delete", "/search-execution", "/saved-search-results", "/saved-search-as-template"):
        assert link(kept, rel)


@pytest.mark.parametrize("escaped", [True, False])
def test_ours_12_an_xml_document_is_read_nested_and_as_text(site: Site, saved: Saved, escaped: bool) -> None:
    document = site.aql(fulltext("pump & valve"))
    body = (
        f'<saved-search xmlns="{site.names.vocab_namespace}"><properties><object_name>x</object_name>'
        f"<{public(site)}>true</{public(site)}></properties>"
        f"<query-document>{escape(document) if escaped else document}</query-document></saved-search>"
    )
    answer = saved.send("POST", content=body, headers={"Content-Type": XML, "Accept": XML})
    assert answer.status_code == 201, answer.text
    root = lxml.etree.fromstring(answer.content)
    assert root.tag == f"{site.vocab}saved-search"
    inner = lxml.etree.fromstring(str(root.findtext(f"{site.vocab}query-document")))
    assert inner.tag == f"{site.vocab}search"
    assert inner.findtext(f".//{site.vocab}fulltext") == "pump & valve"
    assert root.findtext(f"{site.vocab}properties/{site.vocab}{public(site)}") == "true"
    as_json = saved.send("GET", answer.headers["location"]).json()
    (expression,) = json.loads(as_json["query-document"])["expression-set"]["expressions"]
    assert expression == {"expression-type": "fulltext", "value": "pump & valve"}


def test_ours_12_a_json_document_is_shown_in_xml(site: Site, saved: Saved) -> None:
    made = saved.make(query(site, "<pump>"))
    answer = saved.send("GET", link(made, "self"), headers={"Accept": XML})
    root = lxml.etree.fromstring(answer.content)
    inner = lxml.etree.fromstring(str(root.findtext(f"{site.vocab}query-document")))
    assert inner.findtext(f".//{site.vocab}fulltext") == "<pump>"


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("{", "E_BAD_QUERY"),
        ("<search", "E_BAD_QUERY"),
        ("<other/>", "E_BAD_QUERY"),
        ('{"types": ["no_such_type"]}', "E_INVALID_TYPE_NAME"),
        ({"expression-set": {"expressions": [{"expression-type": "spell"}]}}, "E_BAD_QUERY"),
        (
            {
                "expression-set": {
                    "expressions": [{"expression-type": "property", "name": "nix", "operator": "EQUAL", "value": "1"}]
                }
            },
            "E_INVALID_ATTR_NAME",
        ),
        (7, "E_BAD_QUERY"),
    ],
)
def test_ours_12_a_document_that_no_search_could_execute_is_refused(saved: Saved, document: Any, code: str) -> None:
    answer = saved.post(document)
    assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text


@pytest.mark.parametrize(
    "part",
    [
        {"sorts": [{"property": "nix"}]},
        {"sorts": [{"property": "title"}, {"property": "title"}]},
        {"facet-definitions": [{"id": "a", "attributes": ["nix"]}]},
        {"facet-definitions": [{"id": "a", "attributes": ["acl_name"]}]},
        {"facet-definitions": [{"id": "a", "attributes": ["title"], "max-values": 2001}]},
        {"repositories": ["another"]},
    ],
    ids=str,
)
def test_ours_12_what_a_search_refuses_cannot_be_saved(site: Site, saved: Saved, part: dict[str, Any]) -> None:
    document = query(site, "x", **part)
    posted = saved.send("POST", f"{site.repository}/search", json=document)
    assert posted.status_code == 400
    kept = link(saved.make(query(site, "x")), "self")
    template = query(site, "x", **part)
    template["expression-set"]["expressions"][0]["template"] = True
    body = {"properties": {"object_name": "a template"}, "query-document-template": template}
    for answer in (
        saved.post(document),
        saved.post(document, kept),
        saved.send("POST", f"{site.repository}/search-templates", json=body),
    ):
        assert (answer.status_code, answer.json()["code"]) == (400, posted.json()["code"])
        assert answer.json()["message"] == posted.json()["message"]


def test_ours_12_bad_bodies_are_refused(site: Site, saved: Saved) -> None:
    good = query(site, "pump")
    bodies: list[Any] = [
        {"properties": {"object_name": "x"}},
        {"properties": {"object_name": ""}, "query-document": good},
        {"properties": {}, "query-document": good},
        {"properties": {"object_name": ["x"]}, "query-document": good},
        {"properties": {"object_name": "x" * 256}, "query-document": good},
        {"properties": {"object_name": "x\x00"}, "query-document": good},
        {"properties": {"object_name": "x", "title": "x" * 1001}, "query-document": good},
        {"properties": {"object_name": "x", public(site): "maybe"}, "query-document": good},
        {"properties": {"object_name": "x", "colour": "red"}, "query-document": good},
        {"properties": {"object_name": "x"}, "query-document": good, "query-document-template": good},
        {"properties": {"object_name": "x"}, "search-reference": "https://elsewhere.example/saved-searches/1"},
        [],
    ]
    for body in bodies:
        assert saved.send("POST", json=body).status_code == 400, body
    assert saved.send("POST", content="x", headers={"Content-Type": "text/plain"}).status_code == 415


def test_ours_12_the_list_shows_the_callers_own_newest_first_then_public_ones(
    site: Site, saved: Saved, stranger: Saved
) -> None:
    names = [f"{site.world.word()} {number}" for number in range(5)]
    site.world.clock.advance(60)
    others = stranger.make(query(site, "x"), object_name=names[0], **{public(site): True})
    site.world.clock.advance(60)
    hidden = stranger.make(query(site, "x"), object_name=names[1])
    for name in names[2:]:
        site.world.clock.advance(60)
        saved.make(query(site, "x"), object_name=name)
    assert [entry["title"] for entry in saved.entries()][:3] == names[:1:-1]
    assert [entry["title"] for entry in stranger.entries()][:2] == [names[1], names[0]]
    ids = [entry["id"] for entry in saved.entries()]
    assert link(others, "self") in ids
    assert link(hidden, "self") not in ids
    paged, address = [], f"{saved.address}?items-per-page=2&include-total=true"
    while address:
        answer = saved.send("GET", address).json()
        assert answer["total"] == len(ids)
        paged += [entry["id"] for entry in answer["entries"]]
        address = next((one["href"] for one in answer["links"] if one["rel"] == "next"), "")
    assert paged == ids
    (found,) = saved.entries(filter=f"object_name='{names[0]}'", inline="true")
    assert found["content"]["query-document"] == others["query-document"]
    assert [entry["title"] for entry in saved.entries(sort="object_name desc")] == sorted(
        (entry["title"] for entry in saved.entries()), reverse=True
    )


def test_ours_12_only_the_owner_and_administrators_change_one(site: Site, saved: Saved, stranger: Saved) -> None:
    private, shared = saved.make(query(site, "x")), saved.make(query(site, "x"), **{public(site): True})
    boss = Saved(site, site.world.admin(site.directory_names))
    site.world.admit(site.world.admin(site.world.names), site.world.resource_id)
    body = {"properties": {"title": "changed"}}
    unknown = stranger.send("GET", "/5300000000000000")
    for method, more in (("GET", {}), ("POST", {"json": body}), ("DELETE", {})):
        refused = stranger.send(method, link(private, "self"), **more)
        assert refused.status_code == 404
        one_id, other_id = shown_id(site, private), "5300000000000000"
        assert refused.json()["message"].replace(one_id, other_id) == unknown.json()["message"]
    assert stranger.send("GET", link(private, "/search-execution")).status_code == 404
    assert stranger.send("PUT", link(private, "/saved-search-results")).status_code == 404
    assert stranger.send("GET", link(private, "/saved-search-results")).status_code == 404
    assert stranger.send("GET", link(shared, "self")).status_code == 200
    assert not [one for one in stranger.send("GET", link(shared, "self")).json()["links"] if one["rel"] == "edit"]
    for method, more in (("POST", {"json": body}), ("DELETE", {})):
        assert stranger.send(method, link(shared, "self"), **more).status_code == 403
    assert boss.send("POST", link(private, "self"), json=body).json()["properties"]["title"] == "changed"
    assert boss.send("DELETE", link(private, "self")).status_code == 204
    assert saved.send("GET", link(private, "self")).status_code == 404
    assert saved.send("DELETE", link(shared, "self")).status_code == 204
    assert saved.send("DELETE", link(shared, "self")).status_code == 404


def test_ours_12_a_change_keeps_what_it_does_not_name(site: Site, saved: Saved) -> None:
    made = saved.make(query(site, "one"), title="kept", **{public(site): True})
    own = link(made, "edit")
    changed = saved.send("POST", own, json={"properties": {"object_name": "new"}, "query-document": query(site, "two")})
    assert changed.status_code == 200, changed.text
    document = changed.json()
    assert (document["properties"]["object_name"], document["properties"]["title"]) == ("new", "kept")
    assert document["properties"][public(site)] is True
    assert "two" in document["query-document"]
    again = saved.send("POST", own, json=document)
    assert again.status_code == 200, again.text
    assert again.json()["query-document"] == document["query-document"]


def test_ours_12_tags_guard_reads_and_changes(site: Site, saved: Saved) -> None:
    made = saved.make(query(site, "one"))
    own = link(made, "self")
    tag = saved.send("GET", own).headers["etag"]
    assert saved.send("GET", own, headers={"If-None-Match": tag}).status_code == 304
    body = {"properties": {"title": "x"}}
    assert saved.send("POST", own, json=body, headers={"If-Match": tag}).status_code == 200
    assert saved.send("GET", own, headers={"If-None-Match": tag}).status_code == 200
    assert saved.send("POST", own, json=body, headers={"If-Match": tag}).status_code == 412
    assert saved.send("DELETE", own, headers={"If-Match": tag}).status_code == 412


def test_ours_12_it_runs_with_the_rights_of_who_executes_it(site: Site, saved: Saved, stranger: Saved) -> None:
    """failures B18."""
    word = site.world.word()
    own = site.create(f"{word} own", person=saved.person)
    shared = site.create(f"{word} shared", person=saved.person, acl_name="public")
    others = site.create(f"{word} other", person=stranger.person)
    site.world.catch_up()
    made = saved.make(query(site, word), **{public(site): True})
    execution = link(made, "/search-execution")

    def found(who: Saved) -> set[str]:
        answer = who.send("GET", execution, params={"include-total": "true"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["total"] == len(answer.json()["entries"])
        return {entry["id"] for entry in answer.json()["entries"]}

    assert found(saved) == {own, shared}
    assert found(stranger) == {shared, others}
    assert saved.send("GET", link(made, "self")).json()["query-document"] == made["query-document"]


def test_ours_12_pages_of_an_execution_are_followed(site: Site, saved: Saved) -> None:
    word = site.world.word()
    made = {site.create(f"{word} {number}", person=saved.person) for number in range(5)}
    site.world.catch_up()
    address: str | None = link(saved.make(site.aql(fulltext(word))), "/search-execution") + "?items-per-page=2"
    first, seen = address, []
    while address:
        answer = saved.send("GET", address, headers={"Accept": "application/atom+xml"})
        assert answer.status_code == 200
        feed = Feed(answer, site)
        seen += feed.ids
        address = feed.link("next")
        assert address is None or "/execution?" in address
    assert len(seen) == 5
    assert set(seen) == made
    inlined = saved.send("GET", str(first), params={"inline": "true", "items-per-page": "1"}).json()
    assert inlined["entries"][0]["content"]["properties"]["object_name"].startswith(word)


def _unscored(feed: httpx.Response) -> bytes:
    """Return a feed without its scores, which change when the index merges its segments."""
    return re.sub(rb"<relevance:score>[^<]*<", b"<", feed.content)


def test_ours_12_a_cursor_that_leads_nowhere_is_refused_as_at_any_search(site: Site, saved: Saved) -> None:
    execution = f"{link(saved.make(query(site, 'pump')), 'self')}/execution"
    refused = saved.send("GET", execution, params={"cursor": "x"})
    assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_SEARCH")
    assert refused.json()["message"] == saved.send("GET", f"{site.repository}/search?cursor=x").json()["message"]


def test_ours_12_it_is_a_feed_to_subscribe_to(site: Site, saved: Saved) -> None:
    word = site.world.word()
    site.create(f"{word} one", person=saved.person)
    site.world.catch_up()
    execution = link(saved.make(query(site, word), object_name=f"About {word}"), "/search-execution")
    headers = {"Accept": "application/atom+xml"}
    first = saved.send("GET", execution, headers=headers)
    assert Feed(first, site).root.findtext(f"{ATOM}title") == f"About {word}"
    site.world.clock.advance(60)
    same = saved.send("GET", execution, headers=headers | {"If-None-Match": first.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == first.headers["etag"]
    assert _unscored(saved.send("GET", execution, headers=headers)) == _unscored(first)
    site.create("quite another thing", person=saved.person)
    site.world.catch_up()
    assert saved.send("GET", execution, headers=headers | {"If-None-Match": first.headers["etag"]}).status_code == 304
    site.create(f"{word} two", person=saved.person)
    site.world.catch_up()
    changed = saved.send("GET", execution, headers=headers | {"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    assert len(Feed(changed, site).entries) == 2


def test_ours_12_results_are_stored_shown_and_removed(site: Site, saved: Saved) -> None:
    word = site.world.word()
    made = [site.create(f"{word} {number}", person=saved.person) for number in range(5)]
    site.world.catch_up()
    search = saved.make(query(site, word))
    results = link(search, "/saved-search-results")
    missing = saved.send("GET", results)
    assert (missing.status_code, missing.json()["code"]) == (404, "E_NO_STORED_RESULTS")
    stored = saved.send("PUT", results, params={"include-total": "true", "items-per-page": "2"})
    assert stored.status_code == 200, stored.text
    assert stored.json()["total"] == 5
    assert len(stored.json()["entries"]) == 2
    assert saved.send("GET", link(search, "self")).json()["properties"]["has_results"] is True
    site.create(f"{word} later", person=saved.person)
    site.world.catch_up()
    seen, address = [], f"{results}?items-per-page=2"
    while address:
        page = saved.send("GET", address).json()
        seen += [entry["id"] for entry in page["entries"]]
        address = next((one["href"] for one in page["links"] if one["rel"] == "next"), "")
    ranked = [entry["id"] for entry in saved.entries(link(search, "/search-execution")) if entry["id"] in made]
    assert seen == ranked
    assert len(saved.send("PUT", results).json()["entries"]) == 6
    assert len(saved.send("PUT", results, params={"max-results-count": "3"}).json()["entries"]) == 3
    assert len(saved.send("PUT", results, params={"max-results-count": "-1"}).json()["entries"]) == 6
    assert saved.send("PUT", results, params={"max-results-count": "0"}).status_code == 400
    assert saved.send("DELETE", results).status_code == 204
    assert saved.send("GET", results).status_code == 404
    assert saved.send("GET", link(search, "self")).json()["properties"]["has_results"] is False


def test_ours_12_stored_results_leave_out_what_is_gone_or_no_longer_visible(
    site: Site, saved: Saved, stranger: Saved
) -> None:
    """failures B18: stored results are checked when they are read, and belong to who stored them."""
    word = site.world.word()
    made = [site.create(f"{word} {number}", person=saved.person, acl_name="public") for number in range(4)]
    site.world.catch_up()
    search = saved.make(query(site, word), **{public(site): True})
    results = link(search, "/saved-search-results")
    assert len(saved.send("PUT", results).json()["entries"]) == 4
    assert stranger.send("GET", results).status_code == 404
    assert stranger.send("GET", link(search, "self")).json()["properties"]["has_results"] is False
    assert len(stranger.send("PUT", results).json()["entries"]) == 4
    site.share(made[0], "private", saved.person)
    assert (
        site.http.delete(f"{site.repository}/objects/{made[1]}", headers=site.bearer(saved.person)).status_code == 204
    )

    def read(who: Saved) -> tuple[set[str], int]:
        page = who.send("GET", results, params={"include-total": "true", "inline": "true"}).json()
        return {entry["id"] for entry in page["entries"]}, page["total"]

    assert read(stranger) == (set(made[2:]), 2)
    assert read(saved) == ({made[0], *made[2:]}, 3)
    assert saved.send("POST", link(search, "self"), json={"properties": {public(site): False}}).status_code == 200
    assert stranger.send("GET", results).status_code == 404
    assert saved.send("POST", link(search, "self"), json={"properties": {public(site): True}}).status_code == 200
    assert stranger.send("GET", results).status_code == 404
    assert read(saved)[1] == 3


def test_ours_12_another_document_drops_the_results(site: Site, saved: Saved) -> None:
    search = saved.make(query(site, "one"))
    results = link(search, "/saved-search-results")
    assert saved.send("PUT", results).status_code == 200
    same = {"properties": {"title": "x"}, "query-document": search["query-document"]}
    assert saved.send("POST", link(search, "self"), json=same).json()["properties"]["has_results"] is True
    other = {"query-document": query(site, "two")}
    assert saved.send("POST", link(search, "self"), json=other).json()["properties"]["has_results"] is False
    assert saved.send("PUT", results).status_code == 200
    assert saved.send("DELETE", link(search, "self")).status_code == 204


def test_ours_12_a_location_is_one_of_who_executes(site: Site, saved: Saved, stranger: Saved) -> None:
    """A folder that the caller does not see is to them like one that is not there."""
    document = query(site, "x", locations=[{"location-type": "path-location", "path": f"/{site.world.word()}"}])
    made = saved.make(document, **{public(site): True})
    assert stranger.send("GET", link(made, "/search-execution")).status_code == 400


def test_ours_12_another_release_s_format_is_refused_and_still_shown(site: Site, saved: Saved) -> None:
    made = saved.make(query(site, "x"))
    table = repository_tables.tables["saved_searches"]
    with site.world.repository_db.begin() as cx:
        cx.execute(table.update().where(table.c.id == shown_id(site, made)).values(format=99))
    assert saved.send("GET", link(made, "self")).status_code == 200
    assert saved.send("GET", link(made, "self"), headers={"Accept": XML}).status_code == 200
    refused = saved.send("GET", link(made, "/search-execution"))
    assert (refused.status_code, refused.json()["code"]) == (400, "E_BAD_QUERY")


def test_ours_12_it_keeps_its_meaning_under_other_names(site: Site, saved: Saved) -> None:
    """An operator who changes the names of the wire breaks no saved search."""
    word = site.world.word()
    own = site.create(word, person=saved.person)
    site.world.catch_up()
    for document in (query(site, word), site.aql(fulltext(word))):
        made = saved.make(document)
        table = repository_tables.tables["saved_searches"]
        names = json.dumps({"vocab_namespace": "urn:former", "type_prefix": "former_", "system_property_prefix": "f_"})
        with site.world.repository_db.begin() as cx:
            former = str(document if isinstance(document, str) else json.dumps(document))
            former = former.replace(site.names.vocab_namespace, "urn:former")
            former = former.replace(f'"{site.type("document")}"', '"former_document"')
            former = former.replace(f">{site.type('document')}<", ">former_document<")
            update = table.update().where(table.c.id == shown_id(site, made))
            cx.execute(update.values(names=names, document=former.encode()))
        assert [entry["id"] for entry in saved.entries(link(made, "/search-execution"))] == [own]


def test_ours_12_a_suffix_and_a_view_are_obeyed(site: Site, saved: Saved) -> None:
    own = link(saved.make(query(site, "x")), "self")
    assert saved.send("GET", f"{own}.xml").headers["content-type"].endswith("xml")
    shown = saved.send("GET", own, params={"view": "title", "links": "false"}).json()
    assert set(shown["properties"]) == {"title", "object_name", f"{site.names.system_property_prefix}object_id"}
    assert "links" not in shown
    assert saved.send("GET", own, params={"view": "nix"}).status_code == 400
