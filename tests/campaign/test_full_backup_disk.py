"""A backup, and a restore, onto a disk that fills up: said with what to do, nothing passes as whole, room mends it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.installation.exit_codes import Exit
from tests.campaign.disks import SmallDisks
from tests.campaign.test_full_disk import WORD, every_read, every_write, filled, whole
from tests.conftest import Fresh
from tests.e2e.processes import ServedHouse, alive
from tests.servers import Postgres, Sqlite
from tests.waiting import until

pytestmark = pytest.mark.campaign

ROOM = 160_000
"""Kibibytes: what is copied takes a tenth of it, and a backup wants 64 MiB more than that."""

BEFOREHAND, UNAWARE = "", "making._check_room = lambda *_: None;"
"""With the look at the disk that a backup takes before it begins; and as if the room had gone after it."""

_PROGRAM = "import sys; from muniment.installation.backups import making; from muniment.cli import commands;"


class Elsewhere:
    """A small disk that commands see: each is given as it would be by somebody on the same machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._disks = SmallDisks([folder], ROOM)
        self._holder = subprocess.Popen([*self._disks.command_prefix, "sleep", "3000"])
        until(lambda: os.path.ismount(f"/proc/{self._holder.pid}/root{folder}"), "there is no disk")

    def close(self) -> None:
        """Let the disk go."""
        self._holder.kill()
        self._holder.wait()

    def leave(self, room: int) -> None:
        """Fill it but for so many bytes."""
        self._disks.fill(self._holder.pid, but=room)

    def free(self) -> None:
        """Give the room back."""
        self._disks.free(self._holder.pid)

    def names(self, folder: Path) -> set[str]:
        """Name what lies in one of its folders, but for what fills it."""
        seen = self._disks.seen(self._holder.pid, folder)
        return {each.name for each in seen.iterdir()} - {"filler"} if seen.exists() else set()

    def run(self, data: Path, *arguments: str | Path, how: str = BEFOREHAND) -> tuple[int, str]:
        """Give a command to its end: its exit code and what it says."""
        given = [*(word for one in ("--data", data, *arguments) for word in [str(one)])]
        command = [sys.executable, "-c", f"{_PROGRAM}{how}sys.exit(commands.run(sys.argv[1:]))", *given]
        ended = subprocess.run(
            [*self._disks.enter(self._holder.pid), *command], capture_output=True, text=True, timeout=300, check=False
        )
        return ended.returncode, ended.stdout + ended.stderr


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    made = Elsewhere(tmp_path / "elsewhere")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def programs(engine: Sqlite | Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """pg_dump and pg_restore, where they are needed."""
    if isinstance(engine, Postgres):
        monkeypatch.setenv("PATH", f"{engine.binaries}:{os.environ['PATH']}")


def test_a_backup_that_finds_no_room_says_so_and_leaves_the_server_alone(
    tmp_path: Path, fresh: Fresh, elsewhere: Elsewhere
) -> None:
    house = ServedHouse(tmp_path, fresh("directory"), fresh("repository"))
    kept = elsewhere.folder / "kept"
    with house.serve() as server:
        children = set(server.children())
        visitor, ids = filled(house, server)
        for number in range(20):
            assert visitor.create(f"large {number}", os.urandom(200_000)).status_code == 201
        spare = visitor.sign_in().json()["refresh_token"]
        elsewhere.leave(10 << 20)
        code, said = elsewhere.run(house.data, "backup", kept)
        assert (code, "make room there, or name a folder on another disk" in said) == (Exit.REFUSED, True), said
        assert elsewhere.names(elsewhere.folder) == set()
        elsewhere.free()
        tried = {}
        for room in (0, 60_000, 300_000, 3_000_000):
            elsewhere.leave(room)
            code, said = elsewhere.run(house.data, "backup", kept, how=UNAWARE)
            tried[room] = said.strip().splitlines()[-1]
            assert (code, "Traceback" in said) == (Exit.FAILED, False), said
            assert "ake room on that disk, then try again." in said, said
            assert str(elsewhere.folder) in said, "it says which disk"
            assert elsewhere.names(elsewhere.folder) == set(), "nothing is left that looks like a backup"
            code, said = elsewhere.run(tmp_path / "restored", "restore", kept)
            assert (code, "holds no whole backup" in said) == (Exit.REFUSED, True), said
            every_read(visitor, ids[6])
            elsewhere.free()
        print("\n".join(f"{room} bytes left: {said}" for room, said in tried.items()))
        assert all(every_write(visitor, spare, ids).values()), "what is full is another disk"
        visitor.holds()
        until(lambda: visitor.find(WORD) == whole(visitor), "the index does not come to hold what is kept")
        code, said = elsewhere.run(house.data, "backup", kept)
        assert (code, elsewhere.names(elsewhere.folder)) == (Exit.OK, {"kept"}), said
        assert "manifest.json" in elsewhere.names(kept)
        assert set(server.children()) == children, "a process had to be started again"
        assert all(alive(child) for child in children)
        assert not server.has_logged("bug")


def test_a_restore_that_finds_no_room_says_so_and_is_not_served_until_it_is_whole(
    tmp_path: Path, engine: Sqlite | Postgres, elsewhere: Elsewhere, fresh: Fresh
) -> None:
    house = ServedHouse(tmp_path, fresh("directory"), fresh("repository"))
    kept, data = tmp_path / "kept", elsewhere.folder / "data"
    with house.serve() as server:
        visitor, _ = filled(house, server)
        for number in range(20):
            assert visitor.create(f"large {number}", os.urandom(200_000)).status_code == 201
    code, said = elsewhere.run(house.data, "backup", kept)
    assert code == Exit.OK, said
    others = ["--set", f"directory_database={_empty(engine, 1)}", "--set", f"repository_database={_empty(engine, 2)}"]
    given = [*others, "restore", str(kept)]
    tried = {}  # what a try has left gives room to the next
    for room in (0, 60_000, 1_000_000, 2_500_000):
        elsewhere.leave(room)
        code, said = elsewhere.run(data, *given)
        tried[room] = said.strip().splitlines()[-1]
        assert (code, "Traceback" in said) == (Exit.FAILED, False), said
        assert "ake room on that disk, then try again." in said, said
        if room:
            assert "restore.unfinished" in elsewhere.names(data)
            code, said = elsewhere.run(data, *others, "index", "check")
            assert (code, "holds only a part of a backup" in said) == (Exit.NOT_READY, True), said
        elsewhere.free()
    print("\n".join(f"{room} bytes left: {said}" for room, said in tried.items()))
    code, said = elsewhere.run(data, *given)
    assert (code, "restore.unfinished" in elsewhere.names(data)) == (Exit.OK, False), said
    code, said = elsewhere.run(data, *others, "content", "check")
    assert (code, f"sound: {len(visitor.contents_by_id)} whole" in said) == (Exit.OK, True), said
    code, said = elsewhere.run(data, *others, "index", "check")
    assert (code, " 0 missing, 0 extra, 0 stale, 0 doubled" in said) == (Exit.OK, True), said


def _empty(engine: Sqlite | Postgres, number: int) -> str:
    if isinstance(engine, Sqlite):
        return ""
    name = f"restored_{os.getpid()}_{number}"
    engine.make(name)
    return f"postgresql://postgres@127.0.0.1:{engine.port}/{name}"
