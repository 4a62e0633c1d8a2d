"""A prepared statement says what SQLAlchemy would say."""

from contextlib import ExitStack

import pytest
import sqlalchemy as sa

from muniment.database import connections
from muniment.database.connections import Database, PreparedStatement, TookTooLong, driver_of, translated_errors
from muniment.ground.clock import Instant
from muniment.repository.store import repositories
from muniment.repository.store.permissions import acls as decisions
from muniment.repository.store.permissions.table import acls
from tests.shelf import MARTA

_QUERY = (
    sa.select(acls.c.name, acls.c.common)
    .where(acls.c.name.in_(sa.bindparam("names", expanding=True)), acls.c.entry_count > sa.bindparam("least"))
    .order_by(acls.c.name)
)
_STATEMENT = PreparedStatement(_QUERY)
NAMES = [f"acl-{number:02}" for number in range(9)]


@pytest.fixture
def filled(repository_db: Database, now: Instant) -> Database:
    with repository_db.begin() as cx:
        repository = repositories.add(cx, "demo", "11111111-1111-1111-1111-111111111111", "", now)
        decisions.initialise(cx, repository.id, now)
        for name in NAMES:
            decisions.add(cx, repository.id, name, MARTA, {}, now)
    return repository_db


@pytest.mark.slow
@pytest.mark.parametrize("count", range(10))
def test_a_list_may_have_any_length(filled: Database, count: int) -> None:
    with filled.read() as cx:
        for least in (-1, 0):
            wanted = {"names": NAMES[:count], "least": least}
            assert [tuple(row) for row in _STATEMENT.all(cx, **wanted)] == [
                tuple(row) for row in cx.execute(_QUERY, wanted)
            ]
            assert len(_STATEMENT.all(cx, **wanted)) == (count if least < 0 else 0)


@pytest.mark.parametrize("most", [1000, pytest.param(connections._MOST_FILLED, marks=pytest.mark.campaign)])
def test_a_list_may_be_longer_than_what_is_filled_up(
    filled: Database, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_MOST_FILLED", most)
    with filled.read() as cx:
        many = [*NAMES, *(f"other-{number}" for number in range(most + 100))]
        assert [row[0] for row in _STATEMENT.all(cx, names=many, least=-1)] == NAMES


@pytest.mark.slow
def test_booleans_are_booleans_and_null_stays_null(filled: Database) -> None:
    with filled.begin() as cx:
        cx.execute(acls.update().where(acls.c.name == NAMES[1]).values(common=None))
    with filled.read() as cx:
        rows = _STATEMENT.all(cx, names=["public", *NAMES[:2]], least=-1)
        assert [row[1] for row in rows] == [False, None, True]
        assert _STATEMENT.first(cx, names=["public"], least=-1) == ["public", True]
        assert _STATEMENT.first(cx, names=["nobody"], least=-1) is None


@pytest.mark.only("sqlite", "PostgreSQL sends all rows before the first is read.")
def test_a_statement_that_is_stopped_while_its_rows_are_read_is_refused_like_any_other(database: Database) -> None:
    count = sa.select(sa.literal(1).label("number")).cte(recursive=True)
    count = count.union_all(sa.select(count.c.number + 1).where(count.c.number < 1_000_000))
    long = PreparedStatement(sa.select(count.c.number))

    def ask() -> None:
        with translated_errors(), database.read() as cx, ExitStack() as after:
            after.callback(driver_of(cx).set_progress_handler, None, 0)
            driver_of(cx).set_progress_handler(lambda: True, 1000)
            long.all(cx)

    with pytest.raises(TookTooLong):
        ask()
