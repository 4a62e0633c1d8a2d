"""Log lines: what finds no room is lost, and nothing else."""

import io
import json
import subprocess
import sys
import time
from datetime import UTC, datetime

import msgspec
import pytest

from muniment.installation import settings
from muniment.server import logs
from muniment.web.requests.access_log import AccessLine

_SAID = """
import structlog
from muniment.server import logs
from muniment.installation.settings import Settings
logs.start(Settings())
log = structlog.get_logger("muniment.test")
for level in ("debug", "info", "warning", "error", "critical", "exception"):
    getattr(log, level)("pump station")
print("went on")
"""


@pytest.mark.slow
def test_a_line_that_finds_no_room_stops_nothing() -> None:
    with open("/dev/full", "w") as full:
        run = subprocess.run([sys.executable, "-c", _SAID], stdout=subprocess.PIPE, stderr=full, text=True, check=False)
    assert run.stdout == "went on\n"


def test_a_line_for_a_closed_standard_error_is_lost_and_disturbs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", closed)
    lines = logs._Lines("muniment")
    closed.close()
    lines.msg("nobody reads this")


def _line(path: str) -> AccessLine:
    end = time.perf_counter()
    return AccessLine("an id", None, "POST", path, 200, 5, end - 0.5, end, "https", None)


@pytest.mark.parametrize("letter", ["x", "é", "報"])
def test_lines_of_the_access_log_are_those_of_any_other_logger_and_keep_together(
    monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    """Several processes write to one pipe, so no write is longer than a pipe takes in one piece."""
    writes: list[str] = []
    stream = io.StringIO()
    monkeypatch.setattr(stream, "write", lambda text: writes.append(text) or len(text))  # type: ignore[func-returns-value]
    monkeypatch.setattr(sys, "stderr", stream)
    logs._write_together([_line(f"/{number}/{letter * 100}") for number in range(64)])
    assert 2 < len(writes) < 32
    assert all(len(text.encode()) <= logs._PIPE_BUF and text.endswith("}\n") for text in writes)
    lines = [msgspec.json.decode(line) for line in "".join(writes).splitlines()]
    assert [line["path"].split("/")[1] for line in lines] == [str(number) for number in range(64)]
    assert lines[0].keys() == {
        *("request_id", "method", "path", "status", "bytes", "ms", "scheme", "client"),
        *("event", "logger", "level", "timestamp"),
    }
    assert (lines[0]["event"], lines[0]["logger"], lines[0]["level"]) == ("request", "muniment.web", "info")
    moment = datetime.fromisoformat(lines[0]["timestamp"])
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 3600


def test_a_path_that_utf_8_cannot_encode_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    logs._write_together([_line("/\udcff")])
    assert json.loads(stream.getvalue())["path"] == "/\udcff"


@pytest.mark.parametrize(("setting", "waits"), [("json", True), ("console", False)])
def test_only_lines_as_json_wait_for_each_other(setting: str, waits: bool) -> None:
    made = logs.access_log(settings.read(None, {}, (f"log_format={setting}",)))
    assert (made._seconds > 0) is waits
