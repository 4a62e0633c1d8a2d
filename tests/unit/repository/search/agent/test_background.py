"""Checks by the agent itself: slowly by turns, at once when somebody asks, and what is kept of them."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.agent import agent, background, indexing, reports
from muniment.repository.search.agent.background import BackgroundChecks
from muniment.repository.search.agent.checking import Course, Difference, Report
from muniment.repository.search.agent.reports import KeptReport
from muniment.repository.search.index.tantivy.generations import FolderEngine
from tests.clock import NOON, Clock
from tests.shelf import MARTA, Shelf
from tests.waiting import until


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of four objects, and no long wait for a look."""
    monkeypatch.setattr(indexing, "_OBJECTS_AT_A_TIME", 4)
    monkeypatch.setattr(background, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(background, "_KEEP_SECONDS", 0.0)


@contextmanager
def running(database: Database, engine: FolderEngine, clock: Clock, check_seconds: float) -> Iterator[None]:
    """Run an agent beside the test."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(agent.run, database, engine, stop, clock, check_seconds=check_seconds)
        try:
            yield
        finally:
            stop.set()
        work.result()


def damaged(shelf: Shelf, engine: FolderEngine) -> tuple[list[str], Difference]:
    """Make objects and an index of them, in which one object is found by another ACL."""
    made = [shelf.add(f"pump {number}", "valve") for number in range(9)]
    agent.rebuild(shelf.database, shelf.repository, engine, Clock())
    index = engine.index(shelf.repository)
    generation = index.current()
    assert generation is not None
    writer, reader = index.writer(generation), index.reader()
    (document,) = reader.snapshot().documents([made[3]])
    writer.apply([msgspec.structs.replace(document, acl=document.acl + 7)], (), writer.position)
    writer.close()
    reader.close()
    return made, Difference(made[3], "stale", ("acl",))


def kept(shelf: Shelf, engine: FolderEngine) -> KeptReport:
    with shelf.database.read() as cx:
        return reports.of_repository(cx, shelf.repository.id).get(engine.follower(), KeptReport())


@pytest.mark.slow
def test_the_agent_finds_and_mends_a_difference_by_itself(shelf: Shelf, tmp_path: Path) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    made, difference = damaged(shelf, engine)
    with running(shelf.database, engine, clock, 0.01):
        until(lambda: kept(shelf, engine).report is not None)
    report = kept(shelf, engine).report
    assert report is not None
    assert report.differences == (msgspec.structs.replace(difference, repaired=True),)
    assert (report.sound, report.repaired, report.objects, report.ended) == (True, 1, 9, clock())
    (document,) = engine.index(shelf.repository).reader().snapshot().documents([made[3]])
    with shelf.database.read() as cx:
        assert document.acl == indexing.of_objects(cx, shelf.repository, [made[3]]).documents[0].acl


@pytest.mark.slow
def test_without_the_setting_the_agent_checks_only_when_somebody_asks(shelf: Shelf, tmp_path: Path) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    _, difference = damaged(shelf, engine)
    checks = BackgroundChecks(shelf.database, engine, 0)
    for _ in range(5):
        assert not checks.advance(clock.advance(7200))
    assert kept(shelf, engine) == KeptReport()
    with shelf.database.begin() as cx:
        reports.want(cx, shelf.repository.id, clock(), repairs=False)
    while checks.advance(clock.advance(1)):
        pass
    report = kept(shelf, engine).report
    assert report is not None
    assert (report.differences, report.noted, report.sound) == ((difference,), 0, False)
    assert not checks.advance(clock.advance(7200)), "it is done"
    assert kept(shelf, engine).report == report


@pytest.mark.slow
def test_a_wanted_check_is_done_at_once_and_mends(shelf: Shelf, tmp_path: Path) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    _, difference = damaged(shelf, engine)
    with running(shelf.database, engine, clock, 0):
        with shelf.database.begin() as cx:
            reports.want(cx, shelf.repository.id, clock(), repairs=True)
        until(lambda: kept(shelf, engine).report is not None)
    report = kept(shelf, engine).report
    assert report is not None
    assert report.differences == (msgspec.structs.replace(difference, repaired=True),)


def want(shelf: Shelf, clock: Clock, *, repairs: bool) -> None:
    with shelf.database.begin() as cx:
        reports.want(cx, shelf.repository.id, clock.advance(1), repairs=repairs)


def one_step(shelf: Shelf, engine: FolderEngine, now: Instant) -> Course:
    """What is under way after one step of a process that then ends."""
    checks = BackgroundChecks(shelf.database, engine, 0)
    assert checks.advance(now)
    checks.close()
    course = kept(shelf, engine).course
    assert course is not None
    return course


def test_a_wanted_check_goes_on_in_the_next_process(shelf: Shelf, tmp_path: Path) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    _, difference = damaged(shelf, engine)
    want(shelf, clock, repairs=False)
    began = clock.advance(1)
    assert one_step(shelf, engine, began).report.ranges == 1
    second = BackgroundChecks(shelf.database, engine, 0)
    while second.advance(clock.advance(1)):
        pass
    report = kept(shelf, engine).report
    assert report is not None
    assert (report.began, report.objects, report.differences, report.noted) == (began, 9, (difference,), 0)
    assert not second.advance(clock.advance(1)), "it is done"
    assert kept(shelf, engine) == KeptReport(report)


def test_a_check_that_is_wanted_again_begins_anew_in_the_next_process(shelf: Shelf, tmp_path: Path) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    damaged(shelf, engine)
    want(shelf, clock, repairs=False)
    one_step(shelf, engine, clock.advance(1))
    want(shelf, clock, repairs=True)
    began = clock.advance(1)
    course = one_step(shelf, engine, began)
    assert (course.report.began, course.report.ranges, course.repairs) == (began, 1, True)


def test_a_wanted_check_goes_on_after_a_failure(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise IndexUnavailable("no")

    monkeypatch.setattr(background, "_AFTER_A_FAILURE_SECONDS", 0.0)
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    for number in range(9):
        shelf.add(f"pump {number}")
    agent.rebuild(shelf.database, shelf.repository, engine, clock)
    want(shelf, clock, repairs=False)
    checks = BackgroundChecks(shelf.database, engine, 0)
    began = clock.advance(1)
    assert checks.advance(began)
    with monkeypatch.context() as patch:
        patch.setattr(indexing, "document_batch", failing)
        assert not checks.advance(clock.advance(1))
    while checks.advance(clock.advance(1)):
        pass
    report = kept(shelf, engine).report
    assert report is not None
    assert (report.began, report.objects) == (began, 9)


@pytest.mark.slow
def test_a_slow_check_goes_on_in_the_next_process_and_then_rests(shelf: Shelf, tmp_path: Path) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    damaged(shelf, engine)
    first = BackgroundChecks(shelf.database, engine, 1e-9)
    first.advance(clock())
    under_way = kept(shelf, engine).course
    assert under_way is not None
    assert (under_way.report.ranges, under_way.report.objects, under_way.repairs) == (1, 4, True)
    first.close()
    clock.advance(10)
    second = BackgroundChecks(shelf.database, engine, 1e-9)
    writer = engine.index(shelf.repository).writer("1")
    while kept(shelf, engine).report is None:
        second.advance(clock())
        agent.catch_up(shelf.database, shelf.repository, writer, clock())
    writer.close()
    report = kept(shelf, engine).report
    assert report is not None
    assert (report.began, report.ended, report.objects) == (NOON, clock(), 9)
    assert report.sound
    for _ in range(20):
        second.advance(clock())
    assert kept(shelf, engine) == KeptReport(report), "it rests"
    second.advance(clock.advance(3600))
    assert kept(shelf, engine).course is not None


def test_an_index_that_cannot_be_read_keeps_the_others_from_nothing(shelf: Shelf, tmp_path: Path) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    other = Shelf(shelf.database, tmp_path / "other", shelf.now, "other")
    shelf.add("pump")
    other.add("pump")
    agent.rebuild(shelf.database, other.repository, engine, clock)
    checks = BackgroundChecks(shelf.database, engine, 1e-9)
    for _ in range(10):
        checks.advance(clock())
    assert kept(shelf, engine) == KeptReport()
    report = kept(other, engine).report
    assert report is not None
    assert (report.objects, report.sound) == (1, True)


@pytest.mark.slow
def test_a_failure_ends_a_check_and_not_the_agent(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    damaged(shelf, engine)

    def failing(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(indexing, "document_batch", failing)
    checks = BackgroundChecks(shelf.database, engine, 1e-9)
    for _ in range(3):
        assert not checks.advance(clock())
    assert kept(shelf, engine) == KeptReport()


def test_a_report_of_another_form_is_not_read(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = KeptReport(Report(NOON, differences=(Difference("0" * 16, "stale", ("acl",)),)), Course(Report(NOON + 1)))
    with shelf.database.begin() as cx:
        reports.keep_report(cx, shelf.repository.id, "agent", whole)
        assert reports.of_repository(cx, shelf.repository.id) == {"agent": whole}
        assert reports.of_follower(cx, "agent") == {shelf.repository.id: whole}
    monkeypatch.setattr(reports, "FORMAT", reports.FORMAT + 1)
    with shelf.database.begin() as cx:
        assert reports.of_repository(cx, shelf.repository.id) == {"agent": KeptReport()}
        reports.forget(cx)
        assert reports.of_repository(cx, shelf.repository.id) == {}
        assert reports.wanted_checks(cx) == {}


@pytest.mark.slow
def test_searches_go_on_while_the_agent_checks_and_mends(shelf: Shelf, tmp_path: Path) -> None:
    engine, clock = FolderEngine(tmp_path / "indexes"), Clock()
    made, _ = damaged(shelf, engine)
    index = engine.index(shelf.repository).reader()
    vars(shelf)["index"] = index
    with running(shelf.database, engine, clock, 0.001):
        rounds = 0
        while kept(shelf, engine).report is None or rounds < 20:
            assert set(shelf.find(MARTA, "valve")) >= set(made) - {made[3]}
            rounds += 1
    assert shelf.find(MARTA, "valve") == made
