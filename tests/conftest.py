"""What every test may ask for: a time, the two databases, a PostgreSQL, and the worlds of scenes.py."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from muniment.clock import Instant
from muniment.db import Database, Half
from tests.clock import NOON, Clock
from tests.office import Office
from tests.properties.lengths import CAMPAIGN, SHARE
from tests.scenes import NAMES, Loop, Site, World
from tests.servers import NoPostgres, Postgres, Sqlite, running_postgres
from tests.shelf import Shelf

# make campaign asks for it; what takes long by the example says in its own place how many it takes.
settings.register_profile("campaign", max_examples=int(5000 * SHARE), deadline=None)


def _write_lines_as_text() -> None:
    # Left to itself, structlog writes a traceback with every local variable, which takes a second of a core.
    structlog.reset_defaults()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.dev.set_exc_info,
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ]
    )


_write_lines_as_text()


@pytest.fixture(autouse=True)
def _no_log_of_a_server() -> Iterator[None]:
    """Undo what a command in this process did to the log: a logger that remembers it escapes ``capture_logs``."""
    yield
    if structlog.get_config()["cache_logger_on_first_use"]:
        _write_lines_as_text()


_LONGER = tuple(Path(__file__).parent / folder for folder in ("properties", "campaign"))
"""What ``make test`` runs for a moment, on SQLite, and the campaign for long, on each database."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what applies to the other database alone; under the profile `campaign` mark laws and generated input.

    Marks are set before the marker expression chooses. How many tests are left out is printed as deselected.
    """
    others = [item for item in items if _is_of_other_database(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]
    in_campaign = settings.get_current_profile_name() == CAMPAIGN
    for item in items:
        is_longer = any(item.path.is_relative_to(folder) for folder in _LONGER)
        mark = item.get_closest_marker("campaign_on")
        database = mark.args[0] if mark else "postgresql" if is_longer else None
        if (is_longer and in_campaign) or (database and _database(item) == database):
            item.add_marker("campaign")


def _is_of_other_database(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("only")
    return mark is not None and _database(item) not in (None, mark.args[0])


def _database(item: pytest.Item) -> str | None:
    """Say on which database a test runs, if it runs on each."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(parameters["engine"]) if "engine" in parameters else None


Fresh = Callable[..., str]
"""Makes a migrated database of the halves it is told, and says its address."""


@pytest.fixture
def now() -> Instant:
    """The fixed time at which tests happen."""
    return NOON


@pytest.fixture
def clock() -> Clock:
    """A clock that stands at ``now`` until a test lets time pass."""
    return Clock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One PostgreSQL for all tests of this process; where there is none, its tests are skipped."""
    try:
        with running_postgres() as server:
            yield server
    except NoPostgres as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Sqlite:
    """Where the tests' SQLite files are."""
    return Sqlite(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Sqlite | Postgres:
    """Each of the two databases in turn."""
    server: Sqlite | Postgres = request.getfixturevalue("sqlite" if request.param == "sqlite" else "postgres")
    return server


@pytest.fixture
def fresh(engine: Sqlite | Postgres) -> Iterator[Fresh]:
    """A function that makes a migrated database of the halves it is told; all are removed after the test."""
    made: list[str] = []

    def make(*halves: Half) -> str:
        made.append(engine.fresh(*halves))
        return made[-1]

    yield make
    for url in made:
        engine.drop(url)


@pytest.fixture
def database_url(fresh: Fresh) -> str:
    """The address of a database with both halves' tables."""
    return fresh("directory", "repository")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database with both halves' tables."""
    yield from _opened(database_url)


@pytest.fixture
def directory_db(fresh: Fresh) -> Iterator[Database]:
    """A database with the directory's tables."""
    yield from _opened(fresh("directory"))


@pytest.fixture
def repository_db(fresh: Fresh) -> Iterator[Database]:
    """A database with the repository's tables."""
    yield from _opened(fresh("repository"))


def _opened(url: str) -> Iterator[Database]:
    opened = Database(url)
    yield opened
    opened.close()


@pytest.fixture
def office(directory_db: Database, now: Instant) -> Office:
    """A small directory, for tests of its decisions."""
    return Office(directory_db, now)


@pytest.fixture
def shelf(repository_db: Database, tmp_path: Path, now: Instant) -> Iterator[Shelf]:
    """An empty repository, for tests of its decisions."""
    made = Shelf(repository_db, tmp_path, now)
    yield made
    made.close()


@pytest.fixture(scope="session")
def world(engine: Sqlite | Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One data folder on each database, made once: tests make what they change, and words of their own."""
    folder = tmp_path_factory.mktemp("data")
    folder.chmod(0o700)
    made = World(folder, engine.fresh("directory"), engine.fresh("repository"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    """Where the sites answer."""
    running = Loop()
    yield running
    running.close()


@pytest.fixture(scope="session", params=NAMES)
def site(world: World, loop: Loop, request: pytest.FixtureRequest) -> Iterator[Site]:
    """The world's one data folder, served with the neutral names and with the field's."""
    served = Site(world, request.param, loop)
    yield served
    served.close()
