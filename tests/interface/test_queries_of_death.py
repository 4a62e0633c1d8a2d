"""No query is a query of death: one that asks too much is refused at once, with a sentence and never with a 500."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests import passes
from tests.interface.test_bad_input import is_repository
from tests.scenes import Site, fulltext

pytestmark = pytest.mark.campaign_on("postgresql")

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
XML = {"Content-Type": "application/xml", "Accept": "application/json"}

REFUSED = frozenset({400, 413})
ANSWERED = frozenset({200})

_MOST = 40
"""How many passes over a million characters an answer may take: about two seconds of a processor."""

Request = Callable[[Site], httpx.Response]


def posted(document: object, headers: dict[str, str] = JSON, path: str = "") -> Request:
    """Post a search document, or another body to another path of the repository. ``{r}`` is the prefix of the names."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()

    def send(site: Site) -> httpx.Response:
        return site.http.post(
            f"{site.repository}{path}" if path else site.search_address,
            content=body.replace(b"{r}", site.names.system_property_prefix.encode()),
            headers=headers | site.bearer(),
        )

    return send


def got(**parameters: str) -> Request:
    """Search by GET."""
    return lambda site: site.http.get(
        site.search_address, params=parameters, headers=site.bearer() | {"Accept": "application/json"}
    )


def in_xml(write: Callable[[Site], str]) -> Request:
    """Post a search document in XML."""
    return lambda site: posted(write(site).encode(), XML)(site)


def asking(*expressions: dict[str, Any], **parts: object) -> dict[str, Any]:
    """Write a search document in JSON."""
    return {"expression-set": {"expressions": list(expressions)}, **parts}


def words(text: str, **more: object) -> dict[str, Any]:
    """Write an expression of keywords."""
    return {"expression-type": "fulltext", "value": text, **more}


def compared(operator: str, value: str, name: str = "title", **more: object) -> dict[str, Any]:
    """Write a comparison."""
    return {"expression-type": "property", "name": name, "operator": operator, "value": value, **more}


def listed(values: Sequence[str], name: str = "title") -> dict[str, Any]:
    """Write a comparison with a list."""
    return {"expression-type": "property-list", "name": name, "values": list(values)}


def nested(depth: int) -> bytes:
    """Write expression sets in each other."""
    opening, closing = b'{"expression-type":"expression-set","expressions":[', b"]}"
    inner = opening * depth + json.dumps(words("a")).encode() + closing * depth
    return b'{"expression-set":{"expressions":[' + inner + b"]}}"


def nested_xml(site: Site, depth: int) -> str:
    """Write expression sets in each other."""
    opening, closing = "<expression-set><expressions>", "</expressions></expression-set>"
    return site.aql(opening * depth + fulltext("a") + closing * depth)


def facet(name: str = "title", **more: object) -> dict[str, Any]:
    """Write a facet-definition."""
    return {"id": str(more.pop("id", name)), "attributes": [name], **more}


def facets(*definitions: dict[str, Any], **parts: object) -> Request:
    """Ask for facets."""
    return posted({"facet-definitions": list(definitions), **parts})


def facets_in_each_other(depth: int, most: int = 10) -> dict[str, Any]:
    """Write facets, each within the values of another."""
    definition = facet(id="f") | {"max-values": most}
    for number in range(depth):
        definition = facet(id=str(number)) | {"max-values": most, "facet-definition": definition}
    return definition


def saved(document: object, name: str = "query-document") -> Request:
    """Save a document as a search, or as a template."""
    kind = "saved-searches" if name == "query-document" else "search-templates"
    return posted({"properties": {"object_name": "x"}, name: document}, path=f"/{kind}")


A_DAY = {"expression-type": "relative-date", "name": "{r}modify_date", "operator": "EQUAL", "time-unit": "DAY"}

TOO_MUCH: dict[str, Request] = {
    "a list of a million terms": posted(asking(listed(["a"] * 1_000_000))),
    "a list of a million terms in XML": in_xml(
        lambda site: site.aql(
            '<property-list name="title" operator="IN"><values>'
            + "<value>a</value>" * 1_000_000
            + "</values></property-list>"
        )
    ),
    "as many values as a document holds": posted(asking(listed(["a"] * 50_000))),
    "one value too many": posted(asking(listed(["a"] * 1_025))),
    "a million keywords": posted(asking(words("a " * 1_000_000))),
    "as many keywords as a document holds": posted(asking(words("a " * 120_000))),
    "as many keywords as an address holds": got(q="a " * 15_000),
    "as many phrases as an address holds": got(q='"a" ' * 8_000),
    "nothing but NOT": posted(asking(words("NOT " * 60_000 + "a"))),
    "parentheses without end": posted(asking(words("(" * 250_000))),
    "parentheses within each other": posted(asking(words("(" * 100_000 + "a" + ")" * 100_000))),
    "beginnings by the thousand": posted(asking(words("a* " * 2_000))),
    "endings by the hundred": posted(asking(words("*a " * 60))),
    "five words that begin with a wildcard": got(q="*e*t* OR *e*a* OR *t*o* OR *n*i* OR *r*s*"),
    "words that begin with a wildcard, behind a NOT": got(q="pump NOT (*e OR *t OR *a OR *o OR *n)"),
    "beginnings of one letter by the dozen": got(q=" OR ".join(f"{letter}*" for letter in "abcdefghiklmnoprstuvw" * 2)),
    "joined beginnings of one letter": got(q="a*-b* OR c*-d* OR e*-f*"),
    "fuzzy words by the thousand": posted(asking(words("pump " * 2_000, fuzzy=True))),
    "sets 100,000 deep": posted(nested(100_000)),
    "sets 100,000 deep in XML": in_xml(lambda site: nested_xml(site, 100_000)),
    "sets as deep as a document holds": posted(nested(4_800)),
    "sets as deep as a document holds in XML": in_xml(lambda site: nested_xml(site, 4_000)),
    "one set too deep": posted(nested(21)),
    "100,000 brackets": posted(b"[" * 100_000),
    "expressions by the thousand": posted(asking(*[words("a")] * 5_000)),
    "comparisons that read every value": posted(asking(*[compared("CONTAINS", "a")] * 40)),
    "fuzzy comparisons": posted(asking(*[compared("EQUAL", "pump", fuzzy=True)] * 40)),
    "a day out of the calendar": posted(asking({**A_DAY, "value": 10**9})),
    "types by the thousand": posted({"types": ["document"] * 5_000}),
    "columns by the thousand": posted({"columns": ["title"] * 5_000}),
    "sorts by the thousand": posted({"sorts": [{"property": "title"}] * 2_000}),
    "sorts of an address by the thousand": got(sort="title," * 2_000 + "title"),
    "locations by the thousand": posted(
        {"locations": [{"location-type": "path-location", "path": f"/{n}", "descendent": True} for n in range(2_000)]}
    ),
    "locations of an address by the thousand": got(locations=",".join(f"/{n}" for n in range(2_000))),
    "a path of 100,000 folders": posted(
        {"locations": [{"location-type": "path-location", "path": "/a" * 100_000, "descendent": True}]}
    ),
    "facets by the thousand": facets(*(facet(id=str(n)) for n in range(1_200))),
    "facets in each other without end": facets(facets_in_each_other(100)),
    "facets in each other as deep as a document holds": facets(facets_in_each_other(900)),
    "facets of very many values": facets(facet() | {"max-values": 999_999_999}),
    "facets that multiply": facets(facets_in_each_other(3, 1_000)),
    "all values within all values": facets(facets_in_each_other(1, -1)),
    "ranges by the thousand": facets(
        facet("{r}full_content_size", properties={"range": ",".join(f"{n}:{n + 1}" for n in range(5_000))})
        | {"group-by": "range"}
    ),
    "values to narrow by, by the thousand": got(facet="title", **{"facet-value-constraints": "a|" * 5_000 + "a"}),
    "a search that could not be executed, saved": saved(asking(listed(["a"] * 50_000))),
    "a template that could not be executed": saved(
        asking(listed(["a"] * 50_000) | {"template": True}), "query-document-template"
    ),
    "sets in a saved text": saved(nested(4_000).decode()),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_asks_too_much_is_refused_at_once(site: Site, name: str) -> None:
    """failures B7: depth, clauses, terms, wildcards, facets."""
    cost, answer = _measured(lambda: TOO_MUCH[name](site))
    assert answer.status_code in REFUSED, answer.text[:500]
    assert is_repository(answer, site)
    assert cost < _MOST


WIDE: dict[str, Request] = {
    "words whose wildcards could share a text in many ways": got(q="pump OR " + "*a" * 12 + "*b"),
    "ranges of long texts": posted(
        asking(
            *(
                {"expression-type": "property-range", "name": "title", "from": f"{n:04}" + "m" * 90, "to": "n" * 100}
                for n in range(700)
            )
        )
    ),
    "long words with wildcards": posted(asking(words(" ".join(f"a{n}?{'b' * 220}" for n in range(400))))),
    "a word of wildcards": got(q="*?" * 500),
    "a word with very many gaps": got(q="a" + "*a" * 400),
    "a word with very many choices": got(q="a" + "?" * 400 + "b"),
    "a word as long as an address": got(q="a" * 15_000),
    "a fuzzy word as long as a document": posted(asking(words("a" * 200_000, fuzzy=True))),
    "a phrase as long as a document": posted(asking(words('"' + "a " * 1_000 + '"'))),
    "joined words by the thousand": got(q="a-" * 1_000 + "a*"),
    "a value with very many gaps": posted(asking(compared("CONTAINS", "*a" * 2_000))),
    "a value with very many choices": posted(asking(compared("EQUAL", "a" + "?" * 2_000 + "b"))),
    "values with very many gaps": posted(asking(*[compared("EQUAL", "a" + "*?a" * 300)] * 100)),
    "a fuzzy value as long as a document": posted(asking(compared("CONTAINS", "a" * 200_000, fuzzy=True))),
    "every word by its beginning": got(q="a* OR b* OR c* OR e* OR p* OR s* OR t* OR 1* OR 2*"),
    "every word by its end": got(q="*a OR *e OR *s OR *t"),
    "as many values as a query may have": posted(asking(listed([f"a{n}" for n in range(1_000)]))),
    "as many ACLs as a query may have": posted(asking(listed([f"owner{n}/a{n}" for n in range(1_000)], "acl_name"))),
    "days without hits": facets(
        facet("{r}creation_date", properties={"skipEmptyValues": "false"}) | {"group-by": "day", "max-values": -1}
    ),
    "letters at the end of Unicode": facets(
        facet(properties={"range": ",".join(f"{chr(n)}:{chr(n)}" for n in range(0xF900, 0xF964))})
        | {"group-by": "alpharange"}
    ),
}
"""What asks much of an index."""


@pytest.mark.parametrize("name", WIDE)
def test_what_asks_much_is_answered_or_refused_within_bounds(site: Site, name: str) -> None:
    """failures B7: a wildcard is no runaway."""
    site.create("pump", ("pump " + "a" * 400).encode())
    site.world.catch_up()
    cost, answer = _measured(lambda: WIDE[name](site))
    if answer.status_code != 200:
        assert answer.status_code in REFUSED, answer.text[:500]
        assert is_repository(answer, site)
    assert cost < _MOST


NUL = "a\u0000b"
NOT_TEXT = {
    "a NUL": NUL,
    "a control character": "\u0001",
    "a mark of direction": "\u202e",
    "no character": "\ufffe",
    "very long": "a" * 5_000,
    "very long with accents": "é" * 2_000,
    "SQL": "'; DROP TABLE objects --",
    "a sign of LIKE": "%",
    "a backslash": "\\",
}
"""Texts that no name has: with control characters, too long, or in the language of a database."""

ZONES = [
    "Mars/Phobos",
    "../../etc/passwd",
    "/etc/localtime",
    "Europe/",
    "Europe/Berlin/",
    "posixrules",
    "Factory",
    "GMT+99",
    "GMT-15:00",
    "UTC+1:99",
    "+-1",
    "\uff11",
    "Europe/Berlin\u0000",
    "x" * 10_000,
]


@pytest.mark.parametrize("zone", ZONES, ids=lambda zone: ascii(zone)[:30])
def test_a_time_zone_that_does_not_exist_is_refused(site: Site, zone: str) -> None:
    """failures B7, B17."""
    name = f"{site.names.system_property_prefix}creation_date"
    definition = facet(name, properties={"timezone": zone}) | {"group-by": "week"}
    for answer in (got(facet=name, timezone=zone)(site), facets(definition)(site)):
        assert answer.status_code == 400, answer.text
        assert is_repository(answer, site)


PLACES: dict[str, Callable[[str], Request]] = {
    "q": lambda text: got(q=text),
    "sort": lambda text: got(sort=text),
    "sort, among others": lambda text: got(sort=f"title desc,{text}"),
    "locations": lambda text: got(locations=f"/{text}"),
    "object-type": lambda text: got(**{"object-type": text}),
    "facet": lambda text: got(facet=text),
    "facet-value-constraints": lambda text: got(facet="title", **{"facet-value-constraints": text}),
    "facet-id-constraints": lambda text: got(facet="title", **{"facet-id-constraints": f"title={text}"}),
    "cursor": lambda text: got(cursor=text, page="2"),
    "link": lambda text: got(link=text),
    "view": lambda text: got(view=text, inline="true"),
    "keywords": lambda text: posted(asking(words(text))),
    "a type": lambda text: posted({"types": [text]}),
    "a column": lambda text: posted({"columns": [text]}),
    "a sort": lambda text: posted({"sorts": [{"property": text}]}),
    "the name of a property": lambda text: posted(asking(compared("EQUAL", "a", text))),
    "a value": lambda text: posted(asking(compared("EQUAL", text))),
    "a part of a value": lambda text: posted(asking(compared("CONTAINS", text))),
    "an ACL": lambda text: posted(asking(compared("EQUAL", text, "acl_name"))),
    "an owner": lambda text: posted(asking(compared("EQUAL", text, "owner_name"))),
    "a list": lambda text: posted(asking(listed([text, "a"]))),
    "a range": lambda text: posted(
        asking({"expression-type": "property-range", "name": "title", "from": text, "to": "z"})
    ),
    "a path": lambda text: posted({"locations": [{"location-type": "path-location", "path": f"/{text}"}]}),
    "a folder": lambda text: posted({"locations": [{"location-type": "id-location", "id": text}]}),
    "a facet's id": lambda text: facets(facet(id=text)),
    "a facet's property": lambda text: facets(facet(text)),
    "a facet's range": lambda text: facets(facet(properties={"range": text}) | {"group-by": "alpharange"}),
    "a facet's group-by": lambda text: facets(facet() | {"group-by": text}),
    "a repository": lambda text: posted({"repositories": [text]}),
    "a collection": lambda text: posted({"collections": [text]}),
    "a saved search's name": lambda text: posted(
        {"properties": {"object_name": text}, "query-document": asking(words("a"))}, path="/saved-searches"
    ),
    "a saved search's id": lambda text: _below("saved-searches", text),
    "a template's id": lambda text: _below("search-templates", text),
}
"""Where a caller puts a text into a search."""


def _below(kind: str, name: str) -> Request:
    return lambda site: site.http.get(f"{site.repository}/{kind}/{quote(name, safe='')}", headers=site.bearer() | JSON)


@pytest.mark.parametrize("text", NOT_TEXT)
@pytest.mark.parametrize("place", PLACES)
def test_no_text_anywhere_makes_a_500(site: Site, place: str, text: str) -> None:
    """failures B7."""
    answer = PLACES[place](NOT_TEXT[text])(site)
    assert answer.status_code in {200, 201, 400, 404, 414}, (answer.status_code, answer.text[:300])
    if answer.status_code > 201:
        assert is_repository(answer, site)


def following(answer: httpx.Response, rel: str = "next") -> str:
    """Read a link of a feed."""
    assert answer.status_code == 200, answer.text
    (href,) = [link["href"] for link in answer.json()["links"] if link["rel"] == rel]
    return str(href)


def test_a_cursor_serves_its_own_caller_and_query_alone(site: Site) -> None:
    """failures B7, B18: whoever sends another's cursor learns nothing, and it never leads into another query."""
    word = site.world.word()
    for number in range(3):
        site.share(site.create(f"{word} {number}"))
    site.world.catch_up()
    one = {"items-per-page": "1"}
    own = following(got(q=word, **one)(site))
    stranger = site.bearer(site.world.person()) | {"Accept": "application/json"}
    assert site.http.get(own, headers=site.bearer()).status_code == 200
    cursor = httpx.URL(own).params["cursor"]
    others = [
        (own, stranger),
        (own.replace(word, "pump"), site.bearer()),
        (own + "&sort=title", site.bearer()),
        (own.replace("page=2", "page=3"), site.bearer()),
        (f"{site.search_address}?page=2&items-per-page=1&cursor={cursor}", site.bearer()),
        (f"{site.repository}/cabinets?page=2&items-per-page=1&cursor={cursor}", site.bearer()),
    ]
    for address, caller in others:
        answer = site.http.get(address, headers=caller | {"Accept": "application/json"})
        assert answer.status_code in {400, 404}, (address, answer.text)
        assert is_repository(answer, site)
        assert word not in answer.text


BREAKING_OUT = [
    '" OR *',
    ") OR (a*",
    "NOT zzz",
    "*",
    "?" * 50,
    "</value></values></property-list>",
    "]]><!--",
    '"}]}}',
    "&a;",
    "a OR b",
    "\\",
]


@pytest.mark.parametrize("text", BREAKING_OUT)
def test_the_value_of_a_variable_stays_a_value(site: Site, text: str) -> None:
    """failures B19: what would be a query finds nothing more as a value."""
    word = site.world.word()
    site.create(word, title=word)
    site.world.catch_up()
    own = [words(word), words("x", template=True), compared("EQUAL", "x", template=True), listed(["x"])]
    own[3]["template"] = True
    for expression in own[1:]:
        made = saved(asking(own[0], expression), "query-document-template")(site)
        assert made.status_code == 201, made.text
        execution = following_to(made, "/search-execution")
        name = "variable-values" if "values" in expression else "variable-value"
        value = [text] if "values" in expression else text
        body = json.dumps({"external-variables": [{"id": "v1", name: value}]})
        answer = site.http.post(execution, content=body, headers=JSON | site.bearer())
        assert answer.status_code in {200, 400}, answer.text
        assert word not in answer.text or answer.json()["entries"] == []


def following_to(made: httpx.Response, rel: str) -> str:
    """Read the link of what was made that ends so."""
    return next(str(link["href"]) for link in made.json()["links"] if link["rel"].endswith(rel))


def test_too_many_values_for_a_template_are_refused(site: Site) -> None:
    """failures B7, B19."""
    made = saved(asking(listed(["x"]) | {"template": True}), "query-document-template")(site)
    execution = following_to(made, "/search-execution")
    bodies: list[dict[str, Any]] = [
        {"external-variables": [{"id": "v1", "variable-values": ["a"] * 50_000}]},
        {"external-variables": [{"id": "v1", "variable-values": ["a"] * 1_000_000}]},
        {"external-variables": [{"id": f"v{number}", "variable-value": "a"} for number in range(5_000)]},
        {"external-variables": [{"id": "v1", "variable-values": ["a"]}] * 2},
        {"external-variables": [{"id": "v" * 5_000, "variable-values": ["a"]}]},
    ]
    for content in map(json.dumps, bodies):
        cost, answer = _measured(partial(_executed, site, execution, content))
        assert answer.status_code in REFUSED, answer.text[:300]
        assert is_repository(answer, site)
        assert cost < _MOST


def _executed(site: Site, execution: str, content: str) -> httpx.Response:
    return site.http.post(execution, content=content, headers=JSON | site.bearer())


def _measured(ask: Callable[[], httpx.Response]) -> tuple[float, httpx.Response]:
    """Say how many passes an answer took, and give it."""
    answers: list[httpx.Response] = []
    cost = passes.measure(lambda: answers.append(ask()))
    return cost, answers[0]
