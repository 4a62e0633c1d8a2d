"""ours 6: synonyms and stop words of the settings; docs/aql.md, "Synonyms"."""

from contextlib import closing

import pytest

from tests.scenes import Feed, Loop, Site


def ask(site: Site, q: str, **parameters: str) -> Feed:
    return site.feed(site.search_address, {"q": q, "words": "auto"} | parameters)


@pytest.mark.parametrize("how", ["all", "any"])
def test_ours_6_a_word_finds_its_synonyms_and_shows_them(site: Site, loop: Loop, how: str) -> None:
    a, b, other = (site.world.word() for _ in range(3))
    with closing(Site(site.world, site.kind, loop, f"repository.synonyms={a}ing = {b} = {b} {a}")) as wide:
        first = wide.create("one", f"The {a}ing valve leaks.".encode())
        second = wide.create("two", f"The {b} valve leaks.".encode())
        wide.create("three", f"The {other} valve leaks.".encode())
        site.world.catch_up()
        for word in (f"{a}ing", f"{a}ings", b):
            feed = ask(wide, f"{word} valve", words=how)
            assert {first, second} == set(feed.ids[:2]), word
        assert set(ask(wide, f'"{a}ing" valve', words="all").ids) == {first}
        assert ask(wide, f"valve NOT {b} {a}*").ids == []
        assert f"<dm:term>{b}</dm:term>" in ask(wide, f"{a}ing", words="all").answer.text
        assert set(ask(site, f"{a}ing", words="all").ids) == {first}


def test_ours_6_a_stop_word_of_the_settings_asks_for_nothing_by_itself(site: Site, loop: Loop) -> None:
    word, small = site.world.word(), site.world.word()
    with closing(Site(site.world, site.kind, loop, f"repository.stop_words={small}")) as quiet:
        first = quiet.create("one", f"The {word} valve.".encode())
        second = quiet.create("two", f"A {small} note.".encode())
        site.world.catch_up()
        assert ask(quiet, f"{word} {small}").ids == [first]
        assert set(ask(site, f"{word} {small}").ids) == {first, second}
        assert ask(quiet, small).ids == [second]
