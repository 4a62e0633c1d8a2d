"""ours 6: where the summary of a hit matches, for those who ask; docs/aql.md, "The answer"."""

from tests.scenes import ATOM, Feed, Site, fulltext


def marked(site: Site, feed: Feed) -> list[str]:
    """List the parts of the summary that the marks of the only hit name."""
    (entry,) = feed.entries
    summary = entry.findtext(f"{ATOM}summary") or ""
    marks = entry.findall(f"{site.vocab}marks/{site.vocab}mark")
    return [summary[int(mark.get("start", "")) : int(mark.get("end", ""))] for mark in marks]


def test_ours_6_marks_say_where_the_summary_matches(site: Site) -> None:
    word = site.world.word()
    site.create("x", f"Before it\x07 & after: the {word} of a house. And a {word.upper()}.".encode(), title="nothing")
    site.world.catch_up()
    wanted = [word, word.upper()]
    assert marked(site, site.search(fulltext(word), marks="true")) == wanted
    assert marked(site, site.keywords(word, marks="true")) == wanted
    as_json = {"Accept": "application/json"} | site.bearer()
    answer = site.http.get(site.search_address, params={"q": word, "marks": "true"}, headers=as_json)
    (hit,) = answer.json()["entries"]
    assert [hit["summary"][mark["start"] : mark["end"]] for mark in hit["marks"]] == wanted


def test_ours_6_every_page_and_collapsed_hits_have_marks(site: Site) -> None:
    word = site.world.word()
    for number in range(2):
        site.create("x", f"{number} {word}".encode())
    site.world.catch_up()
    first = site.keywords(word, marks="true", items_per_page="1")
    second = site.feed(first.link("next") or "")
    assert first.ids != second.ids
    assert marked(site, first) == marked(site, second) == [word]
    assert marked(site, site.keywords(word, marks="true", collapse="content", items_per_page="1")) == [word]


def test_ours_6_nobody_gets_marks_without_asking_and_no_word_marks_nothing(site: Site) -> None:
    word = site.world.word()
    site.create("x", word.encode())
    site.world.catch_up()
    for feed in (site.keywords(word), site.keywords(word, marks="false")):
        assert marked(site, feed) == []
        assert feed.entries[0].find(f"{site.vocab}marks") is None


def test_ours_6_marks_tell_no_more_than_the_summary(site: Site) -> None:
    """Whoever may only browse sees marks in the metadata."""
    word = site.world.word()
    made = site.create("x", f"hidden {word}".encode(), title=f"A {word}")
    acl = {"name": f"browse-{word}", "permitted": [{"accessor": "world", "basic-permission": "Browse"}]}
    assert site.http.post(f"{site.repository}/acls", json=acl, headers=site.bearer()).status_code == 201
    site.share(made, f"browse-{word}")
    site.world.catch_up()
    assert marked(site, site.keywords(word, person=site.world.reader, marks="true")) == [word]
