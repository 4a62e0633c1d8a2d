"""Documents may be newer than the position: whatever a torn commit left, a search shows what is true."""

import contextlib
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.refusals import UnknownObject
from muniment.repository.search.agent import agent
from muniment.repository.search.index.contract import EngineAway
from muniment.repository.search.index.opensearch.client import ClusterAway
from muniment.repository.search.index.opensearch.writer import OpenSearchWriter
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import Position
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import inventory
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.properties.lengths import examples
from tests.properties.test_agent import step, take
from tests.shelf import BORIS, MARTA, Shelf

pytestmark = [pytest.mark.only("sqlite"), pytest.mark.usefixtures("shelves_on_cluster")]

numbers = itertools.count(1)
torn = st.tuples(st.sampled_from(["before the refresh", "before the position", "in the bulk"]), st.integers(0, 9))


def tear(shelf: Shelf, where: str, number: int) -> None:
    """Catch up with a writer that falls at a step, and let the next one take over."""
    writer = shelf.writer
    assert isinstance(writer, OpenSearchWriter)
    send = writer._bulk

    def fall(*_arguments: object, **_how: object) -> None:
        raise ClusterAway("It fell.")

    def half(operations: Sequence[bytes]) -> None:
        send(operations[: number + 1])
        writer._cluster.post(f"/{writer._alias}/_refresh", None)
        fall()

    def whole(operations: Sequence[bytes]) -> None:
        send(operations)
        fall()

    if where == "before the position":
        writer._put = fall  # type: ignore[method-assign, assignment]
    else:
        writer._bulk = half if where == "in the bulk" else whole  # type: ignore[method-assign]
    with contextlib.suppress(EngineAway):
        agent.catch_up(shelf.database, shelf.repository, writer, shelf.now, limit=number + 1)
    shelf.restart()


def truth(
    shelf: Shelf, made: Sequence[str], caller: Principals, word: str, since: Position
) -> tuple[set[str], set[str]]:
    """What the caller must find at least, and at most, as the database says."""
    with shelf.database.read() as cx:
        rows, texts = inventory.rows(cx, shelf.repository.id, made), queue.text_of(cx, made)
        changed = {line.object_id for line in changes.after(cx, shelf.repository.id, since, 10_000)}
    most = set()
    for object_id, row in rows.items():
        try:
            _, permission = shelf.read(object_id, caller)
        except UnknownObject:
            continue
        metadata = f"{row.name} {row.properties}"
        said = texts.get(object_id, "") if permission >= Permission.READ else ""
        if word in metadata or word in said:
            most.add(object_id)
    return most - changed, most


@settings(max_examples=examples(15, 300), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.one_of(step, step, torn), max_size=25))
def test_a_search_over_a_torn_commit_is_true(
    repository_db: Database, now: Instant, steps: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(repository_db, Path(folder), now, f"demo {next(numbers)}")
        made: list[str] = []
        last = shelf.index.snapshot().position
        for name, number in steps:
            if name in ("before the refresh", "before the position", "in the bulk"):
                tear(shelf, name, number)
            else:
                take(shelf, made, name, number)
            position = shelf.index.snapshot().position
            assert position >= last
            last = position
            for caller, word in itertools.product((MARTA, BORIS), ("pump", "valve", "text")):
                least, most = truth(shelf, made, caller, word, position)
                found = {hit.object_id for hit in shelf.page(caller, word).hits}
                assert least <= found <= most, (name, word)
        shelf.catch_up()
        assert shelf.report().sound
        shelf.close()
