"""System attributes set at the same moment: whoever comes last wins, and nobody fails."""

import threading
from concurrent.futures import ThreadPoolExecutor

from muniment.database.connections import Database
from muniment.directory.entries import system
from muniment.ground.clock import Instant

_WRITERS = 8


def test_an_attribute_set_by_many_at_once_is_set_for_each(directory_db: Database, now: Instant) -> None:
    for round_ in range(10):
        start = threading.Barrier(_WRITERS)

        def put(writer: int, round_: int = round_, start: threading.Barrier = start) -> str:
            value = f"value {writer}"
            start.wait()
            with directory_db.begin() as cx:
                system.put(cx, f"Attribute {round_}", value, now, free=True)
                assert system.get(cx, f"attribute {round_}") == value
            return value

        with ThreadPoolExecutor(_WRITERS) as threads:
            written = list(threads.map(put, range(_WRITERS)))
        with directory_db.read() as cx:
            assert system.get(cx, f"ATTRIBUTE {round_}") in written
            assert len(system.all_system_attributes(cx)) == round_ + 1
