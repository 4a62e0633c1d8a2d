"""``muniment backup`` and ``muniment restore``: whole or not there, beside writers, and after kill -9 at any step.

Sources: issue 8, section 7; docs/operations.md, "Backup and restore".
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from muniment.cli import commands
from muniment.database import schema
from muniment.database.connections import Busy, Database
from muniment.directory import version_stamps
from muniment.directory.entries import resources
from muniment.directory.options import DirectoryNames
from muniment.ground import clock
from muniment.ground.clock import SECOND, Instant
from muniment.installation import settings
from muniment.installation.backups import dumps, making, manifest, restoring
from muniment.installation.backups.refusals import BackupRefused
from muniment.installation.exit_codes import Exit
from muniment.installation.layout import Installation
from muniment.repository.search.agent import agent
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.objects import objects
from tests.conftest import Fresh
from tests.contents import contents, lose, spoil
from tests.e2e.ledger import OAUTH
from tests.e2e.processes import ENVIRONMENT, Server, muniment
from tests.e2e.test_kills import House
from tests.office import page_ticket
from tests.releases import next_release
from tests.servers import Postgres, Sqlite, free_port
from tests.shelf import ADMIN, Shelf
from tests.waiting import until

FEW, MANY = 4, int(os.environ.get("BACKUP_KILLS", "25"))
"""Steps at which a backup and a restore are killed; the campaign's, on each database."""

_STEPS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "subprocess.Popen", "sqlite3.connect")
"""What is counted as a step: Python's audit events of these names."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: bringing a backup to a busy disk takes seconds, many times over."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 500 << 20:
        yield tmp_path
        return
    made = memory / f"muniment-{os.getpid()}-{tmp_path.name}"
    made.mkdir()
    yield made
    shutil.rmtree(made, ignore_errors=True)


class Place:
    """Where a backup of one kind comes from and goes to: data folders, with the databases that their settings name."""

    def __init__(self, folder: Path, engine: Sqlite | Postgres, fresh: Fresh) -> None:
        self.folder, self._engine, self._fresh = folder, engine, fresh

    def empty(self, name: str) -> Path:
        """Name a data folder; on PostgreSQL it holds settings that name a new, empty database."""
        data = self.folder / name
        if isinstance(self._engine, Postgres):
            database = f"restored_{uuid.uuid4().hex}"
            self._engine.make(database)
            data.mkdir(mode=0o700)
            url = f"postgresql://postgres@127.0.0.1:{self._engine.port}/{database}"
            (data / "muniment.toml").write_text(f'directory_database = "{url}"\nrepository_database = "{url}"\n')
        return data

    def database(self, data: Path) -> Database:
        """Open the database that a data folder's settings name."""
        return Database(Installation(data, settings.read(data / "muniment.toml")).database_url("repository"))

    def filled(self, name: str) -> Path:
        """Make a data folder with people, a repository, and a few documents of which some hold a custom type."""
        data = self.empty(name)
        assert muniment(data, "init").returncode == 0
        docs = self.folder / f"{name}-docs"
        docs.mkdir()
        for number in range(4):
            (docs / f"note{number}.txt").write_text(f"Stone number {number}.\n" * 100 * number)
        assert muniment(data, "import", str(docs), "--acl", "public", "--no-wait").returncode == 0
        return data


@pytest.fixture
def place(folder: Path, engine: Sqlite | Postgres, fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> Place:
    if isinstance(engine, Postgres):
        monkeypatch.setenv("PATH", f"{engine.binaries}:{os.environ['PATH']}")
    return Place(folder, engine, fresh)


def run(data: Path, *arguments: str | Path) -> int:
    """Run a command in this process; give its exit code."""
    return commands.run(["--data", str(data), *map(str, arguments)])


def run_until(step: int, data: Path, *arguments: str | Path) -> tuple[int | None, int]:
    """Run a command in a fork that is killed at a step; give its exit code, None when it was killed, and its steps."""
    told_out, told_in = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(told_out)
        seen = 0

        def watch(event: str, _details: object) -> None:
            nonlocal seen
            if event.startswith(_STEPS):
                seen += 1
                if seen == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        code = 99
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            sys.addaudithook(watch)
            code = run(data, *arguments)
        finally:
            os.write(told_in, f"{seen}".encode())
            os._exit(code)
    os.close(told_in)
    with os.fdopen(told_out, "rb") as told:
        seen = int(told.read() or b"0")
    status = os.waitpid(process, 0)[1]
    return (None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)), seen


def whole(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether a restored folder is sound, with everything in it."""
    capsys.readouterr()
    assert run(data, "content", "check") == 0
    assert "sound: 4 whole" in capsys.readouterr().out
    assert run(data, "index", "check") == 0
    said = capsys.readouterr().out
    assert " 0 missing, 0 extra, 0 stale, 0 doubled, 0 waiting" in said
    assert int(said.split(" documents,")[0].rpartition(" ")[2]) >= 5


def spread(steps: int, count: int) -> list[int]:
    """Choose steps from the first to the last."""
    return sorted({1 + at * (steps - 1) // (count - 1) for at in range(count)})


def modes(folder: Path) -> set[tuple[str, int]]:
    """Say how open the files and folders in a folder are."""
    every = (folder, *folder.rglob("*"))
    return {("folder" if each.is_dir() else "file", each.stat().st_mode & 0o777) for each in every}


# Whole, beside writers


@pytest.mark.timeout(600)
def test_what_was_answered_before_the_backup_is_there_after_the_restore(
    place: Place, fresh: Fresh, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server runs and is written to; afterwards content and index are sound, and every session is over."""
    house = House(folder, fresh("directory"), fresh("repository"))
    chance = random.Random(8)
    try:
        house.start()
        with house.client() as http:
            for writer in house.writers:
                writer.begin(http)
        with house.busy(chance):
            until(lambda: all(ledger.answered > 10 for ledger in house.ledgers), "not everybody gets to work")
        *steady, restless = house.writers
        house.writers = [restless]
        living = [grant for grant in house.holder.held if grant.ended is False]
        with house.busy(chance):
            assert muniment(house.data, "backup", str(folder / "kept")).returncode == 0
        assert not [surprise for ledger in house.ledgers for surprise in ledger.surprises]
        assert house.server is not None
        house.server.stop()
        data = place.empty("restored")
        if not data.exists():
            data.mkdir(mode=0o700)
            (data / "muniment.toml").write_text("")
        assert run(data, "restore", folder / "kept") == 0, capsys.readouterr()
        assert run(data, "content", "check") == run(data, "index", "check") == 0
        with Server(data, free_port(), "--workers", "1") as server, server.client() as http:
            for grant in living:
                info = {"token": grant.access[-1], "resource_id": house.world.resource_id}
                assert http.post(f"{OAUTH}/tokeninfo", json=info).status_code == 410
            house.server = server
            token = house.holder.sign_in(http)["access_token"]
            http.headers["Authorization"] = f"Bearer {token}"
            faults = [fault for writer in steady for fault in writer.faults(http)]
            assert not faults, "\n".join(faults)
            assert sum(len(writer.papers) for writer in steady) > 4
    finally:
        house.close()


def test_nothing_that_the_copied_database_names_is_removed_before_it_is_copied(
    repository_db: Database, now: Instant, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is replaced and swept between the database's snapshot and the first content."""
    installation = Installation(folder / "data", settings.Settings(halves=("repository",)))
    shelf = Shelf(repository_db, installation.data, now)
    store, swept = shelf.store, list[int]()
    made = [shelf.create({"object_name": f"pump {n}"}, content=store.put([f"words {n}".encode()])).id for n in range(3)]
    adopt = FileStore.adopt

    def adopt_after_changes(self: FileStore, kept: StoredContent, pieces: Iterable[bytes]) -> bool:
        if not swept:
            formers = [stored.content for stored in (shelf.read(each, ADMIN)[0] for each in made)]
            with shelf.database.begin() as cx:
                for object_id in made:
                    objects.replace_content(
                        cx,
                        shelf.repository,
                        ADMIN,
                        object_id,
                        store.put([f"new {object_id}".encode()]),
                        "text/plain",
                        shelf.now,
                    )
            for former in formers:  # as the addresses do, once a replacement or a deletion is committed
                assert former is not None
                store.remove(former.key)
            swept.append(sum(agent._sweep(shelf.database, store, clock.now() + 86_400 * SECOND)))
        return adopt(self, kept, pieces)

    monkeypatch.setattr(FileStore, "adopt", adopt_after_changes)
    source = making.BackupSource(installation, {"repository": shelf.database}, folder / "none.toml")
    written = making.make(source, folder / "kept", "0", clock.now, lambda _done, _all: None)
    assert (written.contents, written.damaged, swept) == (3, (), [0])
    said = {file.read_bytes() for file in (folder / "kept" / "content").rglob("*") if file.is_file()}
    assert said == {f"words {number}".encode() for number in range(3)}
    assert sum(agent._sweep(shelf.database, store, clock.now() + 86_400 * SECOND)) == 3, "once it is made, they go"


def test_both_databases_are_copied_as_of_one_moment(
    directory_db: Database, repository_db: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No right changes in the directory between its snapshot and the repository's."""
    installation = Installation(folder / "data", settings.Settings())
    other = Database(directory_db.engine.url.render_as_string(hide_password=False), busy_seconds=0.2)
    refused = []
    frozen = dumps.freeze

    def frozen_while_somebody_writes(database: Database) -> object:
        try:
            with other.begin() as cx:
                version_stamps.lock_rights(cx)
        except Busy:
            refused.append(database)
        return frozen(database)

    monkeypatch.setattr(dumps, "freeze", frozen_while_somebody_writes)
    databases = {"directory": directory_db, "repository": repository_db}
    source = making.BackupSource(installation, databases, folder / "none.toml")  # type: ignore[arg-type]
    making.make(source, folder / "kept", "0", clock.now, lambda _done, _all: None)
    assert refused == [directory_db, repository_db]
    with other.begin() as cx:
        version_stamps.lock_rights(cx)
    other.close()


# Killed at a step


KILLS = pytest.mark.parametrize("kills", [FEW, pytest.param(MANY, marks=pytest.mark.campaign)])


@KILLS
@pytest.mark.timeout(900)
def test_a_backup_killed_at_any_step_is_not_there_and_can_be_made_again(
    place: Place, folder: Path, capsys: pytest.CaptureFixture[str], kills: int
) -> None:
    began = time.monotonic()
    data, kept = place.filled("data"), folder / "kept"
    code, steps = run_until(0, data, "backup", kept)
    assert (code, kept.is_dir()) == (0, True)
    shutil.rmtree(kept)
    for step in spread(steps, kills):
        code, _ = run_until(step, data, "backup", kept)
        assert code is None
        if kept.exists():  # killed behind the step that gives it its name
            assert restoring.inspect(kept).manifest.contents == 4
            shutil.rmtree(kept)
        with pytest.raises(BackupRefused):
            restoring.inspect(kept)
    assert run(data, "backup", kept) == 0
    assert [each.name for each in folder.iterdir() if each.name.startswith(".")] == []
    restored = place.empty("restored")
    assert run(restored, "restore", kept) == 0
    whole(restored, capsys)
    print(f"a backup of {steps} steps, killed at {kills}: {time.monotonic() - began:.1f} s")


@KILLS
@pytest.mark.timeout(900)
def test_a_restore_killed_at_any_step_is_not_served_and_can_be_given_again(
    place: Place, folder: Path, capsys: pytest.CaptureFixture[str], kills: int
) -> None:
    began = time.monotonic()
    data, kept = place.filled("data"), folder / "kept"
    assert run(data, "backup", kept) == 0
    code, steps = run_until(0, place.empty("counted"), "restore", kept)
    assert code == 0
    restored = place.empty("restored")
    assert run_until(steps // 2, restored, "restore", kept)[0] is None
    served = muniment(restored, "serve", "--port", str(free_port()))
    assert (served.returncode, "holds only a part of a backup" in served.stderr) == (Exit.NOT_READY, True)
    for step in spread(steps, kills):
        code, _ = run_until(step, restored, "restore", kept)
        if code is None and (restored / "restore.unfinished").exists():
            for arguments in (["migrate"], ["init"], ["user", "list", "staff"], ["index", "check"]):
                capsys.readouterr()
                assert run(restored, *arguments) == Exit.NOT_READY, (step, arguments)
                assert "holds only a part of a backup" in capsys.readouterr().err
            with pytest.raises(BackupRefused, match="no manifest"):
                restoring.inspect(restored)
    if (restored / "restore.unfinished").exists():
        assert run(restored, "restore", kept) == 0
    whole(restored, capsys)
    assert run(restored, "restore", kept) == Exit.REFUSED, "what is whole is not restored over"
    print(f"a restore of {steps} steps, killed at {kills + 1}: {time.monotonic() - began:.1f} s")


# Refusals


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A data folder on SQLite, and its backup."""
    root = tmp_path_factory.mktemp("backup")
    data = root / "data"
    assert muniment(data, "init").returncode == 0
    (root / "docs").mkdir()
    for number in range(4):
        (root / "docs" / f"note{number}.txt").write_text(f"Stone number {number}.\n" * 100)
    assert muniment(data, "import", str(root / "docs"), "--acl", "public", "--no-wait").returncode == 0
    (data / "muniment.toml").write_text("[web]\nitems = 1\n".replace("items = 1", "max_connections = 77"))
    (data / "tls").mkdir()
    (data / "tls" / "ca.pem").write_text("not really")
    assert run(data, "backup", root / "kept") == 0
    return data, root / "kept"


@pytest.fixture
def copied(made: tuple[Path, Path], tmp_path: Path) -> Path:
    """A backup that a test may damage."""
    return Path(shutil.copytree(made[1], tmp_path / "kept"))


def test_a_backup_says_what_is_in_it_and_is_for_its_owner_alone(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, kept = made
    before = os.umask(0)
    try:
        assert run(data, "backup", tmp_path / "open") == 0
        assert run(tmp_path / "restored", "restore", tmp_path / "open") == 0
    finally:
        os.umask(before)
    assert modes(tmp_path / "open") == {("folder", 0o700), ("file", 0o600)}
    sensitive = [tmp_path / "restored" / name for name in ("content", "tls", "muniment.toml", "directory.db")]
    for each in sensitive:
        assert modes(each) <= {("folder", 0o700), ("file", 0o600)}
    assert (tmp_path / "restored").stat().st_mode & 0o777 == 0o700
    written = restoring.inspect(kept).manifest
    assert (written.contents, written.damaged, written.settings) == (4, (), ("web.max_connections",))
    assert set(written.files) == {"directory.db", "repository.db", "muniment.toml", "tls/ca.pem"}
    assert {half: copied.dialect for half, copied in written.databases.items()} == {
        "directory": "sqlite",
        "repository": "sqlite",
    }
    for name in ("muniment.toml", "tls/ca.pem"):
        assert (tmp_path / "restored" / name).read_bytes() == (data / name).read_bytes()


def test_every_file_that_a_setting_names_is_to_be_copied_by_hand(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [setting.key for setting in settings.table() if setting.key.endswith("_file")]
    assert "repository.tokeninfo_ca_file" in keys
    given = [word for key in keys for word in ("--set", f"{key}={tmp_path / key}")]
    given += ["--set", "repository.tokeninfo_url=https://elsewhere.example/v1/authentication/oauth/tokeninfo"]
    given += ["--set", "repository.opensearch.name=x"]
    for command, data in (("backup", made[0]), ("restore", tmp_path / "restored")):
        capsys.readouterr()
        assert run(data, *given, command, tmp_path / "kept") == 0
        said = capsys.readouterr().out
        assert [key for key in keys if f"the file that the setting {key} names" not in said] == []
    assert run(made[0], "backup", tmp_path / "plain") == 0
    assert manifest.read(tmp_path / "plain").external == ()


def test_sessions_are_ended_unless_they_are_to_be_kept(
    made: tuple[Path, Path], copied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = Database(f"sqlite:///{copied / 'directory.db'}")
    with database.begin() as cx:
        columns = "digest, user_id, resource_id, created, expires"
        values = "'a', id, 'r', 0, 9000000000000000"
        cx.execute(sa.text(f"INSERT INTO tickets ({columns}) SELECT {values} FROM entries WHERE id = 1"))
        assert cx.execute(sa.text("SELECT count(*) FROM tickets")).scalar_one() == 1
    database.close()
    _sealed_again(copied)
    for keep, left in (((), 0), (("--keep-sessions",), 1)):
        data = tmp_path / f"restored{left}"
        capsys.readouterr()
        assert run(data, "restore", copied, *keep) == 0
        assert ("1 browser sign-ins" in capsys.readouterr().out) == (left == 0)
        database = Database(f"sqlite:///{data / 'directory.db'}")
        with database.read() as cx:
            assert cx.execute(sa.text("SELECT count(*) FROM tickets")).scalar_one() == left
        database.close()


def _sealed_again(kept: Path) -> None:
    """Write the manifest anew, after a change to the files that it names."""
    written = manifest.read(kept)
    (kept / manifest.NAME).unlink()
    files = manifest.describe({name: kept / name for name in written.files})
    manifest.write(kept, replace(written, files=files))


def test_an_altered_content_is_named_and_all_others_are_there(
    copied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    altered, missing, *_ = sorted(contents(copied / "content"))
    spoil(copied / "content", altered)
    lose(copied / "content", missing)
    assert run(tmp_path / "restored", "restore", copied) == Exit.FAILED
    assert capsys.readouterr().out.count("its content is missing or altered") == 2
    assert run(tmp_path / "restored", "content", "check") == Exit.FAILED
    assert "2 whole, 2 missing or altered" in capsys.readouterr().out
    assert run(tmp_path / "restored", "backup", tmp_path / "again") == Exit.FAILED
    assert "was missing or altered before the backup" in capsys.readouterr().out
    assert len(manifest.read(tmp_path / "again").damaged) == 2


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda kept: (kept / "manifest.json").unlink(), "holds no whole backup"),
        (lambda kept: (kept / "manifest.json").write_bytes(b'{"manifest": {'), "is damaged"),
        (lambda kept: _edited(kept, '"contents":4', '"contents":5'), "is damaged"),
        (lambda kept: (kept / "repository.db").write_bytes(b"x"), "repository.db differs from its digest"),
        (lambda kept: (kept / "tls" / "ca.pem").unlink(), "tls/ca.pem is missing"),
        (lambda kept: _at(kept, "directory_9999"), "made by a newer release (9.9): restore it with that release"),
        (lambda kept: _at(kept, "directory_0006"), "restore it with the commit tagged 'before-light' first"),
    ],
    ids=[
        "no manifest",
        "half a manifest",
        "an edited manifest",
        "another database",
        "a missing file",
        "a newer schema",
        "a schema from before the first migration",
    ],
)
def test_what_is_no_whole_backup_of_a_known_release_is_refused_before_anything_is_made(
    copied: Path, tmp_path: Path, harm: Callable[[Path], object], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    harm(copied)
    assert run(tmp_path / "restored", "restore", copied) == Exit.REFUSED
    assert said in capsys.readouterr().err
    assert not (tmp_path / "restored").exists()


def _edited(kept: Path, before: str, after: str) -> None:
    file = kept / "manifest.json"
    told = file.read_text()
    assert before in told
    file.write_text(told.replace(before, after))


def _at(kept: Path, revision: str) -> None:
    written = manifest.read(kept)
    (kept / manifest.NAME).unlink()
    other = {**written.databases, "directory": replace(written.databases["directory"], revision=revision)}
    manifest.write(kept, replace(written, databases=other, release="9.9"))


def test_a_folder_that_is_in_use_or_not_empty_is_left_alone(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, kept = made
    before = {each.name for each in data.iterdir()} | {"events.log"}
    assert run(data, "restore", kept) == Exit.REFUSED
    assert "is not empty" in capsys.readouterr().err
    assert {each.name for each in data.iterdir()} == before
    held = tmp_path / "held"
    held.mkdir()
    program = (
        "import fcntl, sys, time; fcntl.flock(lock := open(sys.argv[1], 'w'), 2); print(flush=True); time.sleep(99)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(held / "serve.lock")], stdout=subprocess.PIPE, env=ENVIRONMENT
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert run(held, "restore", kept) == Exit.IN_USE
    finally:
        holder.kill()
        holder.wait()
    assert {each.name for each in held.iterdir()} <= {"serve.lock", "events.log"}


def test_what_a_killed_process_left_beside_a_database_is_not_mixed_into_the_restored_one(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite would take it for changes that are still to be made (https://sqlite.org/howtocorrupt.html, 1.4)."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "repository.db-wal").write_bytes(b"left by a killed server")
    given = ("--set", f"repository_database=sqlite:///{elsewhere}/repository.db")
    assert run(tmp_path / "restored", *given, "restore", made[1]) == Exit.REFUSED
    assert "repository.db-wal exists already" in capsys.readouterr().err
    assert [each.name for each in elsewhere.iterdir()] == ["repository.db-wal"]


def test_a_restore_into_a_database_elsewhere_can_be_given_again(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--set", f"repository_database=sqlite:///{tmp_path}/elsewhere/repository.db")
    restored = tmp_path / "restored"
    with monkeypatch.context() as broken:
        broken.setattr(restoring, "_contents", lambda *_: (_ for _ in ()).throw(OSError("the disk of the backup")))
        assert run(restored, *given, "restore", made[1]) == Exit.FAILED
    assert run(restored, *given, "restore", made[1]) == 0
    assert run(restored, *given, "content", "check") == 0
    capsys.readouterr()
    assert run(tmp_path / "another", *given, "restore", made[1]) == Exit.REFUSED
    assert "repository.db exists already" in capsys.readouterr().err


def test_two_halves_of_one_sqlite_file_are_restored_into_one(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the second half put the file there again, the restored tickets would be written into a file that is gone."""

    def in_one(file: str) -> tuple[str, ...]:
        url = f"sqlite:///{tmp_path / file}"
        return "--set", f"directory_database={url}", "--set", f"repository_database={url}"

    data, kept = tmp_path / "data", tmp_path / "kept"
    (tmp_path / "before").mkdir()
    assert run(data, *in_one("before/all.db"), "init") == 0
    before = Database(f"sqlite:///{tmp_path}/before/all.db")
    with before.begin() as cx:
        user_id = cx.execute(sa.text("SELECT id FROM entries WHERE kind = 'user' AND name = 'admin'")).scalar_one()
        page_ticket(cx, DirectoryNames(), user_id, resources.administration(cx).id, clock.now(), 600)
    before.close()
    assert run(data, *in_one("before/all.db"), "backup", kept) == 0
    assert run(tmp_path / "restored", *in_one("after/all.db"), "restore", kept) == 0
    assert "1 browser sign-in" in capsys.readouterr().out
    after = Database(f"sqlite:///{tmp_path}/after/all.db")
    with after.read() as cx:
        assert cx.execute(sa.text("PRAGMA integrity_check")).scalar_one() == "ok"
        assert (
            cx.execute(sa.text("SELECT count(*) FROM tickets WHERE expires > :now"), {"now": clock.now()}).scalar() == 0
        )
    after.close()
    assert run(tmp_path / "another", *in_one("one.db"), "restore", made[1]) == Exit.REFUSED
    assert "name two" in capsys.readouterr().err
    assert not (tmp_path / "one.db").exists()


def test_a_backup_goes_into_a_new_folder_or_an_empty_one(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, kept = made
    before = (kept / "manifest.json").read_bytes()
    assert run(data, "backup", kept) == Exit.REFUSED
    assert "exists already" in capsys.readouterr().err
    assert (kept / "manifest.json").read_bytes() == before
    (tmp_path / "empty").mkdir()
    assert run(data, "backup", tmp_path / "empty") == 0
    (tmp_path / "today").mkdir()
    (tmp_path / "link").symlink_to("today")
    assert run(data, "backup", tmp_path / "link") == 0
    assert (tmp_path / "today/manifest.json").is_file()
    with patch.object(Path, "is_mount", return_value=True):
        assert run(data, "backup", tmp_path / "disk") == Exit.REFUSED
    assert "is a whole disk" in capsys.readouterr().err
    assert run(tmp_path / "nothing", "backup", tmp_path / "new") == Exit.NOT_READY
    assert not (tmp_path / "new").exists()


def test_two_backups_to_one_folder_do_not_meet(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    adopt, seen = FileStore.adopt, list[int]()

    def adopt_beside_another(self: FileStore, kept: StoredContent, pieces: Iterable[bytes]) -> bool:
        if not seen:
            seen.append(-1)
            seen[0] = run(made[0], "backup", tmp_path / "kept")
        return adopt(self, kept, pieces)

    monkeypatch.setattr(FileStore, "adopt", adopt_beside_another)
    assert run(made[0], "backup", tmp_path / "kept") == 0
    assert seen == [Exit.REFUSED]
    assert "is making a backup" in capsys.readouterr().err
    assert restoring.inspect(tmp_path / "kept").manifest.contents == 4


def test_a_disk_without_room_is_told_of_before_anything_is_copied(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage._replace(free=1 << 20))
    assert run(made[0], "backup", tmp_path / "kept") == Exit.REFUSED
    assert "make room there" in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()
    assert not (tmp_path / ".kept.unfinished").exists()


def test_without_the_programs_of_postgresql_the_reason_is_told(
    postgres: Postgres, folder: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(folder, postgres, fresh)
    data = place.empty("data")
    assert run(data, "init") == 0
    monkeypatch.setenv("PATH", str(folder))
    assert run(data, "backup", folder / "kept") == Exit.REFUSED
    assert "pg_dump is not on the PATH: install PostgreSQL's client programs" in capsys.readouterr().err
    assert not (folder / "kept").exists()


def test_a_file_that_a_database_address_names_is_to_be_copied_by_hand(
    postgres: Postgres, folder: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", f"{postgres.binaries}:{os.environ['PATH']}")
    data = Place(folder, postgres, fresh).empty("data")
    url = settings.read(data / "muniment.toml").repository_database
    (data / "muniment.toml").write_text(
        f'directory_database = "{url}"\nrepository_database = "{url}?passfile={folder}/passwords"\n'
    )
    assert run(data, "init") == 0
    assert run(data, "backup", folder / "kept") == 0
    answer = capsys.readouterr().out
    assert "the databases directory (PostgreSQL) and repository (PostgreSQL) as of" in answer
    assert "address in the setting repository_database names; the database itself is in it" in answer
    assert "directory_database" not in answer


def test_a_postgresql_that_is_not_empty_is_left_alone(
    postgres: Postgres, folder: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", f"{postgres.binaries}:{os.environ['PATH']}")
    place = Place(folder, postgres, fresh)
    data, other = place.empty("data"), place.empty("other")
    assert run(data, "init") == run(other, "init") == 0
    assert run(data, "backup", folder / "kept") == 0
    url = settings.read(other / "muniment.toml").directory_database
    for file in other.iterdir():
        if file.name != "muniment.toml":
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    assert run(other, "restore", folder / "kept") == Exit.REFUSED
    assert "is not empty: make an empty one" in capsys.readouterr().err
    database = Database(url.replace("postgresql://", "postgresql+psycopg://"))
    schema.check_schema(database, "directory")
    database.close()


class Interrupted(NamedTuple):
    """A backup of this release on PostgreSQL, and a restore of it by the next that stopped behind the migrations."""

    kept: Path
    data: Path
    database: Database

    def run(self, statement: str) -> sa.CursorResult[Any]:
        """Run a statement in the database that the restore fills."""
        with self.database.engine.begin() as cx:
            return cx.execute(sa.text(statement))

    def restore(self) -> int:
        """Give the restore again."""
        return run(self.data, "restore", self.kept)


@pytest.fixture
def interrupted(postgres: Postgres, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Interrupted]:
    monkeypatch.setenv("PATH", f"{postgres.binaries}:{os.environ['PATH']}")
    place = Place(folder, postgres, postgres.fresh)
    original = place.database(place.empty("data"))
    for half in schema.NEWEST:
        schema.migrate(original, half)
    with original.begin() as cx:
        cx.execute(
            sa.text(
                "INSERT INTO repositories (id, name, description, resource_id, created) VALUES (7, 'm', '', 'r', 0)"
            )
        )
    installation = Installation(folder / "data", settings.Settings())
    source = making.BackupSource(installation, dict.fromkeys(schema.NEWEST, original), folder / "none.toml")
    making.make(source, folder / "kept", "0", clock.now, lambda _done, _all: None)
    original.close()
    data = place.empty("restored")
    with next_release(folder / "next"):
        with patch.object(restoring, "_indexes", side_effect=OSError("interrupted")):
            assert run(data, "restore", folder / "kept") != 0
        database = place.database(data)
        for half in schema.NEWEST:
            schema.check_schema(database, half)
        yield Interrupted(folder / "kept", data, database)
        database.close()


def test_a_restore_that_had_migrated_can_be_given_again(
    interrupted: Interrupted, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first try has made tables that the dump does not name. What is not ours stays."""
    interrupted.run("CREATE TABLE letters (id integer)")
    interrupted.run("CREATE FUNCTION renew_letter() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    interrupted.run("UPDATE repositories SET description = 'changed since'")
    assert interrupted.restore() == 0, capsys.readouterr().err
    for half in schema.NEWEST:
        schema.check_schema(interrupted.database, half)
    assert interrupted.run("SELECT description FROM repositories WHERE id = 7").scalar_one() == ""
    assert interrupted.run("SELECT renew_letter() FROM letters").first() is None
    assert interrupted.restore() == Exit.REFUSED, "what is whole is not restored over"


@pytest.mark.parametrize(
    "dependent",
    [
        "CREATE VIEW letters AS SELECT id FROM repository_shelves",
        "CREATE TABLE letters (id integer REFERENCES repositories (id))",
    ],
    ids=["a view", "a foreign key"],
)
def test_what_others_made_in_an_unfinished_restore_is_never_removed(
    interrupted: Interrupted, capsys: pytest.CaptureFixture[str], dependent: str
) -> None:
    interrupted.run(dependent)
    before = sorted(_own(interrupted.database))
    assert interrupted.restore() == Exit.REFUSED
    said = capsys.readouterr().err
    assert "letters depends on" in said
    assert "remove everything from it" in said
    assert sorted(_own(interrupted.database)) == before
    interrupted.run(f"DROP {dependent.split()[1]} letters")
    assert interrupted.restore() == 0


def test_two_halves_of_one_database_are_not_restored_into_two(
    interrupted: Interrupted, postgres: Postgres, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dump of both halves would fill one of the two databases, and leave the other empty."""
    place = Place(folder, postgres, postgres.fresh)
    data = place.empty("apart")
    file = data / "muniment.toml"
    (_, second), other = file.read_text().splitlines(), postgres.fresh()
    file.write_text(f'directory_database = "{other}"\n{second}\n')
    assert run(data, "restore", interrupted.kept) == Exit.REFUSED
    assert "name one database for both" in capsys.readouterr().err
    assert _own(place.database(data)) == []


def test_a_half_is_removed_from_postgresql_without_a_trace_and_the_other_stays(postgres: Postgres) -> None:
    url, alone = postgres.fresh("directory", "repository"), postgres.fresh("directory")
    both, directory = Database(url), Database(alone)
    try:
        dumps.remove_halves(both, ["repository"])
        assert sorted(_own(both)) == sorted(_own(directory))
        schema.check_schema(both, "directory")
        dumps.remove_halves(both, ["directory", "repository"])
        assert _own(both) == []
    finally:
        both.close()
        directory.close()
        postgres.drop(url)
        postgres.drop(alone)


def _own(database: Database) -> list[str]:
    """Name the tables, indexes, sequences, views and functions in a PostgreSQL database."""
    every = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace "
        "UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
    )
    with database.read() as cx:
        return [str(name) for name in cx.scalars(sa.text(every))]


def test_the_copy_of_sqlite_is_one_snapshot_however_much_is_written_meanwhile(tmp_path: Path) -> None:
    """Every transaction moves a sum from one row to another and adds pages; the copy sees none of them in part."""
    database, stop, written = Database(f"sqlite:///{tmp_path / 'a.db'}"), threading.Event(), list[int]()
    with database.begin() as cx:
        cx.execute(sa.text("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, filling BLOB)"))
        rows = [{"id": number} for number in range(1, 5001)]
        cx.execute(sa.text("INSERT INTO t VALUES (:id, 10, zeroblob(4000))"), rows)

    def write() -> None:
        chance = random.Random(1)
        while not stop.is_set():
            with database.begin() as cx:
                for change in (1, -1):
                    row = {"change": change, "id": chance.randint(1, 5000)}
                    cx.execute(sa.text("UPDATE t SET n = n + :change WHERE id = :id"), row)
                cx.execute(sa.text("INSERT INTO t (n, filling) VALUES (0, zeroblob(100000))"))
            written.append(1)

    def written_before(transactions: int) -> None:
        """Wait for so many further transactions."""
        wanted = len(written) + transactions
        until(lambda: len(written) >= wanted)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            written_before(3)
            with dumps.freeze(database) as frozen:
                written_before(3)
                frozen.copy(tmp_path / f"copy{number}.db")
                counted = frozen.connection.execute(sa.text("SELECT count(*), sum(n) FROM t")).one()
            copy = Database(f"sqlite:///{tmp_path / f'copy{number}.db'}")
            with copy.read() as cx:
                assert cx.execute(sa.text("SELECT count(*), sum(n) FROM t")).one() == counted
                assert counted[1] == 50_000
                assert cx.execute(sa.text("PRAGMA integrity_check")).scalar_one() == "ok"
            copy.close()
    finally:
        stop.set()
        writer.join()
        database.close()
