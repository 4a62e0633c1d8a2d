"""ours 6: facets and sorts in one search of several repositories; docs/aql.md; docs/decisions/0063."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import lxml.etree
import pytest

from muniment.repository import repositories
from muniment.repository.objects import object_types
from muniment.repository.objects.object_types import ObjectType
from muniment.repository.objects.properties import PropertyDefinition, PropertyKind
from tests.scenes import Loop, World
from tests.several import APART, BESIDE, Several, ids, links, open_several, password, words

JSON = {"Accept": "application/json"}


@pytest.fixture(scope="module")
def several(world: World, loop: Loop) -> Iterator[Several]:
    with open_several(world, loop) as opened:
        yield opened


def every(several: Several) -> tuple[str, ...]:
    return several.site.world.repository, BESIDE, APART


def shelve(several: Several) -> str:
    """Shelve documents with keywords that are rare in each repository and frequent in all of them; give their word."""
    word = several.site.world.word()
    for name, subjects in zip(
        every(several), (["red", "red", "blue"], ["green", "green", "blue"], ["blue"]), strict=True
    ):
        for number, subject in enumerate(subjects):
            several.create(name, f"{subject} {number}", f"{word} " * (number + 1), acl_name="public", subject=subject)
    return word


def values(facet: dict[str, Any]) -> list[tuple[str, int]]:
    return [(value["facet-value-id"], value["facet-value-count"]) for value in facet["facet-value"]]


def facets_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    facets: list[dict[str, Any]] = answer.json()["facets"]
    return facets


def narrowed(several: Several, href: str, **headers: str) -> httpx.Response:
    answer = several.site.http.get(href, headers={**(headers or password(several.both)), **JSON})
    assert answer.status_code == 200, answer.text
    return answer


def follow(several: Several, facet: dict[str, Any]) -> None:
    """Every value's link leads to as many hits as it counted, and so do those nested in it."""
    for value in facet["facet-value"]:
        assert narrowed(several, value["link"]["href"]).json()["total"] == value["facet-value-count"]
        for inner in value.get("facets", []):
            follow(several, inner)


def test_a_get_counts_the_hits_of_all_repositories(several: Several) -> None:
    word = shelve(several)
    (facet,) = facets_of(several.get(q=word, facet="subject", limit="1", include_total="true"))
    assert (facet["facet-id"], facet["facet-label"]) == ("subject", "subject")
    assert values(facet) == [("blue", 3), ("green", 2), ("red", 2)]
    assert "facet-hits" not in facet
    assert "facet-partial" not in facet
    follow(several, facet)
    # A page further down counts the same hits, and a link of it leads to the first hits of each.
    later = several.get(q=word, facet="subject", limit="1", start="2", include_total="true")
    assert facets_of(later) == [facet]
    both = several.get(q=word, facet="subject", facet_value_constraints="red|green", include_total="true")
    assert both.json()["total"] == 4
    assert values(facets_of(both)[0]) == [("green", 2), ("red", 2)]
    pairs = several.get(q=word, facet="subject", facet_id_constraints="subject=blue", include_total="true")
    assert pairs.json()["total"] == 3
    dates = facets_of(several.get(q=word, facet="r_modify_date", timezone="Europe/Berlin", include_total="true"))
    assert sum(number for _, number in values(dates[0])) == 7
    follow(several, dates[0])


def test_a_document_counts_what_each_repository_counts_at_its_own_address(several: Several) -> None:
    """Sums of the answers without limit, cut to what is wanted: nested, by range, by letter, by age and by period."""
    word = shelve(several)
    inner = {"id": "by_name", "attributes": ["object_name"], "sort": "VALUE_DESCENDING", "max-values": 2}
    definitions: list[dict[str, Any]] = [
        {"id": "by_subject", "attributes": ["subject"], "max-values": 1, "facet-definition": inner},
        {"id": "up", "attributes": ["subject"], "sort": "VALUE_ASCENDING", "max-values": 2},
        {"id": "null", "attributes": ["title"], "properties": {"nullValueFacet": "true"}},
        {
            "id": "size",
            "attributes": ["r_full_content_size"],
            "group-by": "range",
            "properties": {"range": ":15,15:, :"},
        },
        {"id": "letter", "attributes": ["subject"], "group-by": "alpharange", "properties": {"range": "a:g,h:z"}},
        {"id": "age", "attributes": ["r_modify_date"], "group-by": "relativeDate"},
        {"id": "day", "attributes": ["r_modify_date"], "group-by": "day", "properties": {"skipEmptyValues": "false"}},
        {"id": "type", "attributes": ["r_object_type"], "max-values": -1},
    ]
    answer = several.post({**words(word), "facet-definitions": definitions}, include_total="true", limit="1")
    found = {facet["facet-id"]: facet for facet in facets_of(answer)}
    assert list(found) == [definition["id"] for definition in definitions]
    for definition in definitions:
        sums: Counter[str] = Counter()
        unlimited = {**definition, "max-values": 100, "facet-definition": None}
        for name in every(several):
            alone = several.site.http.post(
                f"{several.of(name)}/search",
                json={**words(word), "facet-definitions": [{key: each for key, each in unlimited.items() if each}]},
                headers={**password(several.both), **JSON},
            )
            sums.update(dict(values(facets_of(alone)[0])))
        most = definition.get("max-values", 10)
        shown = dict(values(found[definition["id"]]))
        assert len(shown) == (min(most, len(sums)) if most > 0 else len(sums))
        assert shown.items() <= sums.items()
        follow(several, found[definition["id"]])
    assert values(found["by_subject"]) == [("blue", 3)]
    assert values(found["by_subject"]["facet-value"][0]["facets"][0]) == [("blue 2", 2), ("blue 0", 1)]
    assert values(found["up"]) == [("blue", 3), ("green", 2)]
    assert values(found["null"]) == [("NULL", 7)]
    # The posted query is kept for the links of values, though no page follows.
    whole = several.post({**words(word), "facet-definitions": definitions[:1]})
    assert "next" not in links(whole)
    href = facets_of(whole)[0]["facet-value"][0]["link"]["href"]
    assert len(narrowed(several, href).json()["entries"]) == 3


def test_facets_of_the_first_hits_say_how_many_fed_them(several: Several) -> None:
    word = shelve(several)
    definition = {"id": "subject", "attributes": ["subject"]}
    answer = several.post({**words(word), "facet-definitions": [definition], "max-results-for-facets": 1})
    (facet,) = facets_of(answer)
    assert facet["facet-hits"] == 3
    assert sum(number for _, number in values(facet)) == 3
    assert "total" not in answer.json()
    (facet,) = facets_of(several.post({**words(word), "facet-definitions": [definition], "max-results-for-facets": 2}))
    assert facet["facet-hits"] == 5
    (facet,) = facets_of(several.post({**words(word), "facet-definitions": [definition], "max-results-for-facets": 3}))
    assert "facet-hits" not in facet


def test_what_the_caller_may_not_see_moves_no_count(several: Several) -> None:
    word, world = shelve(several), several.site.world
    token = several.site.bearer(world.reader)
    asked = {"q": word, "facet": "subject", "include_total": "true"}
    before = several.get(token, **asked).json()
    assert values(before["facets"][0]) == [("blue", 2), ("green", 2), ("red", 2)]
    hidden = [several.create(name, "x", word, acl_name="private", subject="red") for name in (BESIDE, APART)]
    hidden.append(several.create(world.repository, "x", word, acl_name="private", subject="secret"))
    shown = several.get(token, **asked).json()
    assert shown["facets"] == before["facets"]
    assert shown["total"] == before["total"]
    assert values(facets_of(several.get(**asked))[0]) == [("red", 4), ("blue", 3), ("green", 2), ("secret", 1)]
    narrowed_to = several.get(token, **asked, facet_value_constraints="secret").json()
    assert (narrowed_to["total"], narrowed_to["entries"]) == (0, [])


def test_in_xml_facets_stand_as_in_a_feed_of_one_repository(several: Several) -> None:
    word = shelve(several)
    sent = {"Accept": "application/xml", **password(several.both)}
    parameters = {"q": word, "facet": "subject", "repositories": BESIDE}
    together = lxml.etree.fromstring(several.site.http.get(several.address, params=parameters, headers=sent).content)
    del parameters["repositories"]
    alone = lxml.etree.fromstring(
        several.site.http.get(f"{several.of(BESIDE)}/search", params=parameters, headers=sent).content
    )

    def written(feed: lxml.etree._Element) -> list[tuple[str, str | None]]:
        (facet,) = feed.iter(f"{several.site.vocab}facet")
        return [(str(each.tag), (each.text or "").strip()) for each in facet.iter()]

    assert written(together) == written(alone)


def add_type(several: Several, repository: str, kinds: dict[str, PropertyKind]) -> str:
    """Give a repository a type with properties of these kinds."""
    world = several.site.world
    name = f"t_{world.word()}"
    properties = tuple(PropertyDefinition(each, kind) for each, kind in kinds.items())
    with world.repository_db.begin() as cx:
        found = repositories.find(cx, repository)
        object_types.add_type(cx, found.id, ObjectType(name, "document", properties), world.clock())
    return name


def test_hits_stand_in_the_order_of_properties(several: Several) -> None:
    """As in one repository: without a value last, equal ones as they were made, by case or without."""
    world, word = several.site.world, several.site.world.word()
    weight = f"w_{word}"
    types = {name: add_type(several, name, {weight: "double"}) for name in every(several)}
    titles = ["b", "A", "a", "B", "Éa", "", "z" * 300, "b", "a", "\U0001f600", "\uffee", ""]
    made: list[tuple[str, str, float | None]] = []
    for number, title in enumerate(titles):
        name = every(several)[number % 3]
        heavy = None if number % 5 == 4 else number % 4 / 2
        properties: dict[str, Any] = {"r_object_type": types[name], "title": title, weight: heavy}
        made.append((several.create(name, str(number), word, acl_name="public", **properties), title, heavy))

    def in_order(place: int, key: Any = lambda value: value, *, down: bool = False) -> list[str]:
        empty = [each[0] for each in made if each[place] in ("", None)]
        return [
            each[0]
            for each in sorted(
                (each for each in made if each[place] not in ("", None)),
                key=lambda each: key(each[place]),
                reverse=down,
            )
        ] + empty

    assert ids(several.get(q=word, sort="title")) == in_order(1)
    assert ids(several.get(q=word, sort="title desc")) == in_order(1, down=True)
    assert ids(several.get(q=word, sort=weight)) == in_order(2)
    assert ids(several.get(q=word, sort=f"{weight} desc")) == in_order(2, down=True)
    folded = in_order(1, str.lower)
    assert ids(several.post({**words(word), "sorts": [{"property": "title"}]})) == folded
    two = several.get(q=word, sort=f"{weight} desc,title no-case")
    heaviest = in_order(2, down=True)
    assert ids(two) == sorted(heaviest, key=lambda each: (_weight_of(made, each), folded.index(each)))
    # Start and limit count in each repository: an answer is in order, and two do not go on one order.
    page, seen = several.get(q=word, sort="title", limit="2"), list[str]()
    while True:
        place = in_order(1)
        assert [place.index(each) for each in ids(page)] == sorted(place.index(each) for each in ids(page))
        seen += ids(page)
        if "next" not in links(page):
            break
        page = narrowed(several, links(page)["next"])
    assert sorted(seen) == sorted(each[0] for each in made)
    assert world.repository in every(several)


def _weight_of(made: list[tuple[str, str, float | None]], object_id: str) -> float:
    (weight,) = [each[2] for each in made if each[0] == object_id]
    return 1.0 if weight is None else -weight


def test_a_property_of_another_kind_elsewhere_is_refused(several: Several) -> None:
    name = f"k_{several.site.world.word()}"
    kinds: tuple[PropertyKind, ...] = ("integer", "integer", "string")
    for repository, kind in zip(every(several), kinds, strict=True):
        add_type(several, repository, {name: kind})
    facet = {"facet-definitions": [{"id": "k", "attributes": [name]}]}
    for answer, code in (
        (several.get(sort=name), "E_BAD_SORT"),
        (several.get(facet=name), "E_INVALID_ATTR_VALUE"),
        (several.post(facet), "E_INVALID_ATTR_VALUE"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (400, code)
        assert f"{name!r} is of kind " in answer.json()["message"]
    token = several.site.bearer(several.site.world.reader)
    assert several.get(token, sort=name).status_code == 200
    assert several.get(token, facet=name).status_code == 200


def test_a_repository_without_the_property_does_not_answer(several: Several) -> None:
    name = f"n_{several.site.world.word()}"
    kind = add_type(several, BESIDE, {name: "string"})
    made = several.create(BESIDE, "x", "x", r_object_type=kind, **{name: "one"})
    for asked in ({"facet": name}, {"sort": name}):
        answer = several.get(object_type=kind, **asked)
        assert ids(answer) == [made]
        assert answer.json()["partial"] is True
        for other in (several.site.world.repository, "apart%2C%20with%20a%20comma"):
            assert other in answer.headers["muniment-partial"]
