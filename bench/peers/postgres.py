"""The PostgreSQL that peers store in: the one the tests start, but made to keep what it answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.peers import Missing
from bench.processes import Program
from tests.servers import NoPostgres, Postgres, running_postgres

_OPTIONS = ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "max_connections=200", "shared_buffers=256MB")


@dataclass(frozen=True)
class Running:
    """A running PostgreSQL with empty databases to be had."""

    server: Postgres
    program: Program

    def database(self, name: str) -> tuple[str, int, str]:
        """Make an empty database: host, port, name."""
        self.server.make(name)
        return "127.0.0.1", self.server.port, name


@contextmanager
def running() -> Iterator[Running]:
    """Start it for as long as the block lasts. Raises Missing."""
    try:
        with running_postgres(_OPTIONS) as server:
            yield Running(server, Program(server.pid))
    except NoPostgres as missing:
        raise Missing(str(missing)) from missing
