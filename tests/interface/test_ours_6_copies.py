"""ours 6: hits with equal content are collapsed for those who ask; docs/aql.md, "Copies"."""

from typing import Any

from tests.scenes import Site


def make(site: Site, *texts: str, title: str = "") -> list[str]:
    """Make documents with these texts."""
    made = [site.create("x", text.encode(), title=title) for text in texts]
    site.world.catch_up()
    return made


def found(site: Site, word: str, **parameters: str) -> dict[str, Any]:
    """Search, and read the feed as JSON."""
    spelled = {"q": word, "words": "all", "collapse": "content"} | parameters
    person = site.world.reader if spelled.pop("reader", "") else None
    headers = {"Accept": "application/json"} | site.bearer(person)
    answer = site.http.get(site.search_address, params=spelled, headers=headers)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def told(page: dict[str, Any]) -> list[tuple[str, int]]:
    """List the hits of a page with their copies."""
    return [(entry["id"], entry["copies"]) for entry in page["entries"]]


def test_ours_6_the_first_of_equal_contents_stands_for_all(site: Site) -> None:
    word = site.world.word()
    texts = (f"{word} one", f"{word} two", f"{word} one", f"{word} one")
    one, two, _, _ = make(site, *texts, title="the same")
    assert sorted(told(found(site, word, sort="title"))) == sorted([(one, 2), (two, 0)])
    assert told(found(site, word, sort="title"))[0] == (one, 2), "the one that was made first"
    feed = site.search(f"<fulltext>{word}</fulltext>", collapse="content")
    assert {entry.findtext(f"{site.vocab}copies") for entry in feed.entries} == {"0", "2"}
    assert feed.total == 4, "copies count"


def test_ours_6_nobody_gets_copies_without_asking(site: Site) -> None:
    word = site.world.word()
    make(site, word, word)
    for page in (found(site, word, collapse=""), found(site, word, collapse="none")):
        assert len(page["entries"]) == 2
        assert not any("copies" in entry for entry in page["entries"])
    for feed in (site.keywords(word), site.keywords(word, collapse="none")):
        assert feed.entries[0].find(f"{site.vocab}copies") is None


def test_ours_6_pages_count_what_is_left(site: Site) -> None:
    word = site.world.word()
    texts = [f"{word} {'abcde'[number % 5] * 5}" for number in range(15)]
    make(site, *texts)
    page = found(site, word, **{"items-per-page": "2", "include-total": "true", "sort": "object_name"})
    pages = [told(page)]
    numbered = [
        told(found(site, word, **{"items-per-page": "2", "page": str(n), "sort": "object_name"})) for n in (1, 2, 3)
    ]
    assert "last" not in {link["rel"] for link in page["links"]}
    while following := [link["href"] for link in page["links"] if link["rel"] == "next"]:
        assert page["total"] == 15
        page = site.http.get(following[0], headers={"Accept": "application/json"} | site.bearer()).json()
        pages.append(told(page))
    assert pages == numbered
    assert [[copies for _, copies in each] for each in pages] == [[2, 2], [2, 2], [2]]
    assert len({object_id for each in pages for object_id, _ in each}) == 5


def test_ours_6_what_may_only_be_browsed_and_what_is_hidden_is_no_copy(site: Site) -> None:
    word = site.world.word()
    mine = make(site, *([word] * 5), title=word)
    acl = {"name": f"browse-{word}", "permitted": [{"accessor": "world", "basic-permission": "Browse"}]}
    assert site.http.post(f"{site.repository}/acls", json=acl, headers=site.bearer()).status_code == 201
    for object_id, name in zip(mine[:4], ("public", "public", f"browse-{word}", "private"), strict=True):
        site.share(object_id, name)
    site.share(mine[4], f"browse-{word}")
    page = told(found(site, word, reader="yes"))
    assert sorted(page) == sorted([(mine[0], 1), (mine[2], 0), (mine[4], 0)])
    site.share(mine[1], "private")
    page = told(found(site, word, reader="yes"))
    assert sorted(page) == sorted([(mine[0], 0), (mine[2], 0), (mine[4], 0)]), "the very next search obeys"
    assert [copies for _, copies in told(found(site, word))] == [4]


def test_ours_6_objects_without_content_are_no_copies(site: Site) -> None:
    word = site.world.word()
    for _ in range(2):
        site.create("x", title=word)
    site.world.catch_up()
    assert [copies for _, copies in told(found(site, word))] == [0, 0]


def test_ours_6_several_repositories_do_not_collapse_copies(site: Site) -> None:
    address = site.search_address.replace(f"{site.repository}/search", site.repository.rsplit("/repositories", 1)[0])
    headers = {"Accept": "application/json"} | site.bearer()
    refused = site.http.get(f"{address}/search", params={"q": "x", "collapse": "content"}, headers=headers)
    assert refused.status_code == 400
    assert "one repository" in refused.json()["message"]
    assert site.http.get(f"{address}/search", params={"q": "x", "collapse": "none"}, headers=headers).status_code == 200


def test_ours_6_another_way_to_collapse_is_refused(site: Site) -> None:
    headers = {"Accept": "application/json"} | site.bearer()
    refused = site.http.get(site.search_address, params={"q": "x", "collapse": "title"}, headers=headers)
    assert refused.status_code == 400
    assert "content" in refused.json()["message"]
