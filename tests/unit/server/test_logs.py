"""Log lines: what finds no room is lost, and nothing else."""

import io
import subprocess
import sys

import pytest

from muniment.server import logs

_SAID = """
import structlog
from muniment.server import logs
from muniment.settings import Settings
logs.start(Settings())
log = structlog.get_logger("muniment.test")
for level in ("debug", "info", "warning", "error", "critical", "exception"):
    getattr(log, level)("pump station")
print("went on")
"""


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
