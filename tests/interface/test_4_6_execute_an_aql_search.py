"""given 4.6: POST {base_url}/rest/repositories/<repository_name>/search executes an AQL search."""

import pytest

from tests.scenes import Feed, Person, Site, begins, fulltext


def test_4_6_it_answers_success_with_an_atom_feed(site: Site) -> None:
    answer = site.post_search(site.aql(fulltext(site.world.word())))
    assert answer.status_code == 200
    assert Feed(answer, site).entries == []


@pytest.mark.parametrize(("given", "total"), [("true", 1), ("false", None), (None, None)])
def test_4_6_include_total_decides_about_the_total(site: Site, given: str | None, total: int | None) -> None:
    word = site.world.word()
    site.create(word)
    site.world.catch_up()
    parameters = {} if given is None else {"include-total": given}
    answer = site.post_search(site.aql(fulltext(word)), parameters)
    assert answer.status_code == 200
    assert Feed(answer, site).total == total


@pytest.mark.parametrize("accept", ["application/xml", "application/atom+xml", "*/*", "text/html, application/*;q=0.5"])
def test_4_6_accepts_that_can_be_met(site: Site, accept: str) -> None:
    assert site.post_search(site.aql(fulltext("x")), headers={"Accept": accept}).status_code == 200


@pytest.mark.parametrize("accept", ["", "*/*"])
def test_4_6_who_likes_all_media_types_gets_atom_for_xml_and_json_for_json(site: Site, accept: str) -> None:
    """Ours: clients that are generated send no Accept, and read JSON where they sent it, or nothing."""
    in_json = {"expression-set": {"expressions": [{"expression-type": "fulltext", "value": "x"}]}}
    headers = site.bearer() | {"Accept": accept}
    answers = (
        site.post_search(site.aql(fulltext("x")), headers={"Accept": accept}),
        site.post_search(site.aql(fulltext("x")), headers={"Accept": accept, "Content-Type": "text/xml"}),
        site.http.post(site.search_address, json=in_json, headers=headers),
        site.http.get(site.search_address, headers=headers),
    )
    assert [answer.headers["content-type"] for answer in answers] == [
        *("application/atom+xml",) * 2,
        *(f"{site.names.media_type}+json",) * 2,
    ]


def test_4_6_an_accept_that_cannot_be_met_is_406(site: Site) -> None:
    assert site.post_search(site.aql(fulltext("x")), headers={"Accept": "image/png"}).status_code == 406


def test_4_6_a_content_type_that_is_not_read_is_415(site: Site) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert site.post_search(site.aql(fulltext("x")), headers={"Content-Type": kind}).status_code == 415


def test_4_6_an_unknown_repository_is_404(site: Site) -> None:
    address = f"/{site.names.prefix}/repositories/nowhere/search"
    answer = site.http.post(
        address, content=site.aql(fulltext("x")), headers={"Content-Type": "application/xml"} | site.bearer()
    )
    assert answer.status_code == 404


def test_4_6_results_satisfy_types_and_all_expressions(site: Site) -> None:
    word = site.world.word()
    made = site.create(f"{word} invoice", b"paid in full")
    site.create(f"{word} letter", b"paid in full")
    site.create(f"{word} invoice", b"never sent")
    site.world.catch_up()
    assert site.search(begins("object_name", f"{word} invoice"), fulltext("paid")).ids == [made]


def test_4_6_pages_joined_are_the_whole_and_the_total_stands(site: Site) -> None:
    word = site.world.word()
    made = {site.create(f"{word} {number}") for number in range(5)}
    site.world.catch_up()
    pages = [site.search(fulltext(word), items_per_page="2", page=str(page)) for page in (1, 2, 3, 4)]
    assert [len(page.entries) for page in pages] == [2, 2, 1, 0]
    assert {found for page in pages for found in page.ids} == made
    assert {page.total for page in pages} == {5}


def test_4_6_next_of_a_post_is_followed_by_a_get_of_the_same_caller_only(site: Site) -> None:
    word = site.world.word()
    made = {site.create(f"{word} {number}") for number in range(5)}
    site.world.catch_up()
    feed = site.search(fulltext(word), items_per_page="2")
    found, pages = set(feed.ids), 1
    address = feed.link("next")
    first = address
    while address:
        feed = site.feed(address)
        found |= set(feed.ids)
        pages += 1
        address = feed.link("next")
    assert (found, pages) == (made, 3)
    assert first is not None
    assert site.http.get(first, headers=site.bearer(site.world.reader)).status_code == 404
    assert site.http.get(first).status_code == 401


def test_4_6_a_caller_finds_what_he_may_see_and_nothing_else(site: Site) -> None:
    word = site.world.word()
    made = site.create(word, f"about {word}".encode())
    site.world.catch_up()
    reader: Person = site.world.reader
    assert site.search(fulltext(word)).total == 1
    hidden = site.search(fulltext(word), person=reader)
    assert (hidden.total, hidden.ids) == (0, [])
    site.share(made)
    for _ in range(2):  # at once, and still after the agent has passed the change
        assert site.search(fulltext(word), person=reader).ids == [made]
        site.world.catch_up()
    site.share(made, "private")
    for _ in range(2):
        assert site.search(fulltext(word), person=reader).total == 0
        site.world.catch_up()


def test_4_6_a_deleted_object_is_gone_at_once(site: Site) -> None:
    word = site.world.word()
    made = site.create(word)
    site.world.catch_up()
    assert site.search(fulltext(word)).ids == [made]
    deleted = site.http.delete(f"{site.repository}/objects/{made}", headers=site.bearer())
    assert deleted.status_code == 204
    for _ in range(2):
        assert site.search(fulltext(word)).total == 0
        site.world.catch_up()
