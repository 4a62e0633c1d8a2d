"""Downloads on real sockets that nobody reads: they are cut off, and their places are free again."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from tests.contract.test_listener import serving
from tests.shelf import Shelf
from tests.unit.repository.api.test_slots import MOST, Site
from tests.waiting import PATIENCE, until


@pytest.mark.campaign_on("postgresql")
def test_downloads_that_nobody_reads_are_cut_off_and_their_places_are_free_again(
    repository_db: Database, tmp_path: Path, now: Instant
) -> None:
    """Twenty downloads on real sockets that nobody reads were all kept for 100 s."""
    shelf = Shelf(repository_db, tmp_path, now)
    site = Site(shelf)
    head = f"GET {site.media} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer marta\r\n\r\n".encode()
    with ExitStack() as closing:
        closing.callback(shelf.close)
        port = closing.enter_context(serving(site.answer, tmp_path, slow_seconds=2, lowest_download_rate=100_000))

        def ask() -> socket.socket:
            caller = closing.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
            caller.sendall(head)
            return caller

        statuses = [int(caller.recv(12).split()[1]) for caller in [ask() for _ in range(20)]]
        assert sorted(statuses) == [200] * MOST + [503] * (20 - MOST)
        until(lambda: not site.half.downloads.count(), "they are not cut off")
        assert ask().recv(12).split()[1] == b"200"
