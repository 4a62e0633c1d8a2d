"""ours 6: documents like an object, for those who may read it; docs/aql.md, "Similar documents"."""

from typing import Any, NamedTuple

import httpx
import pytest

from tests.scenes import ATOM, Person, Site


class Books(NamedTuple):
    """Documents of which some hold the same rare words."""

    site: Site
    first: str
    like: str
    less: str
    other: str
    words: tuple[str, ...]


@pytest.fixture
def books(site: Site) -> Books:
    words = tuple(site.world.word() for _ in range(5))
    one, two, three, four, common = words
    texts = (
        f"The {one} and the {two} of the {three}. {one.upper()}! {common}.",
        f"A {three} with a {one} and a {two}, {common}.",
        f"Nothing but {two}, {common}.",
        f"{four}",
    )
    made = [site.create(f"book {number}", text.encode(), title=f"Book {number}") for number, text in enumerate(texts)]
    site.world.catch_up()
    first, like, less, other = made
    return Books(site, first, like, less, other, words)


def ask(site: Site, object_id: str, person: Person | None = None, /, **parameters: str) -> httpx.Response:
    parameters = {name.replace("_", "-"): value for name, value in parameters.items()}
    headers = {"Accept": "application/json"} | site.bearer(person)
    return site.http.get(f"{site.repository}/objects/{object_id}/similar", params=parameters, headers=headers)


def found(site: Site, object_id: str, person: Person | None = None, /, **parameters: str) -> dict[str, Any]:
    answer = ask(site, object_id, person, **parameters)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def ids(page: dict[str, Any]) -> list[str]:
    return [entry["id"] for entry in page["entries"]]


def test_ours_6_what_shares_the_rarest_words_comes_first_and_the_object_itself_never(books: Books) -> None:
    page = found(books.site, books.first, include_total="true")
    assert ids(page) == [books.like, books.less]
    assert page["total"] == 2
    assert set(page["entries"][0]["terms"]) <= set(books.words)
    assert ids(found(books.site, books.other)) == []
    assert ids(found(books.site, books.first, items_per_page="1")) == [books.like]


def test_ours_6_similar_documents_in_both_spellings_with_the_objects_inline(books: Books) -> None:
    site = books.site
    page = found(site, books.first, inline="true", view="title")
    own = next(link["href"] for link in page["links"] if link["rel"] == "self")
    assert own.partition("?")[2] == "view=title&inline=true"
    assert [entry["content"]["properties"]["title"] for entry in page["entries"]] == ["Book 1", "Book 2"]
    feed = site.http.get(
        f"{site.repository}/objects/{books.first}/similar", headers=site.bearer() | {"Accept": "application/atom+xml"}
    )
    assert feed.headers["content-type"].startswith("application/atom+xml")
    assert feed.text.count("<entry>") == 2
    assert ATOM[1:-1] in feed.text
    shown = site.http.get(f"{site.repository}/objects/{books.first}.json", headers=site.bearer()).json()
    links = {link["rel"].rpartition("/")[2]: link["href"] for link in shown["links"]}
    assert links["similar"].endswith(f"/objects/{books.first}/similar")


def test_ours_6_who_may_not_read_an_object_is_answered_as_for_its_content(books: Books) -> None:
    site, reader = books.site, books.site.world.reader
    for object_id, acl, status in ((books.first, "private", 404), (books.like, "browse", 403)):
        if acl == "browse":
            acl = f"browse-{books.words[0]}"
            made = {"name": acl, "permitted": [{"accessor": "world", "basic-permission": "Browse"}]}
            assert site.http.post(f"{site.repository}/acls", json=made, headers=site.bearer()).status_code == 201
        site.share(object_id, acl)
        content = f"{site.repository}/objects/{object_id}/content-media"
        assert site.http.get(content, headers=site.bearer(reader)).status_code == status
        assert ask(site, object_id, reader).status_code == status
    assert ask(site, "0900000100abcdef").status_code == 404


def test_ours_6_hidden_documents_choose_no_word(books: Books) -> None:
    """A document that the caller may not see makes no word commoner, and is not listed."""
    site, reader = books.site, books.site.world.reader
    for object_id in (books.first, books.less):
        site.share(object_id)
    site.share(books.like, "private")
    assert ids(found(site, books.first, reader)) == [books.less], "at once"
    site.world.catch_up()
    before = found(site, books.first, reader)
    for _ in range(3):
        site.share(site.create("more", " ".join(books.words).encode()), "private")
    site.world.catch_up()
    after = found(site, books.first, reader)
    assert ids(after) == ids(before) == [books.less]
    assert [entry["terms"] for entry in after["entries"]] == [entry["terms"] for entry in before["entries"]]


def test_ours_6_an_object_without_text_is_like_nothing(site: Site) -> None:
    assert ids(found(site, site.create("x"))) == []
    assert ids(found(site, site.cabinet("y"))) == []


def test_ours_6_similar_documents_wait_for_a_position(books: Books) -> None:
    site = books.site
    title = site.http.post(
        f"{site.repository}/objects/{books.like}", json={"properties": {"title": "x"}}, headers=site.bearer()
    )
    position = title.headers["Muniment-Position"]
    assert ids(found(site, books.first)) == [books.like, books.less], "their owner saw the old values"
    site.world.catch_up()
    assert ids(found(site, books.first, wait_for=position)) == [books.like, books.less]


def test_ours_6_what_shares_one_telling_word_of_many_is_not_listed_and_not_counted(site: Site) -> None:
    words = [site.world.word() for _ in range(12)]
    texts = (" ".join(words * 3), " ".join(words[:6]), f"{words[0]} and much else besides, for pages and pages")
    first, like, _ = (site.create("x", text.encode()) for text in texts)
    site.world.catch_up()
    page = found(site, first, include_total="true")
    assert (ids(page), page["total"]) == ([like], 1)
