"""What every test may ask for: a time, the two databases, a PostgreSQL, and the worlds of scenes.py."""

import gc
import signal
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from muniment.clock import Instant
from muniment.db import Database, Half
from tests.clock import NOON, Clock
from tests.office import Office
from tests.properties.lengths import CAMPAIGN, SHARE
from tests.s3 import BUILD_SECONDS, NoS3, S3Server, running_s3
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

# A shell without job control starts background jobs that ignore Ctrl-C, and so would each process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_log_of_a_server() -> Iterator[None]:
    """Undo what a command in this process did to the log: a logger that remembers it escapes ``capture_logs``."""
    yield
    if structlog.get_config()["cache_logger_on_first_use"]:
        _write_lines_as_text()


_PAIRS = (("sqlite", "neutral"), ("postgresql", "field"))
"""Databases and names by turns: ``make test`` runs a test of ``_BY_TURNS`` on one pair, the campaign on the others.

With a ``SHARE`` below 1 the campaign runs it on the opposite pair alone.
"""

_TESTS = Path(__file__).parent
_BY_TURNS = (_TESTS / "interface", _TESTS / "console")
_ON_SQLITE = (_TESTS / "unit", _TESTS / "e2e")
"""What ``make test`` runs on SQLite, and the campaign on PostgreSQL."""

_LONGER = (_TESTS / "properties", _TESTS / "campaign")
"""What ``make test`` runs for a moment, on SQLite, and the campaign for long, on each database."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what applies to the other database alone; under the profile `campaign` mark laws and generated input.

    Marks are set before the marker expression chooses. How many tests are left out is printed as deselected.
    """
    in_campaign = settings.get_current_profile_name() == CAMPAIGN
    left_out = {item for item in items if _is_of_other_database(item)}
    if in_campaign and SHARE < 1:
        left_out |= {item for item in items if _waits_for_whole_campaign(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    for item in items:
        if isinstance(item, pytest.Function) and _may_use_s3(item):
            item.add_marker(pytest.mark.timeout(BUILD_SECONDS))
        if (in_campaign and _lies_in(item, _LONGER)) or _waits_for_campaign(item):
            item.add_marker("campaign")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going over the tests and modules, which all live to the end.

    Without this, `make quick` takes about a tenth more processor time.
    """
    gc.collect()
    gc.freeze()


def _waits_for_campaign(item: pytest.Item) -> bool:
    """Say whether ``make test`` leaves a test to the campaign because it runs that test on the other database."""
    database = _database(item)
    if mark := item.get_closest_marker("campaign_on"):
        return database is not None and database == str(mark.args[0])
    if _lies_in(item, _ON_SQLITE + _LONGER):
        return database == "postgresql" and item.get_closest_marker("only") is None
    return any(_other_sides(item))


def _waits_for_whole_campaign(item: pytest.Item) -> bool:
    """Say whether a short campaign leaves a test out, because ``make test`` runs it on this database or with these
    names."""
    return _other_sides(item) in ([True, False], [False, True])


def _other_sides(item: pytest.Item) -> list[bool]:
    """Say for the database and the names of a test of ``_BY_TURNS`` whether ``make test`` runs it with others.

    A side that the test does not depend on is not in the list.
    """
    if not _lies_in(item, _BY_TURNS) or item.get_closest_marker("campaign_on"):
        return []
    only = item.get_closest_marker("only")
    turn = zlib.crc32(item.nodeid.partition("[")[0].encode()) % len(_PAIRS)
    pair = next(each for each in _PAIRS if each[0] == only.args[0]) if only else _PAIRS[turn]
    own = (_database(item), _parameter(item, "site"))
    return [side != of_pair for side, of_pair in zip(own, pair, strict=True) if side is not None]


def _lies_in(item: pytest.Item, folders: Collection[Path]) -> bool:
    return any(item.path.is_relative_to(folder) for folder in folders)


def _may_use_s3(item: pytest.Function) -> bool:
    return "s3" in item.fixturenames or (hasattr(item, "callspec") and "s3" in item.callspec.params.values())


def _is_of_other_database(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("only")
    return mark is not None and _database(item) not in (None, mark.args[0])


def _database(item: pytest.Item) -> str | None:
    """Say on which database a test runs, if it runs on each."""
    return _parameter(item, "engine")


def _parameter(item: pytest.Item, name: str) -> str | None:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(parameters[name]) if name in parameters else None


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
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One S3 store for all tests of this process; where it cannot be built, its tests are skipped."""
    try:
        with running_s3(tmp_path_factory.mktemp("s3")) as server:
            yield server
    except NoS3 as missing:
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
