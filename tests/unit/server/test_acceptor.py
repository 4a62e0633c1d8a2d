"""A worker leaves the next connection to one that has fewer."""

from muniment.server.acceptor import Place


def test_a_connection_that_ends_makes_room() -> None:
    counts = memoryview(bytearray(16)).cast("Q")
    first, second = Place(counts, 0), Place(counts, 1)
    first.enter()
    assert (first.is_crowded, second.is_crowded) == (True, False)
    second.enter()
    second.enter()
    assert (first.is_crowded, second.is_crowded) == (False, True)
    second.leave()
    assert (first.is_crowded, second.is_crowded) == (False, False)


def test_among_many_connections_an_eighth_more_is_no_crowd() -> None:
    counts = memoryview(bytearray(16)).cast("Q")
    first, second = Place(counts, 0), Place(counts, 1)
    for place, connections in ((first, 18), (second, 16)):
        for _ in range(connections):
            place.enter()
    assert not first.is_crowded
    first.enter()
    assert first.is_crowded


def test_a_worker_that_starts_again_has_no_connections() -> None:
    counts = memoryview(bytearray(16)).cast("Q")
    Place(counts, 0).enter()
    assert not Place(counts, 0).is_crowded
