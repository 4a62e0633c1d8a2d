"""A feed is well-formed, and says what it was told, for any Unicode in any property."""

import json
import re

import feedparser
import lxml.etree
from hypothesis import given
from hypothesis import strategies as st

from muniment.ground.clock import timestamp
from muniment.repository.search.answering import atom

ATOM = "{http://www.w3.org/2005/Atom}"
VOCAB = "urn:muniment:vocab"
RELEVANCE = "http://a9.com/-/opensearch/extensions/relevance/1.0/"

anything = st.text(st.characters(exclude_categories=()), max_size=40)
awkward = st.sampled_from(
    [
        "]]>",
        "<![CDATA[",
        "&amp;",
        "&#0;",
        "\x00",
        "\r\n",
        "\ud800",
        "\udfff",
        "\uffff",
        "\ufffe",
        "\x85",
        "\u2028",
        "'<>&",
    ]
)
texts = st.one_of(anything, awkward, st.tuples(anything, awkward, anything).map("".join))
entries = st.builds(
    atom.FeedEntry,
    id=st.just("0900000100000001"),
    title=texts,
    author=texts,
    summary=texts,
    updated=st.integers(0, 4_000_000_000_000_000),
    address=st.just("https://muniment.test/rest/repositories/a/objects/0900000100000001?x=\"'<&>"),
    score=st.floats(0, 1e6),
    terms=st.lists(texts, max_size=4).map(tuple),
)


def feed_of(*found: atom.FeedEntry, total: int | None = None) -> atom.Feed:
    """Make a feed of these entries."""
    links = (atom.Link("self", "https://muniment.test/search?q=a%20b&page=1"),)
    return atom.Feed("https://muniment.test/search", "Search results", "Muniment", 0, 1, 100, links, found, total)


def kept(text: str) -> str:
    """Say what of a text XML 1.0 can hold."""
    return "".join(c for c in text if re.match("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", c))


@given(st.lists(entries, max_size=3))
def test_any_feed_is_well_formed_and_says_what_it_was_told(found: list[atom.FeedEntry]) -> None:
    """failures B12: any text comes out as text."""
    root = lxml.etree.fromstring(atom.as_xml(feed_of(*found), VOCAB, RELEVANCE))
    assert len(root.findall(f"{ATOM}entry")) == len(found)
    for element, entry in zip(root.findall(f"{ATOM}entry"), found, strict=True):
        assert (element.findtext(f"{ATOM}title") or "") == kept(entry.title)
        assert (element.findtext(f"{ATOM}author/{ATOM}name") or "") == kept(entry.author)
        assert (element.findtext(f"{ATOM}summary") or "") == kept(entry.summary)
        terms = [term.text or "" for term in element.findall(f"{{{VOCAB}}}terms/{{{VOCAB}}}term")]
        assert terms == [kept(term) for term in entry.terms]
        content = element.find(f"{ATOM}content")
        assert content is not None
        assert content.get("src") == entry.address
        assert float(element.findtext(f"{{{RELEVANCE}}}score") or "") >= 0


@given(st.lists(entries, max_size=3))
def test_a_feed_reader_of_strangers_reads_any_feed(found: list[atom.FeedEntry]) -> None:
    read = feedparser.parse(atom.as_xml(feed_of(*found, total=len(found)), VOCAB, RELEVANCE))
    assert not read.bozo
    assert read.version == "atom10"
    assert [entry.id for entry in read.entries] == [entry.id for entry in found]


@given(st.lists(entries, max_size=3))
def test_the_json_feed_says_the_same(found: list[atom.FeedEntry]) -> None:
    read = json.loads(atom.as_json(feed_of(*found, total=7), "application/vnd.muniment+json"))
    assert read["total"] == 7
    assert [entry["title"] for entry in read["entries"]] == [kept(entry.title) for entry in found]
    assert all(entry["score"] == round(entry["score"], 4) for entry in read["entries"])


@given(st.integers(0, 4_000_000_000_000_000))
def test_every_time_has_milliseconds_and_an_offset(instant: int) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", timestamp(instant, utc="+00:00"))
