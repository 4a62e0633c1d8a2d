"""The search service and discovery over HTTP: parameters, media types, pages, links, refusals."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx
import lxml.etree
import pytest
import sqlalchemy as sa
from starlette.applications import Starlette

from muniment.repository.api import routes
from muniment.repository.api.endpoints.search import search
from muniment.repository.api.wire.positions import HEADER
from muniment.repository.options import RepositoryOptions
from muniment.repository.search.index.contract import Snapshot
from muniment.repository.search.index.tantivy.engine import TantivyIndex
from muniment.repository.search.index.tantivy.generations import FollowingIndex
from muniment.repository.store.change_log import changes
from tests.clock import Clock
from tests.scenes import InProcess, Loop
from tests.shelf import BORIS, MARTA, Shelf

NAMES = {"atom": "http://www.w3.org/2005/Atom", "dm": "urn:muniment:vocab"}
HERE = "/rest/repositories/demo/search"
ROOT = {"Authorization": "Bearer root"}
PLAIN = ROOT | {HEADER: "plain"}
XML = {"Content-Type": "application/xml", "Accept": "application/xml"}


def query(body: str) -> str:
    """Write a query document around these elements."""
    return f'<search xmlns="urn:muniment:vocab">{body}</search>'


def fulltext(words: str) -> str:
    """Write a query document that asks for keywords."""
    inside = f"<expressions><fulltext>{words}</fulltext></expressions>"
    return query(f'<types><type>document</type></types><expression-set operator="AND">{inside}</expression-set>')


class Site:
    """A repository behind its addresses, with two callers and an administrator, whose tokens are their names."""

    def __init__(self, shelf: Shelf, max_page_offset: int = 1000) -> None:
        self.shelf = shelf
        self.index = shelf.index
        self.clock = Clock()
        options = RepositoryOptions(max_page_offset=max_page_offset)
        self.half = shelf.context(options, lambda _repository: self.index, self.clock)
        self.loop = Loop()
        transport = InProcess(Starlette(routes=routes.routes(self.half)), self.loop)
        self.client = httpx.Client(transport=transport, base_url="http://testserver")
        self.client.headers["Authorization"] = "Bearer marta"

    def close(self) -> None:
        """Stop answering."""
        self.client.close()
        self.loop.close()

    def feed(self, path: str, **headers: str) -> lxml.etree._Element:
        """GET a feed in Atom."""
        answer = self.client.get(path, headers={"Accept": "application/atom+xml", **headers})
        assert answer.status_code == 200, answer.text
        return lxml.etree.fromstring(answer.content)

    def post(self, body: str, path: str = HERE, **headers: str) -> lxml.etree._Element:
        """POST a query document."""
        answer = self.client.post(path, content=body.encode(), headers={**XML, **headers})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/xml"
        return lxml.etree.fromstring(answer.content)


@pytest.fixture
def site(shelf: Shelf) -> Iterator[Site]:
    made = Site(shelf)
    yield made
    made.close()


def ids(feed: lxml.etree._Element) -> list[str | None]:
    """Name the hits."""
    return [element.text for element in feed.findall("atom:entry/atom:id", NAMES)]


def links(feed: lxml.etree._Element) -> dict[str | None, str]:
    """Read the feed's links."""
    return {link.get("rel"): link.get("href", "") for link in feed.findall("atom:link", NAMES)}


def filled(site: Site, count: int = 5) -> list[str]:
    """Keep some public documents and index them; they are alike but for their names, so hits come as they were made."""
    made = [site.shelf.add(f"pump {number}", "the main valve", acl="public") for number in range(count)]
    site.shelf.catch_up()
    return made


def test_keywords_and_documents_find_the_same(site: Site) -> None:
    made = filled(site)
    for feed in (
        site.feed(f"{HERE}?q=valve&include-total=true"),
        site.post(fulltext("valve"), f"{HERE}?include-total=true"),
    ):
        assert ids(feed) == made
        assert feed.findtext("dm:total", None, NAMES) == "5"
        assert feed.findtext("dm:page", None, NAMES) == "1"
        assert feed.findtext("dm:items-per-page", None, NAMES) == "100"
        assert set(links(feed)) == {"self"}
        entry = feed.find("atom:entry", NAMES)
        assert entry is not None
        assert entry.findtext("atom:author/atom:name", None, NAMES) == MARTA.id
        assert "valve" in (entry.findtext("atom:summary", None, NAMES) or "")
        assert entry.findtext("dm:terms/dm:term", None, NAMES) == "valve"
        assert entry.findtext("atom:updated", None, NAMES) == "2026-11-21T12:00:00.000+00:00"


@pytest.mark.slow
def test_without_keywords_everything_visible_is_found_and_the_total_only_when_asked_for(site: Site) -> None:
    made = filled(site)
    for path in (HERE, f"{HERE}?q=", f"{HERE}?q=%20%20", f"{HERE}?include-total=false&sort="):
        feed = site.feed(path)
        assert ids(feed) == made
        assert feed.find("dm:total", NAMES) is None
    assert ids(site.feed(f"{HERE}?q=%22%21%22")) == []
    assert ids(site.feed(f"{HERE}?object-type=folder")) == []
    assert len(ids(site.feed(f"{HERE}?object-type=document&unheard-of=1"))) == 5


@pytest.mark.slow
def test_a_feed_is_paged_by_its_own_links(site: Site) -> None:
    made = filled(site)
    feed = site.feed(f"{HERE}?q=valve&items-per-page=2&include-total=true")
    found, pages = ids(feed), 1
    assert set(links(feed)) == {"self", "next", "first", "last"}
    last = links(feed)["last"]
    while "next" in links(feed):
        feed = site.feed(links(feed)["next"])
        found += ids(feed)
        pages += 1
    assert (found, pages) == (made, 3)
    assert set(links(feed)) == {"self", "previous", "first", "last"}
    assert ids(site.feed(last)) == ids(feed)
    assert ids(site.feed(links(feed)["previous"])) == found[2:4]
    assert ids(site.feed(links(feed)["first"])) == found[:2]
    own = dict(parse_qsl(urlsplit(links(feed)["self"]).query))
    assert len(own.pop("cursor")) > 40
    assert own == {
        "q": "valve",
        "items-per-page": "2",
        "include-total": "true",
        "page": "3",
    }


def test_no_link_leads_past_the_deepest_hit_that_a_page_number_reaches(shelf: Shelf) -> None:
    with closing(Site(shelf, max_page_offset=2)) as site:
        filled(site)
        feed, relations = site.feed(f"{HERE}?q=valve&items-per-page=2&include-total=true"), list[set[str | None]]()
        while following := links(feed).get("next"):
            relations.append(set(links(feed)))
            feed = site.feed(following)
        assert [*relations, set(links(feed))] == [
            {"self", "next", "first"},
            {"self", "next", "previous", "first"},
            {"self", "first"},
        ]
        assert site.client.get(f"{HERE}?q=valve&items-per-page=2&page=2").status_code == 400


def test_next_of_a_document_is_followed_by_its_caller_alone_and_for_a_while(site: Site) -> None:
    made = filled(site)
    feed = site.post(fulltext("valve"), f"{HERE}?items-per-page=3&include-total=true")
    following = links(feed)["next"]
    rest = site.feed(following)
    assert ids(feed) + ids(rest) == made
    assert rest.findtext("dm:total", None, NAMES) == "5"
    assert ids(site.feed(links(rest)["previous"])) == ids(feed)
    assert site.client.get(following, headers={"Authorization": "Bearer boris"}).status_code == 404
    assert site.client.get(f"{following}&q=x").status_code == 400
    assert site.client.get(f"{HERE}?link={'0' * 32}").status_code == 404
    site.clock.advance(site.half.options.link_seconds + 1)
    assert site.client.get(following).status_code == 404
    assert set(links(site.post(fulltext("valve")))) == {"self"}


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["format = 99", "document = substr(document, 4)"])
def test_a_kept_query_of_another_format_or_damaged_is_answered_as_an_expired_one(site: Site, damage: str) -> None:
    filled(site)
    following = links(site.post(fulltext("valve"), f"{HERE}?items-per-page=3"))["next"]
    with site.shelf.database.begin() as cx:
        cx.execute(sa.text(f"UPDATE links SET {damage}"))
    answer = site.client.get(following)
    assert (answer.status_code, "send it again" in answer.text) == (404, True), answer.text
    again = links(site.post(fulltext("valve"), f"{HERE}?items-per-page=3"))["next"]
    assert len(ids(site.feed(again))) == 2


def test_each_caller_sees_his_own(site: Site) -> None:
    secret = site.shelf.add("pump", "the valve", owner=BORIS)
    site.shelf.catch_up()
    assert ids(site.feed(f"{HERE}?q=valve", Authorization="Bearer boris")) == [secret]
    feed = site.feed(f"{HERE}?q=valve&include-total=true")
    assert (ids(feed), feed.findtext("dm:total", None, NAMES)) == ([], "0")


def test_the_answer_is_of_the_accepted_media_type(site: Site) -> None:
    filled(site, 1)
    for accept, content_type in (
        ("", "application/vnd.muniment+json"),
        ("*/*", "application/vnd.muniment+json"),
        ("application/xml", "application/xml"),
        ("application/atom+xml", "application/atom+xml"),
        ("application/vnd.muniment+xml", "application/vnd.muniment+xml"),
        ("text/html, application/xml;q=0.5", "application/xml"),
        ("application/json", "application/json"),
    ):
        answer = site.client.get(f"{HERE}?q=valve", headers={"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
        if content_type.endswith("json"):
            assert [entry["title"] for entry in answer.json()["entries"]] == ["pump 0"]


REFUSED = (
    ("page=-1", "'page'"),
    ("page=x", "'page'"),
    ("page=1.0", "'page'"),
    ("page=1&page=2", "repeats"),
    ("page=1000000000", "hit 1000"),
    (f"page={'9' * 400}", "'page'"),
    ("page=11", "hit 1000"),
    ("items-per-page=0", "from 1 on"),
    ("inline=yes", "true or false"),
    ("view=:none", ":default, :all"),
    ("include-total=yes", "true or false"),
    ("object-type=unheard_of", "unheard_of"),
    ("wait-for=x", "wait-for"),
    ("q=%FF", "UTF-8"),
    ("q=a%00b", "NUL"),
)


def test_a_parameter_that_cannot_be_met_is_refused_with_its_name(site: Site) -> None:
    for query, said in REFUSED:
        answer = site.client.get(f"{HERE}?{query}", headers={"Accept": "application/json"})
        assert answer.status_code == 400, query
        assert said in answer.json()["message"], query


def test_a_post_says_its_query_in_the_document(site: Site) -> None:
    for name in ("q", "object-type", "link"):
        assert site.client.post(f"{HERE}?{name}=x", content=fulltext("x"), headers=XML).status_code == 400


def test_headers_decide_before_the_document_is_read(site: Site) -> None:
    cases: tuple[tuple[dict[str, str], int], ...] = (
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer nobody"}, 401),
        ({"Accept": "text/html"}, 406),
        ({"Content-Type": "application/pdf"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Type": "text/xml; charset=utf-8"}, 200),
        ({"Content-Type": "application/vnd.muniment+xml"}, 200),
    )
    for headers, status in cases:
        answer = site.client.post(HERE, content=fulltext("pump"), headers={**XML, **headers})
        assert answer.status_code == status
        if status == 401:
            assert answer.headers["www-authenticate"].startswith("Bearer realm=")
        if status not in (200, 406):
            assert lxml.etree.fromstring(answer.content).tag == "{urn:muniment:vocab}error"


def test_a_document_that_cannot_be_read_is_refused_with_its_place(site: Site) -> None:
    for body in ("", "<", "<x/>", query("<what/>"), fulltext("x")[:-1], "<!DOCTYPE a><a/>"):
        answer = site.client.post(HERE, content=body, headers=XML)
        assert answer.status_code == 400, body
        assert ("line 1" if body else "is empty") in answer.text, body


def test_a_document_too_large_is_refused(site: Site) -> None:
    assert site.client.post(HERE, content=b" " * 300_000, headers=XML).status_code == 413


def test_other_repositories_and_methods_are_refused(site: Site) -> None:
    assert site.client.get("/rest/repositories/nowhere/search").status_code == 404
    answer = site.client.delete(HERE)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")


@pytest.mark.slow
def test_a_search_waits_for_the_position_it_asks_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_WAIT_SECONDS", 0.05)
    first = site.client.get(HERE).headers[HEADER]
    assert site.client.get(f"{HERE}?wait-for={first}").status_code == 200
    made = site.shelf.add("pump", acl="public")
    wanted = str(site.shelf.change(made, {"title": "x"}).position)
    late = site.client.get(f"{HERE}?wait-for={wanted}", headers=PLAIN)
    assert (late.status_code, late.json()["code"]) == (503, "E_INDEX_BEHIND")
    assert not re.search("[0-9]", late.json()["message"]), "it tells no position"
    site.shelf.catch_up()
    answer = site.client.get(f"{HERE}?q=x&wait-for={wanted}", headers=PLAIN)
    assert (answer.status_code, answer.headers[HEADER]) == (200, wanted)
    sealed = site.client.get(f"{HERE}?q=x&wait-for={answer.headers[HEADER]}", headers=ROOT).headers[HEADER]
    answer = site.client.get(f"{HERE}?q=x&wait-for={sealed}")
    assert answer.status_code == 200
    assert made in answer.text


def test_a_repository_without_an_index_says_what_to_do(site: Site, tmp_path: Path) -> None:
    site.index = FollowingIndex(tmp_path / "none", TantivyIndex)  # type: ignore[assignment]
    answer = site.client.get(HERE)
    assert answer.status_code == 503
    assert "agent" in answer.text


def test_a_query_that_cannot_be_read_is_refused_before_the_index_is_needed(site: Site, tmp_path: Path) -> None:
    """A stranger is refused before that, and whether the query is short or long makes no difference."""
    site.index = FollowingIndex(tmp_path / "none", TantivyIndex)  # type: ignore[assignment]
    far = changes.Position(1, 10**6)
    for body in ("<search", query("<nonsense/>"), query("<nonsense/>" + " " * 5000)):
        for path in (HERE, f"{HERE}?wait-for={far}"):
            answer = site.client.post(path, content=body.encode(), headers=XML | PLAIN)
            assert answer.status_code == 400
            assert "E_BAD_QUERY" in answer.text
        stranger = site.client.post(HERE, content=body.encode(), headers=XML | {"Authorization": "Bearer nobody"})
        assert stranger.status_code == 401
    for q in ("(" * 30, "(" * 5000):
        answer = site.client.get(HERE, params={"q": q})
        assert (answer.status_code, answer.json()["code"]) == (400, "E_BAD_QUERY")
    assert site.client.post(HERE, content=fulltext("valve").encode(), headers=XML).status_code == 503


def test_a_right_that_ends_once_the_index_was_opened_is_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is read after the snapshot of the index was taken: a search that reads it before is red."""
    (made,) = filled(site, 1)
    take = site.index.snapshot

    def take_and_hide() -> Snapshot:
        snapshot = take()
        site.shelf.change(made, {"acl_name": "private"})
        return snapshot

    assert ids(site.feed(f"{HERE}?q=valve", Authorization="Bearer boris")) == [made]
    monkeypatch.setattr(site.index, "snapshot", take_and_hide)
    assert ids(site.feed(f"{HERE}?q=valve", Authorization="Bearer boris")) == []


def test_the_repository_shows_where_to_search(site: Site) -> None:
    said = site.client.get("/rest/repositories/demo").json()
    assert (said["id"], said["name"]) == (1, "demo")
    shown = {link["rel"]: link for link in said["links"]}
    assert shown["urn:muniment:linkrel/search"] == {
        "rel": "urn:muniment:linkrel/search",
        "hreftemplate": "http://testserver/rest/repositories/demo/search"
        "{?collections,facet,include-total,inline,items-per-page,locations,object-type,page,q,sort,timezone,view}",
    }
    assert shown["self"]["href"] == "http://testserver/rest/repositories/demo"
    for relation in ("cabinets", "types", "acls"):
        assert site.client.get(shown[f"urn:muniment:linkrel/{relation}"]["href"]).status_code == 200
    read = lxml.etree.fromstring(
        site.client.get("/rest/repositories/demo", headers={"Accept": "application/xml"}).content
    )
    template = read.xpath("//dm:link[@rel='urn:muniment:linkrel/search']/@hreftemplate", namespaces=NAMES)
    assert template == [shown["urn:muniment:linkrel/search"]["hreftemplate"]]
    assert site.client.get("/rest/repositories/demo", headers={"Authorization": ""}).status_code == 401


def test_the_list_of_repositories_is_open_and_says_names_only(site: Site) -> None:
    del site.client.headers["Authorization"]
    (entry,) = site.client.get("/rest/repositories", headers={"Accept": "application/json"}).json()["entries"]
    assert (entry["title"], entry["content"]["src"]) == ("demo", "http://testserver/rest/repositories/demo")
    assert site.shelf.repository.resource_id not in str(entry)
    feed = site.feed("/rest/repositories", Accept="application/atom+xml")
    assert feed.findtext("atom:entry/atom:title", None, NAMES) == "demo"


def test_an_entry_leads_to_the_object(site: Site) -> None:
    (made,) = filled(site, 1)
    feed = site.feed(f"{HERE}?q=valve")
    content = feed.find("atom:entry/atom:content", NAMES)
    edit = feed.find("atom:entry/atom:link[@rel='edit']", NAMES)
    assert content is not None
    assert edit is not None
    assert content.get("src") == edit.get("href")
    answer = site.client.get(content.get("src", ""), headers={"Accept": "application/xml"})
    assert answer.status_code == 200
    assert made in answer.text


def _kept(site: Site) -> int:
    with site.shelf.database.read() as cx:
        return int(cx.execute(sa.text("SELECT count(*) FROM links")).scalar_one())


@pytest.mark.slow
def test_a_posted_search_is_kept_only_where_another_page_exists(site: Site) -> None:
    """failures C6"""
    filled(site)
    for number in range(20):
        feed = site.post(fulltext(f"nothing{number}"), f"{HERE}?page=2&items-per-page=1")
        assert (ids(feed), set(links(feed))) == ([], {"self"})
    site.post(fulltext("valve"))
    site.post(fulltext("valve"), f"{HERE}?page=9&items-per-page=5")
    assert _kept(site) == 0
    assert "next" in links(site.post(fulltext("valve"), f"{HERE}?items-per-page=2"))
    assert _kept(site) == 1
    feed = site.post(fulltext("main"), f"{HERE}?page=3&items-per-page=2")
    assert set(links(feed)) == {"self", "previous", "first"}
    assert len(ids(site.feed(links(feed)["previous"]))) == 2


@pytest.mark.slow
def test_a_caller_whose_searches_are_all_kept_is_answered_and_can_go_on(site: Site) -> None:
    filled(site)
    most = RepositoryOptions().kept_queries
    first = links(site.post(fulltext("valve"), f"{HERE}?items-per-page=2"))["next"]
    for number in range(most):
        site.clock.now += 1
        feed = site.post(fulltext(f"valve OR nothing{number}"), f"{HERE}?items-per-page=2")
    assert _kept(site) == most
    assert len(ids(site.feed(links(feed)["next"]))) == 2
    assert site.client.get(first).status_code == 404


def test_a_position_that_is_cut_off_is_not_waited_for(site: Site) -> None:
    filled(site)
    position = site.shelf.index.snapshot().position
    with site.shelf.database.begin() as cx:
        assert changes.cut(cx, site.shelf.repository.id, position, site.shelf.now + 1, 1, 1000)
        assert changes.after(cx, site.shelf.repository.id, position, 10) == []
    assert len(ids(site.feed(f"{HERE}?q=valve&wait-for={position}", **ROOT))) == 5


@pytest.mark.slow
def test_an_index_that_is_too_far_behind_answers_503_with_the_time_to_come_again(site: Site) -> None:
    made = filled(site)
    with site.shelf.database.begin() as cx:
        for _ in range(RepositoryOptions().max_pending_changes + 1):
            changes.note(cx, site.shelf.repository.id, made[0], "acl", site.shelf.now)
    answer = site.client.get(f"{HERE}?q=valve")
    assert (answer.status_code, answer.json()["code"]) == (503, "E_INDEX_BEHIND")
    assert int(answer.headers["Retry-After"]) >= 1
    site.shelf.catch_up()
    assert len(ids(site.feed(f"{HERE}?q=valve"))) == 5
