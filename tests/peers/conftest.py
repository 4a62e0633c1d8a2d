"""A site on a real socket for other people's software."""

from collections.abc import Iterator

import pytest

from tests.peers.stage import Present, Stage
from tests.scenes import Loop, Served, Site, World
from tests.servers import Postgres, Sqlite


@pytest.fixture(scope="module")
def served(site: Site) -> Iterator[Served]:
    """The site, over TLS on a free port."""
    running = Served(site)
    yield running
    running.close()


@pytest.fixture(scope="session")
def stage(engine: Sqlite | Postgres, loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with everything that a standard client may ask for. Tests restore what they change of it."""
    folder = tmp_path_factory.mktemp("stage")
    folder.chmod(0o700)
    world = World(folder, engine.fresh("directory"), engine.fresh("repository"), Present())
    made = Stage(world, loop)
    yield made
    made.close()
    world.close()
