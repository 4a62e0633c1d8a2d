"""What our application tells SQLite for a request is recorded, and a bare endpoint can run it again and again."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from bench import ours, recordings, statements
from bench.load import Request
from bench.ours import Site
from bench.processes import Program
from bench.recordings import Replay


def test_a_create_and_a_read_are_recorded_whole_and_run_again_with_objects_of_their_own(tmp_path: Path) -> None:
    data = ours.prepare(tmp_path / "data", "directory.hash_memory_kib=8192", "directory.hash_passes=1")
    site = Site(data, Program(os.getpid()), "https://127.0.0.1", "")
    body = json.dumps({"properties": {"object_name": "letter.txt"}})
    accept = ("Accept", "application/json")
    requests = {
        "create": Request("POST", f"{site.repository}/objects", body, (("Content-Type", "application/json"), accept)),
        "read": Request("GET", f"{site.repository}/objects/{statements.MADE}", "", (accept,)),
    }
    recorded = statements.record(data, site.sign_in(), requests)
    told = {name: [one.sql.split()[0] for one in recording.statements] for name, recording in recorded.items()}
    assert told["create"][-1] == "COMMIT"
    assert told["create"].count("INSERT") == 3  # the object, what its owner has, and the change
    assert told["read"][-1] == "ROLLBACK"
    assert "INSERT" not in told["read"]
    recordings.write(tmp_path / "statements.json", recorded)
    statements.copy_databases(data, tmp_path / "copies")
    replay = Replay(tmp_path / "statements.json", tmp_path / "copies")
    before = _count(tmp_path / "copies"), _count(data.folder)
    for _ in range(3):
        assert replay.run("create") == (201, recorded["create"].reply.encode())
        assert replay.run("read") == (200, recorded["read"].reply.encode())
    assert (_count(tmp_path / "copies"), _count(data.folder)) == (before[0] + 3, before[1])


def _count(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "repository.db")) as driver:
        counted: int = driver.execute("SELECT count(*) FROM objects").fetchone()[0]
        return counted
