"""A cluster that is away, busy, another's, or deleted; writers that come late; positions that are true."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from muniment.database.connections import Database
from muniment.ground import clock
from muniment.ground.clock import SECOND, Instant
from muniment.repository.refusals import BadQuery, IndexUnavailable
from muniment.repository.search.agent import agent
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.aql.tree import Fulltext, Keywords, Term, Wild
from muniment.repository.search.index.contract import EngineAway, Search, Snapshot, Visible
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.opensearch.client import Conflict
from muniment.repository.search.index.opensearch.generations import OpenSearchEngine
from muniment.repository.search.index.opensearch.writer import TOMBSTONE_AGE
from muniment.repository.search.index.questions.vocabulary import differing
from muniment.repository.store.change_log.changes import Position
from tests.clock import Clock
from tests.cluster import OnCluster, repository
from tests.proxy import Proxy
from tests.shelf import MARTA, Shelf
from tests.waiting import until

EVERYTHING = Visible(everything=True)


@pytest.fixture
def made(opensearch: str, tmp_path: Path) -> Iterator[OnCluster]:
    one = OnCluster(opensearch, tmp_path, shards=3)
    yield one
    one.close()


@pytest.fixture
def proxy(opensearch: str) -> Iterator[Proxy]:
    with Proxy(opensearch, "muniment", "öffne dich").serving() as one:
        yield one


def kept(at: int, text: str = "pump") -> Document:
    return Document(f"{0x0900000100000000 + at:016x}", at, 100 + at, "document", 1, "marta@staff", {}, text)


def found(snapshot: Snapshot, word: str = "pump") -> set[str]:
    query = BoundQuery((), Fulltext(Term(word)))
    return {hit.object_id for hit in snapshot.search(Search(query, EVERYTHING, 0, 1000)).hits}


# Writers

FROZEN = """
import json, os, signal, sys
from muniment.ground import clock
from pathlib import Path
from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.opensearch.generations import OpenSearchEngine
from muniment.repository.search.index.questions.vocabulary import differing
from muniment.repository.store.change_log.changes import Position
from tests.cluster import repository
from tests.opensearch.test_life import kept
options, folder, generation = json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
engine = OpenSearchEngine(folder, OpenSearchOptions(**options), lambda: "tests", clock.now)
writer = engine.index(repository()).writer(generation)
send = writer._bulk
def late(operations):
    print("in the bulk", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    send(operations)
writer._bulk = late
try:
    writer.apply([kept(1, "late pump"), kept(2, "late pump"), kept(3, "late pump")], (), Position(0, 9))
except OSError as error:
    print(type(error).__name__, flush=True)
else:
    print("written", flush=True)
"""


def test_a_leader_frozen_in_a_bulk_brings_nothing_back(made: OnCluster, tmp_path: Path) -> None:
    """Its objects are deleted, changed and left alone meanwhile: the next leader has written all of them anew."""
    made.writer.apply([kept(1), kept(2), kept(3)], (), Position(0, 1))
    arguments = [json.dumps(msgspec.to_builtins(made.options)), str(tmp_path / "other"), made.generation]
    leader = subprocess.Popen([sys.executable, "-c", FROZEN, *arguments], stdout=subprocess.PIPE, text=True)
    assert leader.stdout is not None
    try:
        assert leader.stdout.readline() == "in the bulk\n"
        until(lambda: Path(f"/proc/{leader.pid}/stat").read_text().split()[2] == "T")
        made.writer = made.index.writer(made.generation)
        made.writer.apply([kept(3, "valve")], [kept(1).key, kept(2).key], Position(0, 12))
        os.kill(leader.pid, signal.SIGCONT)
        assert leader.stdout.readline() == "Conflict\n"
    finally:
        leader.kill()
        leader.wait()
    made.writer.apply((), (), Position(0, 13))
    snapshot = made.reader.snapshot()
    assert snapshot.position == Position(0, 13)
    assert [(each.key, each.text) for each in snapshot.documents()] == [(kept(3).key, "valve")]


def test_who_is_no_longer_the_writer_does_not_move_the_position(made: OnCluster) -> None:
    made.writer.apply([kept(1)], (), Position(0, 1))
    former, made.writer = made.writer, made.index.writer(made.generation)
    made.writer.apply([kept(2)], (), Position(0, 5))
    with pytest.raises(Conflict):
        former.apply((), (), Position(0, 3))
    with pytest.raises(Conflict):
        former.apply([kept(2, "late")], (), Position(0, 6))
    assert made.reader.snapshot().position == Position(0, 5)
    assert found(made.reader.snapshot(), "late") == set()


def test_tombstones_are_swept_after_a_day_unless_the_object_is_back(made: OnCluster) -> None:
    made.writer.apply([kept(1), kept(2), kept(3)], (), Position(0, 1))
    made.writer.apply((), [kept(1).key, kept(2).key], Position(0, 2))
    made.writer.apply([kept(2)], (), Position(0, 3))
    address, name = made.options.address, f"{made.options.prefix}-7"

    def held() -> int:
        return int(httpx.get(f"{address}/{name}/_count").json()["count"])

    for after, left in ((0, 4), (TOMBSTONE_AGE + 60 * SECOND, 3)):
        made.engine.sweep(clock.now() + after)
        made.writer.apply([kept(3)], (), Position(0, 4))
        assert held() == left, "two or three documents, the position, and what is gone"
    assert found(made.reader.snapshot()) == {kept(2).key, kept(3).key}


@pytest.mark.parametrize("step", ["_refresh", "_doc/position"])
def test_a_write_that_fails_leaves_the_position(opensearch: str, tmp_path: Path, step: str, proxy: Proxy) -> None:
    made = OnCluster(opensearch, tmp_path)
    made.writer.apply([kept(1)], (), Position(0, 1))
    options = msgspec.structs.replace(made.options, address=proxy.address, name="muniment", password="öffne dich")
    index = OpenSearchEngine(tmp_path, options, lambda: "tests", clock.now).index(repository())
    writer = index.writer(made.generation)
    proxy.refused[step] = 503, 1
    with pytest.raises(EngineAway):
        writer.apply([kept(2)], [kept(1).key], Position(0, 2))
    assert made.reader.snapshot().position == Position(0, 1)
    writer = index.writer(made.generation)
    assert writer.position == Position(0, 1)
    writer.apply([kept(2)], [kept(1).key], Position(0, 2))
    snapshot = made.reader.snapshot()
    assert (snapshot.position, found(snapshot)) == (Position(0, 2), {kept(2).key})
    made.close()


def test_a_replica_that_no_node_holds_is_no_reason_to_wait(opensearch: str, tmp_path: Path) -> None:
    made = OnCluster(opensearch, tmp_path, shards=2, replicas=1)
    try:
        made.writer.apply([kept(1)], (), Position(0, 1))
        assert found(made.reader.snapshot()) == {kept(1).key}
        assert made.reader.snapshot().position == Position(0, 1)
    finally:
        made.close()


def test_a_busy_cluster_gets_the_same_bulk_again(opensearch: str, tmp_path: Path, proxy: Proxy) -> None:
    made = OnCluster(opensearch, tmp_path)
    options = msgspec.structs.replace(made.options, address=proxy.address, name="muniment", password="öffne dich")
    writer = OpenSearchEngine(tmp_path, options, lambda: "tests", clock.now).index(repository()).writer(made.generation)
    proxy.refused["_bulk"] = 429, 2
    writer.apply([kept(1)], (), Position(0, 1))
    assert sum("_bulk" in each for each in proxy.asked) == 3
    assert found(made.reader.snapshot()) == {kept(1).key}
    made.close()


# Readers


def test_deep_pages_join(made: OnCluster) -> None:
    """Pages beyond the engine's window of 10,000 hits are walked."""
    numbers = range(1, 10_301)
    for start in range(0, len(numbers), 2000):
        made.writer.apply([kept(at) for at in numbers[start : start + 2000]], (), Position(0, 1))
    snapshot = made.reader.snapshot()
    search = Search(BoundQuery(), EVERYTHING, 10_150, 100, total=True)
    newest = [kept(at).key for at in reversed(numbers)]
    answer = snapshot.search(search)
    assert [hit.object_id for hit in answer.hits] == newest[10_150:10_250]
    assert (answer.total, answer.more) == (10_300, True)
    by_word = msgspec.structs.replace(search, query=BoundQuery((), Fulltext(Term("pump"))))
    answer = snapshot.search(by_word)
    assert [hit.object_id for hit in answer.hits] == [kept(at).key for at in numbers[10_150:10_250]]
    assert answer.hits[0].excerpt == "pump"
    assert list(snapshot.counters(search, "made")) == list(numbers[10_150:10_250])


def test_no_word_of_many_is_left_out(made: OnCluster) -> None:
    """Words of a beginning, words like another, values like a pattern: the engine's defaults stop after 50 or 128."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"pum{one}{other}" for one in letters for other in letters]
    made.writer.apply([kept(at, word) for at, word in enumerate(words, 1)], (), Position(0, 1))
    snapshot = made.reader.snapshot()

    def count(asked: Keywords) -> int:
        return snapshot.search(Search(BoundQuery((), Fulltext(asked)), EVERYTHING, 0, 1, total=True)).total or 0

    assert count(Wild("pum*")) == count(Wild("pum?*")) == len(words)
    assert count(Term("pumab", fuzzy=True)) == sum(differing(word, "pumab") <= 1 for word in words) > 50
    beginning = snapshot.completions(Search(BoundQuery(), EVERYTHING, 0, 1), "pum", 1000)
    assert [each.word for each in beginning] == sorted(words)


def test_too_many_endings_of_a_joined_word_are_refused_and_none_is_left_out(made: OnCluster) -> None:
    few, many = [f"wi-fa{at}" for at in range(900)], [f"wi-fi{at}" for at in range(60_000)]
    texts = [*few, *(" ".join(many[at : at + 100]) for at in range(0, len(many), 100))]
    made.writer.apply([kept(at, text) for at, text in enumerate(texts, 1)], (), Position(0, 1))
    snapshot = made.reader.snapshot()

    def search(asked: str) -> Search:
        return Search(BoundQuery((), Fulltext(Wild(asked))), EVERYTHING, 0, 1, total=True)

    assert snapshot.search(search("wi-fa*")).total == 900
    with pytest.raises(BadQuery, match="Too many words begin"):
        snapshot.search(search("wi-fi*"))


def test_a_snapshot_stays_as_it_is_and_another_of_the_same_position_is_the_same(made: OnCluster) -> None:
    made.writer.apply([kept(1)], (), Position(0, 1))
    before = made.reader.snapshot()
    assert made.reader.snapshot() is before
    made.writer.apply([kept(2)], [kept(1).key], Position(0, 2))
    after = made.reader.snapshot()
    assert (before.position, found(before)) == (Position(0, 1), {kept(1).key})
    assert (after.position, found(after)) == (Position(0, 2), {kept(2).key})


def test_a_point_in_time_that_the_cluster_let_go_is_replaced(made: OnCluster) -> None:
    """As when a node was restarted: the position is as before."""
    made.writer.apply([kept(1)], (), Position(0, 1))
    assert found(made.reader.snapshot()) == {kept(1).key}
    httpx.delete(f"{made.options.address}/_search/point_in_time/_all").raise_for_status()
    with pytest.raises(IndexUnavailable, match="try again"):
        found(made.reader.snapshot())
    assert found(made.reader.snapshot()) == {kept(1).key}


def test_an_answer_that_misses_a_shard_is_none(opensearch: str, tmp_path: Path, proxy: Proxy) -> None:
    made = OnCluster(opensearch, tmp_path)
    made.writer.apply([kept(1)], (), Position(0, 1))
    options = msgspec.structs.replace(made.options, address=proxy.address, name="muniment", password="öffne dich")
    reader = OpenSearchEngine(tmp_path, options, lambda: "tests", clock.now).index(repository()).reader()
    snapshot = reader.snapshot()
    half = {"_shards": {"total": 3, "successful": 2, "failed": 1}, "hits": {"total": {"value": 0}, "hits": []}}
    proxy.replaced["/_search?allow_partial_search_results=false"] = json.dumps(half).encode()
    with pytest.raises(IndexUnavailable, match="A part of the index does not answer"):
        found(snapshot)
    made.close()


# What is not ours


@pytest.mark.parametrize(
    ("password", "version", "said"),
    [
        ("wrong", {}, "refuses the name and password"),
        ("öffne dich", {"distribution": "opensearch", "number": "2.19.1"}, "release 3, and this one is 2.19.1"),
        ("öffne dich", {"number": "8.15.0"}, "no OpenSearch"),
    ],
)
def test_another_cluster_is_named(
    tmp_path: Path, proxy: Proxy, opensearch: str, password: str, version: dict[str, str], said: str
) -> None:
    made = OnCluster(opensearch, tmp_path)
    made.close()
    options = msgspec.structs.replace(made.options, address=proxy.address, name="muniment", password=password)
    if version:
        proxy.replaced["/"] = json.dumps({"version": version}).encode()
    index = OpenSearchEngine(tmp_path, options, lambda: "tests", clock.now).index(repository())
    with pytest.raises(IndexUnavailable, match=said):
        index.reader().snapshot()
    with pytest.raises(EngineAway, match=said):
        index.writer("1")


def test_an_index_of_another_installation_is_left_alone(made: OnCluster, tmp_path: Path) -> None:
    made.writer.apply([kept(1)], (), Position(0, 1))
    other = OpenSearchEngine(tmp_path / "other", made.options, lambda: "somebody else", clock.now)
    index = other.index(repository())
    with pytest.raises(IndexUnavailable, match="belongs to another installation"):
        index.reader().snapshot()
    with pytest.raises(EngineAway, match="belongs to another installation"):
        index.writer(made.generation)
    index.remove()
    other.sweep(clock.now() + 2 * TOMBSTONE_AGE)
    assert found(made.reader.snapshot()) == {kept(1).key}


def test_a_foreign_index_under_our_name_is_left_alone(opensearch: str, made: OnCluster) -> None:
    name = f"{made.options.prefix}-8"
    httpx.put(f"{opensearch}/{name}/_doc/position", json={"theirs": 1}).raise_for_status()
    try:
        index = made.engine.index(msgspec.structs.replace(repository(), id=8))
        with pytest.raises(IndexUnavailable, match="not made by this installation"):
            index.reader().snapshot()
        generation = index.begin()
        index.writer(generation).close()
        with pytest.raises(IndexUnavailable, match="could not become current"):
            index.switch(generation)
        index.remove()
        assert httpx.get(f"{opensearch}/{name}/_doc/position").json()["_source"] == {"theirs": 1}
    finally:
        httpx.delete(f"{opensearch}/{name}")


# Points in time


def test_a_point_in_time_that_is_over_makes_room_for_the_next(opensearch: str, tmp_path: Path) -> None:
    """A node permits so many at one time, 300 by default, of each shard."""

    def limit(number: int | None) -> None:
        settings = {"transient": {"search.max_open_pit_context": number}}
        httpx.put(f"{opensearch}/_cluster/settings", json=settings).raise_for_status()

    def open_now() -> int:
        nodes = httpx.get(f"{opensearch}/_nodes/stats/indices/search").json()["nodes"].values()
        return sum(node["indices"]["search"]["point_in_time_current"] for node in nodes)

    on = OnCluster(opensearch, tmp_path)
    before = open_now()
    limit(before + 1)
    try:
        for number in range(3):
            assert len(found(on.holding([kept(each) for each in range(number)]))) == number
            assert open_now() == before + 1
        on.reader.close()
        assert open_now() == before
    finally:
        limit(None)
        on.close()


def test_a_reader_is_closed_though_the_cluster_says_nothing(opensearch: str, tmp_path: Path, proxy: Proxy) -> None:
    on = OnCluster(opensearch, tmp_path)
    options = msgspec.structs.replace(on.options, address=proxy.address, name="muniment", password="öffne dich")
    reader = OpenSearchEngine(tmp_path, options, lambda: "tests", clock.now).index(repository()).reader()
    reader.snapshot()
    proxy.speaks.clear()
    began = time.monotonic()
    reader.close()
    assert time.monotonic() - began < 10
    proxy.speaks.set()
    on.close()


# The agent


def test_the_agent_waits_for_a_cluster_that_is_away_and_makes_a_deleted_index_anew(
    repository_db: Database, tmp_path: Path, now: Instant, proxy: Proxy, opensearch: str
) -> None:
    made = OnCluster(opensearch, tmp_path / "prefix")
    made.close()
    options = msgspec.structs.replace(made.options, address=proxy.address, name="muniment", password="öffne dich")
    engine = OpenSearchEngine(tmp_path / "locks", options, lambda: "tests", clock.now)
    shelf = Shelf(repository_db, tmp_path, now)
    index = engine.index(shelf.repository)
    reader = index.reader()
    stop = threading.Event()
    thread = threading.Thread(target=agent.run, args=(repository_db, engine, stop, Clock()))
    proxy.is_away = True
    first = shelf.add("first", "the pump")
    thread.start()
    try:
        with pytest.raises(IndexUnavailable, match="cannot be reached"):
            reader.snapshot()
        proxy.is_away = False

        def names(word: str) -> set[str]:
            try:
                return found(reader.snapshot(), word)
            except IndexUnavailable:
                return set()

        until(lambda: names("pump") == {first})
        proxy.is_away = True
        second = shelf.add("second", "another pump")
        with pytest.raises(IndexUnavailable):
            reader.snapshot()
        proxy.is_away = False
        until(lambda: names("pump") == {first, second})
        httpx.delete(f"{opensearch}/{options.prefix}-{shelf.repository.id}-{index.current()}").raise_for_status()
        assert names("pump") == set()
        until(lambda: names("pump") == {first, second})
        assert shelf.read(first, MARTA)
    finally:
        stop.set()
        thread.join(30)
        index.remove()
    assert not thread.is_alive()
