"""ours 5: every list takes filter, sort, view, inline, links and paging."""

from contextlib import closing
from functools import partial
from typing import Any

import httpx
import lxml.etree
import pytest

from muniment.repository.api.shapes import collections
from muniment.repository.store import repositories
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from tests.interface.test_bad_input import is_repository
from tests.scenes import ATOM, Feed, Loop, Site, World, fulltext

JSON = {"Accept": "application/json"}
XML = {"Accept": "application/atom+xml"}
NAMES = ["apple", "Banana", "Ärger", "cherry"]


class Cabinet:
    """A cabinet with four documents, of which the reader may see three."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.word = site.world.word()
        self.id = site.cabinet(f"cabinet {self.word}")
        site.share(self.id)
        self.documents = f"{site.repository}/folders/{self.id}/documents"
        self.ids = [self._make(name, at) for at, name in enumerate(NAMES)]
        for object_id in self.ids[:3]:
            site.share(object_id)

    def _make(self, name: str, at: int) -> str:
        site = self.site
        given: dict[str, Any] = {"object_name": name, "title": f"{self.word} {at}", "keywords": [f"k{at}", "Common"]}
        given["acl_name"] = "private"
        self.site.world.clock.advance(1)
        made = site.http.post(self.documents, json={"properties": given}, headers=site.bearer())
        assert made.status_code == 201, made.text
        object_id: str = made.json()["properties"]["r_object_id"]
        return object_id

    def ask(self, address: str = "", *, person: Any = None, **parameters: str) -> httpx.Response:
        spelled = {name.replace("_", "-"): value for name, value in parameters.items()}
        return self.site.http.get(
            address or self.documents, params=spelled or None, headers=self.site.bearer(person) | JSON
        )

    def titles(self, *, person: Any = None, **parameters: str) -> list[str]:
        answer = self.ask(person=person, **parameters)
        assert answer.status_code == 200, answer.text
        return [entry["title"] for entry in answer.json()["entries"]]


@pytest.fixture(scope="module")
def cabinet(site: Site) -> Cabinet:
    return Cabinet(site)


FILTERS = {
    "starts-with(object_name,'ban')": ["Banana"],
    "starts-with(object_name, 'ÄR')": ["Ärger"],
    "contains(object_name,'A') and not(object_name='apple')": ["Banana"],
    "object_name > 'banana'": ["cherry", "Ärger"],
    "keywords = 'common'": ["Banana", "apple", "cherry", "Ärger"],
    "keywords='K1' or keywords='k2'": ["Banana", "Ärger"],
    "keywords != 'common'": ["Banana", "apple", "cherry", "Ärger"],
    "not(keywords='k0')": ["Banana", "cherry", "Ärger"],
    "r_modify_date > date('2020-01-01') and r_full_content_size = 0": ["Banana", "apple", "cherry", "Ärger"],
    'r_creation_date < date("2020-01-01")': [],
    "subject = ''": [],
    "not(subject >= '')": ["Banana", "apple", "cherry", "Ärger"],
    "acl_name = 'public'": ["Banana", "apple", "Ärger"],
    "acl_name != 'public'": ["cherry"],
    "": ["Banana", "apple", "cherry", "Ärger"],
}


def test_ours_5_a_filter_leaves_what_meets_it(cabinet: Cabinet) -> None:
    for text, left in FILTERS.items():
        assert sorted(cabinet.titles(filter=text)) == sorted(left), text
        answer = cabinet.ask(filter=text, include_total="true", items_per_page="1").json()
        assert answer["total"] == len(left), text
    kind = cabinet.site.type("document")
    assert len(cabinet.titles(filter=f"r_object_type='{kind}'")) == 4
    assert cabinet.titles(filter=f"starts-with(r_object_id,'{cabinet.ids[1][:14]}')") == ["Banana"]


def test_ours_5_a_sort_orders_and_next_goes_on_in_it(cabinet: Cabinet) -> None:
    assert cabinet.titles(sort="object_name desc") == ["Ärger", "cherry", "apple", "Banana"]
    assert cabinet.titles(sort="object_name no-case") == ["apple", "Banana", "cherry", "Ärger"]
    assert cabinet.titles(sort="r_creation_date DESC,object_name") == ["cherry", "Ärger", "Banana", "apple"]
    for sort in ("object_name desc", "owner_name,r_creation_date DESC", "subject desc , title"):
        whole = cabinet.titles(sort=sort, filter="keywords='common'")
        paged, page = [], cabinet.ask(sort=sort, filter="keywords='common'", items_per_page="1").json()
        while True:
            paged += [entry["title"] for entry in page["entries"]]
            following = [link["href"] for link in page["links"] if link["rel"] == "next"]
            if not following:
                break
            assert "filter=" in following[0]
            page = cabinet.ask(following[0]).json()
        assert paged == whole
        assert len(whole) == 4


REFUSED = {
    ("filter", "object_name"): ("E_BAD_FILTER", "character 12"),
    ("filter", "a = 'b' and"): ("E_BAD_FILTER", "character 12"),
    ("filter", "(" * 30 + "a='b'" + ")" * 30): ("E_BAD_FILTER", "deeper than 20"),
    ("filter", " or ".join(["a='b'"] * 101)): ("E_BAD_FILTER", "100 comparisons"),
    ("filter", "a='" + "b" * 4000 + "'"): ("E_BAD_FILTER", "4000 characters"),
    ("filter", "object_name='x' or nothing='y'"): ("E_INVALID_ATTR_NAME", "character 20"),
    ("filter", "r_folder_path='/a'"): ("E_INVALID_ATTR_NAME", "character 1"),
    ("filter", "r_full_content_size='x'"): ("E_INVALID_ATTR_VALUE", "whole number"),
    ("filter", "object_name=5"): ("E_INVALID_ATTR_VALUE", "in quotes"),
    ("filter", "r_modify_date=date('yesterday')"): ("E_INVALID_ATTR_VALUE", "ISO 8601"),
    ("filter", "acl_name > 'x'"): ("E_INVALID_ATTR_VALUE", "= and !="),
    ("sort", "nothing"): ("E_INVALID_ATTR_NAME", "character 1"),
    ("sort", "object_name,keywords"): ("E_BAD_SORT", "several values"),
    ("sort", "object_name sideways"): ("E_BAD_SORT", "character 1"),
    ("sort", "acl_name"): ("E_BAD_SORT", "character 1"),
}


def test_ours_5_what_cannot_be_asked_is_refused_with_its_place(cabinet: Cabinet) -> None:
    for (name, text), (code, said) in REFUSED.items():
        answer = cabinet.ask(**{name: text})
        assert (answer.status_code, answer.json().get("code")) == (400, code), (text, answer.text)
        assert said in is_repository(answer, cabinet.site), text


def test_ours_5_hidden_objects_show_neither_in_a_filter_nor_in_a_sort_nor_in_a_total(cabinet: Cabinet) -> None:
    reader = cabinet.site.world.reader
    assert cabinet.titles(person=reader, sort="object_name desc") == ["Ärger", "apple", "Banana"]
    for text in ("object_name='cherry'", f"title='{cabinet.word} 3'", "keywords='k3'"):
        answer = cabinet.ask(person=reader, filter=text, include_total="true").json()
        assert (answer["entries"], answer["total"]) == ([], 0)


def test_ours_5_a_cursor_is_good_for_its_filter_and_its_sort_alone(cabinet: Cabinet) -> None:
    page = cabinet.ask(sort="object_name", filter="keywords='common'", items_per_page="1").json()
    following = next(link["href"] for link in page["links"] if link["rel"] == "next")
    assert cabinet.ask(following).status_code == 200
    for one, other in (("sort=object_name", "sort=title"), ("common", "Common"), ("sort=object_name&", "")):
        refused = cabinet.ask(following.replace(one, other) if one in following else following + "&x=y&sort=title")
        assert refused.status_code == 400, (one, refused.text)


def test_ours_5_page_0_is_page_1_and_a_page_has_no_more_members_than_the_ceiling(cabinet: Cabinet) -> None:
    assert cabinet.ask(page="0").json()["page"] == 1
    assert cabinet.ask(items_per_page="100000").json()["items-per-page"] == 1000
    found = cabinet.ask(cabinet.site.search_address, page="0", items_per_page="100000", q=cabinet.word)
    assert (found.status_code, found.json()["items-per-page"], found.json()["page"]) == (200, 1000, 1)


def test_ours_5_what_changes_nothing_is_accepted(cabinet: Cabinet) -> None:
    neutral = {"inline": "false", "links": "true", "view": "", "sort": "", "filter": "", "include-total": ""}
    for address in _lists(cabinet):
        assert cabinet.ask(address, **neutral).status_code == 200, address
    assert cabinet.ask(cabinet.site.search_address, inline="false", links="true", view="", sort="").status_code == 200


def _lists(cabinet: Cabinet) -> list[str]:
    site = cabinet.site
    below = f"{site.repository}/folders/{cabinet.id}"
    return [
        f"/{site.names.prefix}/repositories",
        f"{site.repository}/cabinets",
        f"{site.repository}/acls",
        f"{site.repository}/types",
        *(f"{below}/{name}" for name in ("folders", "documents", "objects", "child-links")),
        *(f"{site.repository}/objects/{cabinet.ids[0]}/{name}" for name in ("contents", "parent-links")),
    ]


def _single(entry: dict[str, Any], source: dict[str, Any], site: Site) -> dict[str, Any]:
    answer = site.http.get(source["content"]["src"], headers=site.bearer() | JSON)
    document: dict[str, Any] = answer.json()
    return document


def test_ours_5_an_inlined_entry_is_what_its_own_address_shows(site: Site) -> None:
    cabinet = Cabinet(site)
    site.http.post(
        f"{site.repository}/objects/{cabinet.ids[0]}/contents",
        content=b"x",
        headers=site.bearer() | {"Content-Type": "text/plain"},
    )
    for address in _lists(cabinet)[1:]:
        plain = cabinet.ask(address, items_per_page="3").json()["entries"]
        inlined = cabinet.ask(address, items_per_page="3", inline="true").json()["entries"]
        assert [entry["id"] for entry in inlined] == [entry["id"] for entry in plain], address
        assert inlined or address.endswith("/folders"), address
        for entry, source in zip(inlined, plain, strict=True):
            assert entry["content"] == _single(entry, source, site), address
            assert entry["links"] == source["links"]
    (repository,) = [
        entry["content"]
        for entry in cabinet.ask(_lists(cabinet)[0], inline="true").json()["entries"]
        if entry["title"] == site.world.repository
    ]
    assert set(repository) == {"name", "links"}


def test_ours_5_an_inlined_entry_in_xml_holds_the_element_of_its_own_address(cabinet: Cabinet) -> None:
    site = cabinet.site
    for address in _lists(cabinet)[1:]:
        answer = site.http.get(address, params={"inline": "true", "items-per-page": "2"}, headers=site.bearer() | XML)
        root = lxml.etree.fromstring(answer.content)
        for entry in root.findall(f"{ATOM}entry"):
            (element,) = entry.findall(f"{ATOM}content/*")
            own = next(link.get("href", "") for link in entry.findall(f"{ATOM}link") if link.get("rel") == "edit")
            single = site.http.get(own, headers=site.bearer() | {"Accept": "application/xml"})
            expected = lxml.etree.fromstring(single.content)
            assert lxml.etree.tostring(element, method="c14n2") == lxml.etree.tostring(expected, method="c14n2")


def test_ours_5_links_false_leaves_the_links_of_entries_and_things_out(cabinet: Cabinet) -> None:
    for address in _lists(cabinet):
        for inline in ("false", "true"):
            answer = cabinet.ask(address, links="false", inline=inline, items_per_page="1").json()
            for entry in answer["entries"]:
                assert "links" not in entry, address
                assert "links" not in entry["content"], address
            assert all("links=false" in link["href"] for link in answer["links"])
    page = cabinet.site.http.get(cabinet.documents, params={"links": "false"}, headers=cabinet.site.bearer() | XML)
    assert all(entry.find(f"{ATOM}link") is None for entry in Feed(page, cabinet.site).entries)
    own = f"{cabinet.site.repository}/objects/{cabinet.ids[0]}"
    assert "links" not in cabinet.ask(own, links="false").json()


def test_ours_5_a_view_shows_what_it_names(cabinet: Cabinet) -> None:
    site = cabinet.site
    own = f"{site.repository}/objects/{cabinet.ids[0]}"
    object_id, type_name = "r_object_id", "r_object_type"
    always = {object_id, type_name, "object_name"}
    assert set(cabinet.ask(own, view="title").json()["properties"]) == always | {"title"}
    assert set(cabinet.ask(own, view="subject, r_modify_date").json()["properties"]) == always | {
        "subject",
        "r_modify_date",
    }
    default, every = (cabinet.ask(own, view=view).json()["properties"] for view in (":default", ":all"))
    assert "language_code" not in default
    assert (every["language_code"], every["authors"], every["r_lock_date"]) == ("", [], None)
    assert {name: every[name] for name in default} == default
    refused = cabinet.ask(own, view="nothing")
    assert (refused.status_code, refused.json()["code"]) == (400, "E_INVALID_ATTR_NAME")
    (entry, *_) = cabinet.ask(view="title", inline="true").json()["entries"]
    assert set(entry["content"]["properties"]) == always | {"title"}
    assert cabinet.ask(view="nothing", inline="true").status_code == 400


def test_ours_5_other_lists_are_filtered_and_sorted_by_what_they_show(cabinet: Cabinet) -> None:
    site = cabinet.site

    def titles(address: str, **parameters: str) -> list[str]:
        answer = cabinet.ask(address, **parameters)
        assert answer.status_code == 200, answer.text
        return [entry["title"] for entry in answer.json()["entries"]]

    _every, cabinets, acls, types, *_ = _lists(cabinet)
    assert titles(cabinets, filter=f"contains(object_name,'{cabinet.word}')") == [f"cabinet {cabinet.word}"]
    assert titles(_every, filter=f"name='{site.world.repository}'") == [site.world.repository]
    assert titles(acls, filter="starts-with(name,'pub') and owner=''") == ["public"]
    names = titles(acls, sort="name desc", items_per_page="1000")
    assert names == sorted(names, reverse=True)
    built_in = [site.type(name) for name in ("sysobject", "folder", "cabinet", "document")]
    assert titles(types, filter="type_category=1", items_per_page="4") == built_in
    assert titles(types, filter="type_category=2") == []
    assert titles(types, filter=f"parent='{site.type('folder')}'") == [site.type("cabinet")]
    below = titles(types, filter=f"starts-with(name,'{site.type('d')}')", sort="name desc")
    assert site.type("document") in below
    assert below == sorted(below, reverse=True)
    contents = f"{site.repository}/objects/{cabinet.ids[0]}/contents"
    assert titles(contents, filter="full_content_size > 5") == []
    for address in (_every, acls, types, contents):
        refused = cabinet.ask(address, filter="nothing='x'")
        assert (refused.status_code, refused.json()["code"]) == (400, "E_INVALID_ATTR_NAME")
    assert cabinet.ask(_every, filter="description=''").status_code == 400, "the list shows no description to strangers"


def test_ours_5_a_search_carries_whole_objects_in_both_spellings_and_next_keeps_it(
    cabinet: Cabinet, world: World
) -> None:
    site = cabinet.site
    world.catch_up()
    asked = {"q": cabinet.word, "object-type": site.type("document"), "inline": "true", "view": "title"}
    asked |= {"items-per-page": "1", "links": "false"}
    page = site.http.get(site.search_address, params=asked, headers=site.bearer() | JSON).json()
    (entry,) = page["entries"]
    assert "links" not in entry["content"]
    assert entry["content"]["properties"]["title"].startswith(cabinet.word)
    following = next(link["href"] for link in page["links"] if link["rel"] == "next")
    (entry,) = cabinet.ask(following).json()["entries"]
    assert set(entry["content"]["properties"]) == {"r_object_id", "r_object_type", "object_name", "title"}
    posted = site.post_search(site.aql(fulltext(cabinet.word)), {"inline": "true", "items-per-page": "1"})
    feed = Feed(posted, site)
    for one in (feed, site.feed(feed.link("next") or "")):
        (element,) = one.entries[0].findall(f"{ATOM}content/*")
        own = site.http.get(
            f"{site.repository}/documents/{one.ids[0]}", headers=site.bearer() | {"Accept": "application/xml"}
        )
        expected = lxml.etree.fromstring(own.content)
        assert lxml.etree.tostring(element, method="c14n2") == lxml.etree.tostring(expected, method="c14n2")
    refused = site.http.get(site.search_address, params={"view": "nothing", "inline": "true"}, headers=site.bearer())
    assert refused.status_code == 400


def test_ours_5_truth_values_numbers_and_dates_of_custom_types_compare_by_kind(site: Site) -> None:
    world, word = site.world, site.world.word()
    kind = f"t_{word}"
    properties = (
        PropertyDefinition(f"d_{word}", "boolean"),
        PropertyDefinition(f"w_{word}", "double"),
        PropertyDefinition(f"u_{word}", "date", repeating=True),
    )
    with world.repository_db.begin() as cx:
        repository = repositories.find(cx, world.repository)
        type_editing.add_type(cx, repository.id, ObjectType(kind, "document", properties), world.clock())
    cabinet_id = site.cabinet(word)
    rows = [(True, 1.5, ["2024-01-31", "2026-01-01"]), (False, 2, []), (None, None, None)]
    for at, (draft, weight, dates) in enumerate(rows):
        given = {"object_name": f"n{at}", "r_object_type": kind, f"d_{word}": draft, f"w_{word}": weight}
        made = site.http.post(
            f"{site.repository}/folders/{cabinet_id}/objects",
            json={"properties": {**given, f"u_{word}": dates}},
            headers=site.bearer(),
        )
        assert made.status_code == 201, made.text

    def names(**parameters: str) -> list[str]:
        answer = site.http.get(
            f"{site.repository}/folders/{cabinet_id}/objects", params=parameters, headers=site.bearer() | JSON
        )
        assert answer.status_code == 200, answer.text
        return [entry["title"] for entry in answer.json()["entries"]]

    assert names(filter=f"d_{word}=true") == ["n0"]
    assert names(filter=f"not(d_{word}=true())") == ["n1", "n2"]
    assert names(filter=f"d_{word}!='T'") == ["n1"]
    assert names(filter=f"w_{word}>=1.5") == ["n0", "n1"]
    assert names(filter=f"w_{word}=2") == ["n1"]
    assert names(filter=f'u_{word}=date("2024-01-31T01:00:00+01:00")') == ["n0"]
    assert names(filter=f"u_{word} > '2025-01-01' and u_{word} < '2025-01-01'") == ["n0"]
    assert names(sort=f"w_{word} desc") == ["n1", "n0", "n2"]
    assert names(sort=f"w_{word}") == ["n0", "n1", "n2"]


def test_ours_5_an_inlined_entry_is_whole_in_hal_too(cabinet: Cabinet) -> None:
    headers = cabinet.site.bearer() | {"Accept": "application/hal+json"}
    feed = cabinet.site.http.get(cabinet.documents, params={"inline": "true"}, headers=headers).json()
    single = cabinet.site.http.get(f"{cabinet.site.repository}/documents/{cabinet.ids[1]}", headers=headers).json()
    assert single in [entry["content"] for entry in feed["_embedded"]["entries"]]


def test_ours_5_a_page_of_whole_things_has_a_limit_in_bytes(world: World, loop: Loop) -> None:
    """No surface writes more of them; each says how to go on. A limit of 64 KiB has room for two of the documents."""
    with closing(Site(world, "neutral", loop, "repository.max_page_bytes=65536")) as site:
        word = world.word()
        wide = {"title": word, "keywords": [f"{number} {'x' * 56}" for number in range(380)], "acl_name": "public"}
        cabinet = site.cabinet(f"cabinet {word}")
        documents = f"{site.repository}/folders/{cabinet}/documents"
        for number in range(3):
            properties = {"object_name": f"{word} {number}", **wide}
            made = site.http.post(documents, json={"properties": properties}, headers=site.bearer())
            assert made.status_code == 201, made.text
        world.catch_up()
        saved = {"properties": {"object_name": word}, "query-document": site.aql(fulltext(word))}
        kept = site.http.post(f"{site.repository}/saved-searches", json=saved, headers=site.bearer())
        assert kept.status_code == 201, kept.text
        own = next(link["href"] for link in kept.json()["links"] if link["rel"] == "self")
        every = f"select * from document where title = '{word}'"
        asked = [
            (documents, {"inline": "true"}, "items-per-page"),
            (site.search_address, {"q": word, "inline": "true"}, "items-per-page"),
            (f"{own}/execution", {"inline": "true"}, "items-per-page"),
            (f"/{site.names.prefix}/search", {"q": word, "inline": "true"}, "limit"),
            (site.repository, {"dql": every}, "items-per-page"),
        ]
        for address, parameters, size in asked:
            for media_type in ("application/json", "application/atom+xml", "application/hal+json"):
                headers = site.bearer() | {"Accept": media_type}
                ask = partial(site.http.get, address, headers=headers)
                refused = ask(params=parameters)
                assert refused.status_code == 400, (address, media_type, refused.text[:500])
                assert "E_MALFORMED" in refused.text, refused.text
                assert size in refused.text
                assert ask(params=parameters | {size: "2"}).status_code == 200, (address, media_type)
                fewer = {"dql": every.replace("*", "title")} if "dql" in parameters else {"view": "title"}
                assert ask(params=parameters | fewer).status_code == 200, (address, media_type)
        document = site.aql(fulltext(word))
        assert site.post_search(document, {"inline": "true"}).status_code == 400
        assert site.post_search(document, {"inline": "true", "items-per-page": "2"}).status_code == 200
        assert site.post_search(document).status_code == 200


@pytest.mark.parametrize("portion", [1, 2, 4])
def test_ours_5_a_page_of_whole_things_is_read_in_portions(
    cabinet: Cabinet, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    site = cabinet.site
    site.world.catch_up()
    statement = f"select r_object_id, title from {site.type('document')} where title like '{cabinet.word}%'"
    searched = {"q": cabinet.word, "object-type": site.type("document")}
    asked: list[tuple[str, dict[str, str]]] = [
        (cabinet.documents, {}),
        (cabinet.documents, {"sort": "title desc"}),
        (cabinet.documents, {"page": "2"}),
        (site.repository, {"dql": statement}),
        (site.search_address, searched),
    ]

    def pages(size: str) -> list[list[tuple[Any, Any]]]:
        answers = []
        for address, parameters in asked:
            answer = cabinet.ask(address, inline="true", items_per_page=size, **parameters)
            assert answer.status_code == 200, answer.text
            rels = [link["rel"] for link in answer.json()["links"]]
            answers.append([(rels, 0), *((entry["id"], entry["content"]) for entry in answer.json()["entries"])])
        return answers

    for size in ("1", "2", "3", "4", "5"):
        whole = pages(size)
        with monkeypatch.context() as patch:
            patch.setattr(collections, "PORTION", portion)
            assert pages(size) == whole, size


def test_ours_5_entries_say_when_their_things_were_made(site: Site, cabinet: Cabinet) -> None:
    here, site_object = site.repository, cabinet.ids[0]
    renamed = f"{here}/objects/{site_object}"
    saved = {"properties": {"object_name": "made"}, "query-document": site.aql(fulltext("x"))}
    acl = site.http.post(f"{here}/acls", json={"name": site.world.word(), "permitted": []}, headers=site.bearer())
    comment = {"properties": {"content": "made"}}
    commented = site.http.post(f"{renamed}/comments", json=comment, headers=site.bearer())
    searched = site.http.post(f"{here}/saved-searches", json=saved, headers=site.bearer())
    made = [site.http.get(answer.headers["Location"], headers=site.bearer() | JSON) for answer in (searched, commented)]
    site.world.clock.advance(60)
    changed = {"properties": {"title": f"{cabinet.word} changed"}}
    assert site.http.post(renamed, json=changed, headers=site.bearer()).status_code == 200
    assert site.http.post(commented.headers["Location"], json=comment, headers=site.bearer()).status_code == 200
    assert site.http.post(searched.headers["Location"], json=saved, headers=site.bearer()).status_code == 200
    assert site.http.post(acl.headers["Location"], json={"permitted": []}, headers=site.bearer()).status_code == 200
    links = f"{renamed}/parent-links"
    for path in (cabinet.documents, links, f"{here}/acls", f"{renamed}/comments", f"{here}/saved-searches"):
        entries = cabinet.ask(path).json()["entries"]
        assert any(entry["published"] < entry["updated"] for entry in entries), path
    listed = {entry["title"]: entry for entry in cabinet.ask().json()["entries"]}
    shown = cabinet.ask(renamed).json()["properties"]
    prefix = site.names.system_property_prefix
    assert listed[NAMES[0]]["published"] == shown[f"{prefix}creation_date"]
    assert [answer.status_code for answer in made] == [200, 200]
    for path in ("users", "groups", "formats", "types", "relation-types", "checked-out-objects", "cabinets"):
        for entry in cabinet.ask(f"{here}/{path}").json()["entries"]:
            assert entry["published"] <= entry["updated"], path
    (entry,) = lxml.etree.fromstring(site.http.get(links, headers=site.bearer() | XML).content).iter(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}published") == listed[NAMES[0]]["published"]
