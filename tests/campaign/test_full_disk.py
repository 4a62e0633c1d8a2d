"""A disk that takes no more: said in the interface's shape, nothing accepted is lost, all goes on when there is room.

Source: issue 4, 2: "disk full and read-only at each write".
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from muniment.database.connections import Database
from tests.campaign.disks import ReadOnlyFolder, SmallDisks
from tests.campaign.house import LOGIN, REPOSITORY, Visitor
from tests.e2e.processes import ServedHouse, Server, alive
from tests.scenes import Person
from tests.servers import free_port
from tests.waiting import until

WORD = "quorum"
MUNIMENT = (sys.executable, "-m", "muniment")
NO_RESERVE = ("--set", "disk_reserve_mib=0")
"""These disks are smaller than the reserve of a real one."""


def refused_in_shape(answer: httpx.Response) -> bool:
    """Say whether the answer is a success; if not, it must be a clear refusal in its address's shape."""
    if answer.is_success:
        return True
    assert answer.status_code in {503, 507}, (answer.request.url.path, answer.status_code, answer.text)
    said = answer.json()
    if answer.request.url.path.startswith(REPOSITORY):
        assert set(said) == {"status", "code", "message", "details", "id"}
        assert said["status"] == answer.status_code
        assert said["code"].startswith("E_")
    elif answer.request.url.path == LOGIN:
        assert said["error"] == "temporarily_unavailable"
        assert said["error_description"]
    else:
        assert said, answer.text
    return False


def every_write(visitor: Visitor, spare_token: str, ids: list[str]) -> dict[str, bool]:
    """Do each kind of write once, and say which succeeded."""
    large = (WORD + " in a large content ").encode() * 20_000
    steps: dict[str, Callable[[], httpx.Response]] = {
        "sign in": visitor.sign_in,
        "refresh": visitor.refresh,
        "revoke": lambda: visitor.revoke_another(spare_token),
        "create": lambda: visitor.create("bare"),
        "create with content": lambda: visitor.create("full", large),
        "rename": lambda: visitor.rename(ids[0], "renamed"),
        "replace": lambda: visitor.replace(ids[1], large),
        "share": lambda: visitor.share(ids[2]),
        "delete": lambda: visitor.delete(ids[3]),
    }
    return {name: refused_in_shape(step()) for name, step in steps.items()}


def every_read(visitor: Visitor, untouched: str) -> None:
    """What can be read is read, whatever becomes of writes."""
    assert visitor.tokeninfo().status_code == 200
    assert visitor.media(untouched).content == visitor.contents_by_id[untouched]
    assert visitor.http.get(f"{REPOSITORY}/objects/{untouched}").status_code == 200
    assert untouched in visitor.find(WORD)


@pytest.mark.campaign
@pytest.mark.parametrize("left", [0, 300_000])
def test_an_index_without_room_gives_no_object_up(tmp_path: Path, left: int) -> None:
    """Room for a commit, and none for a document: the disk is to blame, not the document."""
    house = ServedHouse(tmp_path)
    disks = SmallDisks([house.data / "index"], 24_000)
    with house.serve(*NO_RESERVE, command_prefix=disks.command_prefix) as server:
        process, visitor = server.process.pid, Visitor(server, house.world)
        assert visitor.create("before", f"{WORD} before".encode()).status_code == 201
        until(lambda: visitor.find(WORD), "what is kept is not found")
        disks.fill(process, but=left)
        words = " ".join(f"{WORD} w{number:x}" for number in range(50_000))
        for number in range(3):
            assert visitor.create(f"large {number}", words.encode()).status_code == 201
        until(lambda: server.log_text.count("indexing waits for room") > 3, "the disk was not full")
        disks.free(process)
        until(
            lambda: visitor.find(WORD) == sorted(visitor.contents_by_id), "the index does not come to hold what is kept"
        )
        visitor.holds()
        whole_index(disks, house, process)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("folders", "kibibytes"),
    [(["databases"], 6_000), (["content"], 2_000), (["index"], 2_000), (["databases", "content", "index"], 6_000)],
    ids=["database", "content", "index", "all"],
)
def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path: Path, folders: list[str], kibibytes: int) -> None:
    house = ServedHouse(tmp_path)
    disks = SmallDisks([house.data / folder for folder in folders], kibibytes)
    with house.serve(*NO_RESERVE, command_prefix=disks.command_prefix) as server:
        process, children = server.process.pid, set(server.children())
        visitor, ids = filled(house, server)
        spare, other = visitor.sign_in().json()["refresh_token"], visitor.sign_in().json()["refresh_token"]
        disks.fill(process)
        done = every_write(visitor, spare, ids)
        every_read(visitor, ids[6])
        print(f"{'/'.join(folders)} full: refused {[name for name, went in done.items() if not went]}")
        if "index" in folders:
            assert all(done.values()) or folders != ["index"], "writes do not need the index"
        else:
            assert not all(done.values()), "the disk was not full"
        if folders == ["content"]:
            assert [name for name, went in done.items() if not went] == ["create with content", "replace"]
        if folders != ["index"]:
            assert "request not stored" in server.log_text
        disks.free(process)
        again = every_write(visitor, other, [ids[4], ids[5], ids[1], ids[2]])
        assert all(again.values()), again
        visitor.holds()
        until(lambda: visitor.find(WORD) == whole(visitor), "the index does not come to hold what is kept")
        assert set(server.children()) == children, "a process had to be started again"
        assert all(alive(child) for child in children)
        assert not server.has_logged("bug")
        whole_index(disks, house, process)


@pytest.mark.campaign
def test_ends_of_rights_and_deletions_have_a_reserve_that_content_leaves_free(tmp_path: Path) -> None:
    """A caller fills the disk with contents. All that ends rights and makes room goes on."""
    people: list[Person] = []
    house = ServedHouse(tmp_path, furnish=lambda world: people.append(world.person()))
    disks = SmallDisks([house.data / "databases", house.data / "content"], 40_000)
    prefix = disks.command_prefix
    with house.serve("--set", "disk_reserve_mib=16", command_prefix=prefix) as server:
        process = server.process.pid
        visitor, ids = filled(house, server)
        spare = visitor.sign_in().json()["refresh_token"]
        for size in (1 << 20, 1 << 14):
            kept = 0
            while (answer := visitor.create("filling", os.urandom(size))).is_success:
                kept += 1
            assert (answer.status_code, kept > 0) == (507, True), answer.text
        ready = visitor.http.get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (200, "short of room")
        for number in range(200):
            assert visitor.share(ids[2]).is_success, number
            assert visitor.rename(ids[0], f"renamed {number}").is_success, number
        assert visitor.revoke_another(spare).status_code == 204
        disabled = subprocess.run(
            [*disks.enter(process), *MUNIMENT, "--data", str(house.data), "user", "set", "--disable", people[0].id],
            capture_output=True,
            text=True,
            check=False,
        )
        assert disabled.returncode == 0, disabled.stderr
        for object_id in list(visitor.contents_by_id):
            assert visitor.delete(object_id).status_code == 204
        until(lambda: visitor.create("room again", os.urandom(1 << 20)).is_success, "deletions make no room")
        assert not server.has_logged("bug")


def whole_index(disks: SmallDisks, house: ServedHouse, process: int) -> None:
    """The index is what the database says, and no object was given up for want of room."""
    check = [*MUNIMENT, "--data", str(house.data), "index", "check"]
    said = subprocess.run([*disks.enter(process), *check], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert " 0 missing, 0 extra, 0 stale, 0 doubled, 0 waiting, 0 not indexable" in said.stdout, said.stdout


@pytest.mark.campaign
def test_databases_on_a_read_only_disk_are_read_and_written_again_without_a_restart(tmp_path: Path) -> None:
    house = ServedHouse(tmp_path)
    with house.serve() as server:
        visitor, ids = filled(house, server)
        spare = visitor.sign_in().json()["refresh_token"]
        # Without its log beside it SQLite cannot even read a file on such a disk: somebody keeps it in use.
        others = [Database(url) for url in house.urls]
        for other in others:
            with other.read() as cx:
                cx.exec_driver_sql("SELECT * FROM sqlite_master").all()
        server.stop()
    read_only = ReadOnlyFolder(house.data / "databases")
    with house.serve(*NO_RESERVE, command_prefix=read_only.command_prefix) as server:
        children = set(server.children())
        visitor.move(server)
        every_read(visitor, ids[6])
        assert not any(every_write(visitor, spare, ids).values())
        every_read(visitor, ids[6])
        read_only.writable(server.process.pid)
        # The connection that was opened meanwhile is found to be read-only, and given up, by one write more.
        until(lambda: visitor.sign_in().is_success and visitor.create("again").is_success, "writes stay refused")
        assert all(every_write(visitor, spare, ids).values())
        until(lambda: visitor.find(WORD) == whole(visitor), "the index does not come to hold what is kept")
        visitor.holds()
        assert set(server.children()) == children, "a process had to be started again"
        assert not server.has_logged("bug")
    for other in others:
        other.close()


@pytest.mark.campaign
def test_contents_on_a_read_only_disk_are_read_and_taken_again_without_a_restart(tmp_path: Path) -> None:
    house = ServedHouse(tmp_path)
    (house.data / "content" / "incoming").mkdir(mode=0o700, parents=True)
    disk = ReadOnlyFolder(house.data / "content")
    # A file that is open for writing, such as a pack, keeps the kernel from making its disk read-only.
    with house.serve(*NO_RESERVE, "--set", "repository.packed_bytes=0", command_prefix=disk.command_prefix) as server:
        disk.writable(server.process.pid)
        visitor, ids = filled(house, server)
        disk.read_only(server.process.pid)
        spare, other = (visitor.sign_in().json()["refresh_token"] for _ in range(2))
        done = every_write(visitor, spare, ids)
        assert [name for name, went in done.items() if not went] == ["create with content", "replace"]
        every_read(visitor, ids[6])
        disk.writable(server.process.pid)
        assert all(every_write(visitor, other, [ids[4], ids[5], ids[1], ids[2]]).values())
        visitor.holds()
        assert not server.has_logged("bug")


@pytest.mark.campaign
def test_an_index_on_a_read_only_disk_is_named_at_the_start(tmp_path: Path) -> None:
    house = ServedHouse(tmp_path)
    disk = ReadOnlyFolder(house.data / "index")
    server = Server(house.data, free_port(), command_prefix=disk.command_prefix)
    try:
        assert server.process.wait(60) == 1
        assert "agent.lock: Read-only file system" in server.log_text
    finally:
        server.kill()


@pytest.mark.campaign
def test_logs_that_cannot_be_written_stop_nothing(tmp_path: Path) -> None:
    house = ServedHouse(tmp_path)
    with house.serve(command_prefix=["sh", "-c", 'exec "$@" 2>/dev/full >/dev/full', "sh"], wait=False) as server:
        until(server.answers, "it does not start")
        visitor, ids = filled(house, server)
        spare = visitor.sign_in().json()["refresh_token"]
        assert all(every_write(visitor, spare, ids).values())
        assert visitor.http.get("/none").status_code == 404
        os.kill(next(iter(server.children())), signal.SIGKILL)
        until(server.answers, "a fallen worker is not started again")
        assert server.process.poll() is None
        assert server.stop() == 0


def filled(house: ServedHouse, server: Server) -> tuple[Visitor, list[str]]:
    """Make seven documents, and wait until they are found."""
    visitor = Visitor(server, house.world)
    for number in range(7):
        assert visitor.create(f"paper {number}", f"{WORD} {number}".encode()).status_code == 201
    until(lambda: visitor.find(WORD) == sorted(visitor.contents_by_id), "what is kept is not found")
    return visitor, list(visitor.contents_by_id)


def whole(visitor: Visitor) -> list[str]:
    """Name what a search for the word must find."""
    return sorted(object_id for object_id, content in visitor.contents_by_id.items() if WORD.encode() in content)
