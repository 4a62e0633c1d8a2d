"""The search page: a right that ends while its request is under way is not used, at any of its addresses.

The addresses come from the table that serves them: a new one fails here until it says when its right is asked for.
"""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
import pytest

from muniment.repository import keys
from muniment.repository.page import frame, routes
from muniment.repository.page.asking.sessions import PageSession
from tests.rights.play import Moment, Outcome, Sent, play
from tests.rights.test_every_address import LONG, WAYS, Stage, others_write, ways_at
from tests.scenes import Loop, World


class Used(NamedTuple):
    """How a right is used at an address, and when it ends. ``of`` is the kind of thing that the address names."""

    moment: Moment | None
    of: str = ""
    query: str = ""
    form: tuple[tuple[str, str], ...] = ()


SAVING = (("action", "save"), ("address", "?q=document"), ("name", "kept"))

USES: dict[tuple[str, str], tuple[Used, ...]] = {
    ("GET", ""): (Used(None, "found", "?q=document"), Used(None)),
    ("GET", "/saved"): (Used(None),),
    ("POST", "/saved"): (Used("last byte", form=SAVING), Used("queue", form=SAVING)),
    ("GET", "/suggestions"): (Used(None, query="?q=docu"),),
    ("GET", "/objects/{id}"): (Used(None, "document", "?q=document"), Used(None, "document")),
    ("GET", "/objects/{id}/content"): (Used("first bytes", "content"), Used(None, "content")),
}
"""Every address that uses a right. Without a moment, the right has ended before the request."""

WITHOUT_RIGHTS = {("GET", "/sign-in"), ("POST", "/sign-in"), ("POST", "/sign-out"), ("GET", "/static/{name}")}

ROWS = [
    pytest.param(method, path, use, id=f"{method} {path} {use.moment} {use.of}")
    for (method, path), uses in USES.items()
    for use in uses
]


@pytest.fixture(scope="module", params=["together", "apart"])
def stage(request: pytest.FixtureRequest, world: World, loop: Loop) -> Iterator[Stage]:
    made = Stage(world, loop, request.param == "apart")
    yield made
    made.close()


def signed_in(stage: Stage, account: str, token: str) -> tuple[dict[str, str], str]:
    """Give the header with the cookie of somebody who has signed in, and the mark of their forms."""
    session = PageSession(account, {stage.world.resource_id: token})
    with stage.world.repository_db.read() as cx:
        seal = keys.seal(cx)
        cookie = seal.seal(msgspec.json.encode(session), "search page session")
        return {"Cookie": f"{frame.COOKIE}={cookie}"}, frame.form_mark(seal, cookie)


def sent(stage: Stage, method: str, path: str, use: Used, account: str, token: str) -> Sent:
    """Write a request of somebody who has signed in."""
    headers, mark = signed_in(stage, account, token)
    thing = stage.shared(use.of) if use.of in {"document", "content"} else ""
    body = urlencode({**dict(use.form), "csrf": mark}).encode() if method == "POST" else b""
    headers |= {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    return Sent(method, f"/search{path.replace('{id}', thing)}{use.query}", headers, body)


def refused(outcome: Outcome) -> bool:
    """Say whether somebody was led to the sign-in page."""
    return outcome.status == 303 and "/search/sign-in?to=" in outcome.headers["location"] and outcome.body == b""


def test_every_address_of_the_page_says_when_its_right_is_asked() -> None:
    served = {(method, address.path) for address in routes.table().addresses for method in address.operations}
    assert served == USES.keys() | WITHOUT_RIGHTS


@pytest.mark.parametrize("most_ways", [2, pytest.param(len(WAYS), marks=pytest.mark.campaign)])
@pytest.mark.parametrize(("method", "path", "use"), ROWS)
def test_a_right_that_has_ended_is_not_used_whenever_it_ended(
    stage: Stage, method: str, path: str, use: Used, most_ways: int
) -> None:
    ways = ways_at(stage, method, path, [*WAYS], most_ways)
    people = stage.people([WAYS[name].group for name in ways])
    for name, (person, token) in zip(ways, people, strict=True):
        way = WAYS[name]
        request = sent(stage, method, path, use, person.id, token)
        kept: list[dict[str, int]] = []

        def end(
            way: object = way, person: object = person, token: str = token, kept: list[dict[str, int]] = kept
        ) -> None:
            way.end(stage, person, token)  # type: ignore[attr-defined]
            kept.append(stage.rows())

        if use.moment is None:
            end()
            outcome = play(stage.application, stage.loop, request, None)
        elif use.moment == "queue":
            with others_write(stage, end) as happen:
                outcome = play(stage.application, stage.loop, request, "queue", happen)
        else:
            outcome = play(stage.application, stage.loop, request, use.moment, end)
        if use.moment == "first bytes":
            assert not outcome.whole, name
            assert len(outcome.body) < len(LONG)
        else:
            assert refused(outcome), f"{name}: {outcome.status} {outcome.body[:300]!r}"
        assert stage.rows() == kept[0], name


@pytest.mark.parametrize(("method", "path", "use"), ROWS)
def test_a_right_that_holds_is_used(stage: Stage, method: str, path: str, use: Used) -> None:
    ((person, token),) = stage.people([""])
    outcome = play(stage.application, stage.loop, sent(stage, method, path, use, person.id, token), None)
    assert outcome.status in {200, 303}
    assert outcome.whole
    assert not refused(outcome)


def test_a_new_guard_is_obeyed_by_the_next_request(stage: Stage) -> None:
    ((person, token),) = stage.people([""])
    for method, path in USES:
        if method == "GET":
            use = USES[method, path][0]
            request = sent(stage, method, path, use, person.id, token)
            with stage.another_guard() as change:
                change()
                assert refused(play(stage.application, stage.loop, request, None)), path
            assert play(stage.application, stage.loop, request, None).status == 200, path


@pytest.mark.parametrize("path", ["/objects/{id}", "/objects/{id}/content"])
def test_a_thing_that_the_caller_may_not_see_is_answered_like_none(stage: Stage, path: str) -> None:
    hidden = stage.made("document")
    stage.site.share(hidden, "private")
    ((person, token),) = stage.people([""])
    headers, _ = signed_in(stage, person.id, token)
    answers = [
        play(stage.application, stage.loop, Sent("GET", f"/search{path.replace('{id}', thing)}", headers), None)
        for thing in (hidden, "0900000000000000")
    ]
    assert [answer.status for answer in answers] == [404, 404]
    assert len({answer.body for answer in answers}) == 1
