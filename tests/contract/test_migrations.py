"""A schema that is not this release's: a migration killed in the middle is done again; a newer one is left alone."""

import multiprocessing
import os
import signal
from typing import Any, get_args
from unittest.mock import patch

import alembic.command
import alembic.script
import pytest
import sqlalchemy as sa
from sqlalchemy import event

from muniment import schema
from muniment.clock import Instant
from muniment.db import Database, Half
from muniment.directory import system
from muniment.directory.entries import credentials
from muniment.directory.oauth import tokens
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in import pauses
from muniment.repository.permissions import bearers
from muniment.repository.permissions.principals import Principals
from muniment.schema import SchemaMismatch
from tests.conftest import Fresh

PATIENCE = 60
_upgrade = alembic.command.upgrade


def _migrate_until_killed(url: str, half: Half, last: int) -> None:
    database = Database(url)
    left = iter(range(last))

    @event.listens_for(database.engine, "after_cursor_execute")
    def count(*_about: Any) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    schema.migrate(database, half)


def _statements(url: str, half: Half) -> int:
    database = Database(url)
    sent: list[str] = []
    event.listen(database.engine, "after_cursor_execute", lambda _c, _k, statement, *_rest: sent.append(statement))
    schema.migrate(database, half)
    database.close()
    return len(sent)


def _tables(database: Database) -> dict[str, list[str]]:
    seen = sa.inspect(database.engine)
    return {table: sorted(column["name"] for column in seen.get_columns(table)) for table in seen.get_table_names()}


@pytest.mark.campaign_on("postgresql")
@pytest.mark.parametrize("half", get_args(Half))
def test_a_migration_killed_at_any_statement_is_finished_by_the_next(fresh: Fresh, half: Half) -> None:
    whole = Database(fresh())
    count = _statements(whole.engine.url.render_as_string(hide_password=False), half)
    assert count > 20
    for last in sorted({0, 3, 4, *range(5, count, max(1, count // 4)), count - 2, count - 1}):
        url = fresh()
        arguments = (url, half, last)
        child = multiprocessing.get_context("fork").Process(target=_migrate_until_killed, args=arguments)
        child.start()
        child.join(PATIENCE)
        assert child.exitcode == -signal.SIGKILL, f"statement {last} of {count}"
        database = Database(url)
        schema.migrate(database, half)
        schema.check_schema(database, half)
        assert _tables(database) == _tables(whole), f"killed after statement {last} of {count}"
        database.close()
    whole.close()


def _migrate(url: str, half: Half) -> None:
    database = Database(url)
    schema.migrate(database, half)
    database.close()


@pytest.mark.only("postgresql", "On SQLite a process has the data folder to itself.")
@pytest.mark.parametrize("half", get_args(Half))
def test_machines_that_migrate_at_one_time_do_it_one_after_the_other(fresh: Fresh, half: Half) -> None:
    url = fresh()
    children = [multiprocessing.get_context("fork").Process(target=_migrate, args=(url, half)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE)
    assert [child.exitcode for child in children] == [0, 0, 0]
    database = Database(url)
    schema.check_schema(database, half)
    database.close()


@pytest.mark.only("postgresql", "SQLite limits no statement.")
def test_a_migration_of_a_large_table_has_as_long_as_it_needs(fresh: Fresh) -> None:
    database, limits = Database(fresh()), list[str]()

    def look(config: Any, _to: str) -> None:
        limits.append(config.attributes["connection"].exec_driver_sql("SHOW statement_timeout").scalar_one())

    with patch.object(alembic.command, "upgrade", look):
        schema.migrate(database, "repository")
    with database.read() as cx:
        limits.append(cx.exec_driver_sql("SHOW statement_timeout").scalar_one())
    database.close()
    assert limits == ["0", "1min"]


@pytest.mark.parametrize("half", get_args(Half))
def test_the_newest_schema_is_that_of_the_last_migration(half: Half) -> None:
    script = alembic.script.ScriptDirectory.from_config(schema._alembic(half))
    assert script.get_heads() == [schema.NEWEST[half]]


@pytest.mark.parametrize("half", get_args(Half))
def test_a_newer_releases_database_is_refused_and_left_as_it_is(fresh: Fresh, half: Half) -> None:
    database = Database(fresh(half))
    with database.begin() as cx:
        cx.exec_driver_sql(f"UPDATE {schema.version_table(half)} SET version_num = '9999'")
        cx.exec_driver_sql("CREATE TABLE of_the_future (id INTEGER)")
    before = _tables(database)
    with pytest.raises(SchemaMismatch, match="made by a newer release: run that release, or restore a backup"):
        schema.migrate(database, half)
    with pytest.raises(SchemaMismatch, match="9999"):
        schema.check_schema(database, half)
    assert _tables(database) == before
    database.close()


def test_a_released_directory_keeps_its_counts_of_wrong_passwords_and_its_tokens(fresh: Fresh, now: Instant) -> None:
    """Its users are paused as they were, elsewhere; nothing has to be written before the first sign-in."""
    database = Database(fresh())
    with patch.object(alembic.command, "upgrade", lambda config, _head: _upgrade(config, "directory_0002")):
        schema.migrate(database, "directory")
    until = now + 60_000_000
    with database.engine.connect() as cx:
        for number, failures in ((1, 10), (2, 0)):
            cx.execute(
                sa.text(
                    "INSERT INTO entries (id, uuid, kind, space, name, name_key, units, description, disabled, locked,"
                    " password_never_expires, must_change_password, cannot_change_password, failures, paused_until,"
                    " attempted, created, modified) VALUES (:n, :name, 'user', 'x', :name, :name, '[]', '', false,"
                    " false, false, false, false, :failures, :until, 0, 0, 0)"
                ),
                {"n": number, "name": f"user {number}", "failures": failures, "until": until if failures else 0},
            )
        cx.execute(
            sa.text(
                "INSERT INTO grants (id, user_id, client_id, resource_id, refresh_digest, refresh_expires, created)"
                " VALUES (1, 1, 2, 'r', :digest, :until, 0)"
            ),
            {"digest": b"g", "until": until},
        )
        cx.execute(
            sa.text(
                "INSERT INTO access_tokens (digest, id, grant_id, issued, expires) VALUES (:digest, 'i', 1, 0, :until)"
            ),
            {"digest": b"t", "until": until},
        )
        cx.commit()
    schema.migrate(database, "directory")
    schema.check_schema(database, "directory")
    with database.read() as cx:
        found = [credentials.lock(cx, number) if database.dialect == "sqlite" else None for number in (1, 2)]
        tries = [row[0] for row in cx.execute(sa.text("SELECT tries FROM entries ORDER BY id"))]
        assert tries == [f'{{"":[10,{until}]}}', "{}"]
        assert len(system.key(cx, "places")) == 32
        assert cx.execute(sa.text("SELECT count(*) FROM access_tokens")).scalar_one() == 1
    with database.begin() as cx:
        locked = tokens.lock_grants(cx, [b"g"], 10_000, now, wait=True)[b"g"]
        assert locked.grant.alive(now)
        assert (locked.live_bound, locked.full_until) == (None, 0)
    if found[0] is not None:
        assert pauses.pauses(DirectoryOptions(), found[0], now) == [pauses.Pause(True, 10, until)]
    database.close()


def test_the_names_in_a_released_database_wait_to_be_bound(fresh: Fresh, now: Instant) -> None:
    """failures C8: what is theirs stays theirs, and who gets the name of somebody who is gone inherits nothing."""
    database = Database(fresh())
    config = schema._alembic("repository")
    with database.engine.connect() as cx:
        config.attributes["connection"] = cx
        alembic.command.upgrade(config, "0001")
        cx.execute(sa.text(f"INSERT INTO repositories VALUES (1, 'main', '', 'r', {now})"))
        cx.execute(sa.text(f"INSERT INTO acls VALUES (1, 1, 'friends', 'Eve@Staff', {now}, {now})"))
        cx.execute(sa.text("INSERT INTO acl_entries VALUES (1, 'team@staff', 3), (1, 'world', 2), (1, 'owner', 7)"))
        cx.execute(
            sa.text(
                "INSERT INTO objects (id, repository_id, type, name, owner, owner_key, acl_id, created, creator, "
                "modified, modifier, version, properties, media_type, content_size) "
                f"VALUES ('0900000100000001', 1, 'document', 'plan', 'Bob@Staff', 'bob@staff', 1, {now}, 'Bob@Staff', "
                f"{now}, 'Bob@Staff', 1, '{{}}', '', 0)"
            )
        )
        cx.commit()
    schema.migrate(database, "repository")
    with database.begin() as cx:
        there = {"bob@staff": "identity of bob", "team@staff": "identity of the team"}
        settled = bearers.settle(cx, lambda names: {one: there[one] for one in names if one in there}, now)
        assert settled == (2, 1), "eve is gone"
        bob = Principals("bob@staff", frozenset({"team@staff"}), identities=there)
        caller = bob.with_keys(bearers.keys(cx, bob.names))
        assert caller.key == "bob@staff"
        assert "team@staff" in caller.accessors
        assert bearers.keys(cx, {"eve@staff": "another eve"})["eve@staff"] != "eve@staff"
    database.close()
