"""given 2.9: the search response is an Atom feed."""

import re
from datetime import datetime

import pytest
from lxml import etree

from tests.scenes import ATOM, Feed, Site, fulltext


@pytest.fixture
def found(site: Site) -> tuple[Site, str, str, Feed]:
    """A document with a word in its content, and the feed that found it."""
    word = site.world.word()
    text = f"It begins far away. In the middle of it stands {word}, and then it goes on for a while."
    made = site.create("The name of it", text.encode())
    site.world.catch_up()
    return site, word, made, site.search(fulltext(word))


def test_2_9_the_root_is_an_atom_feed(found: tuple[Site, str, str, Feed]) -> None:
    _, _, _, feed = found
    assert feed.root.tag == f"{ATOM}feed"
    assert re.match(r"application/(atom\+)?xml", feed.answer.headers["Content-Type"])


def test_2_9_total_is_present_when_asked_for_only(found: tuple[Site, str, str, Feed]) -> None:
    site, word, _, feed = found
    assert feed.total == 1
    cases: tuple[dict[str, str], ...] = ({}, {"include-total": "false"})
    for without in cases:
        answer = site.post_search(site.aql(fulltext(word)), without)
        assert Feed(answer, site).total is None
    assert site.search(fulltext(site.world.word())).total == 0


def test_2_9_one_entry_per_result(found: tuple[Site, str, str, Feed]) -> None:
    _, _, _, feed = found
    assert len(feed.entries) == 1


def test_2_9_entry_id_is_the_object_identifier(found: tuple[Site, str, str, Feed]) -> None:
    _, _, made, feed = found
    assert feed.ids == [made]
    assert re.fullmatch(r"[0-9a-f]{16}", made)


def test_2_9_entry_title_is_the_object_name(found: tuple[Site, str, str, Feed]) -> None:
    assert found[3].entries[0].findtext(f"{ATOM}title") == "The name of it"


def test_2_9_entry_author_name_is_the_owner(found: tuple[Site, str, str, Feed]) -> None:
    site, _, _, feed = found
    assert feed.entries[0].findtext(f"{ATOM}author/{ATOM}name") == site.world.writer.name


def test_2_9_entry_summary_is_an_excerpt_around_the_match(found: tuple[Site, str, str, Feed]) -> None:
    _, word, _, feed = found
    assert word in (feed.entries[0].findtext(f"{ATOM}summary") or "")


def test_2_9_entry_updated_has_milliseconds_and_an_offset(found: tuple[Site, str, str, Feed]) -> None:
    site, _, _, feed = found
    updated = feed.entries[0].findtext(f"{ATOM}updated") or ""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", updated)
    assert abs(datetime.fromisoformat(updated).timestamp() - site.world.clock() / 1e6) < 1


def test_2_9_the_edit_link_leads_to_the_object(found: tuple[Site, str, str, Feed]) -> None:
    site, _, made, feed = found
    links = [link for link in feed.entries[0].findall(f"{ATOM}link") if link.get("rel") == "edit"]
    assert len(links) == 1
    href = links[0].get("href") or ""
    assert href.startswith(site.base)
    answer = site.http.get(href, headers=site.bearer() | {"Accept": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["properties"]["r_object_id"] == made


def test_2_9_the_contents_source_leads_to_the_object_as_xml(found: tuple[Site, str, str, Feed]) -> None:
    site, _, made, feed = found
    content = feed.entries[0].find(f"{ATOM}content")
    assert content is not None
    assert content.get("type") == "application/xml"
    source = content.get("src") or ""
    assert source.startswith(site.base)
    answer = site.http.get(source, headers=site.bearer() | {"Accept": "application/xml"})
    assert answer.status_code == 200
    read = etree.fromstring(answer.content)
    assert read.findtext(f".//{site.vocab}r_object_id") == made


def test_2_9_score_is_a_number_in_the_relevance_namespace(found: tuple[Site, str, str, Feed]) -> None:
    site, _, _, feed = found
    score = feed.entries[0].findtext(f"{{{site.names.relevance_namespace}}}score")
    assert score is not None
    assert float(score) > 0


def test_2_9_terms_are_the_matched_words(found: tuple[Site, str, str, Feed]) -> None:
    site, word, _, feed = found
    assert [term.text for term in feed.entries[0].findall(f"{site.vocab}terms/{site.vocab}term")] == [word]


def test_2_9_any_text_makes_a_well_formed_feed(site: Site) -> None:
    """failures B12"""
    word = site.world.word()
    name = f"{word} <b>&amp; \u0085\ufffe\u2028 \U0001f5c4 ]]> é"
    site.create(name, f"{word} \x01\x02 <script> \U0001d11e & \ufffe".encode())
    site.world.catch_up()
    feed = site.search(fulltext(word))
    assert len(feed.entries) == 1
    title = feed.entries[0].findtext(f"{ATOM}title") or ""
    assert title.startswith(f"{word} <b>&amp;")
    assert "\ufffe" not in title
