"""Explanations over HTTP: who may ask what, in which shape, and what nobody learns."""

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import lxml.etree
import pytest

from muniment.repository.search.answering.explaining import condition_parts
from muniment.repository.search.index.questions import examining
from muniment.repository.store.permissions.principals import Permission
from tests.shelf import Shelf
from tests.unit.repository.api.endpoints.search.test_search import HERE, ROOT, XML, Site, fulltext, query

WHY = f"{HERE}/explanation"
VOCAB = "{urn:muniment:vocab}"
AS_ROOT = {**ROOT, "Accept": "application/json"}
BORIS = {"Authorization": "Bearer boris", "Accept": "application/json"}


@pytest.fixture
def site(shelf: Shelf) -> Iterator[Site]:
    made = Site(shelf)
    made.client.headers["Accept"] = "application/json"
    yield made
    made.close()


def why(
    site: Site, object_id: str, q: str = "", headers: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    answer = site.client.get(WHY, params={"object": object_id, "q": q, **more}, headers=headers)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def messages(told: dict[str, Any]) -> list[str]:
    return [reason["message"] for reason in told["reasons"]]


@pytest.mark.slow
def test_a_hit_is_explained_by_its_words_fields_and_weights_which_add_up_to_the_score_of_the_feed(site: Site) -> None:
    made = site.shelf.add("pump.txt", "the red pump and the pump house", "public", title="pumps")
    site.shelf.add("other.txt", "a valve", "public")
    site.shelf.catch_up()
    told = why(site, made, "pump OR nothing", headers={"Authorization": "Bearer boris"})
    (hit,) = site.client.get(HERE, params={"q": "pump OR nothing"}, headers=BORIS).json()["entries"]
    assert (told["object-id"], told["user"], told["hit"]) == (made, "boris@demo", True)
    assert told["score"] == hit["score"]
    word, together = told["matches"]
    assert (word["term"], word["found-in"], together["together"]) == ("pump", ["text", "metadata"], True)
    assert told["matches"][0]["properties"] == ["title", "object_name"]
    assert sum(round(match["weight"] * 10_000) for match in told["matches"]) == round(told["score"] * 10_000)
    assert told["reasons"] == []
    assert told["condition"]["parts"][0]["kind"] == "any"
    assert [part["outcome"] for part in told["condition"]["parts"][0]["parts"]] == ["met", "not-met"]
    assert told["right"] == {
        "outcome": "met",
        "basic-permission": "Read",
        "acl-name": "public",
        "owner": False,
        "administrator": False,
        "permitted": [{"accessor": "world", "basic-permission": "Read"}],
    }
    assert told["index"] == {"outcome": "met", "missed": [], "reason": ""}
    assert told["text"]["state"] == "done"


def test_a_word_that_matches_where_the_rest_does_not_adds_nothing(site: Site) -> None:
    made = site.shelf.add("a", "red pump", "public")
    site.shelf.catch_up()
    told = why(site, made, "(red nothing) OR pump")
    weights = {match["term"]: match["weight"] for match in told["matches"]}
    assert weights == {"red": 0.0, "pump": told["score"]}
    assert told["score"] > 0


def test_what_is_no_hit_is_explained_by_the_expressions_that_fail_with_their_places(site: Site) -> None:
    made = site.shelf.add("a", "pump", "public", title="Draft")
    site.shelf.catch_up()
    document = query(
        "<types><type>folder</type></types>\n<expression-set>\n<expressions>\n<fulltext>pump NOT pump</fulltext>\n"
        '<property name="title" operator="EQUAL">Final</property>\n'
        '<property name="title" operator="EQUAL">Draft</property>\n'
        '<expression-set operator="OR"><expressions><fulltext>nothing</fulltext></expressions></expression-set>\n'
        "</expressions></expression-set>"
    )
    as_json = {"Content-Type": "application/xml", "Accept": "application/json"}
    answer = site.client.post(WHY, params={"object": made}, content=document.encode(), headers=as_json)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert not told["hit"]
    assert "score" not in told
    assert told["matches"] == []
    assert told["types"] == {"outcome": "not-met", "object-type": "document", "types": ["folder"]}
    assert [(reason["part"], reason.get("place", "")) for reason in told["reasons"]] == [
        ("types", ""),
        ("condition", ""),
        ("condition", "line 5, column 1"),
        ("condition", ""),
    ]
    assert "'pump'" in messages(told)[1]
    assert messages(told)[3] == "The word 'nothing' is not in the text or the metadata."
    assert [part["outcome"] for part in told["condition"]["parts"]] == ["not-met", "not-met", "met", "not-met"]
    root = lxml.etree.fromstring(
        site.client.post(WHY, params={"object": made}, content=document.encode(), headers=XML).content
    )
    assert root.tag == f"{VOCAB}explanation"
    assert root.findtext(f"{VOCAB}hit") == "false"
    assert len(root.findall(f"{VOCAB}reasons/{VOCAB}item")) == 4


def test_json_documents_and_links_are_explained_too(site: Site) -> None:
    made = [site.shelf.add(f"pump {number}", "valve", "public") for number in range(3)]
    site.shelf.catch_up()
    body = {
        "types": ["document"],
        "expression-set": {"expressions": [{"expression-type": "fulltext", "value": "valve"}]},
    }
    posted = site.client.post(WHY, params={"object": made[0]}, json=body)
    assert posted.json()["hit"], posted.text
    feed = site.post(fulltext("pump"), f"{HERE}?items-per-page=1", Accept="application/xml")
    following = next(link.get("href", "") for link in feed.iter("{*}link") if link.get("rel") == "next")
    link = httpx.URL(following).params["link"]
    answer = site.client.get(WHY, params={"object": made[2], "link": link})
    assert answer.json()["hit"], answer.text
    stranger = site.client.get(WHY, params={"object": made[2], "link": link}, headers=BORIS)
    assert (stranger.status_code, stranger.json()["code"]) == (404, "E_UNKNOWN_SEARCH")


def test_an_object_that_may_not_be_browsed_is_answered_like_one_that_does_not_exist(site: Site) -> None:
    hidden = site.shelf.add("secret pump", "pump", "private")
    site.shelf.catch_up()
    gone = f"{int(hidden, 16) ^ 1:016x}"
    for asked in ({"q": "pump"}, {"q": "nothing"}, {"object-type": "cabinet"}, {"locations": "/nowhere"}):
        answers = [
            site.client.get(WHY, params={"object": object_id, **asked}, headers=BORIS) for object_id in (hidden, gone)
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content.replace(hidden.encode(), b"") == answers[1].content.replace(gone.encode(), b"")
        told = [sorted(name for name in answer.headers if name != "x-request-id") for answer in answers]
        assert told[0] == told[1]


def test_who_may_only_browse_does_not_learn_whether_a_word_is_in_the_text(site: Site) -> None:
    site.shelf.permit("shown", {"world": Permission.BROWSE})
    one, other = (site.shelf.add("name", said, "shown") for said in ("pump", "else"))
    site.shelf.catch_up()
    told = [why(site, object_id, "pump OR NOT pump NOT name", BORIS) for object_id in (one, other)]
    for each, object_id in zip(told, (one, other), strict=True):
        assert each.pop("object-id") == object_id
        each.pop("links")
    assert told[0] == told[1]
    assert "text" not in told[0]
    refused = why(site, one, "pump", BORIS)
    assert messages(refused) == ["The word 'pump' is not in the metadata."]
    assert refused["condition"]["parts"][0]["looked-in"] == ["metadata"]


@pytest.mark.slow
def test_missed_changes_and_texts_that_wait_are_reasons(site: Site) -> None:
    made = site.shelf.add("a", "pump", "public", title="old")
    site.shelf.catch_up()
    site.shelf.change(made, {"title": "new"})
    told = why(site, made, "pump", BORIS)
    assert told["index"] == {"outcome": "not-met", "missed": ["properties"], "reason": ""}
    assert told["condition"]["outcome"] == "unknown"
    assert messages(told) == ["The index has not followed the last changes of the object yet."]
    site.shelf.catch_up()
    assert why(site, made, "pump", BORIS)["hit"]
    site.shelf.replace(made, "valve")
    site.shelf.catch_up()
    waiting = why(site, made, "valve", BORIS)
    assert waiting["text"]["state"] == "waiting"
    assert "The text of the object has not been extracted (state waiting)." in messages(waiting)
    site.shelf.extract("valve")
    assert messages(why(site, made, "valve", BORIS))[-1] == "The index does not hold the newest text of the object yet."
    fresh = site.shelf.add("b", "pump", "public")
    assert messages(why(site, fresh, "pump", BORIS)) == ["The index does not hold the object yet."]


@pytest.mark.slow
def test_locations_and_facets_are_parts(site: Site) -> None:
    cabinet = site.shelf.create({"object_name": "here", "acl_name": "public"}, type_name="cabinet").id
    inside = site.shelf.create({"object_name": "in", "acl_name": "public"}, folder_id=cabinet).id
    outside = site.shelf.add("out", "", "public", subject="x")
    site.shelf.catch_up()
    assert why(site, inside, locations="/here")["locations"] == {"outcome": "met"}
    told = why(site, outside, locations="/here")
    assert (told["locations"], told["hit"]) == ({"outcome": "not-met"}, False)
    assert messages(told) == ["The object lies in none of the folders that the query names."]
    narrowed: dict[str, Any] = {"facet": "subject", "facet-value-constraints": "x"}
    assert why(site, outside, **narrowed)["facets"] == {"outcome": "met"}
    assert messages(why(site, inside, **narrowed)) == [
        "The object has none of the values to which the facets are narrowed."
    ]


def test_only_an_administrator_asks_for_others_and_not_where_the_directory_is_elsewhere(site: Site) -> None:
    made = site.shelf.add("a", "pump", "public")
    site.shelf.catch_up()
    for object_id in (made, "0900000100ffffff"):
        asked = {"object": object_id, "q": "pump", "for": "marta@demo"}
        refused = site.client.get(WHY, params=asked, headers=BORIS)
        assert (refused.status_code, refused.json()["code"]) == (403, "E_NOT_PERMITTED")
    elsewhere = site.client.get(WHY, params={"object": made, "q": "pump", "for": "marta@demo"}, headers=AS_ROOT)
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (400, "E_NOT_OFFERED_YET")


def test_bad_questions_are_refused(site: Site) -> None:
    made = site.shelf.add("a", "pump", "public")
    site.shelf.catch_up()
    for asked, code in (
        ({"q": "pump"}, "E_MALFORMED_REQUEST"),
        ({"object": made, "q": "(" * 50 + "a" + ")" * 50}, "E_BAD_QUERY"),
        ({"object": made, "object-type": "spaceship"}, "E_INVALID_TYPE_NAME"),
        ({"object": made, "locations": "/nowhere"}, "E_INVALID_ATTR_VALUE"),
        ({"object": made, "facet": "spaceship"}, "E_INVALID_ATTR_NAME"),
    ):
        answer = site.client.get(WHY, params=asked)
        assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text


def test_properties_are_not_named_where_there_is_too_much_to_look_through(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = site.shelf.add("pump", "pump", "public")
    site.shelf.catch_up()
    monkeypatch.setattr(examining, "MOST_COMPARED", 3)
    (in_metadata,) = [match for match in why(site, made, "pump")["matches"] if "metadata" in match["found-in"]]
    assert "properties" not in in_metadata
    assert in_metadata["weight"] > 0


def test_more_comparisons_than_are_done_are_unknown_and_the_hit_stays_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = site.shelf.add("a", "pump", "public", title="x")
    site.shelf.catch_up()
    monkeypatch.setattr(condition_parts, "MOST_COMPARISONS", 2)
    expressions = [
        {"expression-type": "property", "name": "title", "operator": "CONTAINS", "value": text} for text in ("x", "y")
    ]
    body = {"expression-set": {"operator": "OR", "expressions": expressions}}
    told = site.client.post(WHY, params={"object": made}, json=body).json()
    assert told["hit"]
    assert [part["outcome"] for part in told["condition"]["parts"]] == ["met", "unknown"]
