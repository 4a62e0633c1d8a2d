"""ours 6: a search takes only so many seconds, whatever address it comes by, and its wildcards only so much work."""

import json
import socket
import ssl
import threading
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from muniment.database import budgets
from muniment.database.budgets import Budget
from muniment.repository.search.index.contract import Snapshot
from muniment.repository.search.index.tantivy.engine import TantivyIndex
from tests.pages import Reader
from tests.scenes import Served, Site
from tests.waiting import until

pytestmark = pytest.mark.campaign_on("postgresql")


@pytest.mark.slow
def test_ours_6_no_search_asks_the_engine_when_its_seconds_are_over(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = site.create("overdue pump", b"an overdue pump")
    site.world.catch_up()
    prefix, document = site.names.type_prefix, {"expression-type": "fulltext", "value": "overdue"}
    reader = Reader(site, site.world.writer)
    searches = [
        (site.search_address, {"q": "overdue"}),
        (f"{site.search_address}/explanation", {"q": "overdue", "object": created}),
        (f"{site.repository}/objects/{created}/similar", {}),
        (f"{site.base}/{site.names.prefix}/search", {"q": "overdue"}),
        (site.repository, {"dql": f"select object_name from {prefix}document search document contains 'overdue'"}),
    ]
    take = TantivyIndex.snapshot

    def take_late(index: TantivyIndex) -> Snapshot:
        snapshot = take(index)
        budget = budgets._current.get()
        assert budget is not None, "every search has a budget"
        budget.limit(0)
        return snapshot

    def statuses(beginning: str) -> list[int]:
        suggested = f"{site.search_address}/suggestions", {"q": beginning}
        headers = site.bearer() | {"Accept": "application/json"}
        got = [site.http.get(address, params=values, headers=headers) for address, values in (*searches, suggested)]
        body = json.dumps({"expression-set": {"expressions": [document]}}).encode()
        posted = site.http.post(
            site.search_address, content=body, headers=headers | {"Content-Type": "application/json"}
        )
        seen = reader.http.get("/search", params={"q": "overdue"})
        assert all(answer.headers.get("Retry-After") for answer in got if answer.status_code == 503)
        return [answer.status_code for answer in (*got, posted, seen)]

    assert statuses("overd") == [200] * 8
    monkeypatch.setattr(TantivyIndex, "snapshot", take_late)
    assert statuses("overdu") == [503] * 8


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_ours_6_a_search_ends_when_its_caller_hangs_up(
    site: Site, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    take, begun, ended = TantivyIndex.snapshot, threading.Event(), threading.Event()

    def take_slowly(index: TantivyIndex) -> Snapshot:
        budget = budgets._current.get()
        assert budget is not None
        begun.set()
        until(budget.is_spent)
        ended.set()
        return take(index)

    with closing(Served(site)) as served:
        trust = ssl.create_default_context(cafile=str(served.ca_file))
        body = json.dumps({"expression-set": {"expressions": []}}).encode() if method == "POST" else b""
        monkeypatch.setattr("muniment.database.transactions.Budget", lambda _seconds: Budget(600))
        monkeypatch.setattr(TantivyIndex, "snapshot", take_slowly)
        head = [
            f"{method} {urlsplit(site.search_address).path}{'?q=pump' if not body else ''} HTTP/1.1",
            f"Host: 127.0.0.1:{served.port}",
            f"Authorization: {site.bearer()['Authorization']}",
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n",
        ]
        with socket.create_connection(("127.0.0.1", served.port), 30) as plain:
            caller = trust.wrap_socket(plain, server_hostname="localhost")
            caller.sendall("\r\n".join(head).encode() + body)
            assert begun.wait(60)
            assert not ended.is_set()
            caller.close()
        assert ended.wait(60), "its budget is 600 seconds, but nobody waits for the answer"


def test_ours_6_too_many_leading_wildcards_are_refused_with_the_limit(site: Site) -> None:
    answer = site.http.get(site.search_address, params={"q": "*a OR *e OR *i OR *o OR *u"}, headers=site.bearer())
    assert answer.status_code == 400
    assert "at most 4" in answer.text
