"""Any order of writes, catch-ups and restarts ends in the index that a rebuild makes."""

import itertools
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.search.agent import agent
from muniment.repository.search.index.tantivy.engine import TantivyIndex
from muniment.repository.search.index.tantivy.generations import FolderEngine, FollowingIndex
from muniment.repository.store.extraction import queue
from tests.properties.lengths import examples
from tests.shelf import Shelf

numbers = itertools.count(1)
step = st.tuples(
    st.sampled_from(["add", "title", "acl", "replace", "extract", "delete", "catch up", "restart"]),
    st.integers(0, 9),
)


def take(shelf: Shelf, made: list[str], name: str, number: int) -> None:
    """Do one step; a step on an object needs one."""
    if name == "add":
        made.append(shelf.add(f"pump {number}", "valve " * number, acl=("private", "public")[number % 2]))
    elif name == "extract":
        with shelf.database.begin() as cx:
            if (job := queue.take(cx, shelf.now)) is not None:
                queue.finish(cx, job, f"text {number}", shelf.now)
    elif name == "catch up":
        agent.catch_up(shelf.database, shelf.repository, shelf.writer, shelf.now, limit=number + 1)
    elif name == "restart":
        shelf.restart()
    elif made:
        change(shelf, made, name, number)


def change(shelf: Shelf, made: list[str], name: str, number: int) -> None:
    """Do a step on one of the objects."""
    object_id = made[number % len(made)]
    if name == "title":
        shelf.change(object_id, {"title": f"title {number}"})
    elif name == "acl":
        shelf.change(object_id, {"acl_name": ("public", "private")[number % 2]})
    elif name == "replace":
        shelf.replace(object_id, f"text {number}")
    else:
        shelf.delete(object_id)
        made.remove(object_id)


@settings(max_examples=examples(12, 300), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(step, max_size=25))
def test_any_history_ends_in_the_index_that_a_rebuild_makes(
    repository_db: Database, now: Instant, steps: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(repository_db, Path(folder) / "followed", now, f"demo {next(numbers)}")
        made: list[str] = []
        for name, number in steps:
            take(shelf, made, name, number)
        shelf.catch_up()
        report = shelf.report()
        assert report.sound, report
        assert report.objects == report.documents == len(made)
        agent.rebuild(repository_db, shelf.repository, FolderEngine(Path(folder)), lambda: now)
        rebuilt = FollowingIndex(Path(folder) / str(shelf.repository.id), TantivyIndex).snapshot()
        assert rebuilt.position == shelf.index.snapshot().position
        followed = shelf.index.snapshot().documents()
        assert {kept.key: kept for kept in rebuilt.documents()} == {kept.key: kept for kept in followed}
        shelf.close()
