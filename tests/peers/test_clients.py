"""Other people's feed readers, and curl, agree with us, over real sockets and TLS."""

import shutil
import subprocess
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import fastfeedparser
import feedparser
import pytest
import requests

from tests.scenes import Served, fulltext

pytestmark = pytest.mark.peers


class Read(NamedTuple):
    """A feed as a reader has understood it: for each entry its fields by name, and the link to the next page."""

    entries: list[dict[str, Any]]
    following: str | None


def by_feedparser(feed: bytes) -> Read:
    """Read with feedparser, whose XML parser is expat."""
    read = feedparser.parse(feed)
    assert not read.bozo, read.get("bozo_exception")
    assert read.version == "atom10"
    assert read.feed.updated_parsed is not None
    for entry in read.entries:
        assert entry.updated_parsed is not None
    return Read(
        [entry | {"link": link.href} for entry in read.entries for link in entry.links if link.rel == "edit"],
        next((link.href for link in read.feed.links if link.rel == "next"), None),
    )


def by_fastfeedparser(feed: bytes) -> Read:
    """Read with fastfeedparser, whose XML parser is libxml2. It raises for what is no feed."""
    read = fastfeedparser.parse(feed)
    for dated in (read.feed, *read.entries):
        assert datetime.fromisoformat(dated["updated"]).tzinfo is not None
    links = [link for link in read.feed["links"] if link["rel"] == "next"]
    return Read(
        [entry | {"summary": entry["description"]} for entry in read.entries], links[0]["href"] if links else None
    )


Reader = Callable[[bytes], Read]
READERS = [pytest.param(read, id=read.__name__.removeprefix("by_")) for read in (by_feedparser, by_fastfeedparser)]


@pytest.mark.parametrize("reader", READERS)
def test_a_feed_reader_reads_what_a_search_found(served: Served, reader: Reader) -> None:
    site = served.site
    word = site.world.word()
    name = f"{word} <é> & “quotes” \U0001f5c4"
    made = site.create(name, f"text with {word} in it".encode())
    site.world.catch_up()
    read = reader(
        fetched(
            served,
            f"{site.search_address}?include-total=true",
            data=site.aql(fulltext(word)).encode(),
            headers={"Content-Type": "application/xml", "Accept": "application/xml"},
        )
    )
    (entry,) = read.entries
    assert entry["id"] == made
    assert word in entry["title"]
    assert "“quotes” \U0001f5c4" in entry["title"]
    assert entry["author"] == site.world.writer.name
    assert word in entry["summary"]


@pytest.mark.parametrize("reader", READERS)
def test_a_feed_reader_turns_the_pages_of_a_collection(served: Served, reader: Reader) -> None:
    site = served.site
    word = site.world.word()
    cabinet = site.cabinet(word)
    names = {f"{word} {number} <é> & “quotes”" for number in range(3)}
    made = {
        site.http.post(
            f"{site.repository}/folders/{cabinet}/documents",
            json={"properties": {"object_name": name}},
            headers=site.bearer(),
        ).headers["Location"]
        for name in names
    }
    address, pages = f"{site.repository}/folders/{cabinet}/documents?items-per-page=2&include-total=true", []
    while address:
        read = reader(fetched(served, address, headers={"Accept": "application/atom+xml"}))
        pages.append(read.entries)
        address = (read.following or "").removeprefix(served.base)
    assert [len(entries) for entries in pages] == [2, 1]
    entries = [entry for page in pages for entry in page]
    assert {entry["title"] for entry in entries} == names
    assert {entry["author"] for entry in entries} == {site.world.writer.name}
    paths = {urlsplit(location).path for location in made}
    assert {urlsplit(entry["id"]).path for entry in entries} == paths
    assert {urlsplit(entry["link"]).path for entry in entries} == paths


def fetched(served: Served, address: str, *, headers: dict[str, str], data: bytes | None = None) -> bytes:
    """Get what an address answers with 200; what carries data is posted."""
    answer = requests.request(
        "GET" if data is None else "POST",
        f"{served.base}{address}",
        data=data,
        headers=headers | served.site.bearer(),
        verify=str(served.ca_file),
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    return answer.content


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_trusts_the_first_start_ca_and_sees_the_headers(served: Served) -> None:
    site, world = served.site, served.site.world
    token = site.issue(world.reader)["access_token"]

    def curl(*arguments: str) -> str:
        return subprocess.run(
            ["curl", "-sS", "-D", "-", "-o", "/dev/null", "--cacert", str(served.ca_file), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.lower()

    seen = curl("-X", "DELETE", f"{served.base}{site.oauth}/{token}")
    assert " 204" in seen.splitlines()[0]
    for header in ("origin", "methods", "headers", "max-age"):
        assert f"access-control-{'allow-' if header != 'max-age' else ''}{header}:" in seen
    assert "strict-transport-security:" in seen
    assert "x-content-type-options: nosniff" in seen
    assert "x-request-id:" in seen
    assert "www-authenticate: bearer" in curl(f"{served.base}{site.search_address}?q=x")
