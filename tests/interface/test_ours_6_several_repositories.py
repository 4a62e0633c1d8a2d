"""ours 6: one search of several repositories; docs/aql.md, "Several repositories"; docs/decisions/0063."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import lxml.etree
import pytest

from muniment.directory.administration import resource_decisions
from muniment.directory.entries import resources
from muniment.directory.oauth import sessions
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.repository.api import context
from muniment.repository.api.context import Caller
from muniment.repository.refusals import IndexUnavailable
from tests.scenes import ATOM, Loop, Served, Site, World, fulltext
from tests.several import APART, BESIDE, HIDDEN, Several, ids, links, open_several, password, words


@pytest.fixture(scope="module")
def several(world: World, loop: Loop) -> Iterator[Several]:
    with open_several(world, loop) as opened:
        yield opened


@pytest.fixture(params=["together", "apart"])
def anywhere(several: Several, loop: Loop, request: pytest.FixtureRequest) -> Iterator[Several]:
    """The repositories beside their directory, and in a process whose directory is another server's."""
    if request.param == "together":
        yield several
        return
    with closing(Served(several.site)) as served:
        url = f"{served.base}{several.site.oauth}/tokeninfo"
        elsewhere = (f"repository.tokeninfo_url={url}", f"repository.tokeninfo_ca_file={served.ca_file}")
        with closing(Site(several.site.world, "neutral", loop, "halves=repository", *elsewhere)) as apart:
            yield Several(apart, several.both)


@pytest.fixture
def made(several: Several) -> tuple[str, dict[str, str]]:
    """A word, and by repository the one document that has it."""
    word = several.site.world.word()
    return word, {
        name: several.create(name, f"in {name}", f"{word} and more", acl_name="public")
        for name in (several.site.world.repository, BESIDE, APART)
    }


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The hashes against which the password gate was asked to check."""
    asked: list[str | None] = []
    check = PasswordGate.check

    def counted(gate: Any, password_hash: str | None, *rest: Any, **more: Any) -> Any:
        asked.append(password_hash)
        return check(gate, password_hash, *rest, **more)

    monkeypatch.setattr(PasswordGate, "check", counted)
    return asked


def test_a_token_opens_the_repositories_of_one_resource(several: Several, made: tuple[str, dict[str, str]]) -> None:
    """given 5.3"""
    word, documents = made
    own = several.site.world.repository
    answer = several.get(several.site.bearer(several.site.world.reader), q=word)
    assert set(ids(answer)) == {documents[own], documents[BESIDE]}
    assert "muniment-partial" not in answer.headers
    assert "partial" not in answer.json()


def test_a_password_opens_those_of_every_resource_that_admits_the_user(
    several: Several, made: tuple[str, dict[str, str]]
) -> None:
    word, documents = made
    answer = several.get(q=word)
    assert set(ids(answer)) == set(documents.values())
    for entry in answer.json()["entries"]:
        (name,) = [name for name, object_id in documents.items() if object_id == entry["id"]]
        address = f"{several.site.base}{several.of(name).replace(', with a comma', '%2C%20with%20a%20comma')}"
        assert entry["links"] == [{"rel": "edit", "href": f"{address}/objects/{entry['id']}"}]
        assert entry["content"]["src"] == entry["links"][0]["href"]
        assert several.site.http.get(entry["content"]["src"], headers=password(several.both)).status_code == 200
    posted = several.post(words(word))
    assert set(ids(posted)) == set(documents.values())


def test_repositories_choose_which_are_searched(several: Several, made: tuple[str, dict[str, str]]) -> None:
    word, documents = made
    escaped = APART.replace(",", "\\,")
    assert ids(several.get(q=word, repositories=BESIDE)) == [documents[BESIDE]]
    assert ids(several.get(q=word, repositories=escaped)) == [documents[APART]]
    assert set(ids(several.get(q=word, repositories=f"{BESIDE}, {escaped},"))) == {documents[BESIDE], documents[APART]}
    assert ids(several.post({**words(word), "repositories": [APART]})) == [documents[APART]]
    assert ids(several.post(words(word), repositories=BESIDE)) == [documents[BESIDE]]
    xml = several.site.aql(fulltext(word)).replace(
        "<types>", f"<repositories><repository>{BESIDE}</repository></repositories><types>"
    )
    sent = {"Content-Type": "application/xml", "Accept": "application/xml", **password(several.both)}
    feed = lxml.etree.fromstring(several.site.http.post(several.address, content=xml, headers=sent).content)
    assert [entry.findtext(f"{ATOM}id") for entry in feed.iter(f"{ATOM}entry")] == [documents[BESIDE]]
    both = several.post({**words(word), "repositories": [APART]}, repositories=BESIDE)
    assert both.status_code == 400


@pytest.mark.parametrize("name", [HIDDEN, "nowhere", "x" * 200, "l'été"])
def test_a_repository_that_is_not_open_is_answered_like_an_unknown_one(
    several: Several, made: tuple[str, dict[str, str]], name: str
) -> None:
    word, documents = made
    token = several.site.bearer(several.site.world.reader)
    named: list[Callable[[str], httpx.Response]] = [
        lambda one: several.get(q=word, repositories=one),
        lambda one: several.get(q=word, repositories=f"{BESIDE},{one}"),
        lambda one: several.post({**words(word), "repositories": [BESIDE, one]}),
        lambda one: several.post({**words(word), "repositories": [one]}),
        lambda one: several.get(token, q=word, repositories=one),
        lambda one: several.post({**words(word), "repositories": [one]}, token),
    ]
    for ask in named:
        answer = ask(name)
        assert (answer.status_code, answer.json()["code"]) == (404, "E_UNKNOWN_REPOSITORY")
        assert answer.json()["message"] == f"There is no repository {name[:100]!r}."
    assert several.get(token, q=word, repositories=APART.replace(",", "\\,")).status_code == 404
    assert documents[APART] not in several.get(token, q=word).text
    for headers in ({}, {"Authorization": "Bearer nonsense"}, password(several.both, "wrong")):
        assert several.get(headers, q=word, repositories=name).status_code == 401
        assert several.get(headers, q=word).status_code == 401
        assert several.post(words(word), headers).status_code == 401


def test_each_repository_is_searched_with_the_callers_rights_there(several: Several) -> None:
    word, world = several.site.world.word(), several.site.world
    own = several.create(world.repository, "open", word, acl_name="public")
    several.create(BESIDE, "closed", word, acl_name="private")
    answer = several.get(several.site.bearer(world.reader), q=word, include_total="true")
    assert ids(answer) == [own]
    assert answer.json()["total"] == 1
    assert several.get(q=word, include_total="true").json()["total"] == 2


def test_the_answer_is_what_each_repository_answers_at_its_own_address(several: Several) -> None:
    """Excerpts, terms and scores too: to somebody who may read, and to somebody who may browse alone."""
    word, world = several.site.world.word(), several.site.world
    permitted = [(several.both.id, "Delete"), ("world", "Browse")]
    acl = {
        "name": f"browse-{word}",
        "permitted": [{"accessor": accessor, "basic-permission": level} for accessor, level in permitted],
    }
    names = (world.repository, BESIDE)
    for name in names:
        made = several.site.http.post(f"{several.of(name)}/acls", json=acl, headers=password(several.both))
        assert made.status_code == 201
        for acl_name in ("public", "private", acl["name"]):
            several.create(name, f"{acl_name} {word}", f"{word} in the text", acl_name=str(acl_name), title=word)

    def alone(shown: dict[str, str]) -> list[dict[str, Any]]:
        answers = [
            several.site.http.get(f"{several.of(name)}/search", params={"q": word, "inline": "true"}, headers=shown)
            for name in names
        ]
        return [entry for answer in answers for entry in answer.json()["entries"]]

    for person in (several.both, world.reader):
        shown = password(person) | {"Accept": "application/json"}
        for _ in range(10):
            before, together, after = (
                alone(shown),
                several.get(shown, q=word, inline="true").json()["entries"],
                alone(shown),
            )
            if before == after:  # else segments of an index were merged between the answers, which changes scores
                break
        assert before == after, "segments are not merged for ever"
        assert len(after) == (6 if person is several.both else 4)
        assert sorted(together, key=lambda entry: entry["id"]) == sorted(after, key=lambda entry: entry["id"])


def test_hits_stand_by_score_and_without_keywords_the_newest_first(several: Several) -> None:
    word, other = several.site.world.word(), several.site.world.word()
    made = [
        several.create(name, f"{other} {number}", f"{word} " * number + "filling " * (9 - number), keywords=other)
        for number, name in enumerate((BESIDE, APART, BESIDE, APART), 1)
    ]
    found = several.get(q=word).json()["entries"]
    scores = [entry["score"] for entry in found]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    condition = {"expression-type": "property", "name": "keywords", "operator": "EQUAL", "value": other}
    document: dict[str, Any] = {"expression-set": {"expressions": [condition]}}
    assert ids(several.post(document)) == made[::-1]
    sorts = [{"property": f"{several.site.names.system_property_prefix}modify_date", "ascending": True}]
    assert ids(several.post({**document, "sorts": sorts})) == made
    assert ids(several.get(q=word, sort="r_modify_date desc")) == made[::-1]


def test_start_and_limit_count_in_each_repository(several: Several) -> None:
    word = several.site.world.word()
    made = {
        name: {several.create(name, f"{number}", word, acl_name="public") for number in range(count)}
        for name, count in ((BESIDE, 5), (APART, 2))
    }
    for first in (
        several.get(q=word, limit="2", include_total="true"),
        several.post(words(word), limit="2", include_total="true"),
        several.post({**words(word), "repositories": [APART, BESIDE]}, limit="2", include_total="true"),
    ):
        page, seen, sizes = first, list[str](), list[int]()
        while True:
            seen += ids(page)
            sizes.append(len(ids(page)))
            document, found = page.json(), links(page)
            assert document["total"] == 7
            assert (document["page"], document["items-per-page"]) == (len(sizes), 2)
            assert ("previous" in found) == (len(sizes) > 1)
            if "next" not in found:
                break
            page = several.site.http.get(found["next"], headers=password(several.both) | {"Accept": "application/json"})
        assert sizes == [4, 2, 1]
        assert len(seen) == len(set(seen))
        assert set(seen) == made[BESIDE] | made[APART]
        again = several.site.http.get(found["first"], headers=password(several.both) | {"Accept": "application/json"})
        assert ids(again) == ids(first)
    assert "first" not in links(several.get(q=word))
    assert len(ids(several.get(q=word, start="3"))) == 2
    assert ids(several.get(q=word, start="7")) == []


def test_the_link_of_a_posted_search_is_for_its_caller_alone(
    several: Several, made: tuple[str, dict[str, str]]
) -> None:
    word, _ = made
    several.create(BESIDE, "one more", word, acl_name="public")
    posted = several.post(words(word), limit="1")
    following = links(posted)["next"]
    for headers in (several.site.bearer(several.site.world.reader), several.site.bearer(several.site.world.writer)):
        refused = several.site.http.get(following, headers=headers | {"Accept": "application/json"})
        assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_SEARCH")
    link = parse_qs(urlsplit(following).query)["link"][0]
    assert several.get(link=link).status_code == 200
    assert several.get(link=link, q=word).status_code == 400
    assert several.get(link="0" * 32).status_code == 404


def test_a_feed_has_the_keys_of_a_search(several: Several, made: tuple[str, dict[str, str]]) -> None:
    word, _ = made
    feed = several.get(q=word).json()
    assert list(feed) == ["id", "title", "author", "updated", "page", "items-per-page", "links", "facets", "entries"]
    assert feed["id"] == f"{several.site.base}{several.address}"
    for entry in feed["entries"]:
        assert list(entry) == ["id", "title", "author", "updated", "summary", "score", "terms", "content", "links"]
    inlined = several.get(q=word, inline="true", view="title").json()["entries"]
    assert all(
        set(entry["content"]["properties"]) <= {"title", "r_object_id", "r_object_type", "object_name"}
        for entry in inlined
    )
    assert all("links" not in entry for entry in several.get(q=word, links="false").json()["entries"])


def test_locations_count_in_the_repository_that_they_name(several: Several) -> None:
    word = several.site.world.word()
    answer = several.site.http.post(
        f"{several.of(BESIDE)}/cabinets",
        json={"properties": {"object_name": word, "acl_name": "public"}},
        headers=password(several.both),
    )
    folder = answer.json()["properties"]["r_object_id"]
    filed = several.site.http.post(
        f"{several.of(BESIDE)}/folders/{folder}/documents",
        json={"properties": {"object_name": word, "acl_name": "public"}},
        headers=password(several.both),
    ).json()["properties"]["r_object_id"]
    several.create(APART, word, word)
    several.site.world.catch_up(BESIDE)
    place = {"location-type": "path-location", "path": f"/{word}", "descendent": True}
    answer = several.post({**words(word), "locations": [{**place, "repository": BESIDE}]})
    assert ids(answer) == [filed]
    assert "partial" not in answer.json()
    nowhere = several.post({**words(word), "locations": [{**place, "repository": "nowhere"}]}, include_total="true")
    assert (ids(nowhere), nowhere.json()["total"]) == ([], 0)
    # Without a name it is a folder of each; where there is none, that repository cannot answer.
    answer = several.post({**words(word), "locations": [place]})
    assert ids(answer) == [filed]
    assert answer.json()["partial"] is True


def test_a_repository_that_cannot_answer_is_named(
    several: Several, made: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    word, documents = made
    search, every = Caller.search, False

    async def unavailable(caller: Caller, *asked: Any) -> Any:
        if every or caller.repository.name == APART:
            raise IndexUnavailable("The index is being made.")
        return await search(caller, *asked)

    monkeypatch.setattr(Caller, "search", unavailable)
    answer = several.get(q=word)
    assert set(ids(answer)) == {documents[several.site.world.repository], documents[BESIDE]}
    assert answer.json()["partial"] is True
    assert answer.headers["muniment-partial"] == "apart%2C%20with%20a%20comma"
    asked = {"Accept": "application/xml", **password(several.both)}
    xml = several.site.http.get(several.address, params={"q": word}, headers=asked)
    assert lxml.etree.fromstring(xml.content).findtext(f"{several.site.vocab}partial") == "true"
    every = True
    refused = several.get(q=word)
    assert (refused.status_code, refused.json()["code"]) == (503, "E_INDEX_UNAVAILABLE")


def test_what_no_repository_knows_is_refused(several: Several) -> None:
    for parameters, code in (
        ({"object-type": "spaceship"}, "E_INVALID_TYPE_NAME"),
        ({"sort": "acl_name"}, "E_BAD_SORT"),
        ({"sort": "nothing"}, "E_INVALID_ATTR_NAME"),
        ({"start": "-1"}, "E_MALFORMED_REQUEST"),
        ({"limit": "0"}, "E_MALFORMED_REQUEST"),
        ({"start": "100000"}, "E_MALFORMED_REQUEST"),
        ({"page": "2"}, "E_MALFORMED_REQUEST"),
        ({"items-per-page": "2"}, "E_MALFORMED_REQUEST"),
        ({"facet": "nothing"}, "E_INVALID_ATTR_NAME"),
        ({"facet": "acl_name"}, "E_INVALID_ATTR_VALUE"),
        ({"timezone": "UTC"}, "E_MALFORMED_REQUEST"),
        ({"facet-id-constraints": "x=y"}, "E_BAD_QUERY"),
        ({"link": "0" * 32, "facet": "title"}, "E_MALFORMED_REQUEST"),
        ({"wait-for": "1.1"}, "E_NOT_OFFERED_YET"),
        ({"locations": "/nowhere"}, "E_INVALID_ATTR_VALUE"),
        ({"repositories": ",".join(map(str, range(21)))}, "E_MALFORMED_REQUEST"),
    ):
        answer = several.get(None, **parameters)
        assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text
    facets = {"facet-definitions": [{"id": "title", "attributes": ["title"], "max-values": 2001}]}
    assert several.post(facets).json()["code"] == "E_BAD_QUERY"
    assert several.post({"sorts": [{"property": "title"}, {"property": "title"}]}).json()["code"] == "E_BAD_SORT"
    assert several.post({"repositories": list(map(str, range(21)))}).status_code == 400


def test_no_answer_has_more_entries_than_a_page_may_have(several: Several) -> None:
    """Two repositories share the 50 entries of the largest page."""
    named = f"{BESIDE},{several.site.world.repository}"
    assert several.get(q="x", limit="1000", repositories=named).json()["items-per-page"] == 25
    assert several.get(q="x", limit="1000", repositories=BESIDE).json()["items-per-page"] == 50
    assert several.get(q="x", limit="3", repositories=named).json()["items-per-page"] == 3


def test_more_repositories_than_a_search_may_cover_have_to_be_named(several: Several, loop: Loop) -> None:
    with closing(Site(several.site.world, "neutral", loop, "repository.max_searched_repositories=1")) as site:
        one = Several(site, several.both)
        token = site.bearer(site.world.reader)
        assert one.get(token, q="x").status_code == 400
        assert one.get(token, q="x", repositories=BESIDE).status_code == 200
        assert one.post({**words("x"), "repositories": [BESIDE]}, token, repositories="").status_code == 400
        assert one.post(words("x"), token, repositories=BESIDE).status_code == 200


def test_a_password_is_checked_once_for_each_resource_and_then_remembered(
    several: Several, checks: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    person = several.site.world.person()
    assert several.get(password(person), q="x").status_code == 200
    first = len(checks)
    assert 1 <= first <= 3
    assert several.get(password(person), q="x").status_code == 200
    assert len(checks) == first
    # Whoever has given no right password is not tried at every resource.
    for most in (1, 2):
        checks.clear()
        monkeypatch.setattr(context, "_REFUSED_PAIRS", most)
        assert several.get(password(person, "wrong"), q="x").status_code == 401
        assert len(checks) == most


def test_a_resource_that_refuses_a_password_ends_no_grant_for_another(anywhere: Several) -> None:
    world = anywhere.site.world
    person = world.person()

    def status(repository: str) -> int:
        return anywhere.site.http.get(f"{anywhere.of(repository)}/types", headers=password(person)).status_code

    def grants() -> list[str]:
        with world.directory_db.read() as cx:
            return [session.id for session in sessions.of_user(cx, world.entry(person), world.clock())]

    assert status(BESIDE) == 200
    before = grants()
    assert status(APART) == 401
    assert anywhere.get(password(person), q="x").status_code == 200
    assert status(BESIDE) == 200
    assert grants() == before


def test_a_right_that_has_ended_is_not_used(several: Several, made: tuple[str, dict[str, str]]) -> None:
    word, documents = made
    world = several.site.world
    person = world.person()
    world.admit(person, world.other_resource_id)
    shown = password(person)
    assert documents[APART] in ids(several.get(shown, q=word))
    with world.directory_db.begin() as cx:
        resource_decisions.remove_from_role(cx, resources.by_id(cx, world.other_resource_id), world.entry(person))
    answer = several.get(shown, q=word)
    assert set(ids(answer)) == {documents[world.repository], documents[BESIDE]}
    assert "partial" not in answer.json()


def test_the_home_document_leads_there(several: Several) -> None:
    home = several.site.http.get(
        f"/{several.site.names.prefix}/services", headers={"Accept": "application/json"}
    ).json()
    found = home["resources"][f"{several.site.names.linkrel_base}/search"]
    assert found["href"] == f"{several.site.base}{several.address}"
    assert found["hints"]["allow"] == ["GET", "POST"]
