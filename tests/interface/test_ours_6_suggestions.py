"""ours 6: what a search page shows while somebody types; docs/aql.md, "While somebody types"."""

from typing import Any, NamedTuple

import pytest

from tests.scenes import Person, Site


class Shelf(NamedTuple):
    """Documents of made-up words that begin alike: `base` and then `ing`, `ed` or `ish`."""

    site: Site
    base: str

    def ask(self, q: str, person: Person | None = None, **parameters: str) -> dict[str, Any]:
        answer = self.site.http.get(
            f"{self.site.search_address}/suggestions",
            params={"q": q, **parameters},
            headers=self.site.bearer(person) | {"Accept": "application/json"},
        )
        assert answer.status_code == 200, answer.text
        assert "private" in answer.headers["Cache-Control"]
        told: dict[str, Any] = answer.json()
        return told

    def completed(self, q: str, person: Person | None = None, **parameters: str) -> list[tuple[str, int]]:
        return [(each["text"], each["hits"]) for each in self.ask(q, person, **parameters)["completions"]]


@pytest.fixture
def shelf(site: Site) -> Shelf:
    base = site.world.word()
    site.share(site.create("one", f"the {base}ing of a valve".encode(), title=f"{base.upper()}ING"))
    site.share(site.create("two", f"{base}ing and {base}ed".encode()))
    site.share(site.create("three", b"nothing", title=f"{base}ish"))
    site.create("hidden", f"{base}hidden {base}ing {base}ed {base}ed".encode())
    site.world.catch_up()
    return Shelf(site, base)


def test_ours_6_a_word_is_completed_by_what_the_caller_may_see(shelf: Shelf) -> None:
    base, reader = shelf.base, shelf.site.world.reader
    expected = [(f"{base}ing", 2), (f"{base}ed", 1), (f"{base}ish", 1)]
    assert shelf.completed(base, reader) == expected
    assert shelf.completed(base.upper(), reader) == expected, "without case"
    assert shelf.completed(base, reader, limit="1") == expected[:1]
    assert (f"{base}hidden", 1) in shelf.completed(base), "its owner may see it"


def test_ours_6_words_before_narrow_the_completions(shelf: Shelf) -> None:
    base = shelf.base
    assert shelf.completed(f"valves {base}", shelf.site.world.reader) == [(f"valves {base}ing", 1)]
    assert shelf.completed(f"{base}ing {base}e", shelf.site.world.reader) == [(f"{base}ing {base}ed", 1)]
    assert shelf.completed(f"{base}ish {base}e", shelf.site.world.reader) == []


def test_ours_6_a_question_that_finds_nothing_is_corrected(shelf: Shelf) -> None:
    base, reader = shelf.base, shelf.site.world.reader
    wrong = f"{base[:2]}x{base[3:]}ing"
    assert shelf.ask(f"{wrong} valve", reader) == {
        "completions": [],
        "correction": {"text": f"{base}ing valve", "hits": 1},
    }
    assert shelf.ask(f"{base}ing ", reader) == {"completions": []}, "it finds something"
    assert shelf.ask(f"{base}hiden ", reader) == {"completions": []}, "only a hidden word is like it"
    assert shelf.ask(f"{base}hiden ")["correction"] == {"text": f"{base}hidden", "hits": 1}


@pytest.mark.parametrize("q", ["", " ", "a", '"{base}"', "{base} OR {base}", "{base}*", "NOT {base}", "&|!"])
def test_ours_6_what_is_no_plain_beginning_gets_no_suggestion(shelf: Shelf, q: str) -> None:
    assert shelf.ask(q.format(base=shelf.base)) == {"completions": []}


def test_ours_6_suggestions_in_xml_and_what_is_refused(shelf: Shelf) -> None:
    address, headers = f"{shelf.site.search_address}/suggestions", shelf.site.bearer()
    answer = shelf.site.http.get(address, params={"q": shelf.base}, headers=headers | {"Accept": "application/xml"})
    assert f"<text>{shelf.base}ing</text>" in answer.text
    for limit in ("0", "-1", "x"):
        refused = shelf.site.http.get(address, params={"q": "a", "limit": limit}, headers=headers)
        assert refused.status_code == 400, limit
    assert shelf.site.http.get(address, params={"q": "a"}).status_code == 401
