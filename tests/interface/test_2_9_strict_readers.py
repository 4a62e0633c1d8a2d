"""given 2.9; docs/interface.md, 2.9: a feed has these keys and no more, because strict readers refuse others."""

from collections.abc import Iterator
from typing import Any

import lxml.etree
import pytest

from tests.scenes import ATOM, Site, fulltext

FEED = ["id", "title", "author", "updated", "page", "items-per-page", "links", "facets", "entries"]
ENTRY = ["id", "title", "author", "updated", "summary", "score", "terms", "content", "links"]
LISTED = ["id", "title", "author", "updated", "summary", "published", "content", "links"]
CONTENT = {"src", "type", "content-type"}


@pytest.fixture
def word(site: Site) -> str:
    """A word of two documents, in the order of the feed's pages."""
    made = site.world.word()
    for number in range(2):
        site.create(f"strict {number}", f"a text with {made}".encode())
    site.world.catch_up()
    return made


def in_json(site: Site, path: str, **parameters: str) -> dict[str, Any]:
    accept = {"Accept": f"{site.names.media_type}+json"}
    answer = site.http.get(f"{site.repository}/{path}", params=parameters, headers=site.bearer() | accept)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def saved(site: Site, word: str) -> str:
    body = {"properties": {"object_name": "strict"}, "query-document": site.aql(fulltext(word))}
    answer = site.http.post(f"{site.repository}/saved-searches", json=body, headers=site.bearer())
    assert answer.status_code == 201, answer.text
    search_id: str = answer.json()["properties"][f"{site.names.system_property_prefix}object_id"]
    return f"saved-searches/{search_id}"


def feeds(site: Site, word: str, **parameters: str) -> Iterator[dict[str, Any]]:
    """Give the same hits by GET, by POST, and by a saved search."""
    yield in_json(site, "search", q=word, **parameters)
    headers = {"Content-Type": "application/xml", "Accept": "application/json"}
    document = site.aql(fulltext(word))
    posted = site.http.post(
        site.search_address, params=parameters, content=document.encode(), headers=site.bearer() | headers
    )
    yield posted.json()
    yield in_json(site, f"{saved(site, word)}/execution", **parameters)


def test_2_9_a_feed_in_json_has_its_keys_in_order_and_no_more(site: Site, word: str) -> None:
    for feed in feeds(site, word):
        assert list(feed) == FEED
    for feed in feeds(site, word, **{"include-total": "true"}):
        assert list(feed) == [*FEED[:6], "total", *FEED[6:]]
        assert feed["total"] == 2
    for feed in feeds(site, word, **{"items-per-page": "1"}):
        assert (feed["page"], feed["items-per-page"], feed["facets"]) == (1, 1, [])
        assert [link["rel"] for link in feed["links"]] == ["self", "next", "first"]
        assert all(link.keys() == {"rel", "href"} for link in feed["links"])
        assert [author.keys() for author in feed["author"]] == [{"name"}]


def test_2_9_an_entry_in_json_has_its_keys_in_order_and_no_more(site: Site, word: str) -> None:
    for feed in feeds(site, word):
        assert len(feed["entries"]) == 2
        for entry in feed["entries"]:
            assert list(entry) == ENTRY
            address = f"{site.base}{site.repository}/objects/{entry['id']}"
            assert entry["author"] == [
                {"name": site.world.writer.name, "uri": f"{site.base}{site.repository}/users/{site.world.writer.id}"}
            ]
            assert entry["terms"] == [word]
            assert isinstance(entry["score"], float)
            assert entry["score"] > 0
            assert entry["content"].keys() == CONTENT
            assert entry["content"]["src"] == address
            assert entry["content"]["type"] == entry["content"]["content-type"] == f"{site.names.media_type}+json"
            assert entry["links"] == [{"rel": "edit", "href": address}]


def test_2_9_an_inlined_object_takes_the_place_of_its_address(site: Site, word: str) -> None:
    for feed in feeds(site, word, inline="true"):
        for entry in feed["entries"]:
            assert list(entry) == ENTRY
            assert entry["content"].keys() == {"name", "type", "definition", "properties", "links"}


def test_2_9_without_links_an_entry_lacks_them_alone(site: Site, word: str) -> None:
    for feed in feeds(site, word, links="false"):
        assert [list(entry) for entry in feed["entries"]] == [ENTRY[:-1]] * 2


def test_2_9_stored_results_have_no_score_and_no_terms(site: Site, word: str) -> None:
    path = f"{saved(site, word)}/results"
    stored = site.http.put(f"{site.repository}/{path}", headers=site.bearer() | {"Accept": "application/json"})
    for feed in (stored.json(), in_json(site, path)):
        assert set(feed) == set(FEED) - {"facets"}
        for entry in feed["entries"]:
            assert list(entry) == LISTED
            assert entry["content"].keys() == CONTENT


def test_2_9_a_plain_list_has_neither_facets_nor_scores(site: Site, word: str) -> None:
    feed = in_json(site, "cabinets")
    site.cabinet(f"strict {word}")
    feed = in_json(site, "cabinets", filter=f"object_name='strict {word}'")
    assert list(feed) == [key for key in FEED if key != "facets"]
    for entry in feed["entries"]:
        assert list(entry) == LISTED
        assert entry["author"][0].keys() == {"name", "uri"}


def _names(site: Site, element: Any) -> list[str]:
    """Spell the children of an element, the repeated ones once."""
    relevance = f"{{{site.names.relevance_namespace}}}"
    tags = [
        child.tag.replace(ATOM, "").replace(site.vocab, "dm:").replace(relevance, "relevance:") for child in element
    ]
    return list(dict.fromkeys(tags))


def test_2_9_a_feed_in_xml_has_its_elements_in_order_and_no_more(site: Site, word: str) -> None:
    """The order of an entry is that of given 2.9."""
    for address, total in ((f"?q={word}", []), (f"?q={word}&include-total=true", ["dm:total"])):
        answer = site.http.get(site.search_address + address, headers=site.bearer() | {"Accept": "application/xml"})
        root = lxml.etree.fromstring(answer.content)
        header = ["id", "title", "updated", "author", *total, "dm:page", "dm:items-per-page", "link", "entry"]
        assert _names(site, root) == header
        for entry in root.iter(f"{ATOM}entry"):
            assert _names(site, entry) == [
                *("id", "title", "author", "summary", "updated", "link", "content"),
                *("relevance:score", "dm:terms"),
            ]
            assert _names(site, entry.find(f"{ATOM}author")) == ["name"]
            assert _names(site, entry.find(f"{site.vocab}terms")) == ["dm:term"]
            assert set(next(entry.iter(f"{ATOM}content")).keys()) == {"type", "src"}
            assert set(next(entry.iter(f"{ATOM}link")).keys()) == {"rel", "href"}


def test_2_9_a_list_in_xml_names_the_address_of_an_owner(site: Site) -> None:
    name = f"strict {site.world.word()}"
    site.cabinet(name)
    answer = site.http.get(
        f"{site.repository}/cabinets",
        params={"filter": f"object_name='{name}'"},
        headers=site.bearer() | {"Accept": "application/xml"},
    )
    (entry,) = lxml.etree.fromstring(answer.content).iter(f"{ATOM}entry")
    assert _names(site, entry) == ["id", "title", "author", "summary", "updated", "published", "link", "content"]
    assert _names(site, entry.find(f"{ATOM}author")) == ["name", "uri"]


def test_2_9_an_empty_feed_has_an_empty_array_of_entries(site: Site) -> None:
    feed = in_json(site, "search", q=site.world.word())
    assert list(feed) == FEED
    assert feed["entries"] == []
