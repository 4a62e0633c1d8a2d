"""How long does a process use one point in time?"""

import itertools
import time
from typing import Any

import msgspec
import pytest

from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.index.contract import Search, Visible
from muniment.repository.search.index.opensearch import fields
from muniment.repository.search.index.opensearch.generation import About, Site
from muniment.repository.search.index.opensearch.searching import KEEP_SECONDS, PointInTime
from muniment.repository.search.index.opensearch.snapshot import OpenSearchIndex
from muniment.repository.store.change_log.changes import Position
from tests.unit.repository.search.index.opensearch.scripted import Scripted

INDEX = "muniment-7-1"
POSITION = {"_index": INDEX, "_seq_no": 1, "_source": {"position": str(Position(0, 1))}}
NOTHING = {"_shards": {"total": 1, "successful": 1, "failed": 0}, "hits": {"total": {"value": 0}, "hits": []}}
ABOUT = {"_meta": msgspec.to_builtins(About("us", 7, fields.FORMAT, "English"))}
POINT = f"POST /{INDEX}/_search/point_in_time"
SEARCH = Search(BoundQuery(), Visible(everything=True), 0, 1)


def test_only_questions_keep_it_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes a snapshot and asks nothing, as a check of health does, does not."""
    now = itertools.count(1000.0, KEEP_SECONDS / 3)
    moment = next(now)
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    cluster = Scripted(
        {
            f"GET /muniment-7/_doc/{fields.POSITION}": (200, POSITION),
            f"GET /{INDEX}/_mapping": (200, {INDEX: {"mappings": ABOUT}}),
            POINT: (200, {"pit_id": "one"}),
            "POST /_search": (200, NOTHING),
        }
    )
    reader = OpenSearchIndex(Site(cluster, OpenSearchOptions(), 7, "us", lambda: 0))
    first = reader.snapshot()
    for _ in range(3):
        moment = next(now)
        assert reader.snapshot() is first
        first.search(SEARCH)
    moment = next(now)
    assert reader.snapshot() is first
    moment = next(now)
    assert reader.snapshot() is not first
    assert cluster.count(POINT) == 2


class Held(Scripted):
    """A point in time with so many documents."""

    def __init__(self, number: int) -> None:
        super().__init__({})
        self.keys = [f"{at:016x}" for at in range(number)]

    def ask(self, method: str, path: str, body: Any = None, *_: object, **__: object) -> Any:
        """Answer a search."""
        keys = self.keys[: body["size"]]
        for each in body["query"]["bool"]["must"]:
            keys = each["ids"]["values"] if "ids" in each else keys
        self.asked.append((path, body))
        source = body["_source"] or []
        hits = [{"_id": key, "sort": [1.0], "_source": {field: f"{field} {key}" for field in source}} for key in keys]
        return {"_shards": {"total": 1, "successful": 1}, "hits": {"hits": hits}}

    def brought(self) -> list[tuple[int, object]]:
        return [(body["size"], body["_source"]) for _, body in self.asked]


SOURCE, TEXT = fields.SOURCE, fields.TEXT


def test_a_short_page_brings_texts_and_a_long_one_fetches_some_when_one_is_read() -> None:
    short = Held(60)
    page, _ = PointInTime(short, "pit").by_score({}, 0, 25, total=False)
    assert [hit.text() for _, hit in page] == [f"{TEXT} {key}" for key in short.keys[:25]]
    assert short.brought() == [(25, [SOURCE, TEXT])]
    long = Held(60)
    page, _ = PointInTime(long, "pit").by_score({}, 0, 60, total=False)
    assert [hit.source_bytes().decode() for _, hit in page] == [f"{SOURCE} {key}" for key in long.keys]
    assert long.brought() == [(60, [SOURCE])]
    assert [hit.text() for _, hit in page] == [f"{TEXT} {key}" for key in long.keys]
    assert long.brought()[1:] == [(25, [TEXT]), (25, [TEXT]), (10, [TEXT])]


def test_who_only_asks_what_matches_gets_no_text() -> None:
    held = Held(5)
    PointInTime(held, "pit").search({}, 5)
    assert held.brought() == [(5, [SOURCE])]


def test_what_is_not_stored_is_an_error_and_a_missing_text_is_empty() -> None:
    held = Held(1)
    (hit,) = PointInTime(held, "pit").walk({}, [{"number": "asc"}], 2)
    held.keys, hit.stored = [], {SOURCE: None, TEXT: None}
    assert hit.text() == ""
    with pytest.raises(KeyError):
        hit.source_bytes()
