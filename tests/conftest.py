"""What every test may ask for: a time, the two databases, a PostgreSQL, and the worlds of scenes.py."""

import gc
import itertools
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from muniment.database import audit
from muniment.database.audit import Actor
from muniment.database.connections import Database, Half
from muniment.ground.clock import Instant
from muniment.ground.clock import now as present
from muniment.repository.search.analysis import compounds
from tests import runs
from tests.clock import NOON, Clock
from tests.office import Office
from tests.properties.lengths import SHARE
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

# What a test decides itself, in any thread, the tester decides. Behind ``Transactions`` nobody does, as in a server.
_TESTER = audit._Acting(lambda: Actor("tester", "test"), present)
audit._acting = ContextVar("tests", default=_TESTER)

# A shell without job control starts background jobs that ignore Ctrl-C, and so would each process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_log_of_a_server() -> Iterator[None]:
    """Undo what a command in this process did to the log: a logger that remembers it escapes ``capture_logs``."""
    yield
    if structlog.get_config()["cache_logger_on_first_use"]:
        _write_lines_as_text()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the name of a part of the campaign."""
    parser.addoption("--part", choices=tuple(runs.PARTS), help="run this part of the campaign alone")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read the modules of one part of the campaign, if one is asked for."""
    part = config.getoption("--part")
    other = part and collection_path.name.startswith("test_") and runs.part_of(collection_path) != part
    return True if other else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose databases and names: in ``make test`` the usual ones, in the campaign all."""
    path = metafunc.definition.path
    if "engine" in metafunc.fixturenames:
        usual = runs.usual_databases(path, metafunc.definition.iter_markers())
        metafunc.parametrize("engine", runs.DATABASES if runs.of_campaign() else usual, indirect=True, scope="session")
    if {"site", "world"} <= {*metafunc.fixturenames}:  # some rooms have a `site` of their own, without a world
        names = NAMES if runs.of_campaign() else runs.usual_names(path)
        metafunc.parametrize("site", names, indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what applies to the other database alone, and in the campaign what `make test` runs.

    Marks are set before the marker expression chooses. How many tests are left out is printed as deselected. Modules
    with long tests come first and whole, so that no process is left with one when the others are done, and what a
    module sets up is set up once.
    """
    for item in items:
        if runs.waits_for_campaign(item):
            item.add_marker("campaign")
        if "german" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
        if runs.uses_s3(item):
            item.add_marker(pytest.mark.timeout(BUILD_SECONDS))
    left_out = {item for item in items if not runs.applies(item)}
    if runs.of_campaign():
        left_out |= {item for item in items if item.get_closest_marker("campaign") is None}
    if runs.of_campaign() and SHARE < 1:
        left_out |= {item for item in items if runs.waits_for_whole_campaign(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    long = {item.path for item in items if runs.is_long(item.nodeid)}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going over the tests and modules, which all live to the end.

    Without this, `make quick` takes about a tenth more processor time.
    """
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the time of each kind of test, and which tests take long though tests/runs.py does not list them."""
    seconds, each = defaultdict[str, float](float), defaultdict[str, float](float)
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.split("/")[1]] += report.duration
            each[report.nodeid] += report.duration
    terminalreporter.section("seconds in tests, over all processes")
    terminalreporter.write_line(", ".join(f"{part} {total:.0f}" for part, total in sorted(seconds.items())))
    unnamed = [name for name, total in each.items() if total >= runs.LONG_SECONDS and not runs.is_long(name)]
    if unnamed and not runs.of_campaign():
        terminalreporter.section(f"{runs.LONG_SECONDS} seconds or more, and not in tests/runs.py")
        for name in sorted(unnamed, key=each.__getitem__, reverse=True):
            terminalreporter.write_line(f"{each[name]:6.1f} {name}")


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
def german() -> compounds.Compounds:
    """The parts of German compounds, learnt once."""
    return compounds.learn("German")


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Sqlite:
    """Where the tests' SQLite files are."""
    return Sqlite(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def site(world: World, loop: Loop, request: pytest.FixtureRequest) -> Iterator[Site]:
    """The world's one data folder, served with the neutral names and with the field's."""
    served = Site(world, request.param, loop)
    yield served
    served.close()
