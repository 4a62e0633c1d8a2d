"""A served repository whose content is in a real store of S3, and content on its way from one store to the other.

Source: docs/operations.md, "Content in an S3 store".
"""

import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from muniment.cli import commands
from muniment.database.connections import Database
from muniment.ground.clock import now
from muniment.installation import backends, settings
from muniment.installation.exit_codes import Exit
from muniment.installation.layout import Installation
from muniment.repository.search.agent import agent
from muniment.repository.store import repositories
from muniment.repository.store.content.contract import ContentStore
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.listing.view import RepositoryView
from tests.contents import contents, lose
from tests.e2e.ledger import REPOSITORY, Holder
from tests.e2e.processes import ENVIRONMENT, ServedHouse, Server
from tests.s3 import S3Server
from tests.scenes import World
from tests.shelf import ADMIN
from tests.waiting import until

EVER = 2**60


class House:
    """A served data folder, and a store of S3 that its settings describe."""

    def __init__(self, root: Path, s3: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.served = ServedHouse(root)
        self.data = self.served.data
        self.s3, self.settings = s3, s3.settings
        self.options = s3.options(prefix=self.settings["repository.s3.prefix"])
        self._head = (self.data / "muniment.toml").read_text()
        self.use("s3")

    def use(self, kind: str, prefix: str = "") -> None:
        """Write settings that name this store."""
        chosen = self.settings | {"repository.content_store": kind}
        if prefix:
            chosen["repository.s3.prefix"] = prefix
        lines = [f"{key} = '{value}'\n" for key, value in chosen.items()]
        (self.data / "muniment.toml").write_text(self._head + "".join(lines))

    @property
    def installation(self) -> Installation:
        return Installation(self.data, settings.read(self.data / "muniment.toml", {}))

    def store(self, kind: backends.ContentKind) -> ContentStore:
        return backends.content(self.installation, kind)

    def in_s3(self) -> list[bytes]:
        return sorted(file.read_bytes() for file in self.s3.files(self.options))

    def keep(self, *texts: bytes) -> list[str]:
        """Make an object for each content, in the store that the settings name."""
        database, store = Database(self.served.urls[1]), backends.content(self.installation)
        new = [NewObject("document", {"object_name": "x"}, None, store.put([text]), None) for text in texts]
        with database.begin() as cx:
            view = RepositoryView.read(cx, repositories.find(cx, World.repository), ADMIN)
            made = creation.create_all(cx, view, new, now())
        database.close()
        return [each.id for each in made]

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a command in this process, and give what it prints."""
        self._capsys.readouterr()
        left = commands.run(["--data", str(self.data), *arguments])
        printed = "".join(self._capsys.readouterr())
        assert left == code, printed
        return printed


@pytest.fixture
def house(tmp_path: Path, s3: S3Server, capsys: pytest.CaptureFixture[str]) -> House:
    return House(tmp_path, s3, capsys)


@contextmanager
def signed_in(house: House, server: Server) -> Iterator[httpx.Client]:
    """Talk to the server as somebody who may write."""
    with server.client() as http:
        token = Holder(0, world=house.served.world).sign_in(http)["access_token"]
        http.headers["Authorization"] = f"Bearer {token}"
        yield http


def test_content_is_uploaded_found_read_in_ranges_and_removed(house: House) -> None:
    large = b"".join(random.Random(1).randbytes(1 << 20) for _ in range(20))
    with house.served.serve("--workers", "2") as server, signed_in(house, server) as http:
        assert "content store" not in server.log_text
        made = http.post(f"{REPOSITORY}/cabinets", json={"properties": {"object_name": "cabinet"}})
        folder = made.json()["properties"]["r_object_id"]

        def upload(name: str, body: bytes, media_type: str) -> str:
            document = http.post(f"{REPOSITORY}/folders/{folder}/documents", json={"properties": {"object_name": name}})
            assert document.status_code == 201, document.text
            own = f"{REPOSITORY}/objects/{document.json()['properties']['r_object_id']}"
            kept = http.post(f"{own}/contents", content=body, headers={"Content-Type": media_type})
            assert kept.status_code == 201, kept.text
            return own

        def found(word: str) -> bool:
            answer = http.get(f"{REPOSITORY}/search", params={"q": word}, headers={"Accept": "application/json"})
            return bool(answer.json()["entries"])

        small = upload("small", b"zeppelin in a plain text", "text/plain")
        page = upload("page", b"<html><body><p>quagmire in a page</p></body></html>", "text/html")
        film = upload("film", large, "video/mp4")
        until(lambda: found("zeppelin") and found("quagmire"), lambda: server.log_text[-3000:])
        assert not (house.data / "content").exists()
        assert large in house.in_s3()
        assert http.get(f"{film}/content-media").content == large
        part = http.get(f"{film}/content-media", headers={"Range": "bytes=9000000-9000009"})
        assert (part.status_code, part.content) == (206, large[9_000_000:9_000_010])
        with house.s3.frozen():
            refused = http.post(f"{small}/contents", content=b"x" * 9_000_000, timeout=90)
            assert (refused.status_code, refused.json()["code"]) == (503, "E_STORE_UNAVAILABLE")
            refused = http.get(f"{small}/content-media")
            assert (refused.status_code, refused.json()["code"]) == (503, "E_STORE_UNAVAILABLE")
            assert house.s3.bucket not in refused.text
            assert found("zeppelin"), "searches go on"
        until(lambda: http.get(f"{small}/content-media").status_code == 200)
        assert http.post(f"{small}/contents", content=b"new", headers={"Content-Type": "text/plain"}).status_code == 201
        assert http.delete(film).status_code == 204
        assert http.get(f"{page}/content-media").status_code == 200
        until(lambda: sorted(map(len, house.in_s3())) == [3, 51])
        server.stop()
    house.run("content", "check")
    store, left = house.store("s3"), house.store("s3").put([b"left by a crash"])
    database = Database(house.served.urls[1])
    assert sum(agent._sweep(database, store, EVER)) == 1
    database.close()
    assert not store.verify(left.key, left.sha256)
    assert len(house.in_s3()) == 2
    shown = house.run("settings")
    assert "a secret of tests" not in shown
    assert "***" in shown


def test_a_backup_holds_content_of_s3_and_goes_back_to_an_empty_place(house: House, tmp_path: Path) -> None:
    house.keep(b"first words", b"x" * 100_000)
    house.run("backup", str(tmp_path / "kept"))
    assert sorted(contents(tmp_path / "kept" / "content")) == sorted(house.in_s3())
    restored = House.__new__(House)
    restored.__dict__ |= house.__dict__ | {"data": tmp_path / "restored"}
    restored.data.mkdir(mode=0o700)
    database = f"sqlite:///{tmp_path}/restored.db"
    restored._head = f'repository_database = "{database}"\ndirectory_database = "sqlite:///{tmp_path}/restored-d.db"\n'
    restored.use("s3")
    assert "holds content already" in restored.run("restore", str(tmp_path / "kept"), code=Exit.REFUSED)
    assert len(house.in_s3()) == 2
    restored.use("s3", prefix="test/restored-" + house.data.parent.name)
    for name in ("restored.db", "restored-d.db"):
        (tmp_path / name).unlink(missing_ok=True)
    restored.run("restore", str(tmp_path / "kept"))
    restored.run("content", "check")
    house.run("content", "check")


# From one store to the other


@pytest.mark.campaign
def test_content_moves_to_s3_and_back_while_a_server_runs(house: House) -> None:
    house.use("files")
    texts = [b"small", b"", b"y" * 100_000, random.Random(2).randbytes(9 << 20)]
    house.keep(*texts)
    with house.served.serve("--workers", "1") as server:
        said = house.run("content", "move", "--to", "s3")
        assert "4 contents copied" in said
        assert "Stop it" in said
        assert "is removed" not in said
        more = house.keep(b"written meanwhile")
        server.stop()
    said = house.run("content", "move", "--to", "s3")
    assert "1 contents copied, 5 there" in said
    assert "repository.content_store = 's3'" in said
    assert "0 contents copied, 5 there" in house.run("content", "move", "--to", "s3"), "nothing is left"
    assert house.in_s3() == sorted([*texts, b"written meanwhile"])
    assert "nothing is removed" in house.run("content", "move", "--to", "s3", "--remove-source", code=Exit.REFUSED)
    house.use("s3")
    house.run("content", "check")
    assert "already" in house.run("content", "move", "--to", "s3", code=Exit.REFUSED)
    with house.served.serve("--workers", "1"):
        said = house.run("content", "move", "--to", "s3", "--remove-source", code=Exit.IN_USE)
    assert "5 contents are whole" in house.run("content", "move", "--to", "s3", "--remove-source")
    assert not (house.data / "content").exists()
    house.run("content", "check")
    house.run("object", "rm", more[0], "-r", World.repository)
    assert "4 contents copied, 4 there" in house.run("content", "move", "--to", "files")
    house.use("files")
    house.run("content", "check")
    assert sorted(contents(house.data / "content")) == sorted(texts)
    house.run("content", "move", "--to", "files", "--remove-source")
    assert house.in_s3() == []


def test_damaged_content_stays_behind_and_nothing_is_removed(house: House) -> None:
    house.use("files")
    ids = house.keep(b"sound", b"lost" * 30_000)
    lose(house.data / "content", b"lost" * 30_000)
    said = house.run("content", "move", "--to", "s3", code=Exit.FAILED)
    assert "The content of 1 object is missing or altered, and was not copied:" in said
    assert ids[1] in said
    house.keep(b"gone" * 30_000)
    lose(house.data / "content", b"gone" * 30_000)
    said = house.run("content", "move", "--to", "s3", code=Exit.FAILED)
    assert "The contents of 2 objects are missing or altered, and were not copied:" in said
    house.use("s3")
    said = house.run("content", "move", "--to", "s3", "--remove-source", code=Exit.FAILED)
    assert "Nothing was removed" in said
    assert contents(house.data / "content") == [b"sound"]
    house.use("files")
    house.settings["repository.s3.bucket"] = ""
    house.use("files")
    assert "name no bucket" in house.run("content", "move", "--to", "s3", code=Exit.REFUSED)


def _move(house: House, to: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "muniment", "--data", str(house.data), "content", "move", "--to", to],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )


ROUNDS = pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.campaign)])


@ROUNDS
@pytest.mark.parametrize("to", ["s3", "files"])
def test_a_move_killed_at_any_moment_goes_on(house: House, rounds: int, to: backends.ContentKind) -> None:
    """kill -9; what was noted is not copied again, and in the end all of it is there."""
    source: backends.ContentKind = "files" if to == "s3" else "s3"
    house.use(source)
    chance = random.Random(rounds)
    texts = [chance.randbytes(chance.choice((10, 1000, 70_000, 300_000))) for _ in range(300)]
    house.keep(*texts)
    record = house.data / "content-move"
    for _ in range(rounds):
        process = _move(house, to)
        _await_progress(process, record)
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        process.wait()
    with record.open("ab") as file:
        file.write(b"00ff")  # half a line, as a power failure leaves it
    said = house.run("content", "move", "--to", to)
    copied = re.search(r"(\d+) contents copied, 300 there", said)
    assert copied, said
    assert int(copied[1]) <= 300 - 64 * min(rounds, 4)
    house.use(to)
    house.run("content", "check")


def _await_progress(process: "subprocess.Popen[bytes]", record: Path) -> None:
    """Wait until a move has noted something, or has nothing more to note."""
    count = _noted(record)
    until(lambda: _noted(record) > count or process.poll() is not None)


def _noted(record: Path) -> int:
    return record.read_bytes().count(b"\n") if record.exists() else 1
