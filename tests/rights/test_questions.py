"""How often the directory is asked whose token it is, and what holds while it does not answer (decision 0018)."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from muniment.directory.oauth import tokeninfo as verification
from muniment.repository.api import context
from muniment.repository.api.callers import callers
from muniment.repository.api.callers.over_http import DirectoryElsewhere
from muniment.repository.refusals import DirectoryUnavailable
from tests.rights.play import Sent, play
from tests.rights.test_every_address import LONG, QUERY, Stage
from tests.scenes import Loop, World


@pytest.fixture(scope="module", params=["together", "apart"])
def stage(request: pytest.FixtureRequest, world: World, loop: Loop) -> Iterator[Stage]:
    made = Stage(world, loop, request.param == "apart")
    yield made
    made.close()


def sent(stage: Stage, method: str, path: str, body: bytes = b"", media_type: str = "application/json") -> Sent:
    ((_, token),) = stage.people([""])
    headers = {"Authorization": f"Bearer {token}", "Content-Type": media_type}
    play(stage.application, stage.loop, Sent("GET", f"{stage.site.repository}/types", headers), None)
    return Sent(method, f"{stage.site.repository}{path}", headers, body)


def test_what_waits_for_nothing_asks_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    recall, answer = verification.recall, verification.tokeninfo_answer

    def recalled(*args: Any) -> Any:
        asked.append("recalled")
        return recall(*args)

    def answered(*args: Any) -> Any:
        # What is not remembered is worked out for the same question.
        if asked[-1:] == ["recalled"]:
            asked.pop()
        asked.append("answered")
        return answer(*args)

    document = stage.made("document")
    requests = {
        "read": sent(stage, "GET", f"/objects/{document}"),
        "change": sent(stage, "POST", f"/objects/{document}", b'{"properties": {"title": "changed"}}'),
        # One page, whatever other tests made: the link to a next one is kept by a write, which asks again.
        "search": sent(stage, "POST", "/search?items-per-page=500", QUERY, "application/xml"),
    }
    monkeypatch.setattr(context, "_LONG_DECISION", 3600)
    monkeypatch.setattr(callers, "FRESH_SECONDS", 3600)
    monkeypatch.setattr(verification, "recall", recalled)
    monkeypatch.setattr(verification, "tokeninfo_answer", answered)
    questions = {}
    for what, request in requests.items():
        asked.clear()
        assert play(stage.application, stage.loop, request, None).status == 200
        questions[what] = len(asked)
    inline = stage.world.repository_db.dialect == "sqlite"
    if stage.apart:
        # The body came with its head, so nothing was waited for since the answer.
        assert questions == {"read": 1, "change": 1, "search": 1}
    else:
        assert questions == {"read": 1 if inline else 2, "change": 2, "search": 2}


def test_a_query_for_several_repositories_may_arrive_slowly(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    request = sent(stage, "POST", "/search", QUERY, "application/xml")
    address = stage.site.repository.rpartition("/repositories/")[0] + "/search"
    later = [0.0]
    monkeypatch.setattr(callers, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + sum(later)))
    outcome = play(
        stage.application,
        stage.loop,
        request._replace(path=address),
        "last byte",
        lambda: later.append(2 * callers.FRESH_SECONDS),
    )
    assert later[1:], "the body did not arrive later than the directory answered"
    assert outcome.status == 200, outcome.body


@pytest.mark.parametrize("for_good", [True, False])
def test_a_download_stands_still_while_the_directory_does_not_answer(
    stage: Stage, for_good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "_UNANSWERED_SECONDS", 0.2 if for_good else 30)
    monkeypatch.setattr(context, "_RETRY_SECONDS", 0.01)
    request = sent(stage, "GET", f"/objects/{stage.shared('content')}/content-media")
    tokeninfo, fetched = verification.recall, DirectoryElsewhere._send
    asked: list[str] = []

    def silenced() -> None:
        asked.append("")
        if for_good or len(asked) < 3:
            raise DirectoryUnavailable("no")

    def at_once(*args: Any) -> Any:
        silenced()
        return tokeninfo(*args)

    async def by_http(*args: Any) -> Any:
        silenced()
        return await fetched(*args)

    def happen() -> None:
        if stage.apart:
            monkeypatch.setattr(DirectoryElsewhere, "_send", by_http)
        else:
            monkeypatch.setattr(verification, "recall", at_once)

    outcome = play(stage.application, stage.loop, request, "first bytes", happen)
    assert outcome.whole is not for_good
    assert (len(outcome.body) == len(LONG)) is not for_good
    assert len(asked) >= 3
