"""ours 1: a parameter of a query is obeyed, refused by name, or ignored and named: never lost without a word."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from muniment.repository.api import routes
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.wire import parameters
from muniment.repository.options import RepositoryNames
from muniment.web.addresses import Operation
from tests.interface.test_bad_input import is_repository
from tests.scenes import Loop, Site, fulltext

ASKED = [
    (method, address.path, operation)
    for address in routes.table(RepositoryNames()).addresses
    for method, operation in address.operations.items()
]


pytestmark = pytest.mark.only("sqlite", "The query is read before any database is asked.")


def _label(part: object) -> str:
    return part if isinstance(part, str) else ""


@pytest.fixture(scope="module")
def strict(site: Site, loop: Loop) -> Iterator[Site]:
    with closing(Site(site.world, site.kind, loop, "repository.strict_parameters=true")) as made:
        yield made


def url(site: Site, path: str) -> str:
    """An address of nothing: the query is read before anything is looked up."""
    names = (
        "id",
        "acl",
        "format",
        "location",
        "name",
        "other",
        "person",
        "member",
        "relation_type",
        "search",
        "template",
    )
    parts = dict.fromkeys(names, "x")
    parts["repository"] = site.world.repository
    return f"/{site.names.prefix}{path.format(**parts)}"


@pytest.mark.parametrize(("method", "path", "operation"), ASKED, ids=_label)
def test_ours_1_each_address_refuses_what_it_nearly_knows_and_names_what_it_ignores(
    site: Site, strict: Site, method: str, path: str, operation: Operation[RepositoryContext]
) -> None:
    taken = [parameter.name for parameter in operation.parameters if parameter.place == "query"]
    for name in (*taken, *operation.refused):
        for near in {name.upper(), name.replace("-", "_"), name.replace("-", "").title()} - {name}:
            answer = site.http.request(method, url(site, path), params={near: ""}, headers=site.bearer())
            assert answer.status_code == 400, (near, answer.text)
            assert f"did you mean {name!r}?" in is_repository(answer, site)
    answer = site.http.request(method, url(site, path), params={"spaceship": "1"}, headers=site.bearer())
    assert answer.headers["Muniment-Ignored"] == "spaceship"
    refused = strict.http.request(method, url(site, path), params={"spaceship": "1"}, headers=site.bearer())
    assert refused.status_code == 400
    assert "'spaceship'" in is_repository(refused, site)


@pytest.mark.parametrize(("method", "path", "operation"), ASKED, ids=_label)
def test_ours_1_what_is_not_offered_yet_is_refused_by_name_unless_it_changes_nothing(
    site: Site, method: str, path: str, operation: Operation[RepositoryContext]
) -> None:
    for name, reason in operation.refused.items():
        answer = site.http.request(method, url(site, path), params={name: "x"}, headers=site.bearer())
        assert answer.status_code == 400, (name, answer.text)
        assert f"The parameter {name!r} {reason}" in is_repository(answer, site)
        for value in ("", *([parameters._NO_EFFECT[name]] if name in parameters._NO_EFFECT else [])):
            answer = site.http.request(method, url(site, path), params={name: value}, headers=site.bearer())
            assert f"The parameter {name!r}" not in answer.text, (name, value)
            assert "Muniment-Ignored" not in answer.headers


def test_ours_1_an_old_clients_search_is_answered(site: Site) -> None:
    """It writes out every parameter of the template, with the value that changes nothing or with none."""
    query = {"q": "words", "inline": "false", "links": "true", "view": ":default", "include-total": "false"}
    query |= dict.fromkeys(("collections", "facet", "locations", "sort", "timezone", "object-type"), "")
    answer = site.http.get(site.search_address, params=query, headers=site.bearer())
    assert answer.status_code == 200, answer.text
    assert "Muniment-Ignored" not in answer.headers
    posted = site.post_search(site.aql(fulltext("words")), {"inline": "False", "collections": "", "sort": ""})
    assert posted.status_code == 200


def test_ours_1_a_posted_search_says_its_query_in_the_document(site: Site) -> None:
    answer = site.post_search(site.aql(fulltext("words")), {"q": "words"})
    assert answer.status_code == 400
    assert "query document" in is_repository(answer, site)


def test_ours_1_what_is_ignored_is_named_safely_and_shortly(site: Site) -> None:
    hostile = "%0d%0aSet-Cookie:%20a=b"
    answer = site.http.get(f"{site.repository}?{hostile}=1&%C3%A9=2&=3", headers=site.bearer())
    assert answer.status_code == 200
    assert answer.headers["Muniment-Ignored"] == "??Set-Cookie:?a, ?, ?"
    assert "set-cookie" not in answer.headers
    many = "&".join(f"{'x' * 200}{number}=1" for number in range(200))
    assert len(site.http.get(f"{site.repository}?{many}", headers=site.bearer()).headers["Muniment-Ignored"]) < 1000


def test_ours_1_what_is_ignored_is_named_beside_a_refusal_too(site: Site) -> None:
    answer = site.http.get(f"{site.repository}/types/nothing?spaceship=1", headers=site.bearer())
    assert (answer.status_code, answer.headers["Muniment-Ignored"]) == (404, "spaceship")


def test_ours_1_a_parameter_comes_once_at_every_address(site: Site) -> None:
    answer = site.http.get(f"{site.repository}?x=1&x=2", headers=site.bearer())
    assert answer.status_code == 400
    assert "repeats" in is_repository(answer, site)
