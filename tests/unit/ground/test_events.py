"""Events are lines of a file and of the log, at every level; one that cannot be written stops nothing."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from muniment.ground.clock import SECOND, Instant
from muniment.ground.events import FIELDS, Event, Recorder


def lines(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.log"


def refused(who: str | None = None, account: str = "") -> Event:
    return Event("sign-in", "refused", who=who, account=account)


def test_an_event_is_one_line_for_the_owner_alone(path: Path, now: Instant) -> None:
    Recorder(path).record(Event("sign-in", "done", who="a@b\nc", origin="::1", account="x"), now)
    (event,) = lines(path)
    assert event == {
        "timestamp": "2026-11-21T12:00:00Z",
        "event": "sign-in",
        "result": "done",
        "who": "a@b\nc",
        "origin": "::1",
    }
    assert event.keys() <= FIELDS.keys()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_renamed_is_left_alone_and_a_new_one_begun(path: Path, now: Instant) -> None:
    recorder = Recorder(path)
    recorder.record(Event("sign-in", "done", who="first"), now)
    path.rename(path.with_suffix(".1"))
    recorder.record(Event("sign-in", "done", who="second"), now)
    assert [event["who"] for event in lines(path.with_suffix(".1")) + lines(path)] == ["first", "second"]


def test_of_those_refused_ten_an_account_and_minute_are_written_and_the_rest_counted(path: Path, now: Instant) -> None:
    recorder = Recorder(path, path.with_suffix(".counts"))
    for _ in range(30):
        recorder.record(refused("alice@People", "alice@people"), now)
        recorder.record(refused(None, "nobody@people"), now)
        recorder.record(Event("revocation", "refused"), now)
        recorder.record(Event("sign-in", "done", who="bob@People", account="bob@people"), now)
    written = lines(path)
    assert len(written) == 3 * 10 + 30
    recorder.settle(now + 60 * SECOND)
    counts = lines(path)[len(written) :]
    assert [{**event, "timestamp": ""} for event in sorted(counts, key=str)] == [
        {"timestamp": "", "event": "revocation", "result": "refused", "count": 20},
        {"timestamp": "", "event": "sign-in", "result": "refused", "count": 20},
        {"timestamp": "", "event": "sign-in", "result": "refused", "who": "alice@People", "count": 20},
    ]


def test_when_the_server_stops_the_count_is_written(path: Path, now: Instant) -> None:
    recorder = Recorder(path, path.with_suffix(".counts"))
    for _ in range(11):
        recorder.record(refused("a@b", "a@b"), now)
    recorder.settle(now)
    assert len(lines(path)) == 10
    recorder.settle(now, stopping=True)
    assert lines(path)[-1]["count"] == 1


@pytest.mark.parametrize("broken", ["/dev/full", "/nowhere/events.log", "/proc/version"])
def test_an_event_that_finds_no_room_is_lost_and_nothing_else(broken: str, now: Instant) -> None:
    recorder = Recorder(Path(broken), Path(broken))
    for _ in range(12):
        recorder.record(refused("a@b", "a@b"), now)
        recorder.record(Event("sign-in", "done", who="a@b"), now)
    recorder.settle(now, stopping=True)


def test_the_file_is_not_written_through_a_link(path: Path, now: Instant) -> None:
    path.symlink_to(path.with_suffix(".elsewhere"))
    Recorder(path).record(Event("sign-in", "done"), now)
    assert not path.with_suffix(".elsewhere").exists()


_SAID = """
import sys
from muniment.server import logs
from muniment.ground.events import Event, Recorder
from muniment.installation.settings import Settings
logs.start(Settings(log_level=sys.argv[1], log_format=sys.argv[2]))
Recorder(None).record(Event("pause", "done", who="alice@People"), 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", ["debug", "error"])
@pytest.mark.parametrize("how", ["json", "console"])
def test_an_event_is_in_the_log_at_every_level(level: str, how: str) -> None:
    run = subprocess.run([sys.executable, "-c", _SAID, level, how], capture_output=True, text=True, check=True)
    assert run.stdout == ""
    (line,) = run.stderr.splitlines()
    assert "pause" in line
    assert "alice@People" in line
    assert "muniment.events" in line
