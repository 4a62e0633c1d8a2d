"""A hundred thousand generated requests over every route: no 5xx, nothing over a second, no process lost.

Requests by the document of all addresses come from schemathesis, fitting and unfitting ones alike, over HTTPS; most are
made right but for one thing (``right``), so that they get past the first check. Requests
that no document describes are written byte by byte by ``raw`` and go to the plain-HTTP socket. Both reach an installed
server with an index agent and an extractor. Who calls is drawn for each request: the writer, a reader, an
administrator, nobody, somebody with a broken token.
"""

import os
import random
import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from tests.campaign import bodies, document, json_bodies, raw, right
from tests.campaign.json_bodies import Json
from tests.campaign.stage import PATIENCE, Answer, Prop, Record, Stage
from tests.conftest import Fresh
from tests.properties.lengths import examples

SHARE = float(os.environ.get("GENERATED_REQUESTS", "25000")) / 100_000
BY_DOCUMENT = examples(120, int(12_000 * SHARE))
"""Requests by the document, on each database."""

RAW = examples(300, int(40_000 * SHARE))
"""Requests written byte by byte, on each database."""

SEED = int(os.environ.get("GENERATED_SEED", "0"))
"""Other requests are drawn by another number."""

_MANY = 10_000_000
_ENOUGH = 40
"""Of so many requests to one address some succeed."""

_REFUSES_ALL = re.compile(r"/\{rest\}$|/dirws$|POST .*/(aspects|search/sign-in|roles/\{role\}/memberof)$")
"""Addresses that nothing answers, that offer nothing, or whose mark belongs to a cookie of its own."""

_STRAIGHT = 0.7
"""Which share of the requests are made right but for one thing."""

_ADMINISTERED = re.compile(r"/repositories/[^/]+/(relation-types|types|users|groups)\b")
"""Addresses that only an administrator changes."""

_CALLERS = ("writer",) * 12 + ("reader",) * 3 + ("administrator",) * 2 + ("nobody",) * 2 + ("stranger",)


@pytest.fixture
def stage(fresh: Fresh, tmp_path: Path) -> Iterator[Stage]:
    """A stage with short deadlines, so that a request that never ends shows as soon as one that hangs."""
    short = ("web.header_seconds=1", "web.body_pause_seconds=1", "web.keep_alive_seconds=1")
    with Stage(tmp_path, fresh("directory"), fresh("repository"), *short) as made:
        yield made


@pytest.mark.campaign
def test_requests_by_the_document(stage: Stage) -> None:
    """Every operation of the served document, as often as every other; a status that it does not list is a fault."""
    bodies.register()
    schema = schemathesis.openapi.from_dict(document.likely(stage.http.get("/openapi.json").json()))
    operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    record, wire = Record(), _Wire(stage)
    each = -(-BY_DOCUMENT // len(operations))
    deadline = time.monotonic() + 2400
    while record.sent < BY_DOCUMENT and time.monotonic() < deadline:
        for number, operation in enumerate(operations):
            listed = {int(status) for status in operation.definition.raw["responses"]}
            route = f"{operation.method.upper()} {operation.path}"
            for mode, count in _modes(operation.definition.raw, each):
                # A route with little to say is exhausted soon; the next round begins elsewhere.
                chance = random.Random((SEED * _MANY + record.sent) * 1000 + number)
                for drawn in _cases(operation.as_strategy(generation_mode=mode), count, chance.randrange(_MANY)):
                    straight = mode is GenerationMode.POSITIVE and chance.random() < _STRAIGHT
                    case = right.straighten(drawn, chance) if straight else drawn
                    wire.send(case.as_transport_kwargs(stage.server.base), route, listed, chance, record)
    _judge(stage, record, BY_DOCUMENT)
    if each >= _ENOUGH:
        only_refused = {
            route for route, seen in record.statuses.items() if seen.total() >= _ENOUGH and min(seen) >= 400
        }
        assert not {route for route in only_refused if not _REFUSES_ALL.search(route)}


def test_requests_that_no_document_describes(stage: Stage) -> None:
    """Bad heads, chunks, encodings, lengths, pipelines: each is answered or cut off, and the next one is answered."""
    record = raw.round_of(stage, RAW, zlib.crc32(stage.server.base.encode()))
    _judge(stage, record, RAW)


def test_the_judge_sees_what_is_wrong() -> None:
    good = {"x-content-type-options": "nosniff"}
    assert not Answer(400, good, b"", 0.1, ours=True).fault()
    assert not Answer(503, {**good, "retry-after": "1"}, b"", 0.1, ours=True).fault()
    for status, headers in ((500, good), (503, good), (501, good), (200, {})):
        assert Answer(status, headers, b"", 0.1, ours=True).fault()


def _judge(stage: Stage, record: Record, wanted: int) -> None:
    print(record)
    print(f"memory: {stage.memory // 2**20} MiB before, {stage.resident() // 2**20} MiB after")
    assert not stage.lost()
    assert not stage.bugs(), "\n".join(stage.bugs())[:9000]
    assert not record.wrong, f"{len(record.wrong)} wrong answers, such as:\n" + "\n".join(record.wrong[:10])
    assert record.sent >= wanted
    assert stage.http.get("/health/ready").status_code == 200


def _modes(operation: Json, each: int) -> Iterator[tuple[GenerationMode, int]]:
    """Fitting requests, and unfitting ones where there is a body: nothing else could be unfitting, for it is text."""
    unfitting = each // 5 if "requestBody" in operation else 0
    yield GenerationMode.POSITIVE, each - unfitting
    if unfitting:
        yield GenerationMode.NEGATIVE, unfitting


def _cases(strategy: st.SearchStrategy[Any], count: int, number: int) -> list[Any]:
    found: list[Any] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(strategy)
    def collect(case: Any) -> None:
        found.append(case)

    collect()
    return found


class _Wire:
    """Sends what schemathesis made, with what is on the stage filled in, as one of the callers."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = stage.ca_file

    def send(self, case: dict[str, Any], route: str, listed: set[int], chance: random.Random, record: Record) -> None:
        """Send one request and note the answer.

        One that took too long is asked again, and wrong when the server works that long for it each time; one that is
        not answered at all ends the test.
        """
        if record.sent % 300 == 0:
            self._stage.renew()
        try:
            prepared = self._session.prepare_request(requests.Request(**case))
        except (requests.RequestException, UnicodeError, ValueError):
            return  # no HTTP client could send it; raw does
        self._fill(prepared, chance)
        if prepared.method == "GET" and chance.random() < 0.03:
            prepared.method = "HEAD"
        said = f"{prepared.method} {prepared.url} {dict(prepared.headers)} {str(prepared.body)[:2000]}"
        before = self._stage.processor_seconds()
        answer = self._answered(prepared)
        record.note(route, answer, said)
        if answer.seconds > PATIENCE:
            took = [self._stage.processor_seconds() - before]
            for _ in range(2):
                before = self._stage.processor_seconds()
                self._answered(prepared)
                took.append(self._stage.processor_seconds() - before)
            if min(took) > PATIENCE:
                record.wrong.append(f"{min(took):.1f} s of processor time, three times: {said}")
        if answer.status not in listed:
            record.wrong.append(f"{answer.status} is not among {sorted(listed)} of {route}: {said}")
        if "/search/sign-out" in (prepared.url or ""):
            self._stage.renew()
        if answer.status < 300:
            self._stage.used(prepared.method or "", prepared.url or "")

    def _fill(self, prepared: requests.PreparedRequest, chance: random.Random) -> None:
        url = prepared.url or ""
        prepared.url = self._stage.filled(url)
        if prepared.body:
            body = prepared.body if isinstance(prepared.body, bytes) else str(prepared.body).encode("utf-8", "replace")
            prepared.body = self._stage.filled(body.decode("latin-1")).encode("latin-1", "replace")
            prepared.headers["Content-Length"] = str(len(prepared.body))
            if prepared.body.startswith(b"--campaign"):
                prepared.headers["Content-Type"] = "multipart/form-data; boundary=campaign"
        for name, value in list(prepared.headers.items()):
            text = value if isinstance(value, str) else value.decode("latin-1")
            if "PROP-" in text:
                prepared.headers[name] = self._stage.filled(text)
        caller = chance.choice(_CALLERS)
        prepared.headers.pop("Authorization", None)
        if caller in ("writer", "reader", "administrator") and not url.endswith("/login"):
            administers = _ADMINISTERED.search(url) and prepared.method != "GET" and chance.random() < 0.7
            steward = (caller == "administrator" and "/rest/repositories" in url) or administers
            directs = "/activate" in url or (json_bodies.BY_REST.match(prepared.path_url) and chance.random() < 0.7)
            wanted = "administrator" if directs else "steward" if steward else caller
            prepared.headers["Authorization"] = f"Bearer {self._stage.bearer(wanted)}"
        elif caller == "stranger":
            prepared.headers["Authorization"] = chance.choice(("Bearer x", "Bearer", "Basic eA==", "Digest a=b", "é"))
        if chance.random() < 0.03:
            prepared.headers["Muniment-Position"] = chance.choice(("plain", "x"))
        if prepared.method == "GET" and chance.random() < 0.03:
            prepared.url = f"{prepared.url}{'&' if '?' in url else '?'}cursor=x"
        if caller != "nobody" and (cookie := self._cookie(url)):
            prepared.headers["Cookie"] = cookie

    def _cookie(self, url: str) -> str:
        if "/search" in url and "/rest/" not in url:
            self._stage.filled(Prop.MARK)
            return self._stage.cookies["search"]
        page = "console" if "/console" in url else "login"
        return self._stage.cookies.get(page, "") if "/dirws/" in url else ""

    def _answered(self, prepared: requests.PreparedRequest) -> Answer:
        began = time.perf_counter()
        try:
            answer = self._session.send(prepared, timeout=30, allow_redirects=False)
        except requests.ConnectionError:
            # The server may end a connection that was idle just when it was used again.
            answer = self._session.send(prepared, timeout=30, allow_redirects=False)
        seconds = time.perf_counter() - began
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status_code, headers, answer.content, seconds, ours=True)
