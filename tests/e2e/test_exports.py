"""A repository leaves one installation and enters another, in processes that are killed: it is the same, and is found.

Source: docs/export.md.
"""

import json
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.e2e.processes import ENVIRONMENT, ServedHouse, muniment
from tests.scenes import World
from tests.waiting import until

DOCUMENTS = 1200
ROUNDS = pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.campaign)])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> ServedHouse:
    """An installation with a repository of many documents, some large."""
    root = tmp_path_factory.mktemp("source")
    house = ServedHouse(root)
    papers = root / "papers"
    chance = random.Random(1)
    for number in range(DOCUMENTS):
        folder = papers / f"box {number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(f"charter {number} of the abbey, word{number}")
        if number % 100 == 0:
            (folder / f"{number}.bin").write_bytes(chance.randbytes(300_000))
    done(house, "acl", "add", "papers", "world=READ", "-r", World.repository)
    done(house, "import", str(papers), "-r", World.repository, "--acl", "papers", "--no-wait")
    return house


def begun(data: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    """Begin a command."""
    return subprocess.Popen(
        [sys.executable, "-m", "muniment", "--data", str(data), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )


def files(folder: Path) -> dict[str, bytes]:
    """All files of an export but its manifest."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def done(house: ServedHouse, *arguments: str, code: int = 0) -> str:
    """Run a command to its end."""
    said = muniment(house.data, *arguments)
    assert said.returncode == code, said.stdout + said.stderr
    return said.stdout + said.stderr


@ROUNDS
def test_an_export_that_is_killed_goes_on(source: ServedHouse, tmp_path: Path, rounds: int) -> None:
    chance = random.Random(rounds)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for _ in range(rounds):
        process = begun(source.data, "repository", "export", World.repository, str(killed))
        moment = chance.randrange(DOCUMENTS // 2)
        until(lambda: _count(killed) > moment or process.poll() is not None, pause=0)  # noqa: B023 - it waits here
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    if rounds == 1:
        assert process.returncode == -signal.SIGKILL
        assert not (killed / "manifest.json").exists()
    done(source, "repository", "export", World.repository, str(killed))
    done(source, "repository", "export", World.repository, str(whole))
    assert files(killed) == files(whole)
    described = [json.loads((folder / "manifest.json").read_bytes()) for folder in (killed, whole)]
    assert all(one.pop("exported") for one in described)
    assert described[0] == described[1]
    checked = subprocess.run(["sha256sum", "--check", "--quiet", "contents.sha256"], cwd=whole, check=False)
    assert checked.returncode == 0


@pytest.mark.campaign
@pytest.mark.parametrize("rounds", [10])
def test_an_import_that_is_killed_goes_on_and_is_found(source: ServedHouse, tmp_path: Path, rounds: int) -> None:
    """While it is not finished, the server answers as if there were no such repository."""
    done(source, "repository", "export", World.repository, str(tmp_path / "export"))
    house = ServedHouse(tmp_path)
    world = house.world
    command = ("repository", "import", "copy", str(tmp_path / "export"), "--resource", World.resource_name)
    database = tmp_path / "data" / "databases" / "repository.db"
    with house.serve() as server, server.client() as http:
        form = {"grant_type": "password", "client_id": World.client_id, "scope": World.scope}
        person = {"username": world.reader.id, "password": world.reader.password}
        answer = http.post("/dirws/login", data=form | person)
        http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        lines = 0
        for _ in range(rounds):
            process = begun(house.data, *command)
            until(lambda: _kept(database) > lines or process.poll() is not None, pause=0)  # noqa: B023 - it waits here
            process.send_signal(signal.SIGKILL)
            process.wait(30)
            lines = _kept(database)
            if process.returncode != -signal.SIGKILL:
                break
            absent = http.get("/rest/repositories/no-such-repository")
            half = http.get("/rest/repositories/copy")
            assert half.status_code == absent.status_code
            answers = [half.json(), json.loads(absent.text.replace("no-such-repository", "copy"))]
            assert all(one.pop("id") for one in answers)
            assert answers[0] == answers[1]
            assert "copy" not in http.get("/rest/repositories").text
            refused = done(house, "repository", "guard", "copy", "--resource", World.resource_name, code=3)
            assert "is not finished" in refused
        if rounds == 1:
            assert process.returncode == -signal.SIGKILL, "it was killed in the middle"
            assert lines >= 500
            said = done(house, *command)
            assert f"{DOCUMENTS + 12 + 8} objects" in said
        elif process.returncode:
            done(house, *command)

        def finds(word: str) -> list[str]:
            found = http.get(
                "/rest/repositories/copy/search", params={"q": word}, headers={"Accept": "application/json"}
            )
            return [entry["title"] for entry in found.json().get("entries", ())] if found.is_success else []

        until(lambda: finds(f"word{DOCUMENTS - 1}") == [f"{DOCUMENTS - 1}.txt"], seconds=180, pause=0.2)
        assert finds("word7") == ["7.txt"]
    done(house, "content", "check", "-r", "copy")
    done(house, "index", "check", "-r", "copy")
    done(house, "repository", "usage")
    done(house, "repository", "export", "copy", str(tmp_path / "again"))
    first, again = files(tmp_path / "export"), files(tmp_path / "again")
    assert {name for name in first | again if first.get(name) != again.get(name)} <= {"bearers.jsonl"}


def _count(folder: Path) -> int:
    return sum(1 for path in (folder / "content").rglob("*") if path.is_file())


def _kept(database: Path) -> int:
    """Say how many lines of objects an import has kept."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as cx:
        row = cx.execute("SELECT line FROM unfinished_imports WHERE stage = 'objects'").fetchone()
        return int(row[0]) if row else 0
    return 0
