"""The state of an object's text is a property: lists, DQL, searches and facets agree about it."""

from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from muniment.repository.store.extraction import queue
from muniment.repository.store.permissions.principals import OWNER, WORLD, Permission
from tests.shelf import MARTA, Shelf
from tests.unit.repository.api.endpoints.search.test_facets import JSON, got, posted, values
from tests.unit.repository.api.endpoints.search.test_search import HERE, Site, site

__all__ = ["site"]

REPOSITORY = HERE.removesuffix("/search")
STATES = {
    "read": "done",
    "scan": "no-text",
    "picture": "unsupported",
    "broken": "failed",
    "bare": "empty",
    "late": "waiting",
}


def end(shelf: Shelf, name: str) -> None:
    with shelf.database.begin() as cx:
        job = queue.take(cx, shelf.now)
        assert job is not None
        if name in ("read", "scan"):
            assert queue.finish(cx, job, "words" if name == "read" else "", shelf.now)
        else:
            assert queue.fail(cx, job, "Why.", shelf.now, "failed" if name == "broken" else "unsupported")


def filled(site: Site) -> dict[str, str]:
    """Keep an object in each state, in one cabinet. Everybody may browse them, and nobody but Marta may read them."""
    site.shelf.permit("open", {WORLD: Permission.BROWSE, OWNER: Permission.DELETE})
    cabinet = site.shelf.create({"object_name": "c", "acl_name": "open"}, type_name="cabinet")
    made = {}
    for name in STATES:
        content = None if name == "bare" else site.shelf.content(name)
        made[name] = site.shelf.create(
            {"object_name": name, "acl_name": "open"}, MARTA, "document", cabinet.id, content
        )
        if name not in ("bare", "late"):
            end(site.shelf, name)
    site.shelf.catch_up()
    return {"cabinet": cabinet.id} | {name: stored.id for name, stored in made.items()}


def titles(feed: dict[str, Any]) -> list[str]:
    return [entry["title"] for entry in feed["entries"]]


def found(site: Site, operator: str, value: str, **headers: str) -> list[str]:
    condition = {"expression-type": "property", "name": "r_index_status", "operator": operator, "value": value}
    body = {"types": ["document"], "expression-set": {"expressions": [condition]}}
    answer = site.client.post(HERE, content=msgspec.json.encode(body), headers=JSON | headers)
    assert answer.status_code == 200, answer.text
    return titles(answer.json())


@pytest.mark.slow
@pytest.mark.parametrize("token", ["marta", "boris"])
def test_whoever_may_browse_an_object_lists_and_finds_it_by_the_state_of_its_text(site: Site, token: str) -> None:
    made, bearer = filled(site), {"Authorization": f"Bearer {token}"}
    for name, state in STATES.items():
        asked = {"filter": f"r_index_status='{state.upper()}'"}
        listed = got(site, f"{REPOSITORY}/folders/{made['cabinet']}/documents?{urlencode(asked)}", **bearer)
        assert titles(listed) == [name]
        statement = f"select object_name from document where r_index_status = '{state}'"
        rows = got(site, f"{REPOSITORY}?{urlencode({'dql': statement})}", **bearer)["entries"]
        assert [row["content"]["properties"]["object_name"] for row in rows] == [name]
        assert found(site, "EQUAL", state, **bearer) == [name]
        assert len(found(site, "NOT_EQUAL", state, **bearer)) == len(STATES) - 1
        assert found(site, "BEGINS_WITH", "unsupp", **bearer) == ["picture"]
    (facet,) = posted(site, {"id": "status", "attributes": ["r_index_status"]})["facets"]
    assert values(facet) == dict.fromkeys(STATES.values(), 1)
    in_order = sorted(STATES, key=lambda name: STATES[name])
    by_database = got(site, f"{REPOSITORY}/folders/{made['cabinet']}/documents?sort=r_index_status", **bearer)
    assert titles(by_database) == in_order
    assert titles(got(site, f"{HERE}?q=&object-type=document&sort=r_index_status", **bearer)) == in_order
    assert site.shelf.report().sound


@pytest.mark.slow
def test_a_state_that_the_index_has_not_seen_yet_hides_the_object_from_questions_about_states(site: Site) -> None:
    filled(site)
    end(site.shelf, "picture")
    assert found(site, "EQUAL", "waiting") == found(site, "NOT_EQUAL", "done")[5:] == []
    (facet,) = posted(site, {"id": "status", "attributes": ["r_index_status"]})["facets"]
    assert sum(values(facet).values()) == len(STATES) - 1
    assert len(got(site, f"{HERE}?q=&object-type=document")["entries"]) == len(STATES), "other searches overlook it"
    site.shelf.catch_up()
    assert found(site, "EQUAL", "waiting") == []
    assert found(site, "EQUAL", "unsupported") == ["picture", "late"]


def test_keywords_do_not_find_the_word_of_a_state(site: Site) -> None:
    filled(site)
    for state in STATES.values():
        assert got(site, f"{HERE}?q={state}")["entries"] == []
