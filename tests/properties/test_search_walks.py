"""A walk along `next` shows each object that does not change exactly once, whatever is written between its pages."""

from collections import Counter

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from tests.properties.lengths import examples
from tests.walkers import QUERIES, ids, open_walkers, walk

writes = st.tuples(
    st.sampled_from(["add", "add", "title", "acl", "delete", "delete", "read acl", "catch up", "catch up"]),
    st.integers(0, 30),
)


@settings(max_examples=examples(12, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    objects=st.lists(st.integers(0, 30), min_size=3, max_size=14),
    query=st.sampled_from([*QUERIES, "posted"]),
    caller=st.sampled_from(["marta", "boris", "root"]),
    size=st.integers(1, 4),
    steps=st.lists(st.lists(writes, max_size=4), max_size=8),
)
def test_a_walk_shows_each_unchanged_object_exactly_once(
    repository_db: Database,
    now: Instant,
    objects: list[int],
    query: str,
    caller: str,
    size: int,
    steps: list[list[tuple[str, int]]],
) -> None:
    """failures B13"""
    with open_walkers(repository_db, now, objects) as walkers:
        seen_before = walkers.visible(caller)

        def between(number: int) -> None:
            for name, argument in steps[number] if number < len(steps) else ():
                walkers.write(name, argument)

        seen = Counter(walk(walkers, caller, query, size, between))
        unchanged = seen_before - walkers.touched_ids
        assert unchanged <= walkers.visible(caller)
        for object_id in unchanged:
            assert seen[object_id] == 1, (query, caller, object_id)
        assert seen.keys() <= seen_before | walkers.touched_ids
        assert set(seen.values()) <= {1}


@settings(max_examples=examples(5, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    objects=st.lists(st.integers(0, 30), min_size=8, max_size=16),
    query=st.sampled_from(["by modification", "sorted by two"]),
    start=st.integers(2, 3),
    steps=st.lists(st.tuples(st.sampled_from(["add", "delete", "catch up"]), st.integers(0, 30)), max_size=3),
)
@example(list(range(1, 11)), "by modification", 3, [("add", 1), ("add", 2), ("add", 4), ("catch up", 0)])
@example(list(range(1, 11)), "by modification", 3, [("delete", 9), ("delete", 8), ("delete", 7)])
def test_a_walk_from_a_page_further_down_goes_on_behind_it(
    repository_db: Database, now: Instant, objects: list[int], query: str, start: int, steps: list[tuple[str, int]]
) -> None:
    """Whatever comes, and whatever goes elsewhere, no unchanged object behind that page is missed or doubled."""
    size = 2
    with open_walkers(repository_db, now, objects) as walkers:
        whole = walk(walkers, "root", query, size, lambda _number: None)
        here = f"/rest/repositories/{walkers.shelf.repository.name}/search"
        address = f"{here}?{'&'.join((*QUERIES[query], f'items-per-page={size}'))}&page={start}"
        on_page = whole[(start - 1) * size : start * size]

        def between(number: int) -> None:
            for name, argument in steps if number == 0 else ():
                target = list(walkers.objects)[argument % len(walkers.objects)]
                if name != "delete" or target not in on_page:
                    walkers.write(name, argument)

        seen = Counter(walk(walkers, "root", query, size, between, address))
        behind = [object_id for object_id in whole[(start - 1) * size :] if object_id not in walkers.touched_ids]
        assert all(seen[object_id] == 1 for object_id in behind)
        assert not set(whole[: (start - 1) * size]) & seen.keys()


@settings(max_examples=examples(12, 400), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    objects=st.lists(st.integers(0, 5), min_size=5, max_size=16),
    query=st.sampled_from(sorted(QUERIES)),
    caller=st.sampled_from(["marta", "boris", "root"]),
    size=st.integers(1, 3),
    start=st.integers(1, 3),
    steps=st.lists(st.lists(writes, max_size=3), max_size=6),
)
def test_a_walk_that_collapses_copies_shows_each_unchanged_content_once(
    repository_db: Database,
    now: Instant,
    objects: list[int],
    query: str,
    caller: str,
    size: int,
    start: int,
    steps: list[list[tuple[str, int]]],
) -> None:
    """No object that does not change is lost: it is shown, or a copy of it is. What is made meanwhile may be a copy."""
    with open_walkers(repository_db, now, objects) as walkers:
        seen_before = walkers.visible(caller)
        here = f"/rest/repositories/{walkers.shelf.repository.name}/search"
        address = f"{here}?{'&'.join((*QUERIES[query], f'items-per-page={size}', 'collapse=content'))}"
        passed = [each for n in range(1, start) for each in ids(walkers.get(caller, f"{address}&page={n}"))]

        def between(number: int) -> None:
            for name, argument in steps[number] if number < len(steps) else ():
                walkers.write(name, argument if name != "add" else argument % 6)

        seen = Counter([*passed, *walk(walkers, caller, query, size, between, f"{address}&page={start}")])
        contents = Counter(walkers.contents[object_id] for object_id in seen.elements())
        unchanged = seen_before - walkers.touched_ids
        touched = {walkers.contents[object_id] for object_id in walkers.touched_ids}
        for object_id in unchanged:
            content = walkers.contents[object_id]
            if start == 1:
                assert contents[content] >= 1, (query, caller, content)
            if not touched:
                assert contents[content] == 1, (query, caller, content)
        if start == 1:
            assert set(seen.values()) <= {1}
            for content in contents.keys() - touched:
                assert contents[content] == 1, (query, caller, content)
