"""ours 6: facets and sorts in one search of several repositories; docs/aql.md; docs/decisions/0063."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import lxml.etree
import pytest

from muniment.repository.store import repositories
from muniment.repository.store.objects.properties.properties import PropertyDefinition, PropertyKind
from muniment.repository.store.objects.types import type_editing
from muniment.repository.store.objects.types.object_types import ObjectType
from tests.scenes import Loop, Site, World
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
    for name, subject in ((BESIDE, "red"), (APART, "red"), (world.repository, "secret")):
        several.create(name, "x", word, acl_name="private", subject=subject)
    shown = several.get(token, **asked).json()
    assert shown["facets"] == before["facets"]
    assert shown["total"] == before["total"]
    assert values(facets_of(several.get(None, **asked))[0]) == [("red", 4), ("blue", 3), ("green", 2), ("secret", 1)]
    narrowed_to = several.get(token, **asked, facet_value_constraints="secret").json()
    assert (narrowed_to["total"], narrowed_to["entries"]) == (0, [])


def test_what_the_caller_may_read_only_in_part_moves_neither_counts_nor_order(several: Several, loop: Loop) -> None:
    """Answers are those of repositories without the objects that the caller may not find, to the last link.

    In one of three repositories the caller finds a part only: some objects are hidden, and one may be browsed but not
    read. There is so little room that the hidden values would make the facets partial.
    """
    word, world = several.site.world.word(), several.site.world
    caller = world.person()
    world.admit(caller, world.other_resource_id)
    browse = f"browse-{word}"
    permitted = [
        {"accessor": "world", "basic-permission": "Browse"},
        {"accessor": several.both.id, "basic-permission": "Delete"},
    ]
    acl = several.site.http.post(
        f"{several.of(BESIDE)}/acls", json={"name": browse, "permitted": permitted}, headers=password(several.both)
    )
    assert acl.status_code == 201
    due = f"due_{word}"
    types = {name: add_type(several, name, {due: "date"}) for name in every(several)}

    def create(name: str, text: str, month: int, acl_name: str, **properties: str) -> None:
        dated = {"r_object_type": types[name], due: f"2024-{month:02}-05T12:00:00Z", "acl_name": acl_name}
        several.create(name, "x", text, **dated, **properties)

    for name, subjects in zip(every(several), ("ab", "bcd", "ddd"), strict=True):
        for number, subject in enumerate(subjects):
            text = f"{word} " * (number + 1) + "filling " * 9
            create(name, text, 4 + 2 * number, "public", subject=subject, title=f"{number} {subject}")
    facets: list[dict[str, Any]] = [
        {"id": "often", "attributes": ["subject"], "max-values": 2},
        {"id": "first", "attributes": ["subject"], "max-values": 2, "sort": "VALUE_ASCENDING"},
        {"id": "every", "attributes": ["subject"], "max-values": -1},
        {
            "id": "size",
            "attributes": ["r_full_content_size"],
            "group-by": "range",
            "properties": {"range": ":120,120:"},
        },
        {
            "id": "month",
            "attributes": [due],
            "group-by": "month",
            "sort": "VALUE_ASCENDING",
            "properties": {"skipEmptyValues": "false"},
        },
    ]
    inner = {"id": "inner", "attributes": ["title"], "max-values": 1}
    documents: list[dict[str, Any]] = [
        *({"facet-definitions": [facet]} for facet in facets),
        {"facet-definitions": [{"id": "outer", "attributes": ["subject"], "max-values": 2, "facet-definition": inner}]},
        {"facet-definitions": facets[:1], "max-results-for-facets": 2},
    ]
    sorts: list[list[dict[str, Any]]] = [
        *([{"property": name}] for name in ("title", "r_full_content_size", "r_modify_date", due)),
        [{"property": "subject", "ascending": False}, {"property": "title"}],
    ]

    with closing(Site(world, "neutral", loop, "repository.max_facet_values=10")) as site:
        little = Several(site, several.both)

        def answers(who: dict[str, str], *limits: str) -> list[dict[str, Any]]:
            told = []
            for limit in limits:
                counted = {"limit": limit, "include_total": "true"}
                by_score = [
                    *(little.post({**words(word), **document}, who, **counted) for document in documents),
                    little.get(who, q=word, facet="subject", **counted),
                    little.get(who, q=word, facet="subject", facet_value_constraints="a|z|q", **counted),
                ]
                by_property = [
                    *(little.post({**words(word), "sorts": each}, who, **counted) for each in sorts),
                    little.get(who, q=word, sort="title desc", **counted),
                ]
                for page, in_order in (*((page, False) for page in by_score), *((page, True) for page in by_property)):
                    told.append(tell(page, in_order=in_order))
                    following = links(page).get("next")
                    while following:
                        further = site.http.get(following, headers={**who, **JSON})
                        told.append(tell(further, in_order=in_order))
                        following = links(further).get("next")
            return told

        who = password(caller)
        before = answers(who, "50", "1")
        assert (before[0]["total"], before[0]["silent"], "partial" in before[0]) == (8, None, False)
        counts = [values(answer["facets"][0]) for answer in before[: len(facets)]]
        assert counts[:2] == [[("d", 4), ("b", 2)], [("a", 1), ("b", 2)]]
        assert [count for _, count in counts[4]] == [3, 0, 3, 0, 2]
        nested = before[len(facets)]["facets"][0]
        assert "facet-partial" not in nested
        # Hidden objects would be the first of every order, the last of it, and amid the others.
        for number, subject in enumerate("qrstuvwxyza"):
            title, text = f"{number % 3} {'0' if number % 2 else 'zz'}", f"{word} " * (1 if number % 2 else 20)
            create(BESIDE, text, number + 1, "private", subject=subject, title=title)
        create(BESIDE, f"{word} " * 30, 12, browse, subject="q", title="00")
        assert answers(who, "50", "1") == before
        # Whoever may see them is told of them in each of these answers.
        everything = answers(password(several.both), "50")
        assert everything[0]["total"] == 20
        assert everything[len(facets)]["facets"][0]["facet-partial"]
        assert not any(other in before for other in everything)


def tell(answer: httpx.Response, *, in_order: bool) -> dict[str, Any]:
    """All that an answer tells. By score hits are told in no order: scores know how long all texts are (0056)."""
    found = ids(answer) if in_order else sorted(ids(answer))
    feed = {name: each for name, each in answer.json().items() if name not in ("entries", "updated")}
    return {**feed, "hits": found, "silent": answer.headers.get("muniment-partial")}


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
        type_editing.add_type(cx, found.id, ObjectType(name, "document", properties), world.clock())
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
        answer = several.get(None, object_type=kind, **asked)
        assert ids(answer) == [made]
        assert answer.json()["partial"] is True
        for other in (several.site.world.repository, "apart%2C%20with%20a%20comma"):
            assert other in answer.headers["muniment-partial"]
